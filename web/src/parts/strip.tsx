// Every task of a stage as a dot, by duration on a logarithmic axis that says so.
import { tasksUrl, useData } from "../base/fetch.ts";
import { bytes, count, duration } from "../base/units.ts";
import type { AppRef } from "../base/url.ts";
import { theme } from "../base/settings.ts";
import { t } from "../base/words.ts";
import { axisFrom, axisTo, FAILED, type Bars, type Durations, type StageTasks } from "./bars.ts";
import { useCanvas, ink, type Pen } from "./canvas.ts";
import { asStageTasks } from "./prepare.ts";
import { ErrorBox } from "./states.tsx";

const HEIGHT = 78;
const AXIS = 18;
const PAD = 10;

export function StageStrip({ app, stage, attempt, mark }: { app: AppRef; stage: number; attempt: number; mark?: number | null }) {
  const tasks = useData<StageTasks>(tasksUrl(app, stage, attempt), asStageTasks);
  if (tasks.error) return <ErrorBox error={tasks.error} again={tasks.again} />;
  if (!tasks.data) return <div class="strip" aria-busy="true" />;
  return <Strip tasks={tasks.data} mark={mark} title={t.stripTitle(tasks.data.rows, stage)} />;
}

/** From here on a task is no dot of its own: the strip is as high as tasks are many. */
const MANY_TASKS = 4000;

export function Strip({ tasks, mark, title }: { tasks: StageTasks; mark?: number | null; title: string }) {
  const { durations } = tasks;
  const shade = theme.value;
  const canvas = useCanvas(HEIGHT, (pen) => durations && drawStrip(pen, tasks, durations, mark ?? null), [tasks, mark, shade]);
  if (!durations) return <p class="dim">{t.noTasks}</p>;
  const slow = tasks.bars.length[durations.slowest]!;
  return (
    <figure class="strip">
      <figcaption>
        {title}
        <span class="dim">
          {" "}
          · {t.logAxis}
          {tasks.rows > MANY_TASKS && ` · ${t.higherMeansMore}`}
        </span>
      </figcaption>
      <canvas
        ref={canvas}
        role="img"
        aria-label={t.stripLabel(tasks.rows, duration(durations.median), duration(durations.p75), duration(slow))}
      />
    </figure>
  );
}

const MIDDLE = (HEIGHT - AXIS) / 2;
const SPREAD = HEIGHT - AXIS - 22;

function drawStrip(pen: Pen, tasks: StageTasks, durations: Durations, mark: number | null): void {
  const x = scale(durations, pen.width);
  drawAxis(pen, durations, x);
  pen.ctx.fillStyle = ink("--d1");
  pen.ctx.fillRect(x(durations.p25), 6, Math.max(2, x(durations.p75) - x(durations.p25)), HEIGHT - AXIS - 12);
  if (tasks.rows > MANY_TASKS) drawCrowd(pen, durations);
  else drawDots(pen, tasks.bars, x);
  pen.ctx.fillStyle = ink("--d5");
  pen.ctx.fillRect(x(durations.median) - 0.75, 6, 1.5, HEIGHT - AXIS - 12);
  drawLabels(pen, tasks, durations, x, mark);
}

function scale(durations: Durations, width: number): (ms: number) => number {
  const from = axisFrom(durations);
  const span = axisTo(durations) - from;
  return (ms) => PAD + ((Math.log(Math.max(ms, durations.low * 0.8)) - from) / span) * (width - 2 * PAD);
}

const TICKS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 6e4, 12e4, 3e5, 6e5, 12e5, 36e5, 72e5, 18e6, 36e6, 864e5,
];

function drawAxis(pen: Pen, facts: Durations, x: (ms: number) => number): void {
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
  let bits = Math.imul(index + 1, 0x9e3779b1);
  bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b);
  return ((bits ^ (bits >>> 13)) >>> 0) / 4294967296 - 0.5;
};

