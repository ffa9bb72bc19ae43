// Tasks made ready to be drawn: put in rows, and merged level by level, so that a picture never looks at more bars than it has pixels. Runs in a worker, so nothing here knows of the page.
import type { Lane, StripHeader } from "../base/api.ts";
import { decodeColumns, type Columns } from "../base/columns.ts";

export const RUNNING = 0;
export const FAILED = 2;
export const KILLED = 3;
export const MERGED = 4;
/** In a level: several bars that lie too close to be told apart. */
export const MANY = 0xffffffff;

export interface Level {
  /** Bars shorter than this, and as close, are one run; 0 keeps every bar. */
  ms: number;
  /** Where each row begins in the arrays below. */
  rowStart: Uint32Array;
  from: Uint32Array;
  to: Uint32Array;
  /** The bar, or MANY. */
  bar: Uint32Array;
}

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
  /** 1 where a task held up its stage. */
  straggler: Uint8Array;
  stragglers: Uint32Array;
  /** The first row of each lane, and one more. */
  laneRow: Uint32Array;
  /** Bars sorted by row and start, and where each row begins in that order. */
  order: Uint32Array;
  rowStart: Uint32Array;
  /** Quiet bars from fine to coarse. */
  levels: Level[];
  /** Failed and killed bars and stragglers by row and start: they are drawn over the others and never merge. */
  loud: Uint32Array;
  loudStart: Uint32Array;
  seen: Seen;
}

/** What is in the picture, for its legend. */
export interface Seen {
  straggler: boolean;
  gc: boolean;
  failed: boolean;
  killed: boolean;
  /** Tasks that the server drew together, and those that they stand beside. */
  merged: number;
  tasks: number;
}

export interface BarsHeader {
  stages: [number, number][];
  tasks: number;
}

type Raw = Pick<Bars, "count" | "lane" | "row" | "start" | "length" | "gc" | "state" | "stage" | "task" | "stages" | "straggler">;

export function barsOf(buffer: ArrayBuffer): Bars {
  const columns = decodeColumns<BarsHeader>(buffer);
  const raw: Raw = {
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
    straggler: columns.u8("slowest"),
  };
  return index(raw, columns.header.tasks ?? columns.rows);
}

function index(raw: Raw, tasks: number): Bars {
  const laneRow = rowsOfLanes(raw);
  const rows = laneRow[laneRow.length - 1]!;
  const { order, rowStart } = byRow(raw, laneRow, rows);
  const bars = { ...raw, laneRow, order, rowStart, seen: seenIn(raw, tasks) };
  const { quiet, loud, loudStart } = apart(bars, rows);
  return { ...bars, stragglers: loud.filter((i) => raw.straggler[i] === 1), loud, loudStart, levels: levelsOf(quiet) };
}

function rowsOfLanes({ count, lane, row }: Raw): Uint32Array {
  let lanes = 0;
  for (let i = 0; i < count; i++) lanes = Math.max(lanes, lane[i]! + 1);
  const laneRow = new Uint32Array(lanes + 1);
  for (let i = 0; i < count; i++) laneRow[lane[i]! + 1] = Math.max(laneRow[lane[i]! + 1]!, row[i]! + 1);
  for (let i = 0; i < lanes; i++) laneRow[i + 1]! += laneRow[i]!;
  return laneRow;
}

function byRow(raw: Raw, laneRow: Uint32Array, rows: number): Pick<Bars, "order" | "rowStart"> {
  const rowStart = new Uint32Array(rows + 1);
  for (let i = 0; i < raw.count; i++) rowStart[laneRow[raw.lane[i]!]! + raw.row[i]! + 1]! += 1;
  for (let r = 0; r < rows; r++) rowStart[r + 1]! += rowStart[r]!;
  const next = rowStart.slice();
  const order = new Uint32Array(raw.count);
  for (let i = 0; i < raw.count; i++) order[next[laneRow[raw.lane[i]!]! + raw.row[i]!]!++] = i;
  for (let r = 0; r < rows; r++) sortByStart(order.subarray(rowStart[r]!, rowStart[r + 1]!), raw.start);
  return { order, rowStart };
}

/** Tasks come in order of time, but for a few logs, so a sort is seldom needed. */
function sortByStart(order: Uint32Array, start: Uint32Array): Uint32Array {
  for (let k = 1; k < order.length; k++)
    if (start[order[k]!]! < start[order[k - 1]!]!) return order.sort((a, b) => start[a]! - start[b]!);
  return order;
}

/** From a tenth of its time on, of 255, garbage collection is worth a look. */
export const GC_SEEN = 25;

