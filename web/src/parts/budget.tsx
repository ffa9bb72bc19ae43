// Where the time went, as one bar whose parts add up.
import type { BudgetPart } from "../base/api.ts";
import { duration } from "../base/units.ts";
import { t } from "../base/words.ts";

const KINDS = new Set(["wait", "few", "cpu", "shuffle", "offcpu", "gc", "driver", "start", "fail"]);

const kindOf = (part: BudgetPart): string => `p-${KINDS.has(part.kind) ? part.kind : "cpu"}`;

export function Budget({ parts }: { parts: BudgetPart[] }) {
  const shown = parts.filter((p) => p.ms > 0);
  const total = shown.reduce((sum, p) => sum + p.ms, 0);
  if (!total) return null;
  return (
    <>
      <div
        class="budget"
        role="img"
        aria-label={`${t.whereWent(duration(total))} ${shown.map((p) => `${p.name} ${duration(p.ms)}`).join(", ")}`}
      >
        {shown.map((p) => (
          <i key={p.name} class={kindOf(p)} style={{ flexGrow: p.ms }} title={`${p.name} ${duration(p.ms)}`} />
        ))}
      </div>
      <div class="legend">
        {shown.map((p) => (
          <span key={p.name}>
            <i class={kindOf(p)} />
            <b>{duration(p.ms)}</b> {p.name}
          </span>
        ))}
      </div>
    </>
  );
}
