// Moments. Local time on the page, the zone in the tooltip, ISO when copied.
import { NONE } from "./units.ts";

type Maybe = number | null | undefined;
const two = (value: number): string => String(value).padStart(2, "0");

export function clock(ms: Maybe, seconds = false): string {
  if (ms === null || ms === undefined) return NONE;
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
}

/** English dates put the day first, as the rest of the page does. */
const locale = (): string => (document.documentElement.lang === "cs" ? "cs" : "en-GB");

// Making one takes longer than a whole row of a table; the language changes only with the page.
const formats = new Map<string, Intl.DateTimeFormat>();

function format(name: string, how: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  let made = formats.get(name);
  if (!made) formats.set(name, (made = new Intl.DateTimeFormat(locale(), how)));
  return made;
}

export function day(ms: Maybe): string {
  if (ms === null || ms === undefined) return NONE;
  const at = new Date(ms);
  if (at.getFullYear() === new Date().getFullYear()) return format("day", { day: "numeric", month: "short" }).format(at);
  return format("date", { day: "numeric", month: "short", year: "numeric" }).format(at);
}

/** The full moment with its zone, for tooltips. */
export function full(ms: Maybe): string {
  if (ms === null || ms === undefined) return "";
  return format("full", { dateStyle: "medium", timeStyle: "long" }).format(new Date(ms));
}

/** Spark's REST writes `2026-11-29T18:02:50.302GMT`. */
export function sparkTime(text: string | null | undefined): number | null {
  if (!text) return null;
  const ms = Date.parse(text.replace("GMT", "Z"));
  return Number.isNaN(ms) ? null : ms;
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5,
  432e5, 864e5, 1728e5, 6048e5,
];

/** Round distances for an axis of `span` milliseconds with at most `most` lines. */
export function axisStep(span: number, most: number): number {
  return STEPS.find((step) => span / step <= most) ?? STEPS[STEPS.length - 1]!;
}
