// The picture of a timeline. Bars narrower than a pixel become one run, so that a frame never draws more than can be seen.
import { axisStep, clock } from "../base/time.ts";
import { count, duration, percent } from "../base/units.ts";
import { t } from "../base/words.ts";
import { ink, type Pen } from "./canvas.ts";
import {
  AXIS,
  FAILED,
  firstAfter,
  FOOT,
  KILLED,
  MERGED,
  rowOfBar,
  RUNNING,
  type Bars,
  type Layout,
  type Scene,
  type View,
} from "./timeline-model.ts";

export interface Picture {
  scene: Scene;
  layout: Layout;
  view: View;
  scroll: number;
  hover: number | null;
  selected: number | null;
}

type X = (ms: number) => number;

export const toX = (layout: Layout, view: View): X => {
  const k = (layout.right - layout.left) / (view.to - view.from);
  return (ms) => layout.left + (ms - view.from) * k;
};

export function drawTimeline(pen: Pen, picture: Picture): void {
  const { scene, layout, view } = picture;
  const x = toX(layout, view);
  drawGrid(pen, picture, x);
  drawLaneNames(pen, picture);
  const lanesBottom = pen.height - FOOT;
  clip(pen, layout.left, layout.top - 1, layout.right - layout.left + 1, lanesBottom - layout.top + 1, () => {
    drawLives(pen, picture, x);
    if (scene.bars) drawBars(pen, picture, scene.bars, x);
  });
  clip(pen, layout.left, 0, layout.right - layout.left + 1, pen.height, () => {
    if (scene.busy) drawBusy(pen, picture, x);
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

function drawGrid(pen: Pen, { scene, layout, view }: Picture, x: X): void {
  const step = axisStep(view.to - view.from, Math.max(2, Math.floor((layout.right - layout.left) / 110)));
  pen.ctx.strokeStyle = ink("--line");
  pen.ctx.lineWidth = 1;
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    pen.line(x(at), AXIS - 2, x(at), pen.height - FOOT + 2);
    const text = at === 0 ? clock(scene.startMs) : duration(at);
    const right = x(at) + 3 + pen.measure(text, 11) > layout.right + 8;
    pen.text(text, x(at) + (right ? -3 : 3), 11, { color: "--ink-3", align: right ? "right" : "left" });
  }
}

function drawLaneNames(pen: Pen, { scene, layout, scroll }: Picture): void {
  clip(pen, 0, layout.top - 2, layout.left, pen.height - FOOT - layout.top + 2, () => {
    let last = -Infinity;
    scene.lanes.forEach((lane, i) => {
      const y = layout.top + layout.laneTop[i]! - scroll;
      if (y > pen.height || y + layout.laneHeight[i]! < layout.top || y - last < 9.5) return;
      last = y;
      pen.text(lane.name, layout.left - 6, y + Math.min(layout.laneHeight[i]!, 14) / 2 + 4, {
        size: 10,
        color: lane.removed_ms ? "--fail-ink" : "--ink-3",
        align: "right",
        max: layout.left - 8,
      });
    });
  });
}

/** A quiet band for the time in which an executor lived; a cross where it was lost. */
function drawLives(pen: Pen, { scene, layout, scroll }: Picture, x: X): void {
  scene.lanes.forEach((lane, i) => {
    const y = layout.top + layout.laneTop[i]! - scroll;
    const height = layout.laneHeight[i]!;
    if (y > pen.height || y + height < layout.top) return;
    if (lane.added_ms !== null && lane.added_ms !== undefined) {
      const from = x(Math.max(0, lane.added_ms - scene.startMs));
      const to = x((lane.removed_ms ?? scene.startMs + scene.span) - scene.startMs);
      pen.ctx.fillStyle = ink("--sunken");
      pen.ctx.fillRect(from, y, Math.max(0, to - from), height);
    }
    if (!lane.removed_ms) return;
    pen.ctx.strokeStyle = ink("--fail");
    pen.ctx.lineWidth = 1.6;
    pen.cross(x(lane.removed_ms - scene.startMs) + 5, y + height / 2, 3);
  });
}

// Bars

/** Rectangles of one colour, drawn together: changing colours for each bar costs more than the bars. */
class Pile {
  private at = 0;
  private numbers = new Float32Array(4096);

  add(x: number, y: number, w: number, h: number): void {
    if (this.at + 4 > this.numbers.length) {
      const more = new Float32Array(this.numbers.length * 2);
      more.set(this.numbers);
      this.numbers = more;
    }
    this.numbers[this.at++] = x;
    this.numbers[this.at++] = y;
    this.numbers[this.at++] = w;
    this.numbers[this.at++] = h;
  }

  draw(ctx: CanvasRenderingContext2D, color: string): void {
    ctx.fillStyle = color;
    const { numbers } = this;
    for (let i = 0; i < this.at; i += 4) ctx.fillRect(numbers[i]!, numbers[i + 1]!, numbers[i + 2]!, numbers[i + 3]!);
  }
}

/** Tasks of even and of odd stages, and garbage collection. */
type Piles = readonly [Pile, Pile, Pile];

interface Loud {
  i: number;
  y: number;
  h: number;
}

function drawBars(pen: Pen, picture: Picture, bars: Bars, x: X): void {
  const { layout, view, scroll, scene } = picture;
  const piles = [new Pile(), new Pile(), new Pile()] as const;
  const loud: Loud[] = [];
  for (let lane = 0; lane < scene.lanes.length; lane++) {
    const top = layout.top + layout.laneTop[lane]! - scroll;
    if (top > pen.height || top + layout.laneHeight[lane]! < layout.top) continue;
    const first = layout.rowOffset[lane]!;
    const rows = layout.rowOffset[lane + 1]! - first;
    const height = layout.laneHeight[lane]! / rows;
    for (let row = 0; row < rows; row++)
      pileRow(bars, first + row, top + row * height, Math.max(0.8, height - (height > 4 ? 1 : 0.4)), view, x, piles, loud);
  }
  const gc = ink("--fail");
  [ink("--d3"), ink("--d4"), gc].forEach((color, i) => piles[i]!.draw(pen.ctx, color));
  for (const one of loud) drawLoud(pen, picture, bars, one, x, gc);
  outline(pen, picture, bars, picture.hover, x, ink("--ink-2"), 1);
  outline(pen, picture, bars, picture.selected, x, ink("--ink"), 2);
}

function pileRow(bars: Bars, row: number, y: number, h: number, view: View, x: X, piles: Piles, loud: Loud[]): void {
  const end = bars.rowStart[row + 1]!;
  let runFrom = -1;
  let runTo = -1;
  const flush = () => {
    if (runFrom < 0) return;
    piles[0].add(runFrom, y, Math.max(0.7, runTo - runFrom), h);
    runFrom = -1;
  };
  for (let k = firstAfter(bars, row, view.from); k < end; k++) {
    const i = bars.order[k]!;
    const start = bars.start[i]!;
    if (start > view.to) break;
    const x1 = x(start);
    const x2 = x(start + bars.length[i]!);
    const state = bars.state[i]!;
    if (state === FAILED || state === KILLED || bars.straggler[i]) loud.push({ i, y, h });
    if (x2 - x1 < 1.5 || state === MERGED) {
      if (runFrom >= 0 && x1 > runTo + 0.75) flush();
      if (runFrom < 0) runFrom = x1;
      runTo = Math.max(runTo, x2, x1 + 0.7);
      continue;
    }
    flush();
    pileBar(bars, i, x1, x2, y, h, piles);
  }
  flush();
}

function pileBar(bars: Bars, i: number, x1: number, x2: number, y: number, h: number, piles: Piles): void {
  const width = Math.max(0.8, x2 - x1 - 0.5);
  const gc = bars.straggler[i] ? 0 : (bars.gc[i]! / 255) * width;
  const red = gc < 1 ? 0 : gc;
  piles[bars.stage[i]! & 1]!.add(x1, y, width - red, bars.state[i] === RUNNING ? h / 2 : h);
  if (red) piles[2].add(x1 + width - red, y, red, h);
}

/** Failed, killed and held-up tasks are drawn over the others and are never too thin to see. */
function drawLoud(pen: Pen, picture: Picture, bars: Bars, { i, y, h }: Loud, x: X, red: string): void {
  const { ctx } = pen;
  const { layout } = picture;
  const x1 = Math.max(layout.left, x(bars.start[i]!));
  const x2 = Math.min(layout.right, x(bars.start[i]! + bars.length[i]!));
  const width = Math.max(2, x2 - x1 - 0.5);
  ctx.fillStyle = bars.state[i] === KILLED ? ink("--blocked") : red;
  const grow = bars.straggler[i] ? Math.max(0, 7 - h) / 2 : 0;
  ctx.fillRect(x1, y - grow, width, h + 2 * grow);
  if (bars.state[i] === FAILED && width > 9 && h >= 5) {
    ctx.strokeStyle = ink("--on-fail");
    ctx.lineWidth = 1.2;
    pen.cross(x1 + width - 5, y + h / 2, 2.2);
  }
  if (!bars.straggler[i]) return;
  const stage = bars.stages[bars.stage[i]!]?.[0];
  const share = shareOfStage(picture.scene, bars, i);
  const text = `${t.taskN(bars.task[i]!)}${stage === undefined ? "" : `, ${t.ofStage(stage)}`}, ${duration(bars.length[i]!)}${share === null ? "" : `, ${t.shareOfStage(percent(share))}`}`;
  const needed = pen.measure(text, 10, 600) + 12;
  const middle = y + h / 2 + 3.5;
  if (width > needed && h + 2 * grow >= 10) pen.text(text, x1 + 6, middle, { size: 10, weight: 600, color: "--on-fail" });
  else if (x2 + needed < Math.min(layout.right, x(nextStart(bars, layout, i))))
    pen.text(text, x2 + 6, middle, { size: 10, weight: 600, color: "--fail-ink", halo: true });
}

/** How much of the time of its stage one task took. */
function shareOfStage(scene: Scene, bars: Bars, i: number): number | null {
  const [id, attempt] = bars.stages[bars.stage[i]!] ?? [];
  const stage = scene.stages.find((s) => s.stage === id && s.attempt === attempt);
  const length = stage ? stage.to - stage.from : scene.stages.length ? 0 : scene.span;
  return length > 0 ? Math.min(1, bars.length[i]! / length) : null;
}

/** When the next bar of the same row starts: until then there is room to write. */
function nextStart(bars: Bars, layout: Layout, i: number): number {
  const row = rowOfBar(layout, bars, i);
  const next = firstAfter(bars, row, bars.start[i]! + bars.length[i]!);
  return next < bars.rowStart[row + 1]! ? bars.start[bars.order[next]!]! : Infinity;
}

function outline(pen: Pen, picture: Picture, bars: Bars, i: number | null, x: X, color: string, width: number): void {
  if (i === null || i >= bars.count) return;
  const { layout, scroll } = picture;
  const lane = bars.lane[i]!;
  const rows = layout.rowOffset[lane + 1]! - layout.rowOffset[lane]!;
  const h = layout.laneHeight[lane]! / rows;
  const y = layout.top + layout.laneTop[lane]! - scroll + (rowOfBar(layout, bars, i) - layout.rowOffset[lane]!) * h;
  pen.ctx.strokeStyle = color;
  pen.ctx.lineWidth = width;
  pen.ctx.strokeRect(x(bars.start[i]!) - 0.5, y - 0.5, Math.max(2, x(bars.start[i]! + bars.length[i]!) - x(bars.start[i]!)), h);
}

// Above and below the lanes

function drawBusy(pen: Pen, { scene, layout }: Picture, x: X): void {
  const busy = scene.busy!;
  if (!busy.t.length) return;
  const bottom = layout.top - 8;
  const high = Math.max(scene.slots, ...busy.cores, 1);
  const y = (cores: number) => bottom - (cores / high) * (bottom - AXIS);
  const { ctx } = pen;
  const path = new Path2D();
  const at = (i: number) => x(busy.t[i]! - scene.startMs);
  path.moveTo(at(0), bottom);
  for (let i = 0; i < busy.t.length; i++) {
    path.lineTo(at(i), y(busy.cores[i]!));
    path.lineTo(i + 1 < busy.t.length ? at(i + 1) : x(scene.span), y(busy.cores[i]!));
  }
  path.lineTo(x(scene.span), bottom);
  ctx.fillStyle = ink("--d2");
  ctx.fill(path);
  ctx.strokeStyle = ink("--d4");
  ctx.lineWidth = 1;
  ctx.lineJoin = "round";
  ctx.stroke(path);
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

function drawMarks(pen: Pen, { scene }: Picture, x: X): void {
  const { ctx } = pen;
  for (const mark of scene.marks) {
    if (/added/.test(mark.kind)) continue;
    const bad = /lost|fail|removed|exclu/.test(mark.kind);
    ctx.strokeStyle = ink(bad ? "--fail" : "--run");
    ctx.fillStyle = ctx.strokeStyle;
    ctx.lineWidth = 1;
    ctx.setLineDash([2, 3]);
    pen.line(x(mark.t), AXIS, x(mark.t), pen.height - FOOT);
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x(mark.t) - 4, AXIS - 3);
    ctx.lineTo(x(mark.t) + 4, AXIS - 3);
    ctx.lineTo(x(mark.t), AXIS + 4);
    ctx.fill();
  }
}

function drawStages(pen: Pen, { scene, layout }: Picture, x: X): void {
  let free = layout.left;
  const y = pen.height - 5;
  for (const stage of [...scene.stages].sort((a, b) => a.from - b.from)) {
    const at = Math.max(layout.left, x(stage.from));
    if (at < free || x(stage.to) < layout.left || at > layout.right) continue;
    const room = layout.right - at;
    const short = `${t.ofStageShort(stage.stage)}`;
    if (pen.measure(short, 11) > room) continue;
    pen.text(short, at, y, { size: 11, color: "--ink-3", max: room });
    free = at + pen.measure(short, 11) + 14;
  }
}
