// A query plan as a graph beside its details.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Plan, PlanNode, SqlPage } from "../base/api.ts";
import { bytes, count, duration, factor, percent } from "../base/units.ts";
import { appPath, here, setQuery, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Filter, Seg, ShareBar } from "./bits.tsx";
import { edgePath, edgeWidth, NODE_HEIGHT, NODE_WIDTH, place, type Edge, type Picture, type Placed } from "./graph.ts";
import { Icon } from "./icons.tsx";
import { CopyButton, Prose } from "./text.tsx";

type Top = SqlPage["top"];

interface PlanProps {
  plans: Plan[];
  top: Top;
  changes: string[];
  app: AppRef | null;
}

const MANY = 16;

export default function PlanView({ plans, top, changes, app }: PlanProps) {
  const { query } = here.value;
  const which = Math.min(plans.length - 1, Number(query.get("plan") ?? 0) || 0);
  const plan = plans[which];
  const whole = (query.get("steps") ?? ((plan?.nodes.length ?? 0) > MANY ? "main" : "all")) === "all";
  const q = query.get("find") ?? "";
  const down = query.get("read") === "down";
  const picture = useMemo(() => (plan ? place(plan, whole, down) : null), [plan, whole, down]);
  const selected = query.get("node");
  const node = plan?.nodes.find((n) => String(n.id) === selected) ?? null;
  const select = (id: number | null) => setQuery({ node: id === null ? null : String(id) });
  if (!plan || !picture) return null;
  return (
    <>
      <section class="card">
        <div class="bar">
          {plans.length > 1 && (
            <Seg
              label={t.whichPlan}
              value={String(which)}
              options={plans.map((p, i) => [String(i), p.title])}
              onChange={(value) => setQuery({ plan: value === "0" ? null : value, node: null })}
            />
          )}
          <Seg
            label={t.steps}
            value={whole ? "all" : "main"}
            options={[
              ["main", t.mainSteps],
              ["all", t.allSteps],
            ]}
            onChange={(value) => setQuery({ steps: value })}
          />
          <Seg
            label={t.direction}
            value={down ? "down" : "up"}
            options={[
              ["up", t.upwards],
              ["down", t.downwards],
            ]}
            onChange={(value) => setQuery({ read: value === "down" ? "down" : null })}
          />
          <Filter value={q} label={t.findOperator} onInput={(value) => setQuery({ find: value })} />
          <span class="dim">{plan.summary ?? t.nOperators(count(plan.nodes.length))}</span>
        </div>
        <div class="plan">
          <GraphBox picture={picture} selected={node?.id ?? null} select={select} find={q} focus={top[0]?.node ?? null} />
          <aside class="side-panel" aria-label={t.details}>
            {node ? (
              <Details node={node} app={app} close={() => select(null)} />
            ) : (
              <TopOperators top={which === 0 ? top : []} plan={plan} select={select} />
            )}
          </aside>
        </div>
      </section>
      {changes.length > 0 && which === 0 && (
        <Card title={t.aqeChanged}>
          <ul class="plain">
            {changes.map((c) => (
              <li key={c}>
                <p>
                  <Prose text={c} />
                </p>
              </li>
            ))}
          </ul>
        </Card>
      )}
      <PlanNotes plan={plan} select={select} />
      {plan.text && <PlanText text={plan.text} />}
    </>
  );
}

// The graph

