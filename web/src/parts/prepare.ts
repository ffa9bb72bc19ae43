// Tasks from the server, made ready beside the page: many of them would hold it up.
import { Ahead, answerOf, Failure, type Load } from "../base/fetch.ts";
import type { Bars, StageTasks, Work } from "./bars.ts";

export interface Order {
  id: number;
  work: Work;
  buffer: ArrayBuffer;
}

export interface Done {
  id: number;
  result?: unknown;
  error?: string;
}

/** An answer of this size is ready before a worker has started. */
const SMALL = 256 * 1024;
/** One that takes so long to come is larger: the worker starts while it comes. */
const SOON_MS = 30;

let worker: Worker | null = null;
let orders = 0;
const waiting = new Map<number, (done: Done) => void>();

function startWorker(): Worker {
  const started = new Worker(new URL("./prepare.worker.ts", import.meta.url), { type: "module" });
  started.onmessage = ({ data }: MessageEvent<Done>) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  };
  started.onerror = ({ message }) => {
    for (const [id, tell] of waiting) tell({ id, error: message });
    waiting.clear();
    worker = null;
  };
  return started;
}

function order(work: Work, buffer: ArrayBuffer): Promise<Done> {
  worker ??= startWorker();
  const id = (orders += 1);
  worker.postMessage({ id, work, buffer } satisfies Order, [buffer]);
  return new Promise((tell) => waiting.set(id, tell));
}

async function prepare(work: Work, url: string, signal?: AbortSignal): Promise<unknown> {
  const early = setTimeout(() => (worker ??= startWorker()), SOON_MS);
  const buffer = await answerOf(url, { signal })
    .then((response) => response.arrayBuffer())
    .finally(() => clearTimeout(early));
  if (buffer.byteLength < SMALL) return (await import("./bars.ts")).WORKS[work](buffer);
  const { result, error } = await order(work, buffer);
  if (error !== undefined) throw new Failure(error, 0, null, url);
  return result;
}

const ahead = new Ahead<unknown>();

/** Asks for what a part will ask for as soon as it is there. */
export const expectTasks = (work: Work, url: string): void => ahead.expect(url, prepare(work, url));

const prepared =
  <T>(work: Work): Load<T> =>
  (url, signal) =>
    (ahead.take(url) ?? prepare(work, url, signal)) as Promise<T>;

export const asBars = prepared<Bars>("bars");
export const asStageTasks = prepared<StageTasks>("stage");
