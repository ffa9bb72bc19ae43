// Loads a timeline and its bars; for very many tasks, again for each part that is looked at.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Timeline } from "../base/api.ts";
import { asColumns, type Columns } from "../base/columns.ts";
import { OWN, useData, type Loaded } from "../base/fetch.ts";
import { appKey, type AppRef } from "../base/url.ts";
import { barsOf, sceneOf, type BarsHeader, type Scene, type View } from "./timeline-model.ts";

export type By = "executor" | "stage" | "host";
const ALL_BARS = 200_000;
const PIXELS = 2400;

interface TimelineData {
  line: Loaded<Timeline>;
  bars: Loaded<Columns<BarsHeader>>;
  scene: Scene | null;
}

export function useTimeline(app: AppRef, by: By, view: View | null): TimelineData {
  const base = `${OWN}/applications/${appKey(app)}/timeline`;
  const line = useData<Timeline>(`${base}?by=${by}&pixels=${PIXELS}`);
  const part = useSettled(view, 250);
  const range =
    line.data && part ? `&from=${Math.floor(line.data.start_ms + part.from)}&to=${Math.ceil(line.data.start_ms + part.to)}` : "";
  const many = (line.data?.tasks ?? 0) > ALL_BARS;
  const bars = useData<Columns<BarsHeader>>(
    line.data ? `${base}/tasks?by=${by}&pixels=${PIXELS}${many ? range : ""}` : null,
    asColumns,
  );
  const near = useData<Timeline>(range ? `${base}?by=${by}&pixels=${PIXELS}${range}` : null);
  const model = useMemo(
    () => (line.data && bars.data ? barsOf(bars.data, line.data.lanes, line.data.end_ms - line.data.start_ms) : null),
    [line.data, bars.data],
  );
  const scene = useMemo(
    () => line.data && sceneOf(line.data, model, range ? (near.data?.busy ?? null) : null, by),
    [line.data, model, range, near.data],
  );
  return { line, bars, scene };
}

/** The view once it has rested, so that a drag does not ask for every step of the way. */
function useSettled(view: View | null, ms: number): View | null {
  const [settled, setSettled] = useState(view);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(view), ms);
    return () => clearTimeout(timer);
  }, [view?.from, view?.to]);
  return settled;
}
