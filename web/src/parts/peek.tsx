// The first facts of a row, beside its table.
import type { ComponentChildren } from "preact";
import type { FindingRef } from "../base/api.ts";
import { t } from "../base/words.ts";
import { rankClass } from "./bits.tsx";
import { Prose } from "./text.tsx";

interface PeekProps {
  title: ComponentChildren;
  /** Where the whole of it is. */
  to: string;
  /** What it says of itself, or why it failed. */
  text?: ComponentChildren;
  facts: [string, ComponentChildren][];
  findings?: FindingRef[];
  /** The application whose findings they are. */
  base?: string;
  children?: ComponentChildren;
}

export function Peek({ title, to, text, facts, findings = [], base = "", children }: PeekProps) {
  return (
    <div class="peek-body" aria-live="polite">
      <h3 class="peek-title">{title}</h3>
      {text && <p class="peek-text">{text}</p>}
      <dl class="panel-list">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {findings.map((f) => (
        <a key={f.number} class="findline" href={`${base}?open=${f.number}#finding-${f.number}`}>
          <span class={`rank ${rankClass(f.severity)}`}>{f.number}</span>
          <span>
            <Prose text={f.title} />
          </span>
        </a>
      ))}
      {children}
      <p class="row peek-foot">
        <a class="btn sm" href={to}>
          {t.keys.openIt}
        </a>
        <span class="dim">
          <kbd>j</kbd> <kbd>k</kbd> <kbd>{t.space}</kbd>
        </span>
      </p>
    </div>
  );
}
