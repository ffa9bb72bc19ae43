// The timeline without its picture: what is in it, where lanes lie, what is under a point.
import type { Lane, Timeline } from "../base/api.ts";
import type { Bars, StageTasks } from "./bars.ts";

export interface View {
  from: number;
  to: number;
}

/** More detail for a part of the whole. */
export interface Part<T> extends View {
  data: T;
}

export interface Mark {
  t: number;
  text: string;
  bad: boolean;
}

export interface Busy {
  t: number[];
  cores: number[];
  most: number;
}

export interface Scene {
  /** What a lane is. */
  by: "executor" | "stage" | "host";
  startMs: number;
  span: number;
  lanes: Lane[];
  slots: number;
  busy: Busy | null;
  nearBusy: Part<Busy> | null;
  gaps: { from: number; to: number; text: string }[];
  marks: Mark[];
  /** In the order in which they began. */
  stages: { stage: number; from: number; to: number }[];
  /** How long a stage ran, by its id and attempt. */
  stageMs: Map<string, number>;
  bars: Bars | null;
  nearBars: Part<Bars> | null;
}

export const stageKey = ([stage, attempt]: [number, number]): string => `${stage}.${attempt}`;

export function busyOf({ busy, slots }: Timeline): Busy {
  return { ...busy, most: busy.cores.reduce((most, cores) => Math.max(most, cores), Math.max(1, slots)) };
}

export function sceneOf(line: Timeline, by: Scene["by"], bars: Bars | null): Scene {
  const at = (ms: number) => ms - line.start_ms;
  return {
    by,
    startMs: line.start_ms,
    span: Math.max(1, line.end_ms - line.start_ms),
    lanes: line.lanes,
    slots: Math.round(line.slots),
    busy: busyOf(line),
    nearBusy: null,
    gaps: line.gaps.map((g) => ({ from: at(g.from_ms), to: at(g.to_ms), text: g.text })),
    marks: line.marks
      .filter((m) => !/added/.test(m.kind))
      .map((m) => ({ t: at(m.t), text: m.text, bad: /lost|fail|removed|exclu/.test(m.kind) })),
    stages: line.stages
      .map((s) => ({ stage: s.stage, from: at(s.start_ms), to: at(s.end_ms) }))
      .sort((a, b) => a.from - b.from),
    stageMs: new Map(line.stages.map((s) => [stageKey([s.stage, s.attempt]), s.end_ms - s.start_ms])),
    bars,
    nearBars: null,
  };
}

/** The tasks of one stage as lanes of executors. */
export function sceneOfStage(tasks: StageTasks, stage: number, attempt: number): Scene {
  const bars = { ...tasks.bars, stages: [[stage, attempt]] as [number, number][] };
  return {
    by: "executor",
    startMs: tasks.startMs,
    span: tasks.span,
    lanes: tasks.lanes,
    slots: 0,
    busy: null,
    nearBusy: null,
    gaps: [],
    marks: [],
    stages: [],
    stageMs: new Map([[stageKey([stage, attempt]), tasks.span]]),
    bars,
    nearBars: null,
  };
}

export const covers = (part: View | null, view: View): boolean => part !== null && part.from <= view.from && view.to <= part.to;

export const barsIn = (scene: Scene, view: View): Bars | null =>
  covers(scene.nearBars, view) ? scene.nearBars!.data : scene.bars;
export const busyIn = (scene: Scene, view: View): Busy | null =>
  covers(scene.nearBusy, view) ? scene.nearBusy!.data : scene.busy;

export const clampView = (view: View, span: number): View => {
  const length = Math.min(span, Math.max(2, view.to - view.from));
  const from = Math.max(0, Math.min(span - length, view.from));
  return { from, to: from + length };
};

// Where things lie

export interface Layout {
  left: number;
  right: number;
  /** First pixel of the lanes, below axis and busy cores. */
  top: number;
  bottom: number;
  /** Pinned lanes stay above the others while these scroll. */
  pinned: Uint8Array;
  pinnedHeight: number;
  laneTop: Float64Array;
  laneHeight: Float64Array;
  rows: Uint32Array;
  /** Height of the lanes that scroll. */
  total: number;
}

export const AXIS = 18;
export const FOOT = 18;
const PIN_GAP = 6;

export function layoutOf(scene: Scene, width: number, left: number, tall: boolean, pins: string[]): Layout {
  const n = scene.lanes.length;
  const layout = { laneTop: new Float64Array(n), laneHeight: new Float64Array(n), rows: new Uint32Array(n) };
  const pinned = Uint8Array.from(scene.lanes, (lane) => Number(pins.includes(lane.name)));
  const all = scene.lanes.reduce((sum, lane) => sum + Math.max(1, lane.rows), 0);
  // Few rows are drawn tall enough to write in, many thin enough to be seen at once.
  const row = tall ? Math.max(3, Math.min(13, 420 / all)) : Math.max(2.75, Math.min(11, 190 / all));
  const ends = [0, 0];
  scene.lanes.forEach((lane, i) => {
    const rows = Math.max(1, lane.rows);
    layout.rows[i] = rows;
    layout.laneTop[i] = ends[pinned[i]!]!;
    layout.laneHeight[i] = Math.max(11, rows * row);
    ends[pinned[i]!]! += layout.laneHeight[i]! + (tall ? 3 : 1.5);
  });
  const busy = scene.busy ? (tall ? 56 : 46) : 0;
  return {
    ...layout,
    left,
    right: width - 8,
    top: AXIS + busy + (busy ? 8 : 2),
    bottom: FOOT,
    pinned,
    pinnedHeight: ends[1] ? ends[1]! + PIN_GAP : 0,
    total: ends[0]!,
  };
}

