// The timeline without its picture: bars in drawing order, where lanes lie, what is under a point.
import type { Lane, StripHeader, Timeline } from "../base/api.ts";
import type { Columns } from "../base/columns.ts";

export const RUNNING = 0;
export const FAILED = 2;
export const KILLED = 3;
export const MERGED = 4;

export interface Bars {
  count: number;
  lane: Uint32Array;
  row: Uint32Array;
  start: Uint32Array;
  length: Uint32Array;
  gc: Uint8Array;
  state: Uint8Array;
  stage: Uint32Array;
  task: Uint32Array;
  /** Stage id and attempt by the number in `stage`. */
  stages: [number, number][];
  /** 1 where a task held up its stage: the slowest by far and long beside the whole. */
  straggler: Uint8Array;
  /** Bars sorted by row and start, and where each row begins in that order. */
  order: Uint32Array;
  rowStart: Uint32Array;
}

export interface Scene {
  /** What a lane is. */
  by: "executor" | "stage" | "host";
  startMs: number;
  span: number;
  lanes: Lane[];
  slots: number;
  busy: Timeline["busy"] | null;
  gaps: { from: number; to: number; text: string }[];
  marks: { t: number; kind: string; text: string }[];
  stages: { stage: number; attempt: number; name: string; from: number; to: number }[];
  bars: Bars | null;
}

export function sceneOf(line: Timeline, bars: Bars | null, busy: Timeline["busy"] | null, by: Scene["by"]): Scene {
  const at = (ms: number) => ms - line.start_ms;
  return {
    by,
    startMs: line.start_ms,
    span: Math.max(1, line.end_ms - line.start_ms),
    lanes: line.lanes,
    slots: Math.round(line.slots),
    busy: busy ?? line.busy,
    gaps: line.gaps.map((g) => ({ from: at(g.from_ms), to: at(g.to_ms), text: g.text })),
    marks: line.marks.map((m) => ({ t: at(m.t), kind: m.kind, text: m.text })),
    stages: line.stages.map((s) => ({
      stage: s.stage,
      attempt: s.attempt,
      name: s.name,
      from: at(s.start_ms),
      to: at(s.end_ms),
    })),
    bars,
  };
}

const rowOffsets = (lanes: Lane[]): Uint32Array => {
  const offsets = new Uint32Array(lanes.length + 1);
  lanes.forEach((lane, i) => {
    offsets[i + 1] = offsets[i]! + Math.max(1, lane.rows);
  });
  return offsets;
};

export interface BarsHeader {
  stages: [number, number][];
}

export function barsOf(columns: Columns<BarsHeader>, lanes: Lane[], span: number): Bars {
  const raw = {
    count: columns.rows,
    lane: columns.u32("lane"),
    row: columns.u32("row"),
    start: columns.u32("start"),
    length: columns.u32("length"),
    gc: columns.u8("gc"),
    state: columns.u8("state"),
    stage: columns.u32("stage"),
    task: columns.u32("task"),
    stages: columns.header.stages ?? [],
  };
  const slowest = columns.u8("slowest");
  return index({ ...raw, straggler: stragglers(raw, (i) => slowest[i] === 1, span) }, lanes);
}

type Raw = Omit<Bars, "order" | "rowStart">;

function index(raw: Raw, lanes: Lane[]): Bars {
  const offsets = rowOffsets(lanes);
  const rows = offsets[lanes.length]!;
  const rowOf = (i: number) => Math.min(rows - 1, offsets[Math.min(raw.lane[i]!, lanes.length - 1)]! + raw.row[i]!);
  const rowStart = new Uint32Array(rows + 1);
  for (let i = 0; i < raw.count; i++) rowStart[rowOf(i) + 1]! += 1;
  for (let r = 0; r < rows; r++) rowStart[r + 1]! += rowStart[r]!;
  const next = rowStart.slice();
  const order = new Uint32Array(raw.count);
  for (let i = 0; i < raw.count; i++) order[next[rowOf(i)]!++] = i;
  for (let r = 0; r < rows; r++) sortByStart(order, rowStart[r]!, rowStart[r + 1]!, raw.start);
  return { ...raw, order, rowStart };
}

/** Servers send rows in order of time, so a sort is seldom needed. */
function sortByStart(order: Uint32Array, from: number, to: number, start: Uint32Array): void {
  for (let k = from + 1; k < to; k++) {
    if (start[order[k]!]! >= start[order[k - 1]!]!) continue;
    order.subarray(from, to).sort((a, b) => start[a]! - start[b]!);
    return;
  }
}

function stragglers(
  raw: { count: number; stage: Uint32Array; length: Uint32Array; state: Uint8Array },
  isSlowest: (i: number) => boolean,
  span: number,
): Uint8Array {
  const out = new Uint8Array(raw.count);
  const lengths = new Map<number, number[]>();
  for (let i = 0; i < raw.count; i++) {
    if (raw.state[i] === MERGED) continue;
    const list = lengths.get(raw.stage[i]!);
    if (list) list.push(raw.length[i]!);
    else lengths.set(raw.stage[i]!, [raw.length[i]!]);
  }
  const medians = new Map(
    [...lengths].map(([stage, list]) => [stage, list.length > 1 ? list.sort((a, b) => a - b)[list.length >> 1]! : Infinity]),
  );
  for (let i = 0; i < raw.count; i++) {
    if (!isSlowest(i) || raw.state[i] === MERGED) continue;
    const length = raw.length[i]!;
    if (length > 2 * medians.get(raw.stage[i]!)! && length > span * 0.02) out[i] = 1;
  }
  return out;
}

