// The picture of a timeline.
import { axisStep, clock } from "../base/time.ts";
import { count, duration, percent } from "../base/units.ts";
import { t } from "../base/words.ts";
import type { Bars } from "./bars.ts";
import { ink, type Pen } from "./canvas.ts";
import type { Painter } from "./timeline-paint.ts";
import {
  AXIS,
  barsIn,
  busyIn,
  firstAfter,
  FOOT,
  laneCeiling,
  laneY,
  nextStart,
  sameIn,
  stageKey,
  type Layout,
  type Scene,
  type Spot,
  type View,
} from "./timeline-model.ts";

export interface Picture {
  scene: Scene;
  layout: Layout;
  view: View;
  scroll: number;
  hover: Spot | null;
  selected: Spot | null;
}

type X = (ms: number) => number;

export const toX = (layout: Layout, view: View): X => {
  const k = (layout.right - layout.left) / (view.to - view.from);
  return (ms) => layout.left + (ms - view.from) * k;
};

export function drawTimeline(pen: Pen, painter: Painter, picture: Picture): void {
  const { scene, layout, view, scroll } = picture;
  const x = toX(layout, view);
  const bars = barsIn(scene, view);
  // Pixels replace what was there, so they come first and what lies under them is drawn behind.
  if (bars) painter.paint(pen, bars, layout, view, scroll);
  pen.ctx.globalCompositeOperation = "destination-over";
  drawLives(pen, picture, x);
  drawGrid(pen, picture, x);
  pen.ctx.globalCompositeOperation = "source-over";
  drawAxis(pen, picture, x);
  drawLaneNames(pen, picture);
  if (bars) drawLoud(pen, painter, picture, bars, x);
  clip(pen, layout.left, 0, layout.right - layout.left + 1, pen.height, () => {
    drawBusy(pen, picture, x);
    drawGaps(pen, picture, x);
    drawMarks(pen, picture, x);
    drawStages(pen, picture, x);
  });
  if (scene.busy && scene.slots) drawSlots(pen, layout, scene.slots);
}

function clip(pen: Pen, x: number, y: number, w: number, h: number, draw: () => void): void {
  pen.ctx.save();
  pen.ctx.beginPath();
  pen.ctx.rect(x, y, w, h);
  pen.ctx.clip();
  draw();
  pen.ctx.restore();
}

// Axis and lanes

function eachTick({ layout, view }: Picture, act: (at: number) => void): void {
  const step = axisStep(view.to - view.from, Math.max(2, Math.floor((layout.right - layout.left) / 110)));
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) act(at);
}

function drawGrid(pen: Pen, picture: Picture, x: X): void {
  pen.ctx.strokeStyle = ink("--line");
  pen.ctx.lineWidth = 1;
  eachTick(picture, (at) => pen.line(x(at), AXIS - 2, x(at), pen.height - FOOT + 2));
}

function drawAxis(pen: Pen, picture: Picture, x: X): void {
  eachTick(picture, (at) => {
    const text = at === 0 ? clock(picture.scene.startMs) : duration(at);
    const right = x(at) + 3 + pen.measure(text, 11) > picture.layout.right + 8;
    pen.text(text, x(at) + (right ? -3 : 3), 11, { color: "--ink-3", align: right ? "right" : "left" });
  });
}

/** Lanes in sight, with where they begin and where they may be drawn from. */
function eachLane(pen: Pen, { layout, scroll }: Picture, act: (lane: number, y: number, ceiling: number) => void): void {
  for (let lane = 0; lane < layout.laneTop.length; lane++) {
    const y = laneY(layout, lane, scroll);
    const ceiling = laneCeiling(layout, lane);
    if (y <= pen.height - FOOT && y + layout.laneHeight[lane]! >= ceiling) act(lane, y, ceiling);
  }
}

const LINE = 9.5;

function drawLaneNames(pen: Pen, picture: Picture): void {
  const { scene, layout } = picture;
  const last = [-Infinity, -Infinity];
  eachLane(pen, picture, (i, y, ceiling) => {
    const lane = scene.lanes[i]!;
    const pinned = layout.pinned[i]!;
    if (y - last[pinned]! < LINE || y < ceiling - 2 || y + LINE > pen.height - FOOT + 2) return;
    last[pinned] = y;
    const middle = y + Math.min(layout.laneHeight[i]!, 14) / 2;
    pen.text(lane.name, layout.left - 6, middle + 4, {
      size: 10,
      weight: pinned ? 600 : 400,
      color: lane.removed_ms ? "--fail-ink" : pinned ? "--ink" : "--ink-3",
      align: "right",
      max: layout.left - (pinned ? 18 : 8),
    });
    if (!pinned) return;
    pen.ctx.fillStyle = ink("--ink-3");
    pen.dot(6, middle, 2.5);
  });
  if (!layout.pinnedHeight) return;
  pen.ctx.fillStyle = ink("--line-2");
  pen.ctx.fillRect(0, layout.top + layout.pinnedHeight - 4, layout.right, 1);
}