function seenIn({ count, gc, state, straggler, task }: Raw, tasks: number): Seen {
  const seen = { straggler: false, gc: false, failed: false, killed: false, merged: 0, tasks };
  for (let i = 0; i < count; i++) {
    seen.gc ||= gc[i]! > GC_SEEN;
    seen.straggler ||= straggler[i] === 1;
    if (state[i] === FAILED) seen.failed = true;
    else if (state[i] === KILLED) seen.killed = true;
    else if (state[i] === MERGED) seen.merged += task[i]!;
  }
  return seen;
}

interface Apart {
  quiet: Level;
  loud: Uint32Array;
  loudStart: Uint32Array;
}

function apart(bars: Pick<Bars, "order" | "rowStart" | "start" | "length" | "state" | "straggler">, rows: number): Apart {
  const { order, rowStart, start, length, state, straggler } = bars;
  const isLoud = (i: number) => state[i] === FAILED || state[i] === KILLED || straggler[i] === 1;
  let louder = 0;
  for (const i of order) if (isLoud(i)) louder += 1;
  const loud = new Uint32Array(louder);
  const loudStart = new Uint32Array(rows + 1);
  const quiet = emptyLevel(0, rows, order.length - louder);
  let l = 0;
  let q = 0;
  for (let row = 0; row < rows; row++) {
    for (let k = rowStart[row]!; k < rowStart[row + 1]!; k++) {
      const i = order[k]!;
      if (isLoud(i)) loud[l++] = i;
      else put(quiet, q++, start[i]!, start[i]! + length[i]!, state[i] === MERGED ? MANY : i);
    }
    loudStart[row + 1] = l;
    quiet.rowStart[row + 1] = q;
  }
  return { quiet, loud, loudStart };
}

// Levels

const emptyLevel = (ms: number, rows: number, most: number): Level => ({
  ms,
  rowStart: new Uint32Array(rows + 1),
  from: new Uint32Array(most),
  to: new Uint32Array(most),
  bar: new Uint32Array(most),
});

function put(level: Level, at: number, from: number, to: number, bar: number): void {
  level.from[at] = from;
  level.to[at] = to;
  level.bar[at] = bar;
}

/** Rows with fewer bars than a screen has pixels need no coarser level. */
const FEW = 800;
/** A level that is not much smaller than the one before is not worth its memory. */
const WORTH = 0.7;

function levelsOf(finest: Level): Level[] {
  const levels = [finest];
  let last = finest;
  for (let ms = firstMs(finest); longestRow(last) > FEW && ms < 2 ** 31; ms *= 2) {
    const next = coarser(last, ms);
    if (next.from.length > last.from.length * WORTH) continue;
    levels.push(next);
    last = next;
  }
  return levels;
}

/** The first level that may be worth it: so many bars must be shorter. */
function firstMs({ from, to, bar }: Level): number {
  const shorter = new Uint32Array(33);
  for (let k = 0; k < from.length; k++) shorter[bar[k] === MANY ? 0 : 32 - Math.clz32(to[k]! - from[k]!)]! += 1;
  let sum = shorter[0]!;
  let bits = 1;
  while (bits < 31 && (sum += shorter[bits]!) < from.length * (1 - WORTH)) bits += 1;
  return 2 ** bits;
}

const longestRow = ({ rowStart }: Level): number => {
  let most = 0;
  for (let r = 0; r + 1 < rowStart.length; r++) most = Math.max(most, rowStart[r + 1]! - rowStart[r]!);
  return most;
};

/** Neighbours shorter than `ms`, and closer than that, become one run. */
function coarser(level: Level, ms: number): Level {
  const rows = level.rowStart.length - 1;
  const out = emptyLevel(ms, rows, level.from.length);
  let n = 0;
  for (let row = 0; row < rows; row++) {
    let open = false;
    for (let k = level.rowStart[row]!; k < level.rowStart[row + 1]!; k++) {
      const from = level.from[k]!;
      const to = level.to[k]!;
      const short = level.bar[k] === MANY || to - from < ms;
      if (short && open && from < out.to[n - 1]! + ms) {
        out.to[n - 1] = Math.max(out.to[n - 1]!, to);
        out.bar[n - 1] = MANY;
      } else put(out, n++, from, to, level.bar[k]!);
      open = short;
    }
    out.rowStart[row + 1] = n;
  }
  return { ...out, from: out.from.slice(0, n), to: out.to.slice(0, n), bar: out.bar.slice(0, n) };
}

// The tasks of one stage

/** Where the durations of a stage lie. */
export interface Durations {
  low: number;
  high: number;
  p25: number;
  median: number;
  p75: number;
  /** The slowest task, as a row of the columns. */
  slowest: number;
  /** How many tasks lie at each place of a logarithmic axis from `axisFrom` to `axisTo`, and how many of them failed. */
  places: Uint32Array;
  failed: Uint32Array;
}

