// Tables of numbers come as columns: a length, a JSON header, then each column as it lies in memory.

type Column = Uint8Array | Uint16Array | Uint32Array | Float32Array;

export interface Columns<H> {
  header: H;
  rows: number;
  /** Values up to 255. */
  u8(name: string): Uint8Array;
  u32(name: string): Uint32Array;
  f32(name: string): Float32Array;
}

interface Header {
  rows: number;
  columns: { name: string; type: keyof typeof KINDS; offset: number }[];
}

const KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };

export function decodeColumns<H>(buffer: ArrayBuffer): Columns<H> {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Header & H;
  const body = 4 + length;
  const get = (name: string): Column => {
    const found = header.columns.find((c) => c.name === name);
    // Nothing but zeros is not sent.
    return found ? view(buffer, body + found.offset, found.type, header.rows) : new Uint8Array(header.rows);
  };
  return {
    header,
    rows: header.rows,
    u8: (name) => as(Uint8Array, get(name)),
    u32: (name) => as(Uint32Array, get(name)),
    f32: (name) => as(Float32Array, get(name)),
  };
}

function view(buffer: ArrayBuffer, at: number, type: keyof typeof KINDS, rows: number): Column {
  const Kind = KINDS[type];
  // A column that does not lie on its own boundary has to be copied.
  if (at % Kind.BYTES_PER_ELEMENT === 0) return new Kind(buffer, at, rows);
  return new Kind(buffer.slice(at, at + rows * Kind.BYTES_PER_ELEMENT));
}

/** A column comes as narrow as its values allow. */
function as<C extends Column>(Kind: { new (from: Column): C }, column: Column): C {
  return column instanceof Kind ? column : new Kind(column);
}
