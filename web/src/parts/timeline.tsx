// Tasks over time: zoom, move, hover, choose and pin, by mouse and by key.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { onKey } from "../base/keys.ts";
import { theme } from "../base/settings.ts";
import { clock } from "../base/time.ts";
import { count, duration, percent } from "../base/units.ts";
import { here, setQuery } from "../base/url.ts";
import { t } from "../base/words.ts";
import { FAILED, KILLED, MERGED } from "./bars.ts";
import { penFor } from "./canvas.ts";
import { drawTimeline } from "./timeline-draw.ts";
import {
  barAt,
  barsIn,
  clampView,
  laneAt,
  layoutOf,
  rowAt,
  sameIn,
  step,
  type Layout,
  type Scene,
  type Spot,
  type View,
} from "./timeline-model.ts";
import { Painter } from "./timeline-paint.ts";

interface TimelineProps {
  scene: Scene;
  /** Full timelines zoom, move, pin lanes and answer keys; small ones only tell. */
  full: boolean;
  view?: View | null;
  onView?: (view: View) => void;
  onSelect?: (spot: Spot | null) => void;
  tasks: number;
  most?: number;
}

interface Hover {
  spot: Spot | null;
  mark: number | null;
  lane: number | null;
  x: number;
  y: number;
}

const NO_PINS: string[] = [];

/** Pinned lanes by name; they stand in the address. */
function usePins(full: boolean): [string[], (lane: string) => void] {
  const text = full ? (here.value.query.get("pin") ?? "") : "";
  const pins = useMemo(() => (text ? text.split(",") : NO_PINS), [text]);
  const turn = (lane: string) => {
    const rest = pins.filter((pin) => pin !== lane);
    setQuery({ pin: (rest.length < pins.length ? rest : [...pins, lane]).join(",") });
  };
  return [pins, turn];
}

export function TimelineView({ scene, full, view: wanted, onView, onSelect, tasks, most = 560 }: TimelineProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter | null>(null);
  const [width, setWidth] = useState(0);
  const [scroll, setScroll] = useState(0);
  const [hover, setHover] = useState<Hover | null>(null);
  const [chosen, setChosen] = useState<Spot | null>(null);
  const [pins, turnPin] = usePins(full);
  const view = clampView(wanted ?? { from: 0, to: scene.span }, scene.span);
  const left = useMemo(() => gutter(scene, width), [scene.lanes, width]);
  const layout = useMemo(() => layoutOf(scene, width, left, full, pins), [scene, width, left, full, pins]);
  const whole = layout.top + layout.pinnedHeight + layout.total + layout.bottom;
  const height = Math.min(whole, most);
  const shade = theme.value;
  // Other bars of the same tasks come when the part in view is loaded in detail.
  const selected = useMemo(() => sameIn(scene.bars, chosen) ?? sameIn(scene.nearBars?.data ?? null, chosen), [scene, chosen]);

  useWidth(canvas, setWidth);
  useEffect(() => {
    const asked = requestAnimationFrame(() => {
      const pen = canvas.current && penFor(canvas.current, height);
      painter.current ??= new Painter();
      if (pen) drawTimeline(pen, painter.current, { scene, layout, view, scroll, hover: hover?.spot ?? null, selected });
    });
    return () => cancelAnimationFrame(asked);
  }, [scene, layout, view.from, view.to, scroll, hover?.spot?.i, selected, height, shade]);

  const choose = (spot: Spot | null) => {
    setChosen(spot);
    onSelect?.(spot);
  };
  const set = (next: View) => onView?.(clampView(next, scene.span));
  const pin = (lane: number | null | undefined): boolean => {
    const name = lane === null || lane === undefined ? undefined : scene.lanes[lane]?.name;
    if (name === undefined) return false;
    turnPin(name);
    return true;
  };
  useKeys(full, { view, selected, scene, set, pin: () => pin(hover?.lane ?? selected?.bars.lane[selected.i]) });
  const mouse = useMouse({ full, scene, layout, view, scroll, set, setHover, choose, pin });
  const arrows = (event: KeyboardEvent) => {
    const next = full ? step(event.key, barsIn(scene, view), selected) : null;
    if (next === null) return;
    event.preventDefault();
    choose(next);
  };

  return (
    <div class="timeline">
      <div class="timeline-box" style={{ maxHeight: `${height}px` }} onScroll={(e) => setScroll(e.currentTarget.scrollTop)}>
        <div style={{ height: `${whole}px` }}>
          <canvas
            ref={canvas}
            class={full ? (hover && hover.x < layout.left ? "full names" : "full") : ""}
            tabIndex={0}
            role="img"
            aria-label={t.timelineLabel(count(tasks), scene.lanes.length, duration(scene.span))}
            onKeyDown={arrows}
            {...mouse}
          />
        </div>
      </div>
      {hover && <Tip hover={hover} scene={scene} width={width} pinned={(lane) => layout.pinned[lane] === 1} />}
    </div>
  );
}

