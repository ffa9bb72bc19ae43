// The tabs of an application, each loaded when it is first shown.
import type { AppPage } from "../base/api.ts";
import type { AppPlace, AppRef } from "../base/url.ts";
import { lazy, type Lazy } from "../parts/lazy.tsx";

export interface TabProps {
  app: AppRef;
  page: AppPage | null;
  rest: string[];
}

export const TABS: Record<string, Lazy<TabProps>> = {
  timeline: lazy<TabProps>(() => import("./timeline.tsx")),
  sql: lazy<TabProps>(() => import("./sqls.tsx")),
  query: lazy<TabProps>(() => import("./sql.tsx")),
  jobs: lazy<TabProps>(() => import("./jobs.tsx")),
  stages: lazy<TabProps>(() => import("./stages.tsx")),
  stage: lazy<TabProps>(() => import("./stage.tsx")),
  executors: lazy<TabProps>(() => import("./executors.tsx")),
  storage: lazy<TabProps>(() => import("./storage.tsx")),
  environment: lazy<TabProps>(() => import("./environment.tsx")),
  streaming: lazy<TabProps>(() => import("./streaming.tsx")),
};

/** A tab with something behind it is another page: one query, one stage. */
export function tabKey({ tab, rest }: AppPlace): string {
  if (tab === "sql" && rest[0] !== undefined) return "query";
  if (tab === "stages" && rest[0] !== undefined) return "stage";
  return tab;
}

/** Id and attempt of the stage that a place shows. */
export const stageOf = ({ rest }: Pick<AppPlace, "rest">): [number, number] => [Number(rest[0]), Number(rest[1] ?? 0)];
