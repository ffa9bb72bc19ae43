// Two runs side by side: what took longer, and why.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { AppList, AppRow, ComparedApp, Comparison, Piece } from "../base/api.ts";
import { OWN, useData } from "../base/fetch.ts";
import { clock, day } from "../base/time.ts";
import { bytes, change, count, duration, signed } from "../base/units.ts";
import { appKey, appPath, here, setQuery } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Moment } from "../parts/bits.tsx";
import { figureColumn } from "../parts/columns.tsx";
import { Icon } from "../parts/icons.tsx";
import { usePage } from "../parts/shell.tsx";
import { Empty, Note, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Prose, sentence, Verdict } from "../parts/text.tsx";

export default function Compare() {
  usePage(t.compare, [{ text: t.compare }]);
  const { query } = here.value;
  const next = query.get("new") ?? "";
  const bases = query.getAll("base").filter((base) => base !== "" && base !== next);
  const list = useData<AppList>(`${OWN}/applications`);
  usePrevious(list.data, bases, next);
  const ready = bases.length > 0 && next !== "";
  const asked = new URLSearchParams(bases.map((base) => ["base", base]));
  asked.set("new", next);
  const result = useData<Comparison>(ready ? `${OWN}/compare?${asked}` : null);
  return (
    <>
      <div class="head">
        <h1>{t.compare}</h1>
      </div>
      <With of={list} rows={2}>
        {(data) => <Pick apps={data.applications} bases={bases} next={next} />}
      </With>
      {ready ? (
        <With of={result} rows={10}>
          {(data) => (
            <>
              {bases.length > 1 && <Note kind="info">{t.medianRun(bases.length)}</Note>}
              <Result data={data} />
            </>
          )}
        </With>
      ) : (
        <Empty title={t.pickTwo}>
          <p>{t.pickTwoNext}</p>
        </Empty>
      )}
    </>
  );
}

// Choosing

/** Coming from an application, the last run of the same name before it is what one mostly means. */
function usePrevious(list: AppList | null, bases: string[], next: string): void {
  const done = useRef(false);
  useEffect(() => {
    if (!list || done.current) return;
    done.current = true;
    if (bases.length || !next) return;
    const app = list.applications.find((a) => appKey(a) === next);
    const before = list.applications.filter((a) => app && a.name === app.name && a.started_ms < app.started_ms && !a.failed);
    const last = before.sort((a, b) => b.started_ms - a.started_ms)[0];
    if (last) setQuery({ base: appKey(last) });
  }, [list]);
}

const runText = (app: AppRow): string =>
  `${app.name} · ${day(app.started_ms)} ${clock(app.started_ms)} · ${duration(app.wall_ms)}${app.failed ? ` · ${t.failed.toLowerCase()}` : ""}`;

function Pick({ apps, bases, next }: { apps: AppRow[]; bases: string[]; next: string }) {
  const sorted = useMemo(() => [...apps].sort((a, b) => a.name.localeCompare(b.name) || b.started_ms - a.started_ms), [apps]);
  const like = apps.find((a) => appKey(a) === (next || bases[0]));
  const several = bases.length > 1;
  const others = sorted.filter((a) => appKey(a) !== next && !bases.includes(appKey(a)));
  const choose = (base: string[]) => setQuery({ base });
  return (
    <section class="card pick">
      <div class="pick-side">
        {several ? (
          <Chips apps={apps} bases={bases} choose={choose} />
        ) : (
          <Choose
            label={t.baseRun}
            hint={t.chooseRun}
            value={bases[0] ?? ""}
            apps={sorted}
            like={like}
            onChoose={(value) => choose([value])}
          />
        )}
        {bases.length > 0 && (
          <Choose hint={t.addRun} value="" apps={others} like={like} onChoose={(value) => choose([...bases, value])} />
        )}
      </div>
      {!several && (
        <button
          type="button"
          class="btn ghost swap"
          onClick={() => setQuery({ base: next || null, new: bases[0] ?? null })}
          aria-label={t.swap}
          title={t.swap}
        >
          <Icon name="compare" />
        </button>
      )}
      <div class="pick-side">
        <Choose
          label={t.newRun}
          hint={t.chooseRun}
          value={next}
          apps={sorted}
          like={like}
          onChoose={(value) => setQuery({ new: value })}
        />
      </div>
    </section>
  );
}

