// News from the server: it says that something changed, and pages that show it ask again.
import { signal } from "@preact/signals";
import { freshness, OWN } from "./fetch.ts";

interface News {
  ready: boolean;
  revision: number;
}

/** The last change of the list of applications; the first one only says how things stand. */
export const change = signal<{ revision: number; first: boolean } | null>(null);
/** Set while the page of a running application is open: only that one changes by itself. */
export const watching = signal(false);

const PACE_MS = 3000;
let refreshed = 0;
let later = 0;

/** A busy application writes all the time; its pages follow at a pace that can be read, and the last change is not left out. */
function refresh(): void {
  clearTimeout(later);
  const wait = refreshed + PACE_MS - Date.now();
  if (wait > 0) {
    later = setTimeout(refresh, wait) as unknown as number;
    return;
  }
  refreshed = Date.now();
  if (watching.value) freshness.value += 1;
}

function take(news: News): void {
  const first = change.value === null;
  if (change.value?.revision === news.revision) return;
  change.value = { revision: news.revision, first };
  if (!first && watching.value) refresh();
}

export function listenToServer(): void {
  const source = new EventSource(`${OWN}/events`);
  source.addEventListener("applications", (event) => {
    try {
      take(JSON.parse((event as MessageEvent<string>).data) as News);
    } catch {
      // News that cannot be read is not worth an error: the next page load shows the truth.
    }
  });
}
