// The small timeline below a diagnosis.
import { useState } from "preact/hooks";
import { count } from "../base/units.ts";
import { appPath, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Seg } from "./bits.tsx";
import { With } from "./states.tsx";
import { TimelineView } from "./timeline.tsx";
import { useTimeline, type By } from "./timeline-data.ts";
import { TimelineLegend } from "./timeline-legend.tsx";

export default function TimelineCard({ app }: { app: AppRef }) {
  const [by, setBy] = useState<By>("executor");
  const { line, scene } = useTimeline(app, by, null);
  const right = (
    <>
      {scene && <TimelineLegend scene={scene} />}
      <Seg<By>
        label={t.lanesBy}
        value={by}
        options={[
          ["executor", t.by.executor],
          ["stage", t.by.stage],
          ["host", t.by.host],
        ]}
        onChange={setBy}
      />
      <a class="btn sm" href={appPath(app, "timeline")}>
        {t.wholeTimeline}
      </a>
    </>
  );
  return (
    <Card
      title={t.executorsOverTime}
      note={line.data ? t.overTimeNote(count(line.data.tasks)) : ""}
      right={right}
      class="timeline-card"
    >
      <With of={line} rows={8}>
        {(data) => (scene ? <TimelineView scene={scene} full={false} tasks={data.tasks} most={420} /> : null)}
      </With>
    </Card>
  );
}