/** The runs before, each of which can be left out. */
function Chips({ apps, bases, choose }: { apps: AppRow[]; bases: string[]; choose: (bases: string[]) => void }) {
  return (
    <div class="field">
      <span>{t.baseRuns}</span>
      <ul class="chips runs">
        {bases.map((base) => {
          const app = apps.find((a) => appKey(a) === base);
          const text = app ? runText(app) : base;
          return (
            <li key={base} class={`chip ${app?.failed ? "bad" : ""}`}>
              {text}
              <button type="button" onClick={() => choose(bases.filter((b) => b !== base))} aria-label={t.dropRun(text)}>
                ×
              </button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** Runs of the same name come first: they are what one mostly wants to compare. */
function Choose({
  label,
  hint,
  value,
  apps,
  like,
  onChoose,
}: {
  label?: string;
  hint: string;
  value: string;
  apps: AppRow[];
  like: AppRow | undefined;
  onChoose: (value: string) => void;
}) {
  const same = like ? apps.filter((a) => a.name === like.name) : [];
  const rest = like ? apps.filter((a) => a.name !== like.name) : apps;
  const options = (list: AppRow[]) =>
    list.map((a) => (
      <option key={appKey(a)} value={appKey(a)}>
        {runText(a)}
      </option>
    ));
  return (
    <label class={label ? "field" : "field add"}>
      {label && <span>{label}</span>}
      <select value={value} aria-label={label ?? hint} onChange={(e) => onChoose(e.currentTarget.value)}>
        <option value="">{hint}</option>
        {same.length > 0 && <optgroup label={t.sameName}>{options(same)}</optgroup>}
        {rest.length > 0 && <optgroup label={t.otherApps}>{options(rest)}</optgroup>}
      </select>
    </label>
  );
}

// What came out

function Result({ data }: { data: Comparison }) {
  const slower = data.delta_ms > 0;
  return (
    <>
      {data.nothing_in_common && <Note>{t.nothingInCommon}</Note>}
      <section class="card verdict">
        <div class="vrow">
          <p class="say">
            <Verdict text={sentence(data.sentence)} />
          </p>
          <div class="save">
            <div class={`big ${slower ? "slow" : ""}`}>{signed(data.delta_ms)}</div>
            <div class="lab">
              {change(data.new.wall_ms, data.base.wall_ms)} {t.inDuration}
            </div>
          </div>
        </div>
        <Both base={data.base} next={data.new} />
      </section>
      <Waterfall data={data} />
      <Changes data={data} />
      <Pieces pieces={data.pieces} />
      <Settings settings={data.settings} />
    </>
  );
}

function Both({ base, next }: { base: ComparedApp; next: ComparedApp }) {
  const rows: [string, (app: ComparedApp) => string, (app: ComparedApp) => number | null | undefined][] = [
    [t.duration, (a) => duration(a.wall_ms), (a) => a.wall_ms],
    [t.input, (a) => bytes(a.input_bytes), (a) => a.input_bytes],
    [t.rowsRead, (a) => count(a.input_rows), (a) => a.input_rows],
    [t.shuffleRead, (a) => bytes(a.shuffle_read_bytes), (a) => a.shuffle_read_bytes],
    [t.slots, (a) => count(a.slots === null || a.slots === undefined ? null : Math.round(a.slots * 10) / 10), (a) => a.slots],
  ];
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={t.bothRuns}>
      <table class="sum both">
        <thead>
          <tr>
            <th />
            <th scope="col" class="num">
              <a class="link" href={appPath({ id: base.id, attempt: base.attempt ?? null })}>
                {base.name}
              </a>{" "}
              <Moment ms={base.started_ms} />
            </th>
            <th scope="col" class="num">
              <a class="link" href={appPath({ id: next.id, attempt: next.attempt ?? null })}>
                {next.name}
              </a>{" "}
              <Moment ms={next.started_ms} />
            </th>
            <th scope="col" class="num">
              {t.changeWord}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([label, text, value]) => (
            <tr key={label}>
              <td class="soft">{label}</td>
              <td class="num">{text(base)}</td>
              <td class="num">{text(next)}</td>
              <td class="num soft">{change(value(next), value(base))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** From the one duration to the other, step by step. */
function Waterfall({ data }: { data: Comparison }) {
  const parts = data.parts.filter((p) => p.ms !== 0);
  if (!parts.length) return null;
  let at = data.base.wall_ms;
  const steps = parts.map((p) => ({ ...p, from: at, to: (at += p.ms) }));
  const high = Math.max(data.base.wall_ms, data.new.wall_ms, ...steps.map((s) => Math.max(s.from, s.to)));
  const x = (ms: number) => `${(ms / high) * 100}%`;
  return (
    <Card title={t.whereChangeFrom} note={t.addsUp}>
      <ol class="waterfall">
        <li>
          <span>{t.baseRun}</span>
          <span class="track">
            <i class="base" style={{ left: "0", width: x(data.base.wall_ms) }} />
          </span>
          <b class="num">{duration(data.base.wall_ms)}</b>
        </li>
        {steps.map((s) => (
          <li key={s.cause}>
            <span class="cause">
              <b>{t.causes[s.cause] ?? s.cause.replaceAll("_", " ")}</b>
              {s.places.length > 0 && (
                <span class="dim places-line">
                  {s.places
                    .slice(0, 3)
                    .map((p) => p.text)
                    .join("; ")}
                  {s.places.length > 3 && ` ${t.andMore(s.places.length - 3)}`}
                </span>
              )}
            </span>
            <span class="track">
              <i
                class={s.ms > 0 ? "more" : "less"}
                style={{ left: x(Math.min(s.from, s.to)), width: `max(2px, ${x(Math.abs(s.ms))})` }}
              />
            </span>
            <b class={`num ${s.ms > 0 ? "slow" : ""}`}>{signed(s.ms)}</b>
          </li>
        ))}
        <li>
          <span>{t.newRun}</span>
          <span class="track">
            <i class="base" style={{ left: "0", width: x(data.new.wall_ms) }} />
          </span>
          <b class="num">{duration(data.new.wall_ms)}</b>
        </li>
      </ol>
    </Card>
  );
}

function Changes({ data }: { data: Comparison }) {
  const base = { id: data.new.id, attempt: data.new.attempt ?? null };
  if (!data.appeared.length && !data.disappeared.length) return null;
  return (
    <Card title={t.findings}>
      <ul class="plain changes">
        {data.appeared.map(([id, text]) => (
          <li key={id + text}>
            <a class="findline" href={appPath(base)}>
              <span class="chip bad">{t.isNew}</span>
              <span>
                <Prose text={sentence(text)} />
              </span>
            </a>
          </li>
        ))}
        {data.disappeared.map(([id, text]) => (
          <li key={id + text}>
            <p class="findline">
              <span class="chip">{t.isGone}</span>
              <span class="soft">
                <Prose text={sentence(text)} />
              </span>
            </p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** What is not there has no time and no bytes. */
const of = (p: Piece, run: "base" | "new", what: "ms" | "bytes"): number | null => (p[run] ? (p[`${run}_${what}`] ?? null) : null);
const delta = (p: Piece): number => (p.new_ms ?? 0) - (p.base_ms ?? 0);

function Pieces({ pieces }: { pieces: Piece[] }) {
  const columns = useMemo(pieceColumns, []);
  if (!pieces.length) return null;
  return (
    <Card title={t.pieces} note={t.piecesNote}>
      <Table
        name={t.pieces}
        columns={columns}
        rows={pieces}
        id={(p) => `${p.base}${p.new}${p.name}`}
        sort="-delta"
        box={pieces.length > 16 ? 480 : undefined}
      />
    </Card>
  );
}

const pieceColumns = (): Column<Piece>[] => [
  {
    key: "name",
    head: t.description,
    by: (p) => p.name,
    cell: (p) => (
      <span title={p.name}>
        {p.name}
        {!p.same_plan && <span class="dim"> · {t.otherPlan}</span>}
      </span>
    ),
  },
  { key: "base", head: t.baseRun, width: 100, leaves: 2, cell: (p) => p.base ?? <span class="dim">{t.notThere}</span> },
  { key: "new", head: t.newRun, width: 100, leaves: 2, cell: (p) => p.new ?? <span class="dim">{t.notThere}</span> },
  figureColumn("basems", t.before, "ms", 96, (p) => of(p, "base", "ms")),
  figureColumn("newms", t.now, "ms", 96, (p) => of(p, "new", "ms")),
  {
    key: "delta",
    head: t.changeWord,
    num: true,
    width: 110,
    by: delta,
    cell: (p) => <b class={delta(p) > 0 ? "slow" : "figure"}>{signed(delta(p))}</b>,
  },
  {
    key: "bytes",
    head: t.bytesWord,
    num: true,
    width: 170,
    leaves: 1,
    by: (p) => p.new_bytes,
    cell: (p) => `${bytes(of(p, "base", "bytes"))} → ${bytes(of(p, "new", "bytes"))}`,
  },
];

function Settings({ settings }: { settings: Comparison["settings"] }) {
  if (!settings.length) return null;
  return (
    <Card title={t.settingsDiffer} note={t.nSettings(settings.length)}>
      <div class="scroll-x" tabIndex={0} role="region" aria-label={t.settingsDiffer}>
        <table class="settings">
          <thead>
            <tr>
              <th scope="col">{t.setting}</th>
              <th scope="col">{t.baseRun}</th>
              <th scope="col">{t.newRun}</th>
            </tr>
          </thead>
          <tbody>
            {settings.map((s) => (
              <tr key={s.key}>
                <th scope="row">
                  <code>{s.key}</code>
                </th>
                <td>
                  <code>{s.base ?? t.notSet}</code>
                </td>
                <td>
                  <code>{s.new ?? t.notSet}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
