// Small pieces used on many pages.
import type { ComponentChildren } from "preact";
import type { Certainty, FindingRef, Maybe, Severity } from "../base/api.ts";
import { clock, day, full } from "../base/time.ts";
import { t } from "../base/words.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Prose } from "./text.tsx";

export function Card({
  title,
  note,
  right,
  children,
  class: extra = "",
  id,
}: {
  title?: ComponentChildren;
  note?: ComponentChildren;
  right?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
  id?: string;
}) {
  return (
    <section class={`card ${extra}`} id={id}>
      {title && (
        <div class="hd">
          <h2>{title}</h2>
          {note && <span class="dim">{note}</span>}
          {right && <div class="r">{right}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

export type PillKind = "ok" | "fail" | "run" | "warn" | "none";
const PILL_ICONS: Record<PillKind, IconName> = { ok: "ok", fail: "fail", run: "run", warn: "warn", none: "dash" };

export const Pill = ({ kind, children }: { kind: PillKind; children: ComponentChildren }) => (
  <span class={`pill ${kind}`}>
    <Icon name={PILL_ICONS[kind]} />
    {children}
  </span>
);

/** Spark's words for states, as shape and colour. */
function statusKind(status: string): PillKind {
  const word = status.toLowerCase();
  if (/fail|error/.test(word)) return "fail";
  if (/run|active/.test(word)) return "run";
  if (/kill|incomplete|pend/.test(word)) return "warn";
  return /skip/.test(word) ? "none" : "ok";
}

export const StatusPill = ({ status }: { status: string }) => (
  <Pill kind={statusKind(status)}>{t.status(status.toLowerCase())}</Pill>
);

/** The same state in a table: quiet when all is well. */
export function StatusWord({ status }: { status: string }) {
  const kind = statusKind(status);
  return (
    <span class={`word ${kind}`}>
      <Icon name={PILL_ICONS[kind]} />
      {t.status(status.toLowerCase())}
    </span>
  );
}

export function SeverityMark({ severity, failed = false }: { severity: Severity | null; failed?: boolean }) {
  if (failed) return <Icon name="fail" class="mark-fail" title={t.failed} />;
  if (severity === "critical" || severity === "high") return <Icon name="warn" class="mark-fail" title={t.severity(severity)} />;
  if (severity === "medium") return <Icon name="warn" class="mark-warn" title={t.severity(severity)} />;
  if (severity === "low" || severity === "info") return <Icon name="dot" class="mark-low" title={t.severity(severity)} />;
  return <Icon name="ok" class="mark-ok" title={t.nothingFound} />;
}

export function Sure({ certainty, because }: { certainty: Certainty; because?: Maybe<string> }) {
  const level = { certain: 3, likely: 2, hint: 1 }[certainty];
  return (
    <span class="conf" title={because ?? undefined}>
      {[1, 2, 3].map((n) => (
        <i key={n} class={n <= level ? "on" : ""} />
      ))}
      <span>{t.certainty[certainty]}</span>
    </span>
  );
}

export const rankClass = (severity: Severity): string =>
  severity === "critical" || severity === "high" ? "hot" : severity === "medium" ? "mid" : "";

/** Numbers of findings beside the thing that they are about. */
export function FindingDots({ findings, base }: { findings: FindingRef[]; base: string }) {
  const each = findings.filter((f, i) => findings.findIndex((g) => g.number === f.number) === i);
  if (!each.length) return null;
  return (
    <span class="dots">
      {each.slice(0, 4).map((f) => (
        <a
          key={f.number}
          class={`rank ${rankClass(f.severity)}`}
          href={`${base}?open=${f.number}#finding-${f.number}`}
          title={f.title}
          aria-label={t.findingNumber(f.number, f.title)}
        >
          {f.number}
        </a>
      ))}
    </span>
  );
}

export function FindingList({ findings, base }: { findings: FindingRef[]; base: string }) {
  if (!findings.length) return null;
  return (
    <Card title={t.findings}>
      <ul class="plain">
        {findings.map((f) => (
          <li key={f.number}>
            <a class="findline" href={`${base}?open=${f.number}#finding-${f.number}`}>
              <span class={`rank ${rankClass(f.severity)}`}>{f.number}</span>
              <span>
                <Prose text={f.title} />
              </span>
            </a>
          </li>
        ))}
      </ul>
    </Card>
  );
}

export function Moment({ ms, seconds = false, date = true }: { ms: Maybe<number>; seconds?: boolean; date?: boolean }) {
  if (ms === null || ms === undefined) return <>–</>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={full(ms)}>
      {date && <span class="dim">{day(ms)} </span>}
      {clock(ms, seconds)}
    </time>
  );
}

export function Seg<T extends string>({
  value,
  options,
  onChange,
  label,
}: {
  value: T;
  options: [T, string][];
  onChange: (value: T) => void;
  label: string;
}) {
  return (
    <div class="seg" role="group" aria-label={label}>
      {options.map(([key, text]) => (
        <button type="button" key={key} aria-pressed={key === value} onClick={() => onChange(key)}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** A part of a whole as a bar; the number stands beside it, so the bar is only for the eye. */
export const ShareBar = ({ share, kind = "" }: { share: number; kind?: string }) => (
  <span class={`share ${kind}`} aria-hidden="true">
    <i style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }} />
  </span>
);

export function Fact({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <span>
      {label} <b>{children}</b>
    </span>
  );
}

export function Help({ children }: { children: ComponentChildren }) {
  return <p class="help">{children}</p>;
}

export function Filter({ value, onInput, label }: { value: string; onInput: (value: string) => void; label: string }) {
  return (
    <label class="filter">
      <Icon name="search" />
      <input
        type="search"
        data-filter
        value={value}
        placeholder={label}
        aria-label={label}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
      <kbd>/</kbd>
    </label>
  );
}
