// Settings: first only what differs, the rest on demand.
import { useMemo } from "preact/hooks";
import type { AppList, AppRow, Setting } from "../base/api.ts";
import { appUrl, OWN, SPARK, useData } from "../base/fetch.ts";
import type { SparkEnvironment } from "../base/spark.ts";
import { clock, day } from "../base/time.ts";
import { count } from "../base/units.ts";
import { appKey, here, setQuery, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Filter, Help } from "../parts/bits.tsx";
import { With } from "../parts/states.tsx";
import { CopyButton } from "../parts/text.tsx";
import type { TabProps } from "./tabs.ts";

interface Differences {
  against: string;
  rows: Setting[];
}

export default function Environment({ app, page }: TabProps) {
  const { query } = here.value;
  const against = query.get("against") ?? "defaults";
  const differences = useData<Differences>(`${appUrl(app)}/settings?against=${encodeURIComponent(against)}`);
  const all = useData<SparkEnvironment>(`${SPARK}/applications/${appKey(app)}/environment`);
  const q = (query.get("q") ?? "").toLowerCase();
  return (
    <>
      <div class="row env-bar">
        <Filter value={query.get("q") ?? ""} label={t.filterSettings} onInput={(value) => setQuery({ q: value })} />
        <Against app={app} name={page?.application.name ?? ""} value={against} />
      </div>
      <With of={differences} rows={6}>
        {(data) => <Differs rows={data.rows} q={q} defaults={against === "defaults"} />}
      </With>
      <With of={all} rows={3}>
        {(env) => <Groups env={env} q={q} />}
      </With>
      <Help>{t.environmentHelp}</Help>
    </>
  );
}

/** Earlier and later runs under the same name, newest first. */
function Against({ app, name, value }: { app: AppRef; name: string; value: string }) {
  const list = useData<AppList>(`${OWN}/applications`);
  const runs = (list.data?.applications ?? []).filter((a) => a.name === name && a.id !== app.id).slice(0, 30);
  return (
    <label class="inline-field">
      {t.against}
      <select
        class="input"
        value={value}
        onChange={(e) => setQuery({ against: e.currentTarget.value === "defaults" ? null : e.currentTarget.value })}
      >
        <option value="defaults">{t.sparkDefaults}</option>
        {runs.map((run) => (
          <option key={appKey(run)} value={appKey(run)}>
            {runName(run)}
          </option>
        ))}
      </select>
    </label>
  );
}

const runName = (run: AppRow): string =>
  `${run.name}, ${day(run.started_ms)} ${clock(run.started_ms)}${run.failed ? ` (${t.failed.toLowerCase()})` : ""}`;

const hit = (q: string, ...texts: (string | null | undefined)[]): boolean =>
  !q || texts.some((text) => text?.toLowerCase().includes(q));

function Differs({ rows, q, defaults }: { rows: Setting[]; q: string; defaults: boolean }) {
  const shown = rows.filter((r) => hit(q, r.key, r.value, r.other));
  return (
    <Card
      title={defaults ? t.differsFromDefaults : t.differsFromRun}
      note={shown.length === rows.length ? t.nSettings(rows.length) : t.ofCount(count(shown.length), count(rows.length))}
      right={
        rows.length > 0 ? (
          <CopyButton
            text={() =>
              rows
                .filter((r) => r.value !== null)
                .map((r) => `${r.key} ${r.value}`)
                .join("\n")
            }
          />
        ) : null
      }
    >
      {!shown.length ? (
        <p class="pad soft">{rows.length ? t.nothingMatches : t.nothingDiffersHere}</p>
      ) : (
        <div class="scroll-x" tabIndex={0} role="region" aria-label={t.differsFromDefaults}>
          <table class="settings">
            <thead>
              <tr>
                <th scope="col">{t.setting}</th>
                <th scope="col">{t.here}</th>
                <th scope="col">{defaults ? t.byDefault : t.otherRun}</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((r) => (
                <tr key={r.group + r.key}>
                  <th scope="row">
                    <code>{r.key}</code>
                    {r.note && <span class="dim note-line">{r.note}</span>}
                  </th>
                  <td>
                    <Value text={r.value} />
                  </td>
                  <td class="soft">
                    <Value text={r.other} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

const LONG = 160;

function Value({ text }: { text: string | null | undefined }) {
  if (text === null || text === undefined) return <span class="dim">{t.notSet}</span>;
  if (text.length <= LONG) return <code>{text}</code>;
  return (
    <details>
      <summary>
        <code>{text.slice(0, LONG)}…</code>
      </summary>
      <code>{text}</code>
    </details>
  );
}

function Groups({ env, q }: { env: SparkEnvironment; q: string }) {
  const groups = useMemo(
    (): [string, [string, string][]][] => [
      [t.groups.spark, env.sparkProperties],
      [t.groups.runtime, Object.entries(env.runtime)],
      [t.groups.hadoop, env.hadoopProperties ?? []],
      [t.groups.system, env.systemProperties],
      [t.groups.classpath, env.classpathEntries ?? []],
    ],
    [env],
  );
  return (
    <>
      {groups
        .filter(([, rows]) => rows.length)
        .map(([name, rows]) => (
          <Group key={name} name={name} rows={rows} q={q} />
        ))}
    </>
  );
}

function Group({ name, rows, q }: { name: string; rows: [string, string][]; q: string }) {
  const shown = rows.filter(([key, value]) => hit(q, key, value));
  if (q && !shown.length) return null;
  return (
    <details class="card details" open={q !== "" && shown.length <= 40}>
      <summary>
        {name} <span class="dim">{q ? t.ofCount(count(shown.length), count(rows.length)) : count(rows.length)}</span>
      </summary>
      <div class="scroll-x" tabIndex={0} role="region" aria-label={name}>
        <table class="settings">
          <tbody>
            {shown.map(([key, value]) => (
              <tr key={key}>
                <th scope="row">
                  <code>{key}</code>
                </th>
                <td>
                  <Value text={value} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
