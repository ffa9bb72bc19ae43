// The part of a timeline that is looked at, as the address has it.
import { useEffect, useRef, useState } from "preact/hooks";
import { here, setQuery } from "../base/url.ts";
import type { View } from "./timeline-model.ts";

/** What is shown, or null when it is all but the whole. */
export const partOf = (view: View, span: number): View | null => (view.to - view.from >= span * 0.999 ? null : view);

/** The part looked at stands in the address once it has rested. */
export function useView(): [View | null, (view: View | null) => void] {
  const { query } = here.value;
  const from = Number(query.get("from"));
  const to = Number(query.get("to"));
  const [view, setView] = useState<View | null>(to > from ? { from, to } : null);
  const timer = useRef(0);
  // The address of the next page is none of this one's.
  useEffect(() => () => clearTimeout(timer.current), []);
  const set = (next: View | null) => {
    setView(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(
      () => setQuery({ from: next ? String(Math.round(next.from)) : null, to: next ? String(Math.round(next.to)) : null }),
      300,
    ) as unknown as number;
  };
  return [view, set];
}
