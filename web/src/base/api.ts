// The shapes of lakescope's own answers. Times are epoch milliseconds, sizes bytes; null means not known.

export type Severity = "critical" | "high" | "medium" | "low" | "info";
export type Maybe<T> = T | null | undefined;

export interface AppRow {
  id: string;
  attempt: string | null;
  name: string;
  user: string;
  spark_version: string;
  started_ms: number;
  ended_ms: number | null;
  last_event_ms: number;
  in_progress: boolean;
  wall_ms: number;
  usual_ms: number | null;
  usual_runs: number;
  severity: Severity | null;
  sentence: string;
  findings: number;
  worst: { id: string; title: string } | null;
  saving_ms: number | null;
  failed: boolean;
  core_ms: Maybe<number>;
  run_ms: Maybe<number>;
  spill_bytes: Maybe<number>;
  shuffle_bytes: Maybe<number>;
  input_bytes: Maybe<number>;
  tasks: number;
  failed_tasks: number;
}

export interface AppList {
  ready: boolean;
  applications: AppRow[];
  unreadable: { path: string; reason: string }[];
}

export type Certainty = "certain" | "likely" | "hint";

export interface Finding {
  id: string;
  title: string;
  severity: Severity;
  certainty: Certainty;
  certainty_because: Maybe<string>;
  place: string[];
  stage: Maybe<number>;
  attempt: Maybe<number>;
  sql: Maybe<number>;
  job: Maybe<number>;
  task: Maybe<number>;
  saved: Maybe<string>;
  saved_note: Maybe<string>;
  excluded: { lookalike: string; because: string }[];
  evidence: EvidenceLine[];
  strip: boolean;
  remedies: Remedy[];
  will_not_help: { what: string; because: string }[];
  confirm: Maybe<string>;
  method: Maybe<string>;
  links: string[];
}

export interface EvidenceLine {
  label: string;
  value: string;
  limit: Maybe<string>;
  where: Maybe<string>;
  /** A line of quantiles, which the summary of the stage shows as a table. */
  series: boolean;
}

export interface Remedy {
  kind: string;
  text: string;
  snippet: Maybe<string>;
  computed_from: Maybe<string>;
}

export interface Chapter {
  number: number;
  root: Finding;
  follows: Finding[];
}

export interface BudgetPart {
  name: string;
  ms: number;
  kind: string;
}

export interface AppPage {
  application: {
    id: string;
    attempt: string | null;
    name: string;
    user: string;
    spark_version: string;
    started_ms: Maybe<number>;
    ended_ms: Maybe<number>;
    wall_ms: Maybe<number>;
    in_progress: boolean;
    complete: boolean;
    usual_ms: Maybe<number>;
    usual_runs: number;
    exit_code: Maybe<number>;
    executors: Maybe<number>;
    slots: Maybe<number>;
    busy_share: Maybe<number>;
    cost: Maybe<string>;
    pasted: Maybe<string>;
  };
  state: "succeeded" | "failed" | "running" | "incomplete";
  verdict: { sentence: string; saving: Maybe<string>; saving_note: Maybe<string> };
  severity: Severity | null;
  budget: BudgetPart[];
  chapters: Chapter[];
  checked: { what: string; result: string; fine: boolean }[];
  rules_checked: number;
  more: Maybe<string>;
  warnings: { code: string; text: string }[];
  counts: { sql: number; jobs: number; stages: number; executors: number; cached: number; streams: number; tasks: number };
}

export interface Timeline {
  start_ms: number;
  end_ms: number;
  slots: number;
  busy: { t: number[]; cores: number[] };
  lanes: Lane[];
  stages: {
    stage: number;
    attempt: number;
    name: string;
    start_ms: number;
    end_ms: number;
    status: string;
    sql: Maybe<number>;
  }[];
  jobs: { job: number; name: string; start_ms: number; end_ms: number; status: string }[];
  gaps: { from_ms: number; to_ms: number; text: string }[];
  marks: { t: number; kind: string; text: string }[];
  tasks: number;
}

export interface Lane {
  name: string;
  host: Maybe<string>;
  added_ms: Maybe<number>;
  removed_ms: Maybe<number>;
  reason: Maybe<string>;
  rows: number;
}

export interface FindingRef {
  number: number;
  severity: Severity;
  title: string;
}

