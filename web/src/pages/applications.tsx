// Which applications were slow, costly or wasteful, and which need a person now?
import { useEffect, useMemo, useState } from "preact/hooks";
import type { AppList, AppPage, AppRow } from "../base/api.ts";
import { appUrl, ask, OWN, useData } from "../base/fetch.ts";
import { change } from "../base/live.ts";
import { bytes, count, duration, factor, percent } from "../base/units.ts";
import { appKey, appPath, here, setQuery } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Filter, Moment, SeverityMark, ShareBar } from "../parts/bits.tsx";
import { figureColumn } from "../parts/columns.tsx";
import { Drop } from "../parts/drop.tsx";
import { Icon } from "../parts/icons.tsx";
import { Peek } from "../parts/peek.tsx";
import { usePage } from "../parts/shell.tsx";
import { Empty, Note, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Prose, Verdict } from "../parts/text.tsx";

export function Applications() {
  usePage(t.applications, [{ text: t.applications }]);
  const list = useData<AppList>(`${OWN}/applications`);
  return (
    <>
      <div class="head">
        <h1>{t.applications}</h1>
      </div>
      <With of={list} rows={12}>
        {(data) => <List list={data} again={list.again} />}
      </With>
    </>
  );
}

function List({ list, again }: { list: AppList; again: () => void }) {
  const apps = list.applications;
  if (!apps.length)
    return (
      <>
        <News list={list} again={again} />
        <Nothing ready={list.ready} />
        <Unreadable list={list} />
      </>
    );
  return (
    <>
      <Summary apps={apps} />
      {!list.ready && <Note kind="info">{t.stillReading(apps.length)}</Note>}
      <News list={list} again={again} />
      <AppTable apps={apps} />
      <Drop />
      <Unreadable list={list} />
    </>
  );
}

function Nothing({ ready }: { ready: boolean }) {
  return (
    <>
      <Empty title={ready ? t.noApps : t.readingLogs}>
        <p>{t.noAppsNext}</p>
        <pre class="code" tabIndex={0}>
          lakescope serve /path/to/spark-events
        </pre>
      </Empty>
      <Drop />
    </>
  );
}

/** How many rows of the newer list are not in the shown one, or changed since. */
function differences(shown: AppRow[], newer: AppRow[]): number {
  const mark = (app: AppRow) => `${app.last_event_ms} ${app.in_progress} ${app.severity} ${app.findings}`;
  const before = new Map(shown.map((app) => [appPath(app), mark(app)]));
  return newer.filter((app) => before.get(appPath(app)) !== mark(app)).length + Math.max(0, shown.length - newer.length);
}

/** New rows wait under a count, so that nothing moves under the reader's hand. */
function News({ list, again }: { list: AppList; again: () => void }) {
  const [newer, setNewer] = useState<AppList | null>(null);
  const now = change.value;
  useEffect(() => {
    if (!now || (now.first && list.ready)) return;
    const stop = new AbortController();
    ask<AppList>(`${OWN}/applications`, { signal: stop.signal }).then(setNewer, () => undefined);
    return () => stop.abort();
  }, [now]);
  useEffect(() => setNewer(null), [list]);
  const n = newer ? differences(list.applications, newer.applications) : 0;
  // While logs are still read the list is not worth holding still.
  useEffect(() => {
    if (n && !list.ready) again();
  }, [n, list.ready]);
  if (!n || !list.ready) return null;
  return (
    <div>
      <button type="button" class="btn sm news" onClick={again}>
        <Icon name="up" />
        {t.newApps(n)}
      </button>
    </div>
  );
}

