// Every task of a stage as a dot, by duration on a logarithmic axis that says so.
import { useMemo } from "preact/hooks";
import { asColumns, type Columns } from "../base/columns.ts";
import type { StripHeader } from "../base/api.ts";
import { OWN, useData } from "../base/fetch.ts";
import { bytes, count, duration } from "../base/units.ts";
import { appKey, type AppRef } from "../base/url.ts";
import { theme } from "../base/settings.ts";
import { t } from "../base/words.ts";
import { useCanvas, ink, type Pen } from "./canvas.ts";
import { ErrorBox } from "./states.tsx";

const HEIGHT = 78;
const AXIS = 18;
const PAD = 10;

export const stripUrl = (app: AppRef, stage: number, attempt: number): string =>
  `${OWN}/applications/${appKey(app)}/stages/${stage}/${attempt}/tasks.columns`;

export function StageStrip({ app, stage, attempt, mark }: { app: AppRef; stage: number; attempt: number; mark?: number | null }) {
  const tasks = useData<Columns<StripHeader>>(stripUrl(app, stage, attempt), asColumns);
  if (tasks.error) return <ErrorBox error={tasks.error} again={tasks.again} />;
  if (!tasks.data) return <div class="strip" aria-busy="true" />;
  return <Strip columns={tasks.data} mark={mark} title={t.stripTitle(tasks.data.rows, stage)} />;
}

interface Facts {
  lengths: Uint32Array;
  low: number;
  high: number;
  p25: number;
  median: number;
  p75: number;
  slowest: number;
}

export function stripFacts(lengths: Uint32Array): Facts | null {
  if (!lengths.length) return null;
  const sorted = lengths.slice().sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  const low = Math.max(1, sorted[0]!);
  const high = Math.max(low * 1.5, sorted[sorted.length - 1]!);
  return {
    lengths,
    low,
    high,
    p25: at(0.25),
    median: at(0.5),
    p75: at(0.75),
    slowest: lengths.indexOf(sorted[sorted.length - 1]!),
  };
}

export function Strip({ columns, mark, title }: { columns: Columns<StripHeader>; mark?: number | null; title: string }) {
  const facts = useMemo(() => stripFacts(columns.u32("duration")), [columns]);
  const shade = theme.value;
  const canvas = useCanvas(HEIGHT, (pen) => facts && drawStrip(pen, facts, columns, mark ?? null), [columns, mark, shade]);
  if (!facts) return <p class="dim">{t.noTasks}</p>;
  const slow = columns.u32("duration")[facts.slowest]!;
  return (
    <figure class="strip">
      <figcaption>
        {title}
        <span class="dim"> · {t.logAxis}</span>
      </figcaption>
      <canvas
        ref={canvas}
        role="img"
        aria-label={t.stripLabel(columns.rows, duration(facts.median), duration(facts.p75), duration(slow))}
      />
    </figure>
  );
}

function drawStrip(pen: Pen, facts: Facts, columns: Columns<StripHeader>, mark: number | null): void {
  const x = scale(facts, pen.width);
  drawAxis(pen, facts, x);
  const middle = (HEIGHT - AXIS) / 2;
  pen.ctx.fillStyle = ink("--d1");
  pen.ctx.fillRect(x(facts.p25), 6, Math.max(2, x(facts.p75) - x(facts.p25)), HEIGHT - AXIS - 12);
  drawDots(pen, facts, columns, x, middle);
  pen.ctx.fillStyle = ink("--d5");
  pen.ctx.fillRect(x(facts.median) - 0.75, 6, 1.5, HEIGHT - AXIS - 12);
  drawLabels(pen, facts, columns, x, middle, mark);
}

function scale(facts: Facts, width: number): (ms: number) => number {
  const from = Math.log(facts.low * 0.8);
  const span = Math.log(facts.high * 1.15) - from;
  return (ms) => PAD + ((Math.log(Math.max(ms, facts.low * 0.8)) - from) / span) * (width - 2 * PAD);
}

const TICKS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 6e4, 12e4, 3e5, 6e5, 12e5, 36e5, 72e5, 18e6, 36e6, 864e5,
];

