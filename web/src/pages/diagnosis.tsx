// What cost the time, how sure is that, what to change, what will it save?
import { useEffect, useState } from "preact/hooks";
import type { AppPage, Chapter, EvidenceLine, Finding, Remedy, StagePage } from "../base/api.ts";
import { type Loaded, stageUrl, useData } from "../base/fetch.ts";
import { duration, factor, show } from "../base/units.ts";
import { appPath, here, setQuery, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, rankClass, Sure } from "../parts/bits.tsx";
import { Budget } from "../parts/budget.tsx";
import { Icon } from "../parts/icons.tsx";
import { lazy } from "../parts/lazy.tsx";
import { With } from "../parts/states.tsx";
import { stands } from "../parts/quantiles.ts";
import { StageStrip } from "../parts/strip.tsx";
import { Code, CopyButton, Prose, Verdict } from "../parts/text.tsx";

const ExecutorsCard = lazy<{ app: AppRef }>(() => import("../parts/timeline-card.tsx"));

export function Diagnosis({ app, loaded }: { app: AppRef; loaded: Loaded<AppPage> }) {
  return (
    <>
      <With of={loaded} rows={10}>
        {(page) => <Report app={app} page={page} />}
      </With>
      {(loaded.data || loaded.error) && (loaded.data?.counts.tasks ?? 1) > 0 && <ExecutorsCard app={app} />}
    </>
  );
}

export function Report({ app, page }: { app: AppRef | null; page: AppPage }) {
  return (
    <>
      <VerdictCard page={page} />
      <Findings app={app} page={page} />
    </>
  );
}

function VerdictCard({ page }: { page: AppPage }) {
  const { sentence, saving, saving_note: note } = page.verdict;
  return (
    <section class="card verdict" aria-label={t.verdict}>
      <div class="vrow">
        <p class="say">
          <Verdict text={sentence} />
        </p>
        {saving && (
          <div class="save">
            <div class="big">{saving}</div>
            {note && <div class="lab">{note}</div>}
          </div>
        )}
      </div>
      <Budget parts={page.budget} />
    </section>
  );
}

/** Other pages link to a finding, which is there only once the report is drawn. */
function useFindingInAddress(): void {
  useEffect(() => {
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "start" });
  }, []);
}

function Findings({ app, page }: { app: AppRef | null; page: AppPage }) {
  useFindingInAddress();
  return (
    <Card
      title={t.findings}
      note={page.chapters.length > 1 ? (page.state === "failed" ? t.failureFirst : t.orderedBySaving) : undefined}
      class="findings"
      right={
        <>
          {page.rules_checked > 0 && <span>{t.rulesChecked(page.rules_checked)}</span>}
          <CopyButton text={() => reportText(page)} label={t.copyReport} />
        </>
      }
    >
      {page.chapters.length === 0 && <p class="pad soft">{t.nothingToFix}</p>}
      {page.chapters.map((chapter) => (
        <ChapterView key={chapter.number} app={app} chapter={chapter} />
      ))}
      {page.more && (
        <p class="pad dim more-line">
          <Prose text={page.more} />
        </p>
      )}
      <Checked page={page} />
    </Card>
  );
}

function Checked({ page }: { page: AppPage }) {
  const fine = page.checked.filter((c) => c.fine);
  const rest = page.checked.filter((c) => !c.fine);
  if (!page.checked.length) return null;
  return (
    <div class="passed">
      {fine.length > 0 && (
        <span>
          <Icon name="ok" />
          {t.checkedFine}
        </span>
      )}
      {fine.map((c) => (
        <span key={c.what} title={c.result}>
          <Prose text={c.what} />
        </span>
      ))}
      {rest.map((c) => (
        <span key={c.what} class="unknown" title={c.result}>
          <Icon name="dash" />
          <Prose text={c.what} />: <Prose text={c.result} />
        </span>
      ))}
    </div>
  );
}

// One chapter: a cause with what follows from it

/** Which chapters are open stands in the address; without a word there, the first is. */
function useOpen(number: number): [boolean, (open: boolean) => void] {
  const text = here.value.query.get("open") ?? "1";
  const open = new Set(text.split(",").filter(Boolean));
  const key = String(number);
  const set = (value: boolean) => {
    if (value) open.add(key);
    else open.delete(key);
    const next = [...open].join(",");
    setQuery({ open: next === "1" ? null : next || "0" });
  };
  return [open.has(key), set];
}

