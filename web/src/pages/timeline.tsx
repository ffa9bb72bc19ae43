// What ran where and when, and when nothing ran.
import { useMemo, useState } from "preact/hooks";
import { clock } from "../base/time.ts";
import { count, duration } from "../base/units.ts";
import { appPath, here, setQuery, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Help, Seg } from "../parts/bits.tsx";
import { ErrorBox, With } from "../parts/states.tsx";
import { BarFacts, TimelineView } from "../parts/timeline.tsx";
import { useTimeline, type By } from "../parts/timeline-data.ts";
import { TimelineLegend } from "../parts/timeline-legend.tsx";
import type { Scene, Spot, View } from "../parts/timeline-model.ts";
import { partOf, useView } from "../parts/view.ts";
import type { TabProps } from "./tabs.ts";

const KINDS: By[] = ["executor", "stage", "host"];

export default function TimelinePage({ app }: TabProps) {
  const asked = here.value.query.get("by") as By | null;
  const by = asked && KINDS.includes(asked) ? asked : "executor";
  const [view, setView] = useView();
  const { line, bars, scene } = useTimeline(app, by, view);
  const [selected, setSelected] = useState<Spot | null>(null);
  const show = (next: View) => setView(scene && partOf(next, scene.span));
  // Kept while the view moves: a drag must not draw these lists again.
  const lists = useMemo(
    () =>
      scene && (
        <>
          <Gaps scene={scene} show={show} />
          <Marks scene={scene} />
        </>
      ),
    [line.data],
  );
  return (
    <>
      <Card
        title={t.tabs.timeline}
        note={line.data ? t.overTimeNote(count(line.data.tasks)) : ""}
        class="timeline-card"
        id="event-timeline"
        right={
          <>
            {scene && <TimelineLegend scene={scene} view={view} />}
            <Seg<By>
              label={t.lanesBy}
              value={by}
              options={KINDS.map((k) => [k, t.by[k]])}
              onChange={(value) => setQuery({ by: value === "executor" ? null : value })}
            />
          </>
        }
      >
        <With of={line} rows={10}>
          {(data) =>
            scene && (
              <>
                <TimelineView scene={scene} full view={view} onView={show} onSelect={setSelected} tasks={data.tasks} most={680} />
                <div class="under">
                  {selected ? <Selected app={app} scene={scene} spot={selected} /> : <Help>{t.timelineHelp}</Help>}
                </div>
              </>
            )
          }
        </With>
      </Card>
      {bars.error && <ErrorBox error={bars.error} again={bars.again} />}
      {lists}
    </>
  );
}

function Selected({ app, scene, spot }: { app: AppRef; scene: Scene; spot: Spot }) {
  const stage = spot.bars.stages[spot.bars.stage[spot.i]!];
  return (
    <div class="selected-task">
      <BarFacts scene={scene} spot={spot} />
      {stage && (
        <a class="btn sm" href={appPath(app, `stages/${stage[0]}/${stage[1]}`)}>
          {t.openStage(stage[0])}
        </a>
      )}
    </div>
  );
}

function Gaps({ scene, show }: { scene: Scene; show: (view: View) => void }) {
  return (
    <Card title={t.gapsTitle} note={t.gapsNote}>
      {scene.gaps.length === 0 ? (
        <p class="pad soft">{t.noGaps}</p>
      ) : (
        <ul class="plain">
          {scene.gaps.map((gap) => (
            <li key={gap.from}>
              <button
                type="button"
                class="timeline-line"
                onClick={() => show({ from: gap.from - (gap.to - gap.from) * 0.3, to: gap.to + (gap.to - gap.from) * 0.3 })}
              >
                <span class="num">{clock(scene.startMs + gap.from, true)}</span>
                <b class="num">{duration(gap.to - gap.from)}</b>
                <span class="soft">{gap.text}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Marks({ scene }: { scene: Scene }) {
  if (!scene.marks.length) return null;
  return (
    <Card title={t.marksTitle} note={count(scene.marks.length)}>
      <ul class="plain marks">
        {scene.marks.slice(0, 200).map((mark, i) => (
          <li key={i}>
            <span class="timeline-line">
              <span class="num">{clock(scene.startMs + mark.t, true)}</span>
              <span class={mark.bad ? "mark-fail" : "soft"}>{mark.text}</span>
            </span>
          </li>
        ))}
      </ul>
      {scene.marks.length > 200 && <p class="pad dim">{t.firstOf(count(200), count(scene.marks.length))}</p>}
    </Card>
  );
}
