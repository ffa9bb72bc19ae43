// Only what is in the picture.
import { t } from "../base/words.ts";
import { FAILED, KILLED, MERGED, type Scene } from "./timeline-model.ts";

export function TimelineLegend({ scene }: { scene: Scene }) {
  const { bars } = scene;
  if (!bars) return null;
  return (
    <span class="legend">
      <span>
        <i class="k-task" />
        {t.legendTask}
      </span>
      {bars.straggler.includes(1) && (
        <span>
          <i class="k-slow" />
          {t.legendSlowest}
        </span>
      )}
      {bars.gc.some((gc) => gc > 12) && (
        <span>
          <i class="k-gc" />
          {t.legendGc}
        </span>
      )}
      {bars.state.includes(FAILED) && (
        <span>
          <i class="k-failed">×</i>
          {t.legendFailed}
        </span>
      )}
      {bars.state.includes(MERGED) && (
        <span>
          <i class="k-task" />
          {t.legendMerged}
        </span>
      )}
      {bars.state.includes(KILLED) && (
        <span>
          <i class="k-killed" />
          {t.status("killed")}
        </span>
      )}
    </span>
  );
}
