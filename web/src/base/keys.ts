// The keyboard: pages and parts say which keys they answer; the help dialog lists what is answered now.

export interface Key {
  keys: string;
  what: string;
  act: (event: KeyboardEvent) => boolean | void;
}

const answered = new Map<string, Key[]>();
let waiting = "";
let timer = 0;

/** Answers a key, or a pair such as `g a`. The last one to ask wins. Returns how to stop. */
export function onKey(keys: string, what: string, act: Key["act"]): () => void {
  const key = { keys, what, act };
  answered.set(keys, [...(answered.get(keys) ?? []), key]);
  return () =>
    answered.set(
      keys,
      (answered.get(keys) ?? []).filter((k) => k !== key),
    );
}

/** Everything answered now, in the order it was asked for. */
export const listKeys = (): Key[] => [...answered.values()].flatMap((list) => list.slice(-1));

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

function run(keys: string, event: KeyboardEvent): boolean {
  const key = answered.get(keys)?.at(-1);
  if (!key || key.act(event) === false) return false;
  event.preventDefault();
  return true;
}

function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k") {
    run("mod+k", event);
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey) return;
  if (typing(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const pair = waiting ? `${waiting} ${event.key}` : "";
  waiting = "";
  clearTimeout(timer);
  if (pair && run(pair, event)) return;
  if (run(event.key, event)) return;
  if ([...answered.keys()].some((k) => k.startsWith(`${event.key} `))) {
    waiting = event.key;
    timer = setTimeout(() => {
      waiting = "";
    }, 1200) as unknown as number;
  }
}

export const listen = (): void => addEventListener("keydown", press);