function drawAxis(pen: Pen, facts: Facts, x: (ms: number) => number): void {
  pen.ctx.strokeStyle = ink("--line");
  pen.ctx.lineWidth = 1;
  let last = -80;
  for (const tick of TICKS.filter((ms) => ms >= facts.low * 0.8 && ms <= facts.high * 1.15)) {
    if (x(tick) - last < 56) continue;
    last = x(tick);
    pen.line(last, 2, last, HEIGHT - AXIS);
    pen.text(duration(tick), last, HEIGHT - 4, {
      size: 11,
      color: "--ink-3",
      align: last > pen.width - 24 ? "right" : last < 24 ? "left" : "center",
    });
  }
}

/** A fixed scatter by index, so that the same tasks always lie at the same place. */
const scatter = (index: number): number => {
  const bits = Math.imul(index + 1, 0x9e3779b1) >>> 0;
  return bits / 4294967296 - 0.5;
};

function drawDots(pen: Pen, facts: Facts, columns: Columns<StripHeader>, x: (ms: number) => number, middle: number): void {
  const { ctx } = pen;
  const state = columns.u8("state");
  const many = facts.lengths.length > 4000;
  ctx.fillStyle = ink("--d4");
  ctx.globalAlpha = many ? 0.25 : 0.55;
  const spread = HEIGHT - AXIS - 22;
  facts.lengths.forEach((ms, i) => {
    if (state[i] === 2) return;
    const y = middle + scatter(i) * spread;
    if (many) ctx.fillRect(x(ms) - 1, y - 1, 2, 2);
    else pen.dot(x(ms), y, 2.4);
  });
  ctx.globalAlpha = 1;
  ctx.strokeStyle = ink("--fail");
  ctx.lineWidth = 1.4;
  facts.lengths.forEach((ms, i) => state[i] === 2 && pen.cross(x(ms), middle + scatter(i) * spread, 3));
}

const LABEL = 170;

/** Which edge of the label touches the dot: the words go where fewer dots lie. */
function emptierSide(pen: Pen, facts: Facts, x: (ms: number) => number, at: number): "left" | "right" {
  if (at + LABEL > pen.width) return "right";
  if (at < LABEL) return "left";
  let before = 0;
  let after = 0;
  for (const ms of facts.lengths) {
    const away = x(ms) - at;
    if (away < 0 && away > -LABEL) before += 1;
    else if (away > 0 && away < LABEL) after += 1;
  }
  return before < after ? "right" : "left";
}

function drawLabels(
  pen: Pen,
  facts: Facts,
  columns: Columns<StripHeader>,
  x: (ms: number) => number,
  middle: number,
  mark: number | null,
): void {
  const marked = mark === null ? -1 : columns.u32("task").indexOf(mark);
  const at = marked >= 0 ? marked : facts.slowest;
  const ms = facts.lengths[at]!;
  if (marked < 0 && ms < facts.p75 * 2) return;
  pen.ctx.fillStyle = ink("--fail");
  pen.dot(x(ms), middle, 5);
  const executor = columns.header.executors?.[columns.u32("executor")[at]!];
  const side = emptierSide(pen, facts, x, x(ms));
  const edge = x(ms) + (side === "right" ? -12 : 12);
  const read = columns.f32("bytes")[at]!;
  pen.text(t.taskOn(columns.u32("task")[at]!, executor ?? ""), edge, middle - 3, {
    size: 12,
    color: "--fail-ink",
    align: side,
    weight: 600,
    halo: true,
  });
  pen.text(`${duration(ms)}${read > 0 ? `, ${bytes(read)}` : ""}`, edge, middle + 12, {
    size: 12,
    color: "--ink-3",
    align: side,
    halo: true,
  });
  const rest = `${count(columns.rows - 1)} ${t.tasksP75} ${duration(facts.p75)}`;
  const right = x(facts.p75) + 10;
  const free = side === "right" ? edge - 170 : pen.width;
  if (columns.rows > 1 && right + pen.measure(rest, 11) < free)
    pen.text(rest, right, middle + 4, { size: 11, color: "--ink-3", align: "left", halo: true });
}
