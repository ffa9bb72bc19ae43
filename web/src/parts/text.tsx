// Text made by the server or by users. Everything is a text node; words between backticks are code.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { t } from "../base/words.ts";
import { Icon } from "./icons.tsx";

/** A number stays with its unit at the end of a line. */
const tied = (text: string): string => text.replace(/(\d) (?=(?:ms|[smhd]|[KMGTP]iB|B|[%×])(?![\p{L}\d]))/gu, "$1\u00a0");

export function Prose({ text }: { text: string }) {
  const parts = text.split(/`([^`\n]+)`/);
  return <>{parts.map((part, i) => (i % 2 ? <code key={i}>{part}</code> : tied(part)))}</>;
}

/** Servers write what went wrong as a clause; on its own it starts a sentence. */
export const sentence = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** The first clause bold, the rest plain: what a tired person repeats on the phone comes first. */
export function Verdict({ text }: { text: string }) {
  const cut = firstClause(text);
  return (
    <>
      <b>
        <Prose text={text.slice(0, cut)} />
      </b>
      <Prose text={text.slice(cut)} />
    </>
  );
}

function firstClause(text: string): number {
  const found = /[:;](?=\s)|[.](?=\s+\p{Lu})/u.exec(text);
  return found ? found.index + 1 : text.length;
}

export function CopyButton({
  text,
  label = t.copy,
  primary = false,
}: {
  text: string | (() => string);
  label?: string;
  primary?: boolean;
}) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await toClipboard(typeof text === "string" ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1600);
  };
  return (
    <button type="button" class={`btn sm ${primary ? "pri" : ""}`} onClick={copy}>
      <Icon name={done ? "ok" : "copy"} />
      <span aria-live="polite">{done ? t.copied : label}</span>
    </button>
  );
}

export async function toClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text);
  }
}

/** Pages on plain http outside this machine have no clipboard object. */
function copyBySelection(text: string): void {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

const KEYWORDS =
  /^(?:select|from|where|group|by|order|limit|join|left|right|inner|outer|on|as|and|or|not|in|is|null|with|case|when|then|else|end|desc|asc|having|union|all|distinct|insert|into|create|table|cache|val|var|def|import|new|true|false|none|for|if|return|lambda|analyze|compute|statistics)$/i;
const TOKENS = /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(--[^\n]*|#[^\n]*|\/\*[\s\S]*?\*\/|\/\/[^\n]*)|([A-Za-z_]+)/g;

/** Strings, comments and keywords set apart; enough for snippets of SQL, Python, Scala and settings. */
export function Code({ text }: { text: string }) {
  const out: ComponentChildren[] = [];
  let last = 0;
  for (const match of text.matchAll(TOKENS)) {
    const kind = match[1] ? "s" : match[2] ? "c" : KEYWORDS.test(match[3] ?? "") ? "k" : "";
    if (!kind) continue;
    out.push(text.slice(last, match.index), <span class={kind}>{match[0]}</span>);
    last = match.index + match[0].length;
  }
  out.push(text.slice(last));
  return (
    <pre class="code" tabIndex={0}>
      {out}
    </pre>
  );
}
