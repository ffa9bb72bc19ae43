// The bars of a timeline as pixels. A row is painted once into a line and the line copied as often as the row is high: a frame costs what the picture is large, however many tasks it shows.
import { ink, type Pen } from "./canvas.ts";
import { FAILED, GC_SEEN, KILLED, MANY, RUNNING, type Bars, type Level } from "./bars.ts";
import { firstAfter, FOOT, laneCeiling, laneY, type Layout, type View } from "./timeline-model.ts";

interface Inks {
  even: number;
  odd: number;
  gc: number;
  red: number;
  blocked: number;
}

/** A colour token as a pixel of an image: red first in memory. */
function pixel(token: string): number {
  const rgb = Number.parseInt(ink(token).slice(1), 16);
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

const faint = (color: number, alpha: number): number => ((color & 0xffffff) | (alpha << 24)) >>> 0;
const HALF = 128;
const EDGE = 90;

const MOST_CROSSES = 2000;

export class Painter {
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(this.image.data.buffer);
  private line = new Uint32Array(1);
  /** Where failed bars are long and high enough for a cross: x and y in turn. */
  readonly crosses = new Float32Array(2 * MOST_CROSSES);
  crossed = 0;

  paint(pen: Pen, bars: Bars, layout: Layout, view: View, scroll: number): void {
    const { dense } = pen;
    const left = Math.round(layout.left * dense);
    const top = Math.round(layout.top * dense);
    const width = Math.round(layout.right * dense) - left;
    const height = Math.round((pen.height - FOOT) * dense) - top;
    if (width < 1 || height < 1) return;
    this.resize(width, height);
    const inks = {
      even: pixel("--d3"),
      odd: pixel("--d4"),
      gc: pixel("--p-gc"),
      red: pixel("--fail"),
      blocked: pixel("--blocked"),
    };
    const scale = width / (view.to - view.from);
    const level = bars.levels.findLast((l) => l.ms * scale <= 1) ?? bars.levels[0]!;
    for (let lane = 0; lane < Math.min(layout.rows.length, bars.laneRow.length - 1); lane++) {
      const y = laneY(layout, lane, scroll);
      const ceiling = laneCeiling(layout, lane);
      const tall = layout.laneHeight[lane]! / layout.rows[lane]!;
      if (y > pen.height - FOOT || y + layout.laneHeight[lane]! < ceiling) continue;
      for (let row = bars.laneRow[lane]!, at = y; row < bars.laneRow[lane + 1]!; row++, at += tall) {
        const bottom = at + Math.max(0.8, tall - (tall > 4 ? 1 : 0.4));
        if (bottom < ceiling || at > pen.height - FOOT) continue;
        this.line.fill(0);
        this.quiet(bars, level, row, view, scale, inks);
        this.loud(bars, row, view, scale, inks, bottom - at >= 5 ? (at + bottom) / 2 : 0, layout.left, dense);
        const first = Math.max(Math.round(at * dense), Math.round(ceiling * dense)) - top;
        this.copy(first, Math.max(first + 1, Math.round(bottom * dense) - top));
      }
    }
    pen.ctx.putImageData(this.image, left, top);
  }

  private resize(width: number, height: number): void {
    this.crossed = 0;
    if (this.image.width === width && this.image.height === height) {
      this.pixels.fill(0);
      return;
    }
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.line = new Uint32Array(width);
  }

  private copy(first: number, end: number): void {
    const { width, height } = this.image;
    for (let y = first; y < Math.min(end, height); y++) this.pixels.set(this.line, y * width);
  }

  private quiet(bars: Bars, level: Level, row: number, view: View, scale: number, inks: Inks): void {
    const end = level.rowStart[row + 1]!;
    const { width } = this.image;
    for (let k = firstAfter(level.rowStart[row]!, end, (n) => level.to[n]!, view.from); k < end; k++) {
      const from = level.from[k]!;
      if (from > view.to) break;
      const a = Math.max(0, Math.floor((from - view.from) * scale));
      const b = Math.min(width, Math.max(a + 1, Math.floor((level.to[k]! - view.from) * scale)));
      const bar = level.bar[k]!;
      if (bar === MANY || b - a < 2) this.line.fill(inks.even, a, b);
      else this.bar(bars, bar, a, b, inks);
    }
  }

  /** One task: its stage by colour, its garbage collection at its end, and an edge to the next. */
  private bar(bars: Bars, i: number, a: number, b: number, inks: Inks): void {
    const own = bars.stage[i]! & 1 ? inks.odd : inks.even;
    const color = bars.state[i] === RUNNING ? faint(own, HALF) : own;
    const gc = bars.gc[i]! > GC_SEEN ? Math.floor((bars.gc[i]! / 255) * (b - a)) : 0;
    this.line.fill(color, a, b - gc);
    if (gc) this.line.fill(inks.gc, b - gc, b);
    this.line[b - 1] = faint(gc ? inks.gc : color, EDGE);
  }

  /** Failed and killed tasks are never too thin to see. */
  private loud(
    bars: Bars,
    row: number,
    view: View,
    scale: number,
    inks: Inks,
    crossAt: number,
    left: number,
    dense: number,
  ): void {
    const end = bars.loudStart[row + 1]!;
    const endAt = (k: number) => bars.start[bars.loud[k]!]! + bars.length[bars.loud[k]!]!;
    for (let k = firstAfter(bars.loudStart[row]!, end, endAt, view.from); k < end; k++) {
      const i = bars.loud[k]!;
      const start = bars.start[i]!;
      if (start > view.to) break;
      const a = Math.max(0, Math.floor((start - view.from) * scale));
      const b = Math.max(a + 2, Math.floor((start + bars.length[i]! - view.from) * scale) - 1);
      this.line.fill(bars.state[i] === KILLED ? inks.blocked : inks.red, a, b);
      if (crossAt && bars.state[i] === FAILED && b - a > 9 * dense && this.crossed < MOST_CROSSES) {
        this.crosses[2 * this.crossed] = left + Math.min(b, this.image.width) / dense - 5;
        this.crosses[2 * this.crossed + 1] = crossAt;
        this.crossed += 1;
      }
    }
  }
}