export const laneY = (layout: Layout, lane: number, scroll: number): number =>
  layout.top + layout.laneTop[lane]! + (layout.pinned[lane] ? 0 : layout.pinnedHeight - scroll);

/** Where a lane may be drawn from: lanes that scroll pass under the pinned ones. */
export const laneCeiling = (layout: Layout, lane: number): number =>
  layout.top + (layout.pinned[lane] ? 0 : layout.pinnedHeight);

export function laneAt(layout: Layout, scroll: number, y: number): number | null {
  for (let lane = 0; lane < layout.laneTop.length; lane++) {
    const top = laneY(layout, lane, scroll);
    if (y >= Math.max(top, laneCeiling(layout, lane)) && y < top + layout.laneHeight[lane]!) return lane;
  }
  return null;
}

// Bars

/** A bar of one of the sets that a scene has. */
export interface Spot {
  bars: Bars;
  i: number;
}

export const rowOf = (bars: Bars, i: number): number => bars.laneRow[bars.lane[i]!]! + bars.row[i]!;

/** The first of sorted rows that ends after `t`. */
export function firstAfter(from: number, end: number, endAt: (k: number) => number, t: number): number {
  let low = from;
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (endAt(middle) <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

const firstBarAfter = (bars: Bars, row: number, t: number): number =>
  firstAfter(
    bars.rowStart[row]!,
    bars.rowStart[row + 1]!,
    (k) => bars.start[bars.order[k]!]! + bars.length[bars.order[k]!]!,
    t,
  );

/** The bar at a moment in a row, or the nearest one within `slack` milliseconds. */
export function barAt(bars: Bars, row: number, t: number, slack: number): number | null {
  const at = firstBarAfter(bars, row, t - slack);
  const end = bars.rowStart[row + 1]!;
  let best: number | null = null;
  let distance = slack;
  for (let k = at; k < Math.min(end, at + 3); k++) {
    const i = bars.order[k]!;
    const away = t < bars.start[i]! ? bars.start[i]! - t : Math.max(0, t - bars.start[i]! - bars.length[i]!);
    if (away <= distance) {
      best = i;
      distance = away;
      if (away === 0) break;
    }
  }
  return best;
}

/** The row of a lane at a height, as far as the lane has bars there. */
export function rowAt(layout: Layout, bars: Bars, lane: number, scroll: number, y: number): number | null {
  const rows = layout.rows[lane]!;
  const within = Math.floor(((y - laneY(layout, lane, scroll)) / layout.laneHeight[lane]!) * rows);
  const row = (bars.laneRow[lane] ?? Infinity) + Math.min(rows - 1, within);
  return lane + 1 < bars.laneRow.length && row < bars.laneRow[lane + 1]! ? row : null;
}

/** When the next bar of the same row starts: until then there is room to write. */
export function nextStart(bars: Bars, i: number): number {
  const row = rowOf(bars, i);
  const next = firstBarAfter(bars, row, bars.start[i]! + bars.length[i]!);
  return next < bars.rowStart[row + 1]! ? bars.start[bars.order[next]!]! : Infinity;
}

/** The same task in another set of bars. */
export function sameIn(bars: Bars | null, spot: Spot | null): Spot | null {
  if (!spot || spot.bars === bars) return spot;
  if (!bars) return null;
  const { lane, row, start, task } = spot.bars;
  const at = spot.i;
  if (lane[at]! + 1 >= bars.laneRow.length) return null;
  const found = bars.laneRow[lane[at]!]! + row[at]!;
  const i = found < bars.laneRow[lane[at]! + 1]! ? barAt(bars, found, start[at]!, 1) : null;
  return i !== null && bars.task[i] === task[at] ? { bars, i } : null;
}

/** Arrows walk the bars: along a row, or to the nearest bar of the next row. */
export function step(key: string, bars: Bars | null, spot: Spot | null): Spot | null {
  if (!bars?.count || !key.startsWith("Arrow")) return null;
  const at = sameIn(bars, spot);
  if (!at) return { bars, i: bars.order[0]! };
  const row = rowOf(bars, at.i);
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const mine = bars.order.subarray(bars.rowStart[row]!, bars.rowStart[row + 1]!);
    const next = mine[mine.indexOf(at.i) + (key === "ArrowRight" ? 1 : -1)];
    return next === undefined ? at : { bars, i: next };
  }
  const by = key === "ArrowDown" ? 1 : -1;
  for (let r = row + by; r >= 0 && r + 1 < bars.rowStart.length; r += by) {
    const bar = barAt(bars, r, bars.start[at.i]!, Infinity);
    if (bar !== null) return { bars, i: bar };
  }
  return at;
}
