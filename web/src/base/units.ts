// Numbers as people read them. A missing value is an en dash, never a zero.

export const NONE = "–";
const NBSP = "\u00a0";
const MINUS = "−";

type Maybe = number | null | undefined;
const missing = (value: Maybe): value is null | undefined => value === null || value === undefined || Number.isNaN(value);
const two = (value: number): string => String(value).padStart(2, "0");
const pair = (big: number, bigUnit: string, small: string, smallUnit: string): string =>
  `${big}${NBSP}${bigUnit}${small === "" ? "" : `${NBSP}${small}${NBSP}${smallUnit}`}`;

/** `840 ms`, `2.9 s`, `41 s`, `12 m 15 s`, `3 h 04 m`, `2 d 6 h`. */
export function duration(ms: Maybe): string {
  if (missing(ms)) return NONE;
  if (ms < 0) return MINUS + duration(-ms);
  if (ms < 999.5) return `${Math.round(ms)}${NBSP}ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)}${NBSP}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}${NBSP}s`;
  if (seconds < 3600) return pair(Math.floor(seconds / 60), "m", seconds % 60 ? two(seconds % 60) : "", "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return pair(Math.floor(minutes / 60), "h", minutes % 60 ? two(minutes % 60) : "", "m");
  const hours = Math.round(minutes / 60);
  return pair(Math.floor(hours / 24), "d", hours % 24 ? String(hours % 24) : "", "h");
}

/** Three digits of a number below 1 024: `1.10`, `38.2`, `872`. */
function threeDigits(value: number): string {
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** Binary sizes: `38.2 GiB`. */
export function bytes(value: Maybe): string {
  if (missing(value)) return NONE;
  if (value < 0) return MINUS + bytes(-value);
  if (value === 0) return "0";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (value >= 1023.5 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 ? Math.round(value) : threeDigits(value)}${NBSP}${units[at]}`;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** `8 413`, `412 M`. */
export function count(value: Maybe): string {
  if (missing(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e12) return `${threeDigits(value / 1e12)}${NBSP}T`;
  if (size >= 1e9) return `${threeDigits(value / 1e9)}${NBSP}G`;
  if (size >= 1e6) return `${threeDigits(value / 1e6)}${NBSP}M`;
  if (size < 10 && !Number.isInteger(value)) return value.toFixed(1).replace("-", MINUS);
  return grouped.format(value).replaceAll(",", NBSP).replace("-", MINUS);
}

/** A share of one: `31 %`, `0.4 %`. */
export function percent(share: Maybe): string {
  if (missing(share)) return NONE;
  const value = share * 100;
  if (value !== 0 && Math.abs(value) < 0.05) return `< 0.1${NBSP}%`;
  return `${value !== 0 && Math.abs(value) < 0.95 ? value.toFixed(1) : Math.round(value)}${NBSP}%`.replace("-", MINUS);
}

/** `40 ×`, `1.8 ×`. */
export function factor(value: Maybe): string {
  if (missing(value) || !Number.isFinite(value)) return NONE;
  return `${value < 9.95 ? value.toFixed(1) : count(Math.round(value))}${NBSP}×`;
}

/** A change against something, with its sign: `+38 %`. */
export function change(now: Maybe, before: Maybe): string {
  if (missing(now) || missing(before) || before === 0) return NONE;
  const share = Math.round((now / before - 1) * 100);
  return `${share > 0 ? "+" : ""}${count(share)}${NBSP}%`;
}

/** A difference in time, with its sign: `−25 m 10 s`. */
export function signed(ms: Maybe): string {
  if (missing(ms)) return NONE;
  return ms > 0 ? `+${duration(ms)}` : duration(ms);
}

export type Unit = "ms" | "bytes" | "count" | "share";

export function show(value: Maybe, unit: Unit): string {
  if (unit === "ms") return duration(value);
  if (unit === "bytes") return bytes(value);
  return unit === "share" ? percent(value) : count(value);
}
