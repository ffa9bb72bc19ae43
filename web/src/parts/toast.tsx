// A short word at the foot of the page that leaves by itself.
import { signal } from "@preact/signals";
import { t } from "../base/words.ts";
import { toClipboard } from "./text.tsx";

const text = signal("");
let timer = 0;

export function say(word: string): void {
  text.value = word;
  clearTimeout(timer);
  timer = setTimeout(() => {
    text.value = "";
  }, 2400) as unknown as number;
}

export const Toast = () => (
  <div class="toast" role="status" aria-live="polite" data-shown={text.value !== ""}>
    {text.value}
  </div>
);

export async function copyLink(): Promise<void> {
  await toClipboard(location.href);
  say(t.linkCopied);
}