function GraphBox({
  picture,
  selected,
  select,
  find,
  focus,
}: {
  picture: Picture;
  selected: number | null;
  select: (id: number | null) => void;
  find: string;
  focus: number | null;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState(1);
  useEffect(() => {
    const room = box.current?.clientWidth ?? 0;
    setScale(Math.max(0.55, Math.min(1, room / Math.max(1, picture.width))));
  }, [picture]);
  useEffect(() => {
    const to = picture.nodes.find((n) => n.node.id === (selected ?? focus)) ?? picture.nodes[0];
    if (!to || !box.current) return;
    box.current.scrollTo({ left: to.x * scale - box.current.clientWidth / 2, top: to.y * scale - box.current.clientHeight / 2 });
  }, [picture, scale]);
  const drag = useDrag(box);
  const zoom = (by: number) => setScale((s) => Math.max(0.3, Math.min(1.6, s * by)));
  return (
    <div class="graph-outer">
      <div class="graph" ref={box} tabIndex={0} role="region" aria-label={t.planGraph} {...drag}>
        <div style={{ width: `${picture.width * scale}px`, height: `${picture.height * scale}px` }} class="graph-size">
          <div
            class="graph-inner"
            style={{ width: `${picture.width}px`, height: `${picture.height}px`, transform: `scale(${scale})` }}
          >
            <Edges picture={picture} />
            {picture.nodes.map((placed) => (
              <NodeBox
                key={placed.node.id}
                placed={placed}
                picture={picture}
                selected={selected === placed.node.id}
                faded={find !== "" && !matches(placed.node, find)}
                select={select}
              />
            ))}
          </div>
        </div>
      </div>
      <div class="graph-zoom">
        <button type="button" class="btn sm" onClick={() => zoom(1 / 1.25)} aria-label={t.keys.zoomOut}>
          −
        </button>
        <button type="button" class="btn sm" onClick={() => zoom(1.25)} aria-label={t.keys.zoomIn}>
          +
        </button>
      </div>
    </div>
  );
}

const matches = (node: PlanNode, find: string): boolean =>
  `${node.name} ${node.human} ${node.detail ?? ""}`.toLowerCase().includes(find.toLowerCase());

function useDrag(box: { current: HTMLDivElement | null }) {
  const from = useRef<{ x: number; y: number; left: number; top: number } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || event.pointerType === "touch" || (event.target as Element).closest("button, a") || !box.current)
        return;
      from.current = { x: event.clientX, y: event.clientY, left: box.current.scrollLeft, top: box.current.scrollTop };
      box.current.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      if (from.current)
        box.current?.scrollTo(
          from.current.left - event.clientX + from.current.x,
          from.current.top - event.clientY + from.current.y,
        );
    },
    onPointerUp: () => {
      from.current = null;
    },
    onPointerCancel: () => {
      from.current = null;
    },
  };
}

function Edges({ picture }: { picture: Picture }) {
  return (
    <svg class="graph-edges" width={picture.width} height={picture.height} aria-hidden="true">
      {picture.regions.map((r) => (
        <g key={r.stage}>
          <rect class="region" x={r.x} y={r.y} width={r.width} height={r.height} rx="10" />
          <text class="region-name" x={r.x + 8} y={r.y + r.height - 4}>
            {t.ofStageShort(r.stage)}
          </text>
        </g>
      ))}
      {picture.edges.map((e) => (
        <EdgeLine key={`${e.from}-${e.to}`} edge={e} />
      ))}
    </svg>
  );
}

function EdgeLine({ edge }: { edge: Edge }) {
  const middle = edge.points[edge.points.length >> 1]!;
  const width = edgeWidth(edge.rows);
  const end = edge.points.at(-1)!;
  const back = edge.points[0]!.y > end.y ? 6 : -6;
  return (
    <g>
      <path class="edge" d={edgePath(edge.points)} stroke-width={width} />
      <path
        class="edge-head"
        d={`M${end.x - 4 - width / 2} ${end.y + back} L${end.x} ${end.y} L${end.x + 4 + width / 2} ${end.y + back}Z`}
      />
      {edge.rows !== null && (
        <text class="edge-rows" x={middle.x + 6 + width / 2} y={middle.y + 4}>
          {count(edge.rows)}
          {edge.folded > 0 ? ` · ${t.foldedSteps(edge.folded)}` : ""}
        </text>
      )}
      {edge.rows === null && edge.folded > 0 && (
        <text class="edge-rows" x={middle.x + 8} y={middle.y + 4}>
          {t.foldedSteps(edge.folded)}
        </text>
      )}
    </g>
  );
}

const isHot = (node: PlanNode): boolean => (node.share ?? 0) >= 0.25;

