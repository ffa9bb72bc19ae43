// Makes tasks ready to be drawn; their arrays move to the page and back and are never copied.
import { WORKS } from "./bars.ts";
import type { Done, Order } from "./prepare.ts";

function buffersOf(value: unknown, found = new Set<ArrayBuffer>()): Set<ArrayBuffer> {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (value !== null && typeof value === "object") for (const part of Object.values(value)) buffersOf(part, found);
  return found;
}

function send(done: Done): void {
  postMessage(done, { transfer: [...buffersOf(done.result)] });
}

onmessage = ({ data: { id, work, buffer } }: MessageEvent<Order>) => {
  try {
    send({ id, result: WORKS[work](buffer) });
  } catch (error) {
    send({ id, error: String(error) });
  }
};