function Unreadable({ list }: { list: AppList }) {
  if (!list.unreadable.length) return null;
  return (
    <Card title={t.unreadable(list.unreadable.length)} note={t.unreadableNote}>
      <ul class="plain unreadable">
        {list.unreadable.slice(0, FEW).map((log) => (
          <li key={log.path}>
            <code>{log.path}</code>
            <span class="soft">{log.reason}</span>
          </li>
        ))}
      </ul>
      {list.unreadable.length > FEW && (
        <details class="details">
          <summary>{t.showAll}</summary>
          <ul class="plain unreadable">
            {list.unreadable.slice(FEW).map((log) => (
              <li key={log.path}>
                <code>{log.path}</code>
                <span class="soft">{log.reason}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </Card>
  );
}

const FEW = 4;

// What needs a person

const isLoud = (app: AppRow): boolean => app.failed || app.severity === "critical" || app.severity === "high";

/** Half as long again as its usual time, or more. */
const isSlow = (app: AppRow): boolean => app.usual_ms !== null && app.usual_ms > 0 && app.wall_ms >= 1.5 * app.usual_ms;

interface Cause {
  id: string;
  apps: AppRow[];
}

/** Applications grouped by their worst finding, the most frequent first. */
function causes(apps: AppRow[]): Cause[] {
  const groups = new Map<string, AppRow[]>();
  for (const app of apps) if (app.worst) groups.set(app.worst.id, [...(groups.get(app.worst.id) ?? []), app]);
  return [...groups].map(([id, members]) => ({ id, apps: members })).sort((a, b) => b.apps.length - a.apps.length);
}

function Summary({ apps }: { apps: AppRow[] }) {
  const loud = apps.filter(isLoud);
  const same = causes(loud).find((c) => c.apps.length > 1);
  const saving = apps.reduce((sum, app) => sum + (app.saving_ms ?? 0), 0);
  const idle = apps.reduce((sum, app) => sum + Math.max(0, (app.core_ms ?? 0) - (app.run_ms ?? 0)), 0);
  const failed = loud.filter((app) => app.failed).length;
  return (
    <section class="card verdict">
      <div class="vrow">
        <p class="say">
          <b>{loud.length ? t.needPerson(loud.length, apps.length) : t.needNobody(apps.length)}</b>
          {failed > 0 && ` ${t.ofThemFailed(failed, loud.length)}`}
          {same && <> {t.sameCause(same.apps.length, ruleName(same.id))}</>}
        </p>
        {(saving > 0 || idle > 0) && (
          <div class="save">
            <div class="big">{saving > 0 ? `−${duration(saving)}` : coreTime(idle)}</div>
            <div class="lab">{saving > 0 ? t.savingAll(coreTime(idle)) : t.idleAll}</div>
          </div>
        )}
      </div>
      <CauseChips apps={apps} />
    </section>
  );
}

const coreTime = (ms: number): string => t.coreTime(duration(ms));

/** `SKEW_KEY` as words. */
const ruleName = (id: string): string => t.rules[id] ?? id.toLowerCase().replaceAll("_", " ");

const CHIPS = 8;

function CauseChips({ apps }: { apps: AppRow[] }) {
  const only = here.value.query.get("only") ?? "";
  const failed = apps.filter((app) => app.failed).length;
  const running = apps.filter((app) => app.in_progress).length;
  const chips: [string, string, number][] = [];
  if (failed) chips.push(["failed", t.failed, failed]);
  const slow = apps.filter(isSlow).length;
  if (slow) chips.push(["slow", t.slowerThanUsual, slow]);
  if (running) chips.push(["running", t.running, running]);
  for (const cause of causes(apps.filter((a) => a.severity !== "info")).slice(0, CHIPS))
    chips.push([cause.id, ruleName(cause.id), cause.apps.length]);
  if (!chips.length) return null;
  return (
    <div class="chips" role="group" aria-label={t.showOnly}>
      {chips.map(([key, text, n]) => (
        <button
          type="button"
          key={key}
          class={`chip ${key === "failed" ? "bad" : ""}`}
          aria-pressed={only === key}
          onClick={() => setQuery({ only: only === key ? null : key })}
        >
          {text} <b>{n}</b>
        </button>
      ))}
    </div>
  );
}

// The table

const LOUDNESS = { critical: 5, high: 4, medium: 3, low: 2, info: 1 };
const loudness = (app: AppRow): number => (app.failed ? 10 : 0) + (app.severity ? LOUDNESS[app.severity] : 0);
const idleMs = (app: AppRow): number | null =>
  app.core_ms && app.run_ms !== null && app.run_ms !== undefined ? Math.max(0, app.core_ms - app.run_ms) : null;

const columns = (picked: string[]): Column<AppRow>[] => [
  {
    key: "pick",
    head: "",
    width: 40,
    leaves: 2,
    cell: (a) => (
      <input
        type="checkbox"
        class="pick-row"
        checked={picked.includes(appKey(a))}
        aria-label={t.pickRow(a.name || a.id)}
        onChange={() => turnPick(a)}
      />
    ),
  },
  {
    key: "state",
    head: "",
    title: t.severityTitle,
    width: 38,
    by: loudness,
    cell: (a) => <SeverityMark severity={a.severity} failed={a.failed} />,
  },
  { key: "name", head: t.application, width: 226, by: (a) => a.name, cell: (a) => <NameCell app={a} /> },
  { key: "finding", head: t.whatIsWrong, leaves: 2, cell: (a) => <SentenceCell app={a} /> },
  { key: "duration", head: t.duration, num: true, width: 122, by: (a) => a.wall_ms, cell: (a) => <DurationCell app={a} /> },
  {
    key: "saving",
    head: t.couldSave,
    num: true,
    width: 104,
    leaves: 2,
    by: (a) => a.saving_ms,
    cell: (a) => <SavingCell app={a} />,
  },
  {
    key: "waste",
    head: t.idleCores,
    num: true,
    width: 118,
    leaves: 1,
    title: t.idleCoresTitle,
    by: idleMs,
    cell: (a) => <WasteCell app={a} />,
  },
  figureColumn("spill", t.spill, "bytes", 84, (a) => a.spill_bytes, { leaves: 1 }),
  figureColumn("shuffle", t.shuffle, "bytes", 84, (a) => a.shuffle_bytes, { leaves: 3 }),
  {
    key: "started",
    head: t.started,
    num: true,
    width: 120,
    leaves: 2,
    by: (a) => a.started_ms,
    cell: (a) => <Moment ms={a.started_ms} />,
  },
];

/** Picked rows stand in the address, in the order in which they were picked. */
function turnPick(app: AppRow): void {
  const picked = here.value.query.getAll("pick");
  const key = appKey(app);
  setQuery({ pick: picked.includes(key) ? picked.filter((one) => one !== key) : [...picked, key] });
}

function NameCell({ app }: { app: AppRow }) {
  return (
    <div class="two">
      <a class="strong cut" href={appPath(app)}>
        {app.name || app.id}
      </a>
      <span class="cut narrow-only soft">
        <Prose text={app.sentence} />
      </span>
      <span class="dim cut wide-only">
        <span class="mono">
          {app.id}
          {app.attempt ? `/${app.attempt}` : ""}
        </span>
        {app.in_progress && <span class="running"> · {t.running}</span>}
      </span>
    </div>
  );
}

function SentenceCell({ app }: { app: AppRow }) {
  return (
    <div class="sentence" title={app.sentence}>
      <Prose text={app.sentence} />
      {app.findings > 1 && <span class="dim"> {t.andMore(app.findings - 1)}</span>}
    </div>
  );
}

function DurationCell({ app }: { app: AppRow }) {
  const times = app.usual_ms ? app.wall_ms / app.usual_ms : null;
  return (
    <div class="two end">
      <b class={times !== null && times >= 1.5 ? "slow" : "figure"}>{duration(app.wall_ms)}</b>
      <span class="dim">
        {app.usual_ms
          ? times !== null && times >= 1.5
            ? t.timesUsual(factor(times))
            : t.usually(duration(app.usual_ms))
          : t.firstRun}
      </span>
    </div>
  );
}

const SavingCell = ({ app }: { app: AppRow }) => (
  <div class="two end">
    {app.saving_ms ? (
      <>
        <span>−{duration(app.saving_ms)}</span>
        <span class="dim">{percent(app.saving_ms / app.wall_ms)}</span>
      </>
    ) : (
      <span class="dim">–</span>
    )}
  </div>
);

function WasteCell({ app }: { app: AppRow }) {
  const idle = idleMs(app);
  if (idle === null || !app.core_ms) return <span class="dim">–</span>;
  return (
    <div class="two end">
      <span>{coreTime(idle)}</span>
      <span class="withbar">
        <ShareBar share={idle / app.core_ms} />
        <span class="dim">{percent(idle / app.core_ms)}</span>
      </span>
    </div>
  );
}

function matches(app: AppRow, words: string[], only: string): boolean {
  if (
    only === "failed"
      ? !app.failed
      : only === "running"
        ? !app.in_progress
        : only === "slow"
          ? !isSlow(app)
          : only !== "" && app.worst?.id !== only
  )
    return false;
  const text = `${app.name} ${app.id} ${app.user} ${app.sentence} ${app.worst?.id ?? ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The latest of the picked runs against the others. */
function compareLink(picked: AppRow[]): string {
  const [last, ...before] = [...picked].sort((a, b) => b.started_ms - a.started_ms);
  const query = new URLSearchParams(before.map((app) => ["base", appKey(app)]));
  query.set("new", appKey(last!));
  return `/compare?${query}`;
}

function Picked({ apps }: { apps: AppRow[] }) {
  if (!apps.length) return null;
  return (
    <div class="r">
      <span class="dim">
        {t.nPicked(apps.length)}
        {apps.length === 1 && `, ${t.pickAnother}`}
      </span>
      {apps.length > 1 && (
        <a class="btn sm pri" href={compareLink(apps)}>
          <Icon name="compare" />
          {t.comparePicked}
        </a>
      )}
      <button type="button" class="btn ghost sm" onClick={() => setQuery({ pick: null })}>
        {t.clear}
      </button>
    </div>
  );
}

function AppPeek({ app }: { app: AppRow }) {
  const page = useData<AppPage>(`${appUrl(app)}/page`).data;
  const mine = page?.application.id === app.id ? page : null;
  const idle = idleMs(app);
  const first = mine?.chapters[0];
  return (
    <Peek
      title={app.name || app.id}
      to={appPath(app)}
      text={<Verdict text={app.sentence} />}
      facts={[
        [t.duration, duration(app.wall_ms)],
        [t.usualWord, app.usual_ms ? duration(app.usual_ms) : t.firstRun],
        [t.couldSave, app.saving_ms ? `−${duration(app.saving_ms)}` : "–"],
        [t.idleCores, idle === null ? "–" : coreTime(idle)],
        [t.spill, bytes(app.spill_bytes)],
        [t.shuffle, bytes(app.shuffle_bytes)],
        [t.tasks, count(app.tasks)],
        [t.started, <Moment ms={app.started_ms} />],
        [t.user, app.user || "–"],
        ["Spark", app.spark_version || "–"],
      ]}
      findings={mine?.chapters.slice(0, 3).map(({ number, root }) => ({ number, severity: root.severity, title: root.title }))}
      base={appPath(app)}
    >
      {first?.root.remedies[0] && (
        <p class="peek-text">
          <b>{t.whatToDo}</b> <Prose text={first.root.remedies[0].text} />
        </p>
      )}
    </Peek>
  );
}

function AppTable({ apps }: { apps: AppRow[] }) {
  const { query } = here.value;
  const q = query.get("q") ?? "";
  const only = query.get("only") ?? "";
  const shown = useMemo(() => {
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = apps.filter((app) => matches(app, words, only));
    // Within one severity what could save most stands first, then what ran last.
    return found.sort(
      (a, b) => loudness(b) - loudness(a) || (b.saving_ms ?? 0) - (a.saving_ms ?? 0) || b.started_ms - a.started_ms,
    );
  }, [apps, q, only]);
  const pick = query.getAll("pick");
  const cols = useMemo(() => columns(pick), [pick.join()]);
  return (
    <section class="card apps">
      <div class="bar">
        <Filter value={q} label={t.filterApps} onInput={(value) => setQuery({ q: value })} />
        <span class="dim" role="status">
          {shown.length === apps.length ? t.appCount(count(apps.length)) : t.ofCount(count(shown.length), count(apps.length))}
        </span>
        {(q || only) && (
          <button type="button" class="btn ghost sm" onClick={() => setQuery({ q: null, only: null })}>
            {t.showAll}
          </button>
        )}
        <Picked apps={apps.filter((app) => pick.includes(appKey(app)))} />
      </div>
      <Table
        name={t.applications}
        columns={cols}
        rows={shown}
        id={(a) => `${a.id}/${a.attempt ?? ""}`}
        sort="-state"
        rowHeight={50}
        open={appPath}
        pick={turnPick}
        peek={(app) => <AppPeek app={app} />}
        empty={<p class="dim pad">{t.nothingMatches}</p>}
      />
    </section>
  );
}
