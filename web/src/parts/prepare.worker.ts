// Fetches tasks and makes them ready to be drawn; their arrays move to the page and are never copied.
import { WORKS } from "./bars.ts";
import type { Done, Order, Stop } from "./prepare.ts";

function buffersOf(value: unknown, found = new Set<ArrayBuffer>()): Set<ArrayBuffer> {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (value !== null && typeof value === "object") for (const part of Object.values(value)) buffersOf(part, found);
  return found;
}

function send(done: Done): void {
  postMessage(done, { transfer: [...buffersOf(done.result)] });
}

const running = new Map<number, AbortController>();

async function take({ id, work, url }: Order): Promise<Done> {
  const stop = new AbortController();
  running.set(id, stop);
  let response: Response;
  let buffer: ArrayBuffer;
  try {
    response = await fetch(url, { signal: stop.signal });
    if (!response.ok) return { id, refused: { text: await response.text(), status: response.status } };
    buffer = await response.arrayBuffer();
  } catch {
    return { id, unreachable: true };
  } finally {
    running.delete(id);
  }
  try {
    return { id, result: WORKS[work](buffer) };
  } catch (error) {
    return { id, error: String(error) };
  }
}

onmessage = ({ data }: MessageEvent<Order | Stop>) => {
  if ("stop" in data) running.get(data.stop)?.abort();
  else void take(data).then(send);
};