function ChapterView({ app, chapter }: { app: AppRef | null; chapter: Chapter }) {
  const { number, root, follows } = chapter;
  const [open, setOpen] = useOpen(number);
  return (
    <article class="find" id={`finding-${number}`}>
      <button type="button" class="fh" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class={`rank ${rankClass(root.severity)}`} title={t.severity(root.severity)}>
          {number}
        </span>
        <span class="fmain">
          <span class="ft">
            <Prose text={root.title} />
          </span>
          <span class="fs">
            <Prose text={[...root.place, ...(follows.length ? [t.followFrom(follows.length)] : [])].join(" · ")} />
          </span>
        </span>
        <Sure certainty={root.certainty} because={root.certainty_because} />
        <span class="gain">
          {root.saved ? <b>{root.saved}</b> : <b class="none">{t.noSaving}</b>}
          {root.saved_note && <span>{root.saved_note}</span>}
        </span>
        <Icon name={open ? "down" : "right"} class="dim" />
      </button>
      {open && <Opened app={app} finding={root} />}
      {open && follows.map((f, i) => <Follow key={i} app={app} finding={f} number={number} />)}
    </article>
  );
}

function Follow({ app, finding, number }: { app: AppRef | null; finding: Finding; number: number }) {
  const [open, setOpen] = useState(false);
  return (
    <div class="follow">
      <button type="button" class="fh" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="elbow" aria-hidden="true" />
        <span class="fmain">
          <span class="ft">
            <Prose text={finding.title} />
          </span>
          <span class="fs">
            <Prose text={finding.place.join(" · ")} />
          </span>
        </span>
        <Sure certainty={finding.certainty} because={finding.certainty_because} />
        <span class="gain">
          <span>{t.countedIn(number)}</span>
        </span>
        <Icon name={open ? "down" : "right"} class="dim" />
      </button>
      {open && <Opened app={app} finding={finding} />}
    </div>
  );
}

function Opened({ app, finding }: { app: AppRef | null; finding: Finding }) {
  const hasStage = app && finding.stage !== null && finding.stage !== undefined;
  return (
    <div class="open">
      <div class="evidence">
        {hasStage && finding.strip && (
          <StageStrip app={app} stage={finding.stage!} attempt={finding.attempt ?? 0} mark={finding.task} />
        )}
        {hasStage && finding.strip && <StageSummary app={app} stage={finding.stage!} attempt={finding.attempt ?? 0} />}
        <Evidence finding={finding} />
        <Excluded finding={finding} />
        {app && <Places app={app} finding={finding} />}
      </div>
      <div class="fixes">
        {finding.remedies.length > 0 && <h3>{t.whatToDo}</h3>}
        {finding.remedies.map((remedy, i) => (
          <Fix key={i} remedy={remedy} />
        ))}
        <NotHelp finding={finding} />
        {finding.confirm && (
          <p class="alt">
            <b>{t.confirm}</b> <Prose text={finding.confirm} />
          </p>
        )}
        {finding.method && (
          <p class="alt">
            <b>{t.method}</b> <Prose text={finding.method} />
          </p>
        )}
        <p class="alt">
          <span class="mono">{finding.id}</span>
          {finding.links
            .filter((l) => /^https?:/.test(l))
            .map((l) => (
              <>
                {" "}
                ·{" "}
                <a class="link" key={l} href={l} rel="noreferrer" target="_blank">
                  {shortLink(l)}
                </a>
              </>
            ))}
        </p>
      </div>
    </div>
  );
}

const shortLink = (link: string): string => link.replace(/^https?:\/\/(www\.)?/, "").replace(/\/$/, "");

const MAIN = 8;

/** What passed a limit first, then the plain figures; lines of quantiles and the rest on demand. */
function Evidence({ finding }: { finding: Finding }) {
  const all = finding.evidence;
  if (!all.length) return null;
  const main = [...all.filter((e) => e.limit), ...all.filter((e) => !e.limit && !e.series)].slice(0, MAIN);
  const rest = all.filter((e) => !main.includes(e));
  return (
    <>
      <h3>{t.evidence}</h3>
      <EvidenceTable lines={main} />
      {rest.length > 0 && (
        <details class="more">
          <summary>{t.moreValues(rest.length)}</summary>
          <EvidenceTable lines={rest} />
        </details>
      )}
    </>
  );
}

