// The tabs of an application. They are links, so that each can be opened on its own.
import type { AppPage } from "../base/api.ts";
import { count } from "../base/units.ts";
import { appPath, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";

type Counts = AppPage["counts"];

export interface Tab {
  key: string;
  text: string;
  n?: number | undefined;
}

/** Tabs with their counts; streaming is there only for applications that stream. */
export function tabList(counts: (Counts & { findings: number }) | null): Tab[] {
  const tabs: Tab[] = [
    { key: "", text: t.tabs.diagnosis, n: counts?.findings },
    { key: "timeline", text: t.tabs.timeline },
    { key: "sql", text: t.tabs.sql, n: counts?.sql },
    { key: "jobs", text: t.tabs.jobs, n: counts?.jobs },
    { key: "stages", text: t.tabs.stages, n: counts?.stages },
    { key: "executors", text: t.tabs.executors, n: counts?.executors },
    { key: "storage", text: t.tabs.storage, n: counts?.cached },
    { key: "environment", text: t.tabs.environment },
  ];
  if (counts?.streams) tabs.push({ key: "streaming", text: t.tabs.streaming, n: counts.streams });
  return tabs;
}

export function Tabs({ app, on, counts }: { app: AppRef; on: string; counts: (Counts & { findings: number }) | null }) {
  return (
    <nav class="tabs" data-tabs aria-label={t.parts}>
      {tabList(counts).map((tab) => (
        <a
          key={tab.key}
          href={appPath(app, tab.key)}
          class={tab.key === on ? "on" : ""}
          aria-current={tab.key === on ? "page" : undefined}
        >
          {tab.text}
          {tab.n ? <span class="n">{count(tab.n)}</span> : null}
        </a>
      ))}
    </nav>
  );
}
