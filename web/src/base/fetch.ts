// Loading from the server: one way in, errors made for a reader, old content kept while new content comes.
import { signal } from "@preact/signals";
import { useLayoutEffect, useState } from "preact/hooks";
import { t } from "./words.ts";

export const OWN = "/api/lakescope/v1";
export const SPARK = "/api/v1";

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

type Decode<T> = (response: Response) => Promise<T>;
const asJson = async (response: Response): Promise<never> => (await response.json()) as never;

/** Bumped when the server says that an open application changed: every loader asks again. */
export const freshness = signal(0);

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
export async function ask<T>(url: string, init: RequestInit = {}, decode: Decode<T> = asJson): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Failure(t.noServer, 0, t.noServerNext, url);
  }
  if (!response.ok) throw await failureOf(response, url);
  return decode(response);
}

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
export function useData<T>(url: string | null, decode: Decode<T> = asJson): Loaded<T> {
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
    ask<T>(url, { signal: stop.signal }, decode).then(
      (data) => {
        // Columns of tasks are large; only answers in JSON are kept.
        if (decode === asJson) remember(url, data);
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
