// Tasks from the server, made ready beside the page: many of them would hold it up.
import { Failure } from "../base/fetch.ts";
import { WORKS, type Bars, type StageTasks, type Work } from "./bars.ts";

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

async function prepare<T>(work: Work, response: Response): Promise<T> {
  const early = setTimeout(() => (worker ??= startWorker()), SOON_MS);
  const buffer = await response.arrayBuffer();
  clearTimeout(early);
  if (buffer.byteLength < SMALL) return WORKS[work](buffer) as T;
  const { result, error } = await order(work, buffer);
  if (error !== undefined) throw new Failure(error, 0, null, response.url);
  return result as T;
}

export const asBars = (response: Response): Promise<Bars> => prepare("bars", response);
export const asStageTasks = (response: Response): Promise<StageTasks> => prepare("stage", response);
