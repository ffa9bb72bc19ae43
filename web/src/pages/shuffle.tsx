// How partitions, adaptive execution and a heavy key decide how long a shuffle waits for its slowest task.
import { useEffect, useState } from "preact/hooks";
import { OWN, useData } from "../base/fetch.ts";
import { bytes, count, duration, percent } from "../base/units.ts";
import { appPath, here, readAppPath, setQuery } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Help, Seg } from "../parts/bits.tsx";
import { Columns } from "../parts/chart.tsx";
import { usePage } from "../parts/shell.tsx";
import { With } from "../parts/states.tsx";
import { CopyButton } from "../parts/text.tsx";

interface Given {
  bytes: number;
  cores: number;
  memory_per_core: number;
  cores_per_executor: number;
  target: number;
  skew: number;
  adaptive: boolean;
  join: boolean;
}

interface Outcome {
  partitions: number;
  tasks: number;
  split_partitions: number;
  split_pieces: number;
  merged_away: number;
  task_bytes: number;
  largest_bytes: number;
  waves: number;
  task_ms: number;
  largest_ms: number;
  stage_ms: number;
  waiting_ms: number;
  idle_core_ms: number;
  memory: { available: number; needed: number; needed_by_largest: number; spilling_tasks: number; risk: string };
}

interface Answer {
  given: Given;
  proposed_partitions: number;
  proposed_because: string;
  outcome: Outcome;
  others: Outcome[];
  recorded?: { tasks: number; wall_ms: number; played_ms: number };
}

const FIELDS = ["bytes", "cores", "memory_per_core", "target", "skew", "partitions"] as const;
type Field = (typeof FIELDS)[number];
const START: Record<Field, string> = {
  bytes: "400GB",
  cores: "64",
  memory_per_core: "4GB",
  target: "128MB",
  skew: "0",
  partitions: "",
};

/** The address asks either for a recorded stage or for numbers of one's own. */
function address(query: URLSearchParams): string {
  const own = FIELDS.some((f) => query.has(f)) || query.has("aqe") || query.has("operation");
  const app = query.get("app");
  if (app && !own)
    return `${OWN}/applications/${app}/stages/${encodeURIComponent(query.get("stage") ?? "")}/${encodeURIComponent(query.get("attempt") ?? "0")}/shuffle`;
  const ask = new URLSearchParams();
  for (const field of FIELDS) {
    const value = query.get(field) ?? START[field];
    if (value) ask.set(field, value);
  }
  ask.set("aqe", query.get("aqe") ?? "on");
  ask.set("operation", query.get("operation") ?? "join");
  return `${OWN}/shuffle?${ask}`;
}

export default function Shuffle() {
  usePage(t.calculator, [{ text: t.calculator }]);
  const { query } = here.value;
  const answer = useData<Answer>(address(query));
  return (
    <>
      <div class="head">
        <div class="grow">
          <h1>{t.calculator}</h1>
          <p class="soft">{t.calculatorNote}</p>
        </div>
      </div>
      <FromStage />
      <div class="calc">
        <Form given={answer.data?.given ?? null} />
        <div class="stack">
          <With of={answer} rows={8} what={t.cannotCalculate}>
            {(data) => <Result data={data} />}
          </With>
        </div>
      </div>
    </>
  );
}

function FromStage() {
  const { query } = here.value;
  const app = query.get("app");
  if (!app) return null;
  const place = readAppPath(`/applications/${app}`);
  const stage = query.get("stage") ?? "";
  return (
    <p class="lead">
      {t.filledFrom}{" "}
      {place && (
        <a class="link" href={appPath(place.app, `stages/${stage}/${query.get("attempt") ?? 0}`)}>
          {t.stageN(stage, undefined)}
        </a>
      )}{" "}
      <button type="button" class="btn sm" onClick={() => setQuery({ app: null, stage: null, attempt: null })}>
        {t.startOver}
      </button>
    </p>
  );
}

const GIB = 1024 ** 3;
const plainSize = (value: number): string =>
  value >= GIB ? `${+(value / GIB).toFixed(2)}GB` : `${+(value / 1024 ** 2).toFixed(1)}MB`;

/** What the fields show: the address first, then what a recorded stage gave, then the start. */
function shown(field: Field, query: URLSearchParams, given: Given | null): string {
  const own = query.get(field);
  if (own !== null) return own;
  if (!query.get("app") || !given) return START[field];
  if (field === "partitions") return "";
  const value = given[field];
  return field === "cores" ? String(value) : field === "skew" ? String(+value.toFixed(3)) : plainSize(value);
}

function Form({ given }: { given: Given | null }) {
  const { query } = here.value;
  const set = (field: string, value: string) => {
    // Changing one number of a recorded stage keeps the others.
    const all = query.get("app") && given ? Object.fromEntries(FIELDS.map((f) => [f, shown(f, query, given) || null])) : {};
    setQuery({ ...all, [field]: value });
  };
  return (
    <form class="card calc-form" onSubmit={(e) => e.preventDefault()}>
      {FIELDS.map((field) => (
        <Input key={field} field={field} value={shown(field, query, given)} onChange={(value) => set(field, value)} />
      ))}
      <div class="field">
        <span>{t.aqe}</span>
        <Seg
          label={t.aqe}
          value={query.get("aqe") ?? (given && !given.adaptive ? "off" : "on")}
          options={[
            ["on", t.on],
            ["off", t.off],
          ]}
          onChange={(value) => set("aqe", value)}
        />
      </div>
      <div class="field">
        <span>{t.operation}</span>
        <Seg
          label={t.operation}
          value={query.get("operation") ?? "join"}
          options={[
            ["join", t.operations.join],
            ["aggregate", t.operations.aggregate],
            ["window", t.operations.window],
          ]}
          onChange={(value) => set("operation", value)}
        />
      </div>
    </form>
  );
}