function EvidenceTable({ lines }: { lines: EvidenceLine[] }) {
  const limits = lines.some((e) => e.limit);
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={t.evidence}>
      <table class="sum">
        <thead>
          <tr>
            <th scope="col">{t.measured}</th>
            <th scope="col" class="num">
              {t.value}
            </th>
            {limits && (
              <th scope="col" class="num">
                {t.limit}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {lines.map((e, i) => (
            <tr key={i}>
              <td class="soft">
                <Prose text={e.label} />
                {e.where && <span class="dim"> · {e.where}</span>}
              </td>
              <td class={`num ${e.limit ? "hit" : ""}`}>
                <Prose text={e.value} />
              </td>
              {limits && <td class="num soft">{e.limit ?? ""}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The rows that tell skew, spill and memory apart. */
const TELLING = [
  /^duration/i,
  /^input size/i,
  /shuffle read size/i,
  /(input|read) records/i,
  /spill.*disk|disk.*spill/i,
  /gc time/i,
];

/** Spark's own summary of the stage, with the column that shows the trouble. */
function StageSummary({ app, stage, attempt }: { app: AppRef; stage: number; attempt: number }) {
  const loaded = useData<StagePage>(stageUrl(app, stage, attempt));
  const all = (loaded.data?.summary ?? []).filter((r) => r.show && r.max);
  const rows = TELLING.flatMap((pattern) => all.filter((r) => pattern.test(r.label)).slice(0, 1));
  if (!rows.length) return null;
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={t.summaryOf(stage)}>
      <table class="sum quantiles">
        <thead>
          <tr>
            <th />
            {[t.min, "P25", t.median, "P75", t.max, t.maxOverP75].map((h) => (
              <th key={h} scope="col" class="num">
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => {
            const times = r.p75 ? (r.max ?? 0) / r.p75 : null;
            const hit = stands(r);
            return (
              <tr key={r.label}>
                <td class="soft">{r.label}</td>
                {[r.min, r.p25, r.median, r.p75].map((v, i) => (
                  <td key={i} class="num">
                    {show(v, r.unit)}
                  </td>
                ))}
                <td class={`num ${hit ? "hit" : ""}`}>{show(r.max, r.unit)}</td>
                <td class={`num ${hit ? "x" : "dim"}`}>{factor(times)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Excluded({ finding }: { finding: Finding }) {
  if (!finding.excluded.length && !finding.certainty_because) return null;
  return (
    <details class="more">
      <summary>{t.whyCertain(t.certainty[finding.certainty])}</summary>
      {finding.certainty_because && (
        <p class="soft">
          <Prose text={finding.certainty_because} />
        </p>
      )}
      <ul>
        {finding.excluded.map((e, i) => (
          <li key={i}>
            <b>
              {t.not} <Prose text={e.lookalike} />
            </b>
            : <Prose text={e.because} />
          </li>
        ))}
      </ul>
    </details>
  );
}

function Places({ app, finding }: { app: AppRef; finding: Finding }) {
  const links: [string, string][] = [];
  const has = (n: number | null | undefined): n is number => n !== null && n !== undefined;
  if (has(finding.stage))
    links.push([appPath(app, `stages/${finding.stage}/${finding.attempt ?? 0}`), t.openStage(finding.stage)]);
  if (has(finding.sql)) links.push([appPath(app, `sql/${finding.sql}`), t.openSql(finding.sql)]);
  if (!links.length) return null;
  return (
    <p class="row places">
      {links.map(([to, text]) => (
        <a key={to} class="btn sm" href={to}>
          {text}
        </a>
      ))}
    </p>
  );
}

function Fix({ remedy }: { remedy: Remedy }) {
  return (
    <div class="fix">
      <div class="h">
        <Icon name="wrench" />
        <span class="grow">
          <Prose text={remedy.text} />
        </span>
        {remedy.snippet && <CopyButton text={remedy.snippet} />}
      </div>
      {remedy.computed_from && (
        <p>
          <Prose text={remedy.computed_from} />
        </p>
      )}
      {remedy.snippet && <Code text={remedy.snippet} />}
    </div>
  );
}

function NotHelp({ finding }: { finding: Finding }) {
  if (!finding.will_not_help.length) return null;
  return (
    <>
      <h3>{t.wouldNotHelp}</h3>
      <ul class="nothelp">
        {finding.will_not_help.map((w, i) => (
          <li key={i}>
            <Icon name="dash" />
            <span>
              <b>
                <Prose text={w.what} />
              </b>
              : <Prose text={w.because} />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The report as Markdown, to paste into a ticket. */
function reportText(page: AppPage): string {
  const { application: a, verdict } = page;
  const lines = [`# ${a.name || a.id}`, "", `${a.id} · ${duration(a.wall_ms)} · Spark ${a.spark_version}`, "", verdict.sentence];
  if (verdict.saving) lines.push("", `${verdict.saving} ${verdict.saving_note ?? ""}`.trim());
  for (const { number, root, follows } of page.chapters) {
    lines.push(
      "",
      `## ${number}. ${root.title}`,
      "",
      [...root.place, t.certainty[root.certainty], root.saved ?? ""].filter(Boolean).join(" · "),
      "",
    );
    for (const e of root.evidence) lines.push(`- ${e.label}: ${e.value}${e.limit ? ` (${t.limit} ${e.limit})` : ""}`);
    for (const r of root.remedies) lines.push("", r.text, ...(r.snippet ? ["", "```", r.snippet, "```"] : []));
    for (const f of follows) lines.push("", `${t.followsLine} ${f.title}`);
  }
  return `${lines.join("\n")}\n`;
}
