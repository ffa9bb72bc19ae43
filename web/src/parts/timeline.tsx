// Tasks over time: zoom, move, hover and choose, by mouse and by key.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { onKey } from "../base/keys.ts";
import { theme } from "../base/settings.ts";
import { clock } from "../base/time.ts";
import { count, duration, percent } from "../base/units.ts";
import { t } from "../base/words.ts";
import { penFor } from "./canvas.ts";
import { drawTimeline } from "./timeline-draw.ts";
import {
  barAt,
  clampView,
  FAILED,
  KILLED,
  layoutOf,
  MERGED,
  rowAt,
  rowOfBar,
  type Layout,
  type Scene,
  type View,
} from "./timeline-model.ts";

interface TimelineProps {
  scene: Scene;
  /** Full timelines zoom, move and answer keys; small ones only tell. */
  full: boolean;
  view?: View | null;
  onView?: (view: View) => void;
  onSelect?: (bar: number | null) => void;
  tasks: number;
  most?: number;
}

interface Hover {
  bar: number | null;
  mark: number | null;
  x: number;
  y: number;
}

export function TimelineView({ scene, full, view: wanted, onView, onSelect, tasks, most = 560 }: TimelineProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [scroll, setScroll] = useState(0);
  const [hover, setHover] = useState<Hover | null>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const view = clampView(wanted ?? { from: 0, to: scene.span }, scene.span);
  const left = useMemo(() => gutter(scene, width), [scene.lanes, width]);
  const layout = useMemo(() => layoutOf(scene, width, left, full), [scene, width, left, full]);
  const whole = layout.top + layout.total + layout.bottom;
  const height = Math.min(whole, most);
  const shade = theme.value;

  useWidth(canvas, setWidth);
  useEffect(() => {
    const asked = requestAnimationFrame(() => {
      const pen = canvas.current && penFor(canvas.current, height);
      if (pen) drawTimeline(pen, { scene, layout, view, scroll, hover: hover?.bar ?? null, selected });
    });
    return () => cancelAnimationFrame(asked);
  }, [scene, layout, view.from, view.to, scroll, hover?.bar, selected, height, shade]);
  useEffect(() => setSelected(null), [scene.bars]);

  const choose = (bar: number | null) => {
    setSelected(bar);
    onSelect?.(bar);
  };
  const set = (next: View) => onView?.(clampView(next, scene.span));
  useKeys(full, view, scene, selected, set);
  const mouse = useMouse({ full, scene, layout, view, scroll, set, setHover, choose });
  const arrows = (event: KeyboardEvent) => {
    const next = step(event.key, scene, layout, selected);
    if (next === null || !full) return;
    event.preventDefault();
    choose(next);
  };

  return (
    <div class="timeline">
      <div
        class="timeline-box"
        ref={box}
        style={{ maxHeight: `${height}px` }}
        onScroll={(e) => setScroll(e.currentTarget.scrollTop)}
      >
        <div style={{ height: `${whole}px` }}>
          <canvas
            ref={canvas}
            class={full ? "full" : ""}
            tabIndex={0}
            role="img"
            aria-label={t.timelineLabel(count(tasks), scene.lanes.length, duration(scene.span))}
            onKeyDown={arrows}
            {...mouse}
          />
        </div>
      </div>
      {hover && <Tip hover={hover} scene={scene} width={width} />}
    </div>
  );
}

function gutter(scene: Scene, width: number): number {
  const longest = Math.max(2, ...scene.lanes.map((lane) => lane.name.length), scene.busy ? String(scene.slots).length : 0);
  return Math.min(width < 600 ? 64 : 150, 14 + longest * 6.2);
}

function useWidth(canvas: { current: HTMLCanvasElement | null }, set: (width: number) => void): void {
  useEffect(() => {
    const node = canvas.current;
    if (!node) return;
    const look = () => set(node.clientWidth);
    look();
    const watch = new ResizeObserver(look);
    watch.observe(node);
    return () => watch.disconnect();
  }, []);
}

export const zoomed = (view: View, by: number, around = (view.from + view.to) / 2): View => ({
  from: around - (around - view.from) * by,
  to: around + (view.to - around) * by,
});
const moved = (view: View, by: number): View => ({ from: view.from + by, to: view.to + by });

function useKeys(full: boolean, view: View, scene: Scene, selected: number | null, set: (view: View) => void): void {
  const now = useRef({ view, selected, scene, set });
  now.current = { view, selected, scene, set };
  useEffect(() => {
    if (!full) return;
    const length = () => now.current.view.to - now.current.view.from;
    const change = (make: (view: View) => View) => () => now.current.set(make(now.current.view));
    const fit = () => {
      const { scene: s, selected: i, set: put } = now.current;
      if (i === null || !s.bars) return false;
      const spare = Math.max(20, s.bars.length[i]! * 0.15);
      put({ from: s.bars.start[i]! - spare, to: s.bars.start[i]! + s.bars.length[i]! + spare });
      return true;
    };
    const off = [
      onKey(
        "w",
        t.keys.zoomIn,
        change((v) => zoomed(v, 0.6)),
      ),
      onKey(
        "s",
        t.keys.zoomOut,
        change((v) => zoomed(v, 1 / 0.6)),
      ),
      onKey(
        "a",
        t.keys.left,
        change((v) => moved(v, -length() * 0.2)),
      ),
      onKey(
        "d",
        t.keys.right,
        change((v) => moved(v, length() * 0.2)),
      ),
      onKey("f", t.keys.fit, fit),
      onKey("0", t.keys.all, () => now.current.set({ from: 0, to: now.current.scene.span })),
    ];
    return () => off.forEach((remove) => remove());
  }, [full]);
}