function NodeBox({
  placed,
  picture,
  selected,
  faded,
  select,
}: {
  placed: Placed;
  picture: Picture;
  selected: boolean;
  faded: boolean;
  select: (id: number | null) => void;
}) {
  const { node } = placed;
  const style = {
    left: `${placed.x - NODE_WIDTH / 2}px`,
    top: `${placed.y - NODE_HEIGHT / 2}px`,
    width: `${NODE_WIDTH}px`,
    height: `${NODE_HEIGHT}px`,
  };
  const facts = [
    node.time_ms !== null && node.time_ms !== undefined ? `${node.time_estimated ? "≈ " : ""}${duration(node.time_ms)}` : "",
    node.share ? percent(node.share) : "",
  ]
    .filter(Boolean)
    .join(" · ");
  return (
    <button
      type="button"
      id={`node-${node.id}`}
      class={`node kind-${node.kind} ${selected ? "on" : ""} ${faded ? "faded" : ""} ${node.findings.length ? "found" : ""}`}
      style={style}
      aria-pressed={selected}
      onClick={() => select(selected ? null : node.id)}
      onKeyDown={(e) => walk(e, placed, picture)}
    >
      <span class="node-name cut" title={node.human}>
        {node.human || node.name}
      </span>
      <span class="node-facts dim">
        <span>{facts || node.name}</span>
        <NodeMark node={node} />
      </span>
      {node.share !== null && node.share !== undefined && (
        <ShareBar share={node.share} kind={isHot(node) ? "hot wide" : "wide"} />
      )}
      {node.findings.map((n) => (
        <span key={n} class="rank hot pin" title={t.findingNumber(n, "")}>
          {n}
        </span>
      ))}
    </button>
  );
}

/** Where rows grew or shrank a lot, or files were left unread. */
function NodeMark({ node }: { node: PlanNode }) {
  if (node.pruned && node.pruned.files > 0)
    return <span>{t.filesRead(count(node.pruned.files_read), count(node.pruned.files))}</span>;
  const growth = node.growth ?? 1;
  if (growth > 10) return <span class="mark-fail">{t.rowsGrew(factor(growth))}</span>;
  if (growth > 0 && growth < 0.1) return <span class="soft">{t.rowsShrank(factor(1 / growth))}</span>;
  return node.rows !== null && node.rows !== undefined ? <span>{t.nRows(count(node.rows))}</span> : null;
}

/** Up to where rows go, down to where they come from, sideways along a level. */
function walk(event: KeyboardEvent, placed: Placed, picture: Picture): void {
  const side = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
  let to: number | undefined;
  if (event.key === "ArrowUp" || event.key === "ArrowDown") to = onTheWay(placed, picture, event.key === "ArrowUp" ? -1 : 1);
  else if (side) to = nearest(placed, picture, side);
  if (to === undefined) return;
  event.preventDefault();
  document.getElementById(`node-${to}`)?.focus();
}

/** The first neighbour along an edge in that direction, whichever way the graph is drawn. */
const onTheWay = (placed: Placed, picture: Picture, side: number): number | undefined =>
  picture.nodes.find((n) => [...placed.inputs, ...placed.outputs].includes(n.node.id) && (n.y - placed.y) * side > 0)?.node.id;

const nearest = (placed: Placed, picture: Picture, side: number): number | undefined =>
  picture.nodes
    .filter((n) => (n.x - placed.x) * side > 0 && Math.abs(n.y - placed.y) < 2 * NODE_HEIGHT)
    .sort((a, b) => Math.abs(a.x - placed.x) - Math.abs(b.x - placed.x))[0]?.node.id;

// Beside the graph

function TopOperators({ top, plan, select }: { top: Top; plan: Plan; select: (id: number) => void }) {
  const rows = top.length ? top : [];
  return (
    <div id="top-operators">
      <h3 class="panel-title">{t.topOperators}</h3>
      {rows.length === 0 && <p class="dim panel-pad">{t.noTimes}</p>}
      <ol class="tops">
        {rows.slice(0, 12).map((r) => {
          const node = plan.nodes.find((n) => n.id === r.node);
          return (
            <li key={r.node}>
              <button type="button" onClick={() => select(r.node)}>
                <span class="cut" title={r.human}>
                  {r.human}
                </span>
                <b class="num">
                  {node?.time_estimated ? "≈ " : ""}
                  {duration(r.time_ms)}
                </b>
                <ShareBar share={r.share} kind={r.share >= 0.25 ? "hot wide" : "wide"} />
                <span class="dim num">{percent(r.share)}</span>
              </button>
            </li>
          );
        })}
      </ol>
      <p class="help panel-pad">{t.graphHelp}</p>
    </div>
  );
}

