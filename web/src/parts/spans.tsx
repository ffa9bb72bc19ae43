// Things that begin and end, packed into as few rows as they need.
import { useMemo } from "preact/hooks";
import { axisStep, clock } from "../base/time.ts";
import { duration } from "../base/units.ts";
import { t } from "../base/words.ts";

export interface Span {
  id: number;
  from: number;
  to: number;
  bad: boolean;
  running: boolean;
  text: string;
  title: string;
  to_href: string;
}

interface SpansProps {
  spans: Span[];
  start: number;
  end: number;
  gaps?: { from_ms: number; to_ms: number; text: string }[];
  marks?: { t: number; kind: string; text: string }[];
}

const ROW = 20;
const MOST_ROWS = 14;
const MOST_SPANS = 600;
const percent = (value: number): string => `${(value * 100).toFixed(3)}%`;

/** Gives every span the first row that is free when it begins. */
function pack(spans: Span[]): { rows: number; row: Map<number, number> } {
  const ends: number[] = [];
  const row = new Map<number, number>();
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    let at = ends.findIndex((end) => end <= span.from);
    if (at < 0) at = Math.min(ends.length, MOST_ROWS - 1);
    ends[at] = span.to;
    row.set(span.id, at);
  }
  return { rows: Math.max(1, ends.length), row };
}

export function Spans({ spans, start, end, gaps = [], marks = [] }: SpansProps) {
  const length = Math.max(1, end - start);
  // The longest are shown; the rest are too short to be told apart at this width.
  const shown = useMemo(
    () => (spans.length <= MOST_SPANS ? spans : [...spans].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, MOST_SPANS)),
    [spans],
  );
  const { rows, row } = useMemo(() => pack(shown), [shown]);
  const longest = shown.reduce((a, b) => (b.to - b.from > a.to - a.from ? b : a), shown[0]!);
  const x = (ms: number) => (ms - start) / length;
  const step = axisStep(length, 8);
  const ticks = Array.from({ length: Math.floor(length / step) + 1 }, (_, i) => i * step).filter((at) => at < length * 0.97);
  return (
    <div class="spans" style={{ height: `${rows * ROW + 26}px` }}>
      {ticks.map((at) => (
        <span key={at} class="tick" style={{ left: percent(at / length) }}>
          {at === 0 ? clock(start) : duration(at)}
        </span>
      ))}
      {gaps.map((gap) => (
        <span
          key={gap.from_ms}
          class="span-gap"
          style={{ left: percent(x(gap.from_ms)), width: percent(x(gap.to_ms) - x(gap.from_ms)) }}
          title={gap.text}
        >
          <span>{duration(gap.to_ms - gap.from_ms)}</span>
        </span>
      ))}
      {shown.map((span) => (
        <a
          key={span.id}
          href={span.to_href}
          class={`span ${span.bad ? "bad" : span.running ? "running" : ""} ${span === longest && shown.length > 1 ? "longest" : ""}`}
          style={{
            left: percent(x(span.from)),
            width: `max(2px, ${percent(x(span.to) - x(span.from))})`,
            top: `${20 + row.get(span.id)! * ROW}px`,
          }}
          title={span.title}
          aria-label={span.title}
        >
          {(span.to - span.from) / length > 0.06 && (
            <span>
              {span.bad ? "× " : ""}
              {span.text}
            </span>
          )}
        </a>
      ))}
      {marks.map((mark, i) => (
        <span key={i} class="span-mark" style={{ left: percent(x(mark.t)) }} title={`${clock(mark.t, true)} ${mark.text}`} />
      ))}
      {shown.length < spans.length && <span class="spans-note dim">{t.longestOf(shown.length, spans.length)}</span>}
    </div>
  );
}

/** A small bar that says when something ran within the whole. */
export function Place({
  from,
  to,
  start,
  end,
  bad = false,
}: {
  from: number | null;
  to: number | null;
  start: number;
  end: number;
  bad?: boolean;
}) {
  if (from === null || to === null || end <= start) return null;
  const length = end - start;
  return (
    <span class={`place ${bad ? "bad" : ""}`} aria-hidden="true">
      <i style={{ left: percent((from - start) / length), width: `max(2px, ${percent((to - from) / length)})` }} />
    </span>
  );
}
