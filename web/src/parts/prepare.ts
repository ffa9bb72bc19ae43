// Tasks from the server, fetched and made ready beside the page: many of them would hold it up.
import { Ahead, failureOf, unreachable, type Load } from "../base/fetch.ts";
import type { Bars, StageTasks, Work } from "./bars.ts";

export interface Order {
  id: number;
  work: Work;
  url: string;
}

/** An order that is no longer wanted. */
export interface Stop {
  stop: number;
}

export interface Done {
  id: number;
  result?: unknown;
  /** The answer was none that can be made ready. */
  refused?: { text: string; status: number };
  /** There was no answer. */
  unreachable?: true;
  error?: string;
}

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

function order(work: Work, url: string, signal?: AbortSignal): Promise<Done> {
  worker ??= startWorker();
  const to = worker;
  const id = (orders += 1);
  to.postMessage({ id, work, url } satisfies Order);
  signal?.addEventListener("abort", () => {
    if (waiting.delete(id)) to.postMessage({ stop: id } satisfies Stop);
  });
  return new Promise((tell) => waiting.set(id, tell));
}

const ahead = new Ahead<Done>();

/** Asks for what `prepared` will ask for as soon as its part is there. */
export const expectTasks = (work: Work, url: string): void => ahead.expect(url, order(work, url));

const prepared =
  <T>(work: Work): Load<T> =>
  async (url, signal) => {
    const done = await (ahead.take(url) ?? order(work, url, signal));
    if (done.refused) throw failureOf(done.refused.text, done.refused.status, url);
    if (done.unreachable) throw unreachable(url);
    if (done.error !== undefined) throw failureOf(done.error, 0, url);
    return done.result as T;
  };

export const asBars = prepared<Bars>("bars");
export const asStageTasks = prepared<StageTasks>("stage");
