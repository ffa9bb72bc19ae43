// Loading from the server: one way in, errors made for a reader, old content kept while new content comes.
import { signal } from "@preact/signals";
import { useLayoutEffect, useState } from "preact/hooks";
import { appKey, type AppRef } from "./url.ts";
import { t } from "./words.ts";

export const OWN = "/api/lakescope/v1";
export const SPARK = "/api/v1";

export const appUrl = (app: AppRef): string => `${OWN}/applications/${appKey(app)}`;
export const stageUrl = (app: AppRef, stage: number, attempt: number): string =>
  `${appUrl(app)}/stages/${stage}/${attempt}`;
/** All tasks of a stage, to be drawn. */
export const tasksUrl = (app: AppRef, stage: number, attempt: number): string =>
  `${stageUrl(app, stage, attempt)}/tasks.columns`;

export class Failure extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly next: string | null,
    readonly url: string,
  ) {
    super(message);
  }
}

export interface Loaded<T> {
  data: T | null;
  error: Failure | null;
  /** True while a request runs, also when older data is shown. */
  busy: boolean;
  again: () => void;
}

/** How an answer is got. */
export type Load<T> = (url: string, signal: AbortSignal) => Promise<T>;

/** Bumped when the server says that an open application changed: every loader asks again. */
export const freshness = signal(0);

/** Answers that were asked for before the part that needs them was there. */
export class Ahead<T> {
  #coming = new Map<string, Promise<T>>();

  expect(url: string, answer: Promise<T>): void {
    answer.catch(() => undefined);
    this.#coming.set(url, answer);
  }

  /** Gives an answer once: the next time it would be old. */
  take(url: string): Promise<T> | undefined {
    const answer = this.#coming.get(url);
    this.#coming.delete(url);
    return answer;
  }
}

const ahead = new Ahead<Response>();

/** Asks for what a part will ask for as soon as it is there. */
export const expectData = (url: string): void => ahead.expect(url, fetch(url));

async function failureOf(response: Response, url: string): Promise<Failure> {
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text) as { error: { message: string; next?: string | null } };
    return new Failure(error.message, response.status, error.next ?? null, url);
  } catch {
    return new Failure(text.trim().slice(0, 400) || t.serverSays(response.status), response.status, null, url);
  }
}

/** Sends a request and returns its answer, or throws a Failure. */
export async function answerOf(url: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await (ahead.take(url) ?? fetch(url, init));
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Failure(t.noServer, 0, t.noServerNext, url);
  }
  if (!response.ok) throw await failureOf(response, url);
  return response;
}

/** As `answerOf`, what is in it. */
export const ask = async <T>(url: string, init: RequestInit = {}): Promise<T> => (await answerOf(url, init)).json() as Promise<T>;

const asJson: Load<never> = (url, signal) => ask(url, { signal });

// Small answers are remembered so that going back shows the page at once; it is then refreshed.
const remembered = new Map<string, unknown>();
const REMEMBER = 60;

function remember(url: string, data: unknown): void {
  remembered.delete(url);
  remembered.set(url, data);
  if (remembered.size > REMEMBER) remembered.delete(remembered.keys().next().value!);
}

interface State<T> {
  url: string | null;
  data: T | null;
  error: Failure | null;
  busy: boolean;
}

/** Loads `url` and again whenever it changes; null loads nothing. */
export function useData<T>(url: string | null, load: Load<T> = asJson): Loaded<T> {
  const [state, setState] = useState<State<T>>(() => ({
    url,
    data: url ? ((remembered.get(url) as T) ?? null) : null,
    error: null,
    busy: url !== null,
  }));
  const [tries, setTries] = useState(0);
  const fresh = freshness.value;
  // Before the browser paints: the server is asked while it does.
  useLayoutEffect(() => {
    if (!url) return;
    const stop = new AbortController();
    setState((old) => ({ url, data: (remembered.get(url) as T) ?? old.data, error: null, busy: true }));
    load(url, stop.signal).then(
      (data) => {
        // What was asked for ahead comes all the same.
        if (stop.signal.aborted) return;
        // Columns of tasks are large; only answers in JSON are kept.
        if (load === asJson) remember(url, data);
        setState({ url, data, error: null, busy: false });
      },
      (error: unknown) => {
        if (!stop.signal.aborted) setState((old) => ({ ...old, error: error as Failure, busy: false }));
      },
    );
    return () => stop.abort();
  }, [url, tries, fresh]);
  return { data: state.data, error: state.error, busy: state.busy, again: () => setTries((n) => n + 1) };
}