function Input({ field, value, onChange }: { field: Field; value: string; onChange: (value: string) => void }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const words = t.calcFields[field];
  return (
    <label class="field">
      <span>{words.label}</span>
      <input
        type="text"
        inputMode={field === "cores" || field === "partitions" ? "numeric" : "text"}
        value={text}
        placeholder={words.placeholder}
        onInput={(e) => setText(e.currentTarget.value)}
        onChange={(e) => onChange(e.currentTarget.value.trim())}
      />
      <small>{words.help}</small>
    </label>
  );
}

function Result({ data }: { data: Answer }) {
  const { outcome: o } = data;
  const conf = `spark.sql.shuffle.partitions ${data.proposed_partitions}`;
  return (
    <>
      <section class="card verdict">
        <div class="vrow">
          <p class="say">
            <b>{t.calcSentence(count(o.tasks), bytes(o.task_bytes), duration(o.stage_ms))}</b> {waits(o)}
          </p>
          <div class="save">
            <div class="big">{count(data.proposed_partitions)}</div>
            <div class="lab">{t.proposed}</div>
          </div>
        </div>
        <p class="soft">{data.proposed_because}</p>
        <p class="row conf-line">
          <code>{conf}</code>
          <CopyButton text={conf} />
        </p>
      </section>
      <Card title={t.outcome}>
        <Figures o={o} />
      </Card>
      <Others data={data} />
      {data.recorded && (
        <p class="lead">
          {t.recorded(duration(data.recorded.wall_ms), count(data.recorded.tasks), duration(data.recorded.played_ms))}
        </p>
      )}
      <Help>{t.calculatorHelp}</Help>
    </>
  );
}

function waits(o: Outcome): string {
  if (o.waiting_ms > o.stage_ms * 0.1) return t.calcWaits(duration(o.waiting_ms), bytes(o.largest_bytes));
  return o.largest_ms > 3 * o.task_ms ? t.calcHeavy(bytes(o.largest_bytes), duration(o.largest_ms)) : t.calcEven;
}

function Figures({ o }: { o: Outcome }) {
  const figures: [string, string][] = [
    [t.calc.tasks, count(o.tasks)],
    [t.calc.waves, count(o.waves)],
    [t.calc.each, `${bytes(o.task_bytes)}, ${duration(o.task_ms)}`],
    [t.calc.largest, `${bytes(o.largest_bytes)}, ${duration(o.largest_ms)}`],
    [t.calc.waiting, duration(o.waiting_ms)],
    [t.calc.idle, duration(o.idle_core_ms)],
    [
      t.calc.memory,
      `${bytes(o.memory.needed_by_largest)} / ${bytes(o.memory.available)} (${percent(o.memory.needed_by_largest / Math.max(1, o.memory.available))})`,
    ],
    [t.calc.spill, o.memory.spilling_tasks ? t.calc.spills(count(o.memory.spilling_tasks)) : t.calc.noSpill],
  ];
  if (o.split_partitions) figures.push([t.calc.split, `${count(o.split_partitions)} → ${count(o.split_pieces)}`]);
  if (o.merged_away) figures.push([t.calc.merged, count(o.merged_away)]);
  return (
    <dl class="figures">
      {figures.map(([k, v]) => (
        <div key={k}>
          <dt>{k}</dt>
          <dd>{v}</dd>
        </div>
      ))}
    </dl>
  );
}

function Others({ data }: { data: Answer }) {
  const all = [...data.others.filter((o) => o.partitions !== data.outcome.partitions), data.outcome].sort(
    (a, b) => a.partitions - b.partitions,
  );
  const mark = all.indexOf(data.outcome);
  return (
    <Card title={t.otherNumbers} note={t.otherNumbersNote}>
      <Columns
        values={all.map((o) => o.stage_ms)}
        labels={all.map((o) => count(o.partitions))}
        format={duration}
        name={t.otherNumbers}
        mark={mark}
      />
      <div class="scroll-x" tabIndex={0} role="region" aria-label={t.otherNumbers}>
        <table class="quant">
          <thead>
            <tr>
              <th scope="col">{t.partitions}</th>
              {[t.calc.stage, t.calc.waiting, t.calc.eachSize, t.calc.largest, t.calc.waves, t.spill].map((h) => (
                <th key={h} scope="col" class="num">
                  {h}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {all.map((o, i) => (
              <tr key={o.partitions} class={i === mark ? "strong" : ""}>
                <th scope="row">{count(o.partitions)}</th>
                <td class="num">{duration(o.stage_ms)}</td>
                <td class="num">{duration(o.waiting_ms)}</td>
                <td class="num">{bytes(o.task_bytes)}</td>
                <td class="num">{bytes(o.largest_bytes)}</td>
                <td class="num">{count(o.waves)}</td>
                <td class="num">
                  {o.memory.spilling_tasks ? (
                    <span class="slow">{t.calc.spills(count(o.memory.spilling_tasks))}</span>
                  ) : (
                    <span class="dim">{t.calc.noSpill}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