interface Mouse {
  full: boolean;
  scene: Scene;
  layout: Layout;
  view: View;
  scroll: number;
  set: (view: View) => void;
  setHover: (hover: Hover | null) => void;
  choose: (bar: number | null) => void;
}

const CLICK = 4;

function useMouse(state: Mouse) {
  const { full, scene, layout, view, scroll, set, setHover, choose } = state;
  const drag = useRef<{ x: number; view: View; far: boolean } | null>(null);
  const at = (x: number) => view.from + ((x - layout.left) / (layout.right - layout.left)) * (view.to - view.from);
  const find = (x: number, y: number): Hover | null => {
    const perPixel = (view.to - view.from) / (layout.right - layout.left);
    const mark = scene.marks.findIndex((m) => !/added/.test(m.kind) && Math.abs(m.t - at(x)) < 5 * perPixel);
    if (y < layout.top) return mark < 0 ? null : { bar: null, mark, x, y };
    const row = x < layout.left ? null : rowAt(layout, y - layout.top + scroll);
    if (row === null || !scene.bars) return null;
    const bar = barAt(scene.bars, row, at(x), 3 * perPixel);
    return bar === null ? null : { bar, mark: null, x, y };
  };
  return {
    onPointerDown: (event: PointerEvent) => {
      if (!full || event.button !== 0) return;
      drag.current = { x: event.offsetX, view, far: false };
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const from = drag.current;
      if (!from) return setHover(find(event.offsetX, event.offsetY));
      if (Math.abs(event.offsetX - from.x) > CLICK) from.far = true;
      if (!from.far) return;
      setHover(null);
      const per = (from.view.to - from.view.from) / (layout.right - layout.left);
      set(moved(from.view, (from.x - event.offsetX) * per));
    },
    onPointerUp: (event: PointerEvent) => {
      const far = drag.current?.far;
      drag.current = null;
      if (full && !far) choose(find(event.offsetX, event.offsetY)?.bar ?? null);
    },
    onPointerCancel: () => {
      drag.current = null;
    },
    onPointerLeave: () => setHover(null),
    onWheel: (event: WheelEvent) => {
      // A plain wheel scrolls the page as everywhere else.
      if (!full || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      set(zoomed(view, Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), at(event.offsetX)));
    },
  };
}

/** Arrows walk the bars: along a row, or to the nearest bar of the next row. */
function step(key: string, scene: Scene, layout: Layout, selected: number | null): number | null {
  const { bars } = scene;
  if (!bars?.count || !key.startsWith("Arrow")) return null;
  if (selected === null) return bars.order[0]!;
  const row = rowOfBar(layout, bars, selected);
  const rows = bars.rowStart.length - 1;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const at =
      bars.order.subarray(bars.rowStart[row]!, bars.rowStart[row + 1]!).indexOf(selected) +
      bars.rowStart[row]! +
      (key === "ArrowRight" ? 1 : -1);
    return at >= bars.rowStart[row]! && at < bars.rowStart[row + 1]! ? bars.order[at]! : selected;
  }
  const by = key === "ArrowDown" ? 1 : -1;
  for (let r = row + by; r >= 0 && r < rows; r += by) {
    const bar = barAt(bars, r, bars.start[selected]!, Infinity);
    if (bar !== null) return bar;
  }
  return selected;
}

function Tip({ hover, scene, width }: { hover: Hover; scene: Scene; width: number }) {
  const style = { left: `${Math.min(hover.x + 14, Math.max(0, width - 260))}px`, top: `${hover.y + 16}px` };
  return (
    <div class="tip" style={style} role="status">
      {hover.mark !== null ? <MarkFacts scene={scene} mark={hover.mark} /> : <BarFacts scene={scene} bar={hover.bar!} />}
    </div>
  );
}

function MarkFacts({ scene, mark }: { scene: Scene; mark: number }) {
  const { t: at, text } = scene.marks[mark]!;
  return (
    <>
      <b>{clock(scene.startMs + at, true)}</b>
      <span>{text}</span>
    </>
  );
}

export function BarFacts({ scene, bar }: { scene: Scene; bar: number }) {
  const bars = scene.bars!;
  if (bar >= bars.count) return null;
  const stage = bars.stages[bars.stage[bar]!];
  const state = bars.state[bar];
  const gc = bars.gc[bar]! / 255;
  return (
    <>
      <b>
        {state === MERGED ? t.manyTasks(count(bars.task[bar]!)) : t.taskN(bars.task[bar]!)}
        {stage ? `, ${t.ofStage(stage[0])}` : ""}
      </b>
      <span>
        {duration(bars.length[bar]!)} · {t.from} {clock(scene.startMs + bars.start[bar]!, true)} ·{" "}
        {scene.by === "stage" ? "" : `${t.by[scene.by].toLowerCase()} `}
        {scene.lanes[bars.lane[bar]!]?.name}
      </span>
      {gc >= 0.02 && (
        <span>
          {t.gc} {percent(gc)}
        </span>
      )}
      {state === FAILED && <span class="mark-fail">{t.failed}</span>}
      {state === KILLED && <span>{t.status("killed")}</span>}
      {bars.straggler[bar] === 1 && <span class="mark-fail">{t.legendSlowest}</span>}
    </>
  );
}