/** A quiet band for the time in which an executor lived; a cross where it was lost. */
function drawLives(pen: Pen, picture: Picture, x: X): void {
  const { scene, layout } = picture;
  const inside = (at: number) => Math.max(layout.left, Math.min(layout.right, at));
  eachLane(pen, picture, (i, y, ceiling) => {
    const lane = scene.lanes[i]!;
    const bottom = Math.min(y + layout.laneHeight[i]!, pen.height - FOOT);
    const top = Math.max(y, ceiling);
    const gone = lane.removed_ms ? x(lane.removed_ms - scene.startMs) : null;
    if (gone !== null && gone >= layout.left && gone < layout.right && top === y) {
      pen.ctx.strokeStyle = ink("--fail");
      pen.ctx.lineWidth = 1.6;
      pen.cross(gone + 5, y + layout.laneHeight[i]! / 2, 3);
    }
    if (lane.added_ms === null || lane.added_ms === undefined) return;
    const from = inside(x(Math.max(0, lane.added_ms - scene.startMs)));
    pen.ctx.fillStyle = ink("--sunken");
    pen.ctx.fillRect(from, top, Math.max(0, inside(gone ?? layout.right) - from), Math.max(0, bottom - top));
  });
}

// Bars that are more than pixels

function drawLoud(pen: Pen, painter: Painter, picture: Picture, bars: Bars, x: X): void {
  const { layout } = picture;
  clip(pen, layout.left, layout.top - 1, layout.right - layout.left + 1, pen.height - FOOT - layout.top + 1, () => {
    drawCrosses(pen, painter);
    for (const i of bars.stragglers) drawStraggler(pen, picture, bars, i, x);
    outline(pen, picture, sameIn(bars, picture.hover), x, ink("--ink-2"), 1);
    outline(pen, picture, sameIn(bars, picture.selected), x, ink("--ink"), 2);
  });
}

function drawCrosses({ ctx }: Pen, { crosses, crossed }: Painter): void {
  if (!crossed) return;
  ctx.strokeStyle = ink("--on-fail");
  ctx.lineWidth = 1.2;
  ctx.beginPath();
  for (let n = 0; n < crossed; n++) {
    const x = crosses[2 * n]!;
    const y = crosses[2 * n + 1]!;
    ctx.moveTo(x - 2.2, y - 2.2);
    ctx.lineTo(x + 2.2, y + 2.2);
    ctx.moveTo(x + 2.2, y - 2.2);
    ctx.lineTo(x - 2.2, y + 2.2);
  }
  ctx.stroke();
}

interface Box {
  y: number;
  h: number;
}

/** Where the row of a bar is drawn; null when it is out of sight. */
function boxOf(pen: Pen, { layout, scroll }: Picture, bars: Bars, i: number): Box | null {
  const lane = bars.lane[i]!;
  if (lane >= layout.rows.length) return null;
  const h = layout.laneHeight[lane]! / layout.rows[lane]!;
  const y = laneY(layout, lane, scroll) + bars.row[i]! * h;
  return y < laneCeiling(layout, lane) - 1 || y > pen.height - FOOT ? null : { y, h };
}

const THINNEST = 7;
/** Less room than this holds no words. */
const ROOM = 80;

/** A task that held up its stage is never too thin to see, and says what it is where there is room. */
function drawStraggler(pen: Pen, picture: Picture, bars: Bars, i: number, x: X): void {
  const { layout, view } = picture;
  const end = bars.start[i]! + bars.length[i]!;
  if (end < view.from || bars.start[i]! > view.to) return;
  const box = boxOf(pen, picture, bars, i);
  if (!box) return;
  const x1 = Math.max(layout.left, x(bars.start[i]!));
  const x2 = Math.min(layout.right, x(end));
  const width = Math.max(2, x2 - x1 - 0.5);
  const h = Math.max(box.h - 1, THINNEST);
  const y = box.y + (box.h - 1 - h) / 2;
  pen.ctx.fillStyle = ink("--fail");
  pen.ctx.fillRect(x1, y, width, h);
  const free = Math.min(layout.right, x(nextStart(bars, i))) - x2;
  if (Math.max(width, free) < ROOM) return;
  const text = stragglerText(picture.scene, bars, i);
  const needed = pen.measure(text, 10, 600) + 12;
  const middle = y + h / 2 + 3.5;
  if (width > needed && h >= 11) pen.text(text, x1 + 6, middle, { size: 10, weight: 600, color: "--on-fail" });
  else if (needed < free) pen.text(text, x2 + 6, middle, { size: 10, weight: 600, color: "--fail-ink", halo: true });
}

