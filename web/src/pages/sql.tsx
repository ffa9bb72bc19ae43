// One query: which operator took the time, and did it do more work than needed?
import type { SqlPage } from "../base/api.ts";
import { appUrl, useData } from "../base/fetch.ts";
import { bytes, duration, percent } from "../base/units.ts";
import { appPath, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Fact, FindingList, Moment, StatusPill } from "../parts/bits.tsx";
import { Empty, With } from "../parts/states.tsx";
import PlanView from "../parts/plan.tsx";
import type { TabProps } from "./tabs.ts";

export default function SqlDetail({ app, rest }: TabProps) {
  const page = useData<SqlPage>(`${appUrl(app)}/sql/${encodeURIComponent(rest[0]!)}`);
  return (
    <With of={page} rows={12}>
      {(sql) => <Query app={app} sql={sql} />}
    </With>
  );
}

function sentence(sql: SqlPage): string {
  const [first] = sql.top;
  if (!first) return t.sqlNoTimes(sql.id);
  return t.sqlMost(first.human, percent(first.share), duration(first.time_ms));
}

function Query({ app, sql }: { app: AppRef; sql: SqlPage }) {
  const [first, ...rest] = (sql.failure ?? "").split("\n");
  return (
    <>
      <section class="card verdict">
        <p class="say">
          <b>{sentence(sql)}</b>
        </p>
        <p class="soft cut" title={sql.description}>
          {sql.description}
        </p>
        <div class="facts">
          <StatusPill status={sql.status} />
          <Fact label={t.ran}>{duration(sql.duration_ms)}</Fact>
          <Fact label={t.taskTime}>{duration(sql.task_ms)}</Fact>
          <Fact label={t.input}>{bytes(sql.input_bytes)}</Fact>
          <Fact label={t.shuffle}>{bytes(sql.shuffle_bytes)}</Fact>
          <Fact label={t.spill}>{bytes(sql.spill_bytes)}</Fact>
          <span>
            {t.startedWord}{" "}
            <b>
              <Moment ms={sql.submitted_ms} seconds date={false} />
            </b>
          </span>
          {sql.stages_run.slice(0, 8).map((s) => (
            <a class="link" key={`${s.stage}.${s.attempt}`} href={appPath(app, `stages/${s.stage}/${s.attempt}`)}>
              {t.stageN(s.stage, s.attempt)}
            </a>
          ))}
        </div>
        {first && (
          <div class="failure">
            <div>
              <p>
                <b>{first}</b>
              </p>
              {rest.length > 0 && (
                <details>
                  <summary>{t.wholeError}</summary>
                  <pre class="code wrap" tabIndex={0}>
                    {sql.failure}
                  </pre>
                </details>
              )}
            </div>
          </div>
        )}
      </section>
      <FindingList findings={sql.findings} base={appPath(app)} />
      {sql.plans.length ? (
        <PlanView plans={sql.plans} top={sql.top} changes={sql.changes} app={app} />
      ) : (
        <Empty title={t.noPlan} />
      )}
      {sql.details && (
        <details class="card details">
          <summary>{t.whereInCode}</summary>
          <pre class="code" tabIndex={0}>
            {sql.details}
          </pre>
        </details>
      )}
    </>
  );
}