export interface StageTasks {
  rows: number;
  startMs: number;
  span: number;
  lanes: Lane[];
  bars: Bars;
  bytes: Float32Array;
  durations: Durations | null;
}

const PLACES = 2048;

export const axisFrom = (d: Pick<Durations, "low">): number => Math.log(d.low * 0.8);
export const axisTo = (d: Pick<Durations, "high">): number => Math.log(d.high * 1.15);

function durationsOf(lengths: Uint32Array, state: Uint8Array): Durations | null {
  if (!lengths.length) return null;
  const sorted = lengths.slice().sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  const low = Math.max(1, sorted[0]!);
  const high = Math.max(low * 1.5, sorted[sorted.length - 1]!);
  const from = axisFrom({ low });
  const scale = PLACES / (axisTo({ high }) - from);
  const places = new Uint32Array(PLACES);
  const failed = new Uint32Array(PLACES);
  lengths.forEach((ms, i) => {
    const place = Math.max(0, Math.min(PLACES - 1, Math.floor((Math.log(ms) - from) * scale)));
    (state[i] === FAILED ? failed : places)[place]! += 1;
  });
  const slowest = lengths.indexOf(sorted[sorted.length - 1]!);
  return { low, high, p25: at(0.25), median: at(0.5), p75: at(0.75), slowest, places, failed };
}

/** Only executors that ran a task of the stage get a lane, in the order of their names. */
function usedLanes(columns: Columns<StripHeader>): { names: string[]; lane: Uint32Array } {
  const all = columns.header.executors ?? [];
  const executor = columns.u32("executor");
  let most = 0;
  for (const one of executor) most = Math.max(most, one);
  const place = new Uint32Array(most + 1);
  for (const one of executor) place[one] = 1;
  const used = [...place.keys()].filter((one) => place[one] === 1 && executor.length > 0);
  used.sort((a, b) => (all[a] ?? "").localeCompare(all[b] ?? "", "en", { numeric: true }));
  used.forEach((from, to) => (place[from] = to));
  return { names: used.map((i) => all[i] ?? String(i)), lane: executor.map((i) => place[i]!) };
}

/** Each task takes the first row of its executor that is free. */
function pack(lane: Uint32Array, lanes: number, start: Uint32Array, length: Uint32Array): { row: Uint32Array; rows: number[] } {
  const sorted = sortByStart(
    start.map((_, i) => i),
    start,
  );
  const ends: number[][] = Array.from({ length: lanes }, () => []);
  const row = new Uint32Array(start.length);
  for (const i of sorted) {
    const free = ends[lane[i]!]!;
    let at = 0;
    while (at < free.length && free[at]! > start[i]!) at += 1;
    row[i] = at;
    free[at] = start[i]! + length[i]!;
  }
  return { row, rows: ends.map((e) => Math.max(1, e.length)) };
}

/** The slowest task is worth a mark when it is twice as long as usual and a part of the whole that can be seen. */
function straggler(durations: Durations | null, lengths: Uint32Array, span: number): Uint8Array {
  const out = new Uint8Array(lengths.length);
  if (!durations) return out;
  const longest = lengths[durations.slowest]!;
  if (lengths.length > 1 && longest > 2 * durations.median && longest > span * 0.02) out[durations.slowest] = 1;
  return out;
}

export function stageTasksOf(buffer: ArrayBuffer): StageTasks {
  const columns = decodeColumns<StripHeader>(buffer);
  const { names, lane } = usedLanes(columns);
  const start = columns.u32("start");
  const length = columns.u32("duration");
  const state = columns.u8("state");
  const { row, rows } = pack(lane, names.length, start, length);
  const durations = durationsOf(length, state);
  let span = 1;
  for (let i = 0; i < columns.rows; i++) span = Math.max(span, start[i]! + length[i]!);
  const raw: Raw = {
    count: columns.rows,
    lane,
    row,
    start,
    length,
    gc: columns.u8("gc"),
    state,
    stage: new Uint32Array(columns.rows),
    task: columns.u32("task"),
    stages: [],
    straggler: straggler(durations, length, span),
  };
  const lanes = names.map((name, i): Lane => ({
    name,
    host: null,
    added_ms: null,
    removed_ms: null,
    reason: null,
    rows: rows[i]!,
  }));
  return {
    rows: columns.rows,
    startMs: columns.header.start_ms,
    span,
    lanes,
    bars: index(raw, columns.rows),
    bytes: columns.f32("bytes"),
    durations,
  };
}

export const WORKS = { bars: barsOf, stage: stageTasksOf };
export type Work = keyof typeof WORKS;
