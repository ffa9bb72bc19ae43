// The address is the state: what one sees can be sent.
import { signal } from "@preact/signals";

export interface Place {
  path: string;
  query: URLSearchParams;
}

const read = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export const here = signal<Place>(read());

export function go(to: string, how: { replace?: boolean } = {}): void {
  const before = location.pathname;
  if (how.replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  here.value = read();
  if (location.pathname !== before) scrollTo(0, 0);
}

/** Changes some parameters and leaves the others; null removes one, a list sets it several times. */
export function setQuery(changes: Record<string, string | string[] | null>, how: { push?: boolean } = {}): void {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(changes)) {
    query.delete(key);
    for (const one of Array.isArray(value) ? value : [value ?? ""]) if (one) query.append(key, one);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), { replace: !how.push });
}

/** Links stay plain `a` elements (`rel="external"` for pages that the server makes itself); this turns a plain click on one into a change of page. */
export function followLinks(): void {
  addEventListener("popstate", () => {
    here.value = read();
  });
  addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest("a");
    const href = link?.getAttribute("href");
    if (
      !link ||
      !href?.startsWith("/") ||
      href.startsWith("//") ||
      link.target ||
      link.rel === "external" ||
      link.hasAttribute("download")
    )
      return;
    event.preventDefault();
    go(href);
  });
}

// Addresses of an application's pages.

export interface AppRef {
  id: string;
  attempt: string | null;
}

const part = encodeURIComponent;

/** `ID` or `ID/ATTEMPT`, as the API and the pages both spell it. */
export const appKey = (app: AppRef): string => (app.attempt ? `${part(app.id)}/${part(app.attempt)}` : part(app.id));
export const appPath = (app: AppRef, tab = ""): string => `/applications/${appKey(app)}${tab ? `/-/${tab}` : ""}`;

export interface AppPlace {
  app: AppRef;
  tab: string;
  rest: string[];
}

/** Reads `/applications/ID[/ATTEMPT][/-/TAB[/…]]`; null for any other address. */
export function readAppPath(path: string): AppPlace | null {
  const parts = path
    .split("/")
    .slice(1)
    .filter((p) => p !== "")
    .map(safeDecode);
  if (parts[0] !== "applications" || !parts[1]) return null;
  const dash = parts.indexOf("-", 2);
  const tail = dash < 0 ? [] : parts.slice(dash + 1);
  const attempt = parts[2] && dash !== 2 ? parts[2] : null;
  return { app: { id: parts[1], attempt }, tab: tail[0] ?? "", rest: tail.slice(1) };
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
