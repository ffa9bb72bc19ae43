// Tables of numbers come as columns: a length, a JSON header, then each column as it lies in memory.

export type Column = Uint8Array | Uint32Array | Float32Array;

export interface Columns<H> {
  header: H;
  rows: number;
  u8(name: string): Uint8Array;
  u32(name: string): Uint32Array;
  f32(name: string): Float32Array;
}

interface Header {
  rows: number;
  columns: { name: string; type: "u8" | "u32" | "f32"; offset: number }[];
}

const KINDS = { u8: Uint8Array, u32: Uint32Array, f32: Float32Array };

export function decodeColumns<H>(buffer: ArrayBuffer): Columns<H> {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Header & H;
  const body = 4 + length;
  const get = (name: string, type: keyof typeof KINDS): Column => {
    const found = header.columns.find((c) => c.name === name && c.type === type);
    if (!found) return new KINDS[type](header.rows);
    return view(buffer, body + found.offset, type, header.rows);
  };
  return {
    header,
    rows: header.rows,
    u8: (name) => get(name, "u8") as Uint8Array,
    u32: (name) => get(name, "u32") as Uint32Array,
    f32: (name) => get(name, "f32") as Float32Array,
  };
}

function view(buffer: ArrayBuffer, at: number, type: keyof typeof KINDS, rows: number): Column {
  const Kind = KINDS[type];
  // A column that does not lie on its own boundary has to be copied.
  if (at % Kind.BYTES_PER_ELEMENT === 0) return new Kind(buffer, at, rows);
  return new Kind(buffer.slice(at, at + rows * Kind.BYTES_PER_ELEMENT));
}

export const asColumns = async <H>(response: Response): Promise<Columns<H>> => decodeColumns<H>(await response.arrayBuffer());