function gutter(scene: Scene, width: number): number {
  const longest = Math.max(2, ...scene.lanes.map((lane) => lane.name.length), scene.busy ? String(scene.slots).length : 0);
  return Math.min(width < 600 ? 64 : 150, 18 + longest * 6.2);
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

const zoomed = (view: View, by: number, around = (view.from + view.to) / 2): View => ({
  from: around - (around - view.from) * by,
  to: around + (view.to - around) * by,
});
const moved = (view: View, by: number): View => ({ from: view.from + by, to: view.to + by });

interface Keyed {
  view: View;
  selected: Spot | null;
  scene: Scene;
  set: (view: View) => void;
  pin: () => boolean;
}

function fit({ selected, set }: Keyed): boolean {
  if (!selected) return false;
  const { bars, i } = selected;
  const spare = Math.max(20, bars.length[i]! * 0.15);
  set({ from: bars.start[i]! - spare, to: bars.start[i]! + bars.length[i]! + spare });
  return true;
}

function useKeys(full: boolean, state: Keyed): void {
  const now = useRef(state);
  now.current = state;
  useEffect(() => {
    if (!full) return;
    const change = (make: (view: View) => View) => () => now.current.set(make(now.current.view));
    const by = (share: number) => change((v) => moved(v, (v.to - v.from) * share));
    const zoom = (factor: number) => change((v) => zoomed(v, factor));
    const off = [
      onKey("w", t.keys.zoomIn, zoom(0.6)),
      onKey("s", t.keys.zoomOut, zoom(1 / 0.6)),
      onKey("a", t.keys.left, by(-0.2)),
      onKey("d", t.keys.right, by(0.2)),
      onKey("f", t.keys.fit, () => fit(now.current)),
      onKey("p", t.keys.pin, () => now.current.pin()),
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
  choose: (spot: Spot | null) => void;
  pin: (lane: number | null) => boolean;
}

/** What is under the mouse. */
function find({ scene, layout, view, scroll }: Mouse, x: number, y: number): Hover | null {
  const perPixel = (view.to - view.from) / (layout.right - layout.left);
  const at = view.from + (x - layout.left) * perPixel;
  const nothing: Hover = { spot: null, mark: null, lane: null, x, y };
  if (y < layout.top) {
    const mark = scene.marks.findIndex((m) => Math.abs(m.t - at) < 5 * perPixel);
    return mark < 0 ? null : { ...nothing, mark };
  }
  const lane = laneAt(layout, scroll, y);
  if (lane === null) return null;
  const bars = barsIn(scene, view);
  const row = bars && x >= layout.left ? rowAt(layout, bars, lane, scroll, y) : null;
  const i = bars && row !== null ? barAt(bars, row, at, 3 * perPixel) : null;
  return { ...nothing, lane, spot: i === null ? null : { bars: bars!, i } };
}

const CLICK = 4;

function useMouse(state: Mouse) {
  const { full, layout, view, set, setHover, choose, pin } = state;
  const drag = useRef<{ x: number; view: View; far: boolean } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (!full || event.button !== 0) return;
      drag.current = { x: event.offsetX, view, far: false };
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const from = drag.current;
      if (!from) return setHover(find(state, event.offsetX, event.offsetY));
      if (Math.abs(event.offsetX - from.x) > CLICK) from.far = true;
      if (!from.far) return;
      setHover(null);
      const per = (from.view.to - from.view.from) / (layout.right - layout.left);
      set(moved(from.view, (from.x - event.offsetX) * per));
    },
    onPointerUp: (event: PointerEvent) => {
      const far = drag.current?.far;
      drag.current = null;
      if (!full || far) return;
      const found = find(state, event.offsetX, event.offsetY);
      if (event.offsetX < layout.left) pin(found?.lane ?? null);
      else choose(found?.spot ?? null);
    },
    onPointerCancel: () => {
      drag.current = null;
    },
    onPointerLeave: () => setHover(null),
    onWheel: (event: WheelEvent) => {
      // A plain wheel scrolls the page as everywhere else.
      if (!full || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      const at = view.from + ((event.offsetX - layout.left) / (layout.right - layout.left)) * (view.to - view.from);
      set(zoomed(view, Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), at));
    },
  };
}

interface TipProps {
  hover: Hover;
  scene: Scene;
  width: number;
  pinned: (lane: number) => boolean;
}

function Tip({ hover, scene, width, pinned }: TipProps) {
  const facts =
    hover.mark !== null ? (
      <MarkFacts scene={scene} mark={hover.mark} />
    ) : hover.spot ? (
      <BarFacts scene={scene} spot={hover.spot} />
    ) : hover.lane !== null && hover.x < 150 ? (
      <LaneFacts scene={scene} lane={hover.lane} pinned={pinned(hover.lane)} />
    ) : null;
  if (!facts) return null;
  const style = { left: `${Math.min(hover.x + 14, Math.max(0, width - 260))}px`, top: `${hover.y + 16}px` };
  return (
    <div class="tip" style={style} role="status">
      {facts}
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

function LaneFacts({ scene, lane, pinned }: { scene: Scene; lane: number; pinned: boolean }) {
  const { name, host, reason } = scene.lanes[lane]!;
  return (
    <>
      <b>
        {t.by[scene.by]} {name}
      </b>
      {host && host !== name && <span>{host}</span>}
      {reason && <span class="mark-fail">{reason}</span>}
      <span class="dim">{pinned ? t.unpinLane : t.pinLane}</span>
    </>
  );
}

export function BarFacts({ scene, spot: { bars, i } }: { scene: Scene; spot: Spot }) {
  const stage = bars.stages[bars.stage[i]!];
  const state = bars.state[i];
  const gc = bars.gc[i]! / 255;
  return (
    <>
      <b>
        {state === MERGED ? t.manyTasks(count(bars.task[i]!)) : t.taskN(bars.task[i]!)}
        {stage ? `, ${t.ofStage(stage[0])}` : ""}
      </b>
      <span>
        {duration(bars.length[i]!)} · {t.from} {clock(scene.startMs + bars.start[i]!, true)} ·{" "}
        {scene.by === "stage" ? "" : `${t.by[scene.by].toLowerCase()} `}
        {scene.lanes[bars.lane[i]!]?.name}
      </span>
      {gc >= 0.02 && (
        <span>
          {t.gc} {percent(gc)}
        </span>
      )}
      {state === FAILED && <span class="mark-fail">{t.failed}</span>}
      {state === KILLED && <span>{t.status("killed")}</span>}
      {bars.straggler[i] === 1 && <span class="mark-fail">{t.legendSlowest}</span>}
    </>
  );
}