function stragglerText(scene: Scene, bars: Bars, i: number): string {
  const stage = bars.stages[bars.stage[i]!];
  const whole = stage && scene.stageMs.get(stageKey(stage));
  return [
    t.taskN(bars.task[i]!),
    stage && t.ofStage(stage[0]),
    duration(bars.length[i]!),
    whole && t.shareOfStage(percent(Math.min(1, bars.length[i]! / whole))),
  ]
    .filter(Boolean)
    .join(", ");
}

function outline(pen: Pen, picture: Picture, spot: Spot | null, x: X, color: string, width: number): void {
  const box = spot && boxOf(pen, picture, spot.bars, spot.i);
  if (!box) return;
  const from = x(spot.bars.start[spot.i]!);
  pen.ctx.strokeStyle = color;
  pen.ctx.lineWidth = width;
  pen.ctx.strokeRect(from - 0.5, box.y - 0.5, Math.max(2, x(spot.bars.start[spot.i]! + spot.bars.length[spot.i]!) - from), box.h);
}

// Above and below the lanes

function drawBusy(pen: Pen, { scene, layout, view }: Picture, x: X): void {
  const busy = busyIn(scene, view);
  if (!busy?.t.length) return;
  const bottom = layout.top - 8;
  const y = (cores: number) => bottom - (cores / busy.most) * (bottom - AXIS);
  const until = (i: number) => (i + 1 < busy.t.length ? busy.t[i + 1]! - scene.startMs : scene.span);
  const first = firstAfter(0, busy.t.length - 1, until, view.from);
  const { ctx } = pen;
  ctx.beginPath();
  ctx.moveTo(x(busy.t[first]! - scene.startMs), bottom);
  let i = first;
  for (; i < busy.t.length && busy.t[i]! - scene.startMs <= view.to; i++) {
    ctx.lineTo(x(busy.t[i]! - scene.startMs), y(busy.cores[i]!));
    ctx.lineTo(x(until(i)), y(busy.cores[i]!));
  }
  ctx.lineTo(x(until(i - 1)), bottom);
  ctx.fillStyle = ink("--d2");
  ctx.fill();
  ctx.strokeStyle = ink("--d4");
  ctx.lineWidth = 1;
  ctx.lineJoin = "bevel";
  ctx.stroke();
}

function drawSlots(pen: Pen, layout: Layout, slots: number): void {
  pen.text(count(slots), layout.left - 6, AXIS + 8, { size: 10, color: "--ink-3", align: "right" });
  pen.text("0", layout.left - 6, layout.top - 8, { size: 10, color: "--ink-3", align: "right" });
}

function drawGaps(pen: Pen, { scene, layout }: Picture, x: X): void {
  for (const gap of scene.gaps) {
    const from = Math.max(layout.left, x(gap.from));
    const to = Math.min(layout.right, x(gap.to));
    if (to - from < 2) continue;
    pen.ctx.fillStyle = ink("--warn");
    pen.ctx.fillRect(from, layout.top - 7, to - from, 3);
    const text = duration(gap.to - gap.from);
    if (pen.measure(gap.text, 12) < to - from - 12)
      pen.text(gap.text, (from + to) / 2, layout.top - 14, { size: 12, color: "--ink-2", align: "center" });
    else if (pen.measure(text, 11) < to - from - 6)
      pen.text(text, (from + to) / 2, layout.top - 14, { size: 11, color: "--ink-2", align: "center" });
  }
}

function drawMarks(pen: Pen, { scene, layout }: Picture, x: X): void {
  const { ctx } = pen;
  let last = -Infinity;
  ctx.lineWidth = 1;
  for (const mark of scene.marks) {
    const at = x(mark.t);
    // Executors often leave together; one line says so as well as a hundred.
    if (Math.abs(at - last) < 1 || at < layout.left - 4 || at > layout.right + 4) continue;
    last = at;
    ctx.strokeStyle = ink(mark.bad ? "--fail" : "--run");
    ctx.fillStyle = ctx.strokeStyle;
    ctx.setLineDash([2, 3]);
    pen.line(at, AXIS, at, pen.height - FOOT);
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(at - 4, AXIS - 3);
    ctx.lineTo(at + 4, AXIS - 3);
    ctx.lineTo(at, AXIS + 4);
    ctx.fill();
  }
}

function drawStages(pen: Pen, { scene, layout, view }: Picture, x: X): void {
  let free = layout.left;
  for (const stage of scene.stages) {
    if (stage.from > view.to) break;
    const at = Math.max(layout.left, x(stage.from));
    if (at < free || stage.to < view.from) continue;
    const text = t.ofStageShort(stage.stage);
    const width = pen.measure(text, 11);
    if (at + width > layout.right) continue;
    pen.text(text, at, pen.height - 5, { size: 11, color: "--ink-3" });
    free = at + width + 14;
  }
}