/** Only executors that ran a task of the stage get a lane, in the order of their names. */
function usedLanes(columns: Columns<StripHeader>): { names: string[]; lane: Uint32Array } {
  const all = columns.header.executors ?? [];
  const executor = columns.u32("executor");
  const used = [...new Set(executor)].sort((a, b) => (all[a] ?? "").localeCompare(all[b] ?? "", "en", { numeric: true }));
  const place = new Map(used.map((from, to) => [from, to]));
  return { names: used.map((i) => all[i] ?? String(i)), lane: executor.map((i) => place.get(i)!) };
}

/** The tasks of one stage as lanes of executors; a task takes the first row of its executor that is free. */
export function sceneOfStage(columns: Columns<StripHeader>, stage: number, attempt: number): Scene {
  const { names: executors, lane } = usedLanes(columns);
  const start = columns.u32("start");
  const length = columns.u32("duration");
  const sorted = Uint32Array.from({ length: columns.rows }, (_, i) => i).sort((a, b) => start[a]! - start[b]!);
  const ends: number[][] = executors.map(() => []);
  const row = new Uint32Array(columns.rows);
  let span = 1;
  for (const i of sorted) {
    const free = (ends[lane[i]!] ??= []);
    const end = start[i]! + length[i]!;
    const at = free.findIndex((until) => until <= start[i]!);
    row[i] = at < 0 ? free.length : at;
    free[row[i]!] = end;
    span = Math.max(span, end);
  }
  const lanes = executors.map((name, i): Lane => ({
    name,
    host: null,
    added_ms: null,
    removed_ms: null,
    reason: null,
    rows: Math.max(1, ends[i]?.length ?? 1),
  }));
  const raw = {
    count: columns.rows,
    lane,
    row,
    start,
    length,
    gc: columns.u8("gc"),
    state: columns.u8("state"),
    stage: new Uint32Array(columns.rows),
    task: columns.u32("task"),
    stages: [[stage, attempt]] as [number, number][],
  };
  let slowest = 0;
  for (let i = 1; i < columns.rows; i++) if (length[i]! > length[slowest]!) slowest = i;
  const bars = index({ ...raw, straggler: stragglers(raw, (i) => i === slowest, span) }, lanes);
  return {
    by: "executor",
    startMs: columns.header.start_ms,
    span,
    lanes,
    slots: 0,
    busy: null,
    gaps: [],
    marks: [],
    stages: [],
    bars,
  };
}

// Where things lie

export interface Layout {
  left: number;
  right: number;
  /** First pixel of the lanes, below axis and busy cores. */
  top: number;
  bottom: number;
  laneTop: Float64Array;
  laneHeight: Float64Array;
  rowOffset: Uint32Array;
  total: number;
}

export const AXIS = 18;
export const FOOT = 18;

export function layoutOf(scene: Scene, width: number, left: number, tall: boolean): Layout {
  const n = scene.lanes.length;
  const laneTop = new Float64Array(n);
  const laneHeight = new Float64Array(n);
  const rows = scene.lanes.reduce((sum, lane) => sum + Math.max(1, lane.rows), 0);
  // Few rows are drawn tall enough to write in, many thin enough to be seen at once.
  const row = tall ? Math.max(3, Math.min(13, 420 / rows)) : Math.max(2.75, Math.min(11, 190 / rows));
  let y = 0;
  scene.lanes.forEach((lane, i) => {
    laneTop[i] = y;
    laneHeight[i] = Math.max(11, lane.rows * row);
    y += laneHeight[i]! + (tall ? 3 : 1.5);
  });
  const busy = scene.busy ? (tall ? 56 : 46) : 0;
  return {
    left,
    right: width - 8,
    top: AXIS + busy + (busy ? 8 : 2),
    bottom: FOOT,
    laneTop,
    laneHeight,
    rowOffset: rowOffsets(scene.lanes),
    total: y,
  };
}

export interface View {
  from: number;
  to: number;
}

export const clampView = (view: View, span: number): View => {
  const length = Math.min(span, Math.max(2, view.to - view.from));
  const from = Math.max(0, Math.min(span - length, view.from));
  return { from, to: from + length };
};

/** The first bar of a row that ends after `t`, as a place in the order. */
export function firstAfter(bars: Bars, row: number, t: number): number {
  let low = bars.rowStart[row]!;
  let high = bars.rowStart[row + 1]!;
  while (low < high) {
    const middle = (low + high) >> 1;
    const i = bars.order[middle]!;
    if (bars.start[i]! + bars.length[i]! <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The bar at a moment in a row, or the nearest one within `slack` milliseconds. */
export function barAt(bars: Bars, row: number, t: number, slack: number): number | null {
  const at = firstAfter(bars, row, t - slack);
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

/** The row of lanes at a height measured from the top of all lanes. */
export function rowAt(layout: Layout, y: number): number | null {
  const lane = layout.laneTop.findLastIndex((top) => top <= y);
  if (lane < 0 || y > layout.laneTop[lane]! + layout.laneHeight[lane]!) return null;
  const rows = layout.rowOffset[lane + 1]! - layout.rowOffset[lane]!;
  const within = Math.floor(((y - layout.laneTop[lane]!) / layout.laneHeight[lane]!) * rows);
  return layout.rowOffset[lane]! + Math.min(rows - 1, within);
}

export const rowOfBar = (layout: Layout, bars: Bars, i: number): number => layout.rowOffset[bars.lane[i]!]! + bars.row[i]!;