function drawDots(pen: Pen, { length, state }: Bars, x: (ms: number) => number): void {
  const { ctx } = pen;
  ctx.fillStyle = ink("--d4");
  ctx.globalAlpha = 0.55;
  length.forEach((ms, i) => state[i] !== FAILED && pen.dot(x(ms), MIDDLE + scatter(i) * SPREAD, 2.4));
  ctx.globalAlpha = 1;
  ctx.strokeStyle = ink("--fail");
  ctx.lineWidth = 1.4;
  length.forEach((ms, i) => state[i] === FAILED && pen.cross(x(ms), MIDDLE + scatter(i) * SPREAD, 3));
}

/** How many tasks lie in each pixel of the strip. */
function perPixel(places: Uint32Array, width: number): Uint32Array {
  const out = new Uint32Array(Math.max(1, Math.ceil(width - 2 * PAD)));
  places.forEach((n, i) => {
    out[Math.floor((i / places.length) * out.length)]! += n;
  });
  return out;
}

/** A few tasks in a pixel stay dots; more are a line whose length says how many. */
const DOTS = 3;

function drawCrowd(pen: Pen, { places, failed }: Durations): void {
  const { ctx } = pen;
  const all = perPixel(places, pen.width);
  const most = Math.max(...all);
  ctx.fillStyle = ink("--d4");
  all.forEach((n, i) => {
    const high = Math.max(8, SPREAD * Math.sqrt(n / most));
    if (n > DOTS) ctx.fillRect(PAD + i, MIDDLE - high / 2, 1, high);
    else for (let dot = 0; dot < n; dot++) ctx.fillRect(PAD + i - 0.5, MIDDLE + scatter(i * DOTS + dot) * SPREAD, 2, 2);
  });
  ctx.strokeStyle = ink("--fail");
  ctx.lineWidth = 1.4;
  let last = -Infinity;
  perPixel(failed, pen.width).forEach((n, i) => {
    if (!n || i - last < 7) return;
    last = i;
    pen.cross(PAD + i, MIDDLE + scatter(i) * SPREAD, 3);
  });
}

const LABEL = 170;

/** Which edge of the label touches the dot: the words go where fewer dots lie. */
function emptierSide(pen: Pen, { places }: Durations, at: number): "left" | "right" {
  if (at + LABEL > pen.width) return "right";
  if (at < LABEL) return "left";
  const all = perPixel(places, pen.width);
  const tasks = (from: number, to: number) => all.subarray(from, to).reduce((sum, n) => sum + n, 0);
  const here = Math.round(at - PAD);
  return tasks(here - LABEL, here) < tasks(here + 1, here + LABEL) ? "right" : "left";
}

function drawLabels(pen: Pen, tasks: StageTasks, durations: Durations, x: (ms: number) => number, mark: number | null): void {
  const { bars } = tasks;
  const marked = mark === null ? -1 : bars.task.indexOf(mark);
  const at = marked >= 0 ? marked : durations.slowest;
  const ms = bars.length[at]!;
  if (marked < 0 && ms < durations.p75 * 2) return;
  pen.ctx.fillStyle = ink("--fail");
  pen.dot(x(ms), MIDDLE, 5);
  const executor = tasks.lanes[bars.lane[at]!]?.name;
  const side = emptierSide(pen, durations, x(ms));
  const edge = x(ms) + (side === "right" ? -12 : 12);
  const read = tasks.bytes[at]!;
  pen.text(t.taskOn(bars.task[at]!, executor ?? ""), edge, MIDDLE - 3, {
    size: 12,
    color: "--fail-ink",
    align: side,
    weight: 600,
    halo: true,
  });
  pen.text(`${duration(ms)}${read > 0 ? `, ${bytes(read)}` : ""}`, edge, MIDDLE + 12, {
    size: 12,
    color: "--ink-3",
    align: side,
    halo: true,
  });
  if (tasks.rows > MANY_TASKS) return;
  const rest = `${count(tasks.rows - 1)} ${t.tasksP75} ${duration(durations.p75)}`;
  const right = x(durations.p75) + 10;
  const free = side === "right" ? edge - LABEL : pen.width;
  if (tasks.rows > 1 && right + pen.measure(rest, 11) < free)
    pen.text(rest, right, MIDDLE + 4, { size: 11, color: "--ink-3", align: "left", halo: true });
}
