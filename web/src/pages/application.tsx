// An application: its head and tabs, which stay while the tab below loads and changes.
import { useEffect } from "preact/hooks";
import type { AppPage } from "../base/api.ts";
import { appUrl, useData, type Failure } from "../base/fetch.ts";
import { watching } from "../base/live.ts";
import { day } from "../base/time.ts";
import { count, duration, factor, percent } from "../base/units.ts";
import { appKey, appPath, type AppPlace, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Fact, Moment, Pill, type PillKind } from "../parts/bits.tsx";
import { Icon } from "../parts/icons.tsx";
import { usePage, type Crumb } from "../parts/shell.tsx";
import { Empty, ErrorBox, Note } from "../parts/states.tsx";
import { tabList, Tabs } from "../parts/tabs.tsx";
import { Diagnosis } from "./diagnosis.tsx";
import { tabKey, TABS } from "./tabs.ts";

export default function Application({ place }: { place: AppPlace }) {
  const { app, tab } = place;
  const page = useData<AppPage>(`${appUrl(app)}/page`);
  const name = page.data?.application.name || app.id;
  usePage(titleOf(place, name), crumbsOf(place, name));
  const running = page.data?.application.in_progress ?? false;
  useEffect(() => {
    watching.value = running;
    return () => {
      watching.value = false;
    };
  }, [running]);
  const counts = page.data && { ...page.data.counts, findings: page.data.chapters.length };
  if (page.error?.status === 404 && !page.data) return <NoApplication error={page.error} again={page.again} />;
  const Content = TABS[tabKey(place)];
  return (
    <>
      <Head app={app} page={page.data} />
      <Tabs app={app} on={tab} counts={counts} />
      {page.error && tab !== "" && <ErrorBox error={page.error} again={page.again} />}
      {page.data?.warnings.map((w) => (
        <Note key={w.code + w.text}>{w.text}</Note>
      ))}
      {tab === "" ? (
        <Diagnosis app={app} loaded={page} />
      ) : Content ? (
        <Content key={tabKey(place) + place.rest.join("/")} app={app} page={page.data} rest={place.rest} />
      ) : (
        <Empty title={t.noPage} />
      )}
    </>
  );
}

function NoApplication({ error, again }: { error: Failure; again: () => void }) {
  return (
    <>
      <ErrorBox error={error} again={again} what={t.noSuchApp} />
      <p>
        <a class="link" href="/applications">
          {t.allApps}
        </a>
      </p>
    </>
  );
}

function titleOf(place: AppPlace, name: string): string {
  const [first, second] = place.rest;
  if (place.tab === "sql" && first) return `${t.sqlN(first)} · ${name}`;
  if (place.tab === "stages" && first) return `${t.stageN(first, second)} · ${name}`;
  const tab = tabList(null).find((one) => one.key === place.tab);
  return tab && place.tab ? `${tab.text} · ${name}` : name;
}

function crumbsOf(place: AppPlace, name: string): Crumb[] {
  const { app, tab, rest } = place;
  const crumbs: Crumb[] = [{ text: t.applications, to: "/applications" }];
  if (!tab) return [...crumbs, { text: name }, ...(name === app.id ? [] : [{ text: app.id, code: true }])];
  crumbs.push({ text: name, to: appPath(app) });
  const text = tab === "streaming" ? t.tabs.streaming : (tabList(null).find((one) => one.key === tab)?.text ?? tab);
  if (rest[0] === undefined) return [...crumbs, { text }];
  const last = tab === "sql" ? t.sqlN(rest[0]) : tab === "stages" ? t.stageN(rest[0], rest[1]) : rest[0];
  return [...crumbs, { text, to: appPath(app, tab) }, { text: last }];
}

const STATES: Record<AppPage["state"], PillKind> = { succeeded: "ok", failed: "fail", running: "run", incomplete: "warn" };

function Head({ app, page }: { app: AppRef; page: AppPage | null }) {
  const a = page?.application;
  return (
    <div class="head">
      <div class="grow">
        <h1>
          <span class="cut">{a?.name || app.id}</span>
          {page && <Pill kind={STATES[page.state]}>{t.states[page.state]}</Pill>}
        </h1>
        <div class="facts">{a && <Facts a={a} />}</div>
      </div>
      <div class="row buttons">
        <a class="btn" href={`/compare?new=${encodeURIComponent(appKey(app))}`}>
          <Icon name="compare" />
          {t.compareWith}
        </a>
        {(page?.counts.sql ?? 0) > 0 && (
          <a class="btn" href={appPath(app, "sql")}>
            <Icon name="plan" />
            {t.queryPlans}
          </a>
        )}
      </div>
    </div>
  );
}

function Facts({ a }: { a: AppPage["application"] }) {
  const cores = a.executors && a.slots ? Math.round(a.slots / a.executors) : null;
  const slow = a.usual_ms && a.wall_ms && a.wall_ms >= 1.5 * a.usual_ms ? a.wall_ms / a.usual_ms : null;
  return (
    <>
      <span>
        {a.in_progress ? t.runningFor : t.ran} <b>{duration(a.wall_ms)}</b>
        {a.usual_ms ? (
          <>
            , {t.usuallyWord} <b title={t.usualOf(a.usual_runs)}>{duration(a.usual_ms)}</b>
          </>
        ) : null}
        {slow && <b class="slow"> ({factor(slow)})</b>}
      </span>
      {a.started_ms ? (
        <span>
          {t.startedWord}{" "}
          <b>
            <Moment ms={a.started_ms} date={false} />
          </b>
          , {day(a.started_ms)}
        </span>
      ) : null}
      {a.executors ? (
        <span>
          <b>{count(a.executors)}</b> {t.executorsWord(a.executors)}
          {cores ? (
            <>
              {" "}
              × <b>{count(cores)}</b> {t.coresWord(cores)}
            </>
          ) : null}
        </span>
      ) : null}
      {a.busy_share !== null && a.busy_share !== undefined && (
        <span>
          {t.busy} <b>{percent(a.busy_share)}</b> {t.ofCoreTime}
        </span>
      )}
      {a.exit_code !== null && a.exit_code !== undefined && a.exit_code !== 0 && <Fact label={t.exitCode}>{a.exit_code}</Fact>}
      {a.cost && <Fact label={t.cost}>{a.cost}</Fact>}
      {a.user && <Fact label={t.user}>{a.user}</Fact>}
      {a.spark_version && <Fact label="Spark">{a.spark_version}</Fact>}
    </>
  );
}
