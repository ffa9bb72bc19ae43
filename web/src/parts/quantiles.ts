// When the largest value of a summary row stands apart.
import type { SummaryRow } from "../base/api.ts";

const TIMES = 3;
// Below these even a large factor costs nothing: a second, 16 MiB, ten thousand rows.
const WORTH = { ms: 1000, bytes: 16 * 1024 * 1024, count: 10_000 };

export function stands(row: SummaryRow): boolean {
  const max = row.max ?? 0;
  return max >= WORTH[row.unit] && max >= TIMES * (row.p75 ?? 0);
}
