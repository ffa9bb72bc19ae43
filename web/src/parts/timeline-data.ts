// Loads a timeline and its bars; of an application whose short tasks the server draws together, again and in detail for the part that is looked at.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Timeline } from "../base/api.ts";
import { appUrl, ask, type Loaded, useData } from "../base/fetch.ts";
import type { AppRef } from "../base/url.ts";
import type { Bars } from "./bars.ts";
import { asBars } from "./prepare.ts";
import { busyOf, covers, sceneOf, type Busy, type Part, type Scene, type View } from "./timeline-model.ts";

export type By = Scene["by"];
const PIXELS = 2400;
/** How many times as long as the view the part is that is loaded in detail. */
const WIDER = 3;
/** A part is loaded anew when the view has become so many times shorter. */
const CLOSER = 10;

interface TimelineData {
  line: Loaded<Timeline>;
  bars: Loaded<Bars>;
  scene: Scene | null;
}

type Near<T> = Part<T> & { by: By };

export function useTimeline(app: AppRef, by: By, view: View | null): TimelineData {
  const base = `${appUrl(app)}/timeline`;
  const line = useData<Timeline>(`${base}?by=${by}&pixels=${PIXELS}`);
  const bars = useData<Bars>(`${base}/tasks?by=${by}&pixels=${PIXELS}`, asBars);
  const part = usePart(view);
  const start = line.data?.start_ms;
  const range =
    part && start !== undefined
      ? `by=${by}&pixels=${PIXELS * WIDER}&from=${Math.floor(start + part.from)}&to=${Math.ceil(start + part.to)}`
      : null;
  const near = <T>(data: T): Near<T> => ({ ...part!, by, data });
  const nearBars = useData<Near<Bars>>(
    range && bars.data?.seen.merged ? `${base}/tasks?${range}` : null,
    async (url, signal) => near(await asBars(url, signal)),
  ).data;
  const nearBusy = useData<Near<Busy>>(range && `${base}?${range}`, async (url, signal) =>
    near(busyOf(await ask<Timeline>(url, { signal }))),
  ).data;
  const whole = useMemo(() => line.data && sceneOf(line.data, by, bars.data), [line.data, bars.data]);
  const scene = useMemo(
    () =>
      whole && {
        ...whole,
        nearBars: nearBars?.by === by ? nearBars : null,
        nearBusy: nearBusy?.by === by ? nearBusy : null,
      },
    [whole, nearBars, nearBusy],
  );
  return { line, bars, scene };
}

/** The part around the view, once this has rested: a drag must not ask for every step of the way. */
function usePart(view: View | null): View | null {
  const [part, setPart] = useState<View | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (!view) return setPart(null);
      const length = view.to - view.from;
      const spare = ((WIDER - 1) / 2) * length;
      setPart((old) =>
        covers(old, view) && old!.to - old!.from < CLOSER * length
          ? old
          : { from: Math.max(0, view.from - spare), to: view.to + spare },
      );
    }, 250);
    return () => clearTimeout(timer);
  }, [view?.from, view?.to]);
  return part;
}
