// Only what is in the picture.
import { count } from "../base/units.ts";
import { t } from "../base/words.ts";
import type { Scene, View } from "./timeline-model.ts";
import { barsIn } from "./timeline-model.ts";

export function TimelineLegend({ scene, view = null }: { scene: Scene; view?: View | null }) {
  const bars = barsIn(scene, view ?? { from: 0, to: scene.span });
  if (!bars) return null;
  const { seen } = bars;
  const items: [boolean, string, string, string?][] = [
    [true, "k-task", t.legendTask],
    [seen.straggler, "k-slow", t.legendSlowest],
    [seen.gc, "k-gc", t.legendGc],
    [seen.failed, "k-failed", t.legendFailed, "×"],
    [seen.killed, "k-killed", t.status("killed")],
  ];
  return (
    <span class="legend">
      {items.map(
        ([shown, kind, text, glyph]) =>
          shown && (
            <span key={kind}>
              <i class={kind}>{glyph}</i>
              {text}
            </span>
          ),
      )}
      {seen.merged > 0 && <span title={t.mergedTitle}>{t.mergedTasks(count(seen.merged), count(seen.tasks))}</span>}
    </span>
  );
}