export interface SqlRow {
  id: number;
  description: string;
  submitted_ms: number;
  duration_ms: number | null;
  status: "completed" | "failed" | "running";
  jobs: number[];
  stages: number;
  task_ms: Maybe<number>;
  input_bytes: Maybe<number>;
  shuffle_bytes: Maybe<number>;
  spill_bytes: Maybe<number>;
  findings: FindingRef[];
  failure: Maybe<string>;
}

export interface PlanNode {
  id: number;
  name: string;
  human: string;
  detail: Maybe<string>;
  notes: string[];
  kind: string;
  time_ms: Maybe<number>;
  share: Maybe<number>;
  rows: Maybe<number>;
  bytes: Maybe<number>;
  growth: Maybe<number>;
  pruned: Maybe<{ files_read: number; files: number }>;
  metrics: { name: string; value: string }[];
  stage: Maybe<number>;
  time_estimated: boolean;
  codegen: Maybe<number>;
  findings: number[];
}

export interface Plan {
  title: string;
  summary: Maybe<string>;
  notes: { kind: string; text: string; node: Maybe<number> }[];
  nodes: PlanNode[];
  edges: { from: number; to: number; rows: Maybe<number>; bytes: Maybe<number> }[];
  text: string;
}

export interface SqlPage {
  id: number;
  description: string;
  details: Maybe<string>;
  submitted_ms: number;
  duration_ms: number | null;
  status: string;
  failure: Maybe<string>;
  jobs: number[];
  stages_run: { stage: number; attempt: number }[];
  findings: FindingRef[];
  task_ms: Maybe<number>;
  input_bytes: Maybe<number>;
  shuffle_bytes: Maybe<number>;
  spill_bytes: Maybe<number>;
  plans: Plan[];
  top: { node: number; human: string; time_ms: number; share: number }[];
  changes: string[];
}

export interface SummaryRow {
  label: string;
  unit: "ms" | "bytes" | "count";
  min: Maybe<number>;
  p25: Maybe<number>;
  median: Maybe<number>;
  p75: Maybe<number>;
  p95: Maybe<number>;
  max: Maybe<number>;
  sum: Maybe<number>;
  show: boolean;
}

export interface StagePage {
  summary: SummaryRow[];
  tasks: number;
  failed: number;
  killed: number;
  running: number;
  speculative: number;
  differs: { what: string; slow: string; rest: string; score: number }[];
  slow: Maybe<{ tasks: number; from_ms: number }>;
  findings: FindingRef[];
  sql: Maybe<number>;
  jobs: number[];
  name: string;
  description: Maybe<string>;
  details: Maybe<string>;
  status: string;
  failure: Maybe<string>;
  submitted_ms: Maybe<number>;
  completed_ms: Maybe<number>;
  attempts: number[];
  reads_shuffle: boolean;
}

export interface TaskRow {
  task: number;
  index: number;
  attempt: number;
  partition: Maybe<number>;
  executor: string;
  host: Maybe<string>;
  status: string;
  locality: Maybe<string>;
  speculative: boolean;
  launch_ms: Maybe<number>;
  error: Maybe<string>;
  [figure: string]: unknown;
}

export interface StripHeader {
  executors: string[];
  start_ms: number;
}

export interface ComparedApp {
  id: string;
  attempt?: Maybe<string>;
  name: string;
  spark_version: string;
  started_ms: number;
  wall_ms: number;
  slots: Maybe<number>;
  input_bytes: Maybe<number>;
  input_rows: Maybe<number>;
  shuffle_read_bytes: Maybe<number>;
}

export interface Piece {
  name: string;
  base: Maybe<string>;
  new: Maybe<string>;
  base_ms: Maybe<number>;
  new_ms: Maybe<number>;
  base_bytes: Maybe<number>;
  new_bytes: Maybe<number>;
  same_plan: boolean;
}

export interface Comparison {
  base: ComparedApp;
  new: ComparedApp;
  sentence: string;
  delta_ms: number;
  nothing_in_common: boolean;
  parts: { cause: string; ms: number; places: { ms: number; text: string; stage?: Maybe<number> }[] }[];
  findings: { id: string; title: string; severity: Severity }[];
  appeared: [string, string][];
  disappeared: [string, string][];
  settings: { key: string; base?: Maybe<string>; new?: Maybe<string> }[];
  pieces: Piece[];
}

export interface Setting {
  key: string;
  value: Maybe<string>;
  other: Maybe<string>;
  group: string;
  note?: Maybe<string>;
}