function Details({ node, app, close }: { node: PlanNode; app: AppRef | null; close: () => void }) {
  const facts: [string, string][] = [
    [
      t.taskTime,
      node.time_ms === null || node.time_ms === undefined
        ? ""
        : `${node.time_estimated ? "≈ " : ""}${duration(node.time_ms)}${node.share ? `, ${percent(node.share)}` : ""}`,
    ],
    [t.rowsOut, node.rows === null || node.rows === undefined ? "" : count(node.rows)],
    [t.rowsOutIn, node.growth === null || node.growth === undefined ? "" : factor(node.growth)],
    [t.size, node.bytes === null || node.bytes === undefined ? "" : bytes(node.bytes)],
    [
      t.files,
      node.pruned
        ? `${t.filesRead(count(node.pruned.files_read), count(node.pruned.files))}, ${percent(1 - node.pruned.files_read / Math.max(1, node.pruned.files))} ${t.neverRead}`
        : "",
    ],
  ];
  return (
    <div>
      <div class="panel-head">
        <b>{node.human || node.name}</b>
        <button type="button" class="btn ghost sm" onClick={close} aria-label={t.close}>
          <Icon name="close" />
        </button>
      </div>
      <p class="dim panel-pad">
        <span class="mono">{node.name}</span>
        {node.codegen !== null && node.codegen !== undefined && ` · ${t.codegen(node.codegen)}`}
      </p>
      <dl class="panel-list">
        {facts
          .filter(([, v]) => v)
          .map(([k, v]) => (
            <div key={k}>
              <dt>{k}</dt>
              <dd>{v}</dd>
            </div>
          ))}
      </dl>
      {app && (
        <p class="row panel-pad">
          {node.stage !== null && node.stage !== undefined && (
            <a class="btn sm" href={appPath(app, `stages/${node.stage}/0`)}>
              {t.openStage(node.stage)}
            </a>
          )}
          {node.findings.map((n) => (
            <a key={n} class="btn sm" href={`${appPath(app)}?open=${n}#finding-${n}`}>
              <span class="rank hot">{n}</span>
              {t.finding}
            </a>
          ))}
        </p>
      )}
      {node.notes.length > 0 && (
        <ul class="panel-notes">
          {node.notes.map((n) => (
            <li key={n}>
              <Prose text={n} />
            </li>
          ))}
        </ul>
      )}
      {node.metrics.length > 0 && (
        <>
          <h3 class="panel-title">{t.metrics}</h3>
          <dl class="panel-list">
            {node.metrics.map((m) => (
              <div key={m.name}>
                <dt>{m.name}</dt>
                <dd>{m.value}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
      {node.detail && (
        <>
          <h3 class="panel-title">{t.asSparkWrites}</h3>
          <pre class="code wrap" tabIndex={0}>
            {node.detail}
          </pre>
        </>
      )}
    </div>
  );
}

function PlanNotes({ plan, select }: { plan: Plan; select: (id: number) => void }) {
  if (!plan.notes?.length) return null;
  return (
    <Card title={t.inThisPlan}>
      <ul class="plain">
        {plan.notes.map((note, i) => (
          <li key={i}>
            {note.node === null || note.node === undefined ? (
              <p>
                <Prose text={note.text} />
              </p>
            ) : (
              <button type="button" class="noteline" onClick={() => select(note.node!)}>
                <Prose text={note.text} />
              </button>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Spark's own text; a number in the outline leads to its details below. */
function PlanText({ text }: { text: string }) {
  const lines = text.split("\n");
  const details = new Set(lines.flatMap((line) => /^\((\d+)\) /.exec(line)?.[1] ?? []));
  const jump = (n: string) => document.getElementById(`plan-line-${n}`)?.scrollIntoView({ block: "center" });
  return (
    <details class="card details">
      <summary>{t.rawText}</summary>
      <div class="bar">
        <CopyButton text={text} />
      </div>
      <pre class="code" tabIndex={0}>
        {lines.map((line, i) => {
          const start = /^\((\d+)\) /.exec(line)?.[1];
          const end = start === undefined ? /^(.*\()(\d+)(\)\s*)$/.exec(line) : null;
          if (start !== undefined) return <span key={i} id={`plan-line-${start}`} class="k">{`${line}\n`}</span>;
          if (end && details.has(end[2]!))
            return (
              <span key={i}>
                {end[1]}
                <button type="button" class="link" onClick={() => jump(end[2]!)}>
                  {end[2]}
                </button>
                {`${end[3]}\n`}
              </span>
            );
          return `${line}\n`;
        })}
      </pre>
    </details>
  );
}
