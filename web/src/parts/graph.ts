// The layout of a plan: sources at the bottom, the result on top.
import { graphlib, layout } from "@dagrejs/dagre";
import type { Plan, PlanNode } from "../base/api.ts";

export const NODE_WIDTH = 228;
export const NODE_HEIGHT = 62;

export interface Placed {
  node: PlanNode;
  x: number;
  y: number;
  /** Steps folded into the edge above this node. */
  inputs: number[];
  outputs: number[];
}

export interface Edge {
  from: number;
  to: number;
  rows: number | null;
  folded: number;
  points: { x: number; y: number }[];
}

export interface Region {
  stage: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Picture {
  nodes: Placed[];
  edges: Edge[];
  regions: Region[];
  width: number;
  height: number;
}

interface Link {
  from: number;
  to: number;
  rows: number | null;
  folded: number;
}

// These pass on as many rows as they get, and Spark counts them only once.
const KEEPS_ROWS = new Set(["sort", "exchange", "broadcast", "project", "window"]);

/** Rows that leave an operator; where Spark did not count them, those that came in. */
function rowsOut(plan: Plan, id: number): number | null {
  const node = plan.nodes.find((n) => n.id === id);
  if (!node || (node.rows !== null && node.rows !== undefined)) return node?.rows ?? null;
  const inputs = plan.edges.filter((e) => e.to === id);
  return KEEPS_ROWS.has(node.kind) && inputs.length === 1 ? rowsOut(plan, inputs[0]!.from) : null;
}

const QUIET = new Set(["project", "other"]);

/** A step without time, findings or a branch says nothing; its neighbours are joined. */
function isBoring(node: PlanNode, links: Link[]): boolean {
  const inputs = links.filter((l) => l.to === node.id).length;
  const outputs = links.filter((l) => l.from === node.id).length;
  return QUIET.has(node.kind) && inputs === 1 && outputs === 1 && !node.findings.length && (node.share ?? 0) < 0.02;
}

export function fold(plan: Plan, whole: boolean): { nodes: PlanNode[]; links: Link[] } {
  let links: Link[] = plan.edges.map((e) => ({ from: e.from, to: e.to, rows: e.rows ?? rowsOut(plan, e.from), folded: 0 }));
  if (whole) return { nodes: plan.nodes, links };
  const nodes: PlanNode[] = [];
  for (const node of plan.nodes) {
    if (!isBoring(node, links)) {
      nodes.push(node);
      continue;
    }
    const below = links.find((l) => l.to === node.id)!;
    const above = links.find((l) => l.from === node.id)!;
    links = links.filter((l) => l !== below && l !== above);
    links.push({ from: below.from, to: above.to, rows: above.rows ?? below.rows, folded: below.folded + above.folded + 1 });
  }
  return { nodes, links };
}

/** With `down` the sources lie on top instead. */
export function place(plan: Plan, whole: boolean, down: boolean): Picture {
  const { nodes, links } = fold(plan, whole);
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: down ? "TB" : "BT", nodesep: 28, ranksep: 46, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(String(node.id), { width: NODE_WIDTH, height: NODE_HEIGHT });
  links.forEach((link, i) => graph.setEdge(String(link.from), String(link.to), { index: i }, String(i)));
  layout(graph);
  const placed = nodes.map((node): Placed => {
    const at = graph.node(String(node.id)) as { x: number; y: number };
    return {
      node,
      x: at.x,
      y: at.y,
      inputs: links.filter((l) => l.to === node.id).map((l) => l.from),
      outputs: links.filter((l) => l.from === node.id).map((l) => l.to),
    };
  });
  const edges = links.map((link, i): Edge => ({
    ...link,
    points: (graph.edge(String(link.from), String(link.to), String(i)) as { points: Edge["points"] }).points,
  }));
  const size = graph.graph() as { width?: number; height?: number };
  return { nodes: placed, edges, regions: regionsOf(placed), width: size.width ?? 0, height: size.height ?? 0 };
}

const INSET = 12;

/** A soft area for every stage whose operators lie together. */
function regionsOf(nodes: Placed[]): Region[] {
  const stages = new Set(nodes.flatMap((n) => (n.node.stage === null || n.node.stage === undefined ? [] : [n.node.stage])));
  return [...stages].flatMap((stage) => {
    const mine = nodes.filter((n) => n.node.stage === stage);
    const left = Math.min(...mine.map((n) => n.x)) - NODE_WIDTH / 2 - INSET;
    const right = Math.max(...mine.map((n) => n.x)) + NODE_WIDTH / 2 + INSET;
    const top = Math.min(...mine.map((n) => n.y)) - NODE_HEIGHT / 2 - INSET;
    const bottom = Math.max(...mine.map((n) => n.y)) + NODE_HEIGHT / 2 + INSET;
    const mixed = nodes.some((n) => n.node.stage !== stage && n.x > left && n.x < right && n.y > top && n.y < bottom);
    return mixed || mine.length < 2 ? [] : [{ stage, x: left, y: top, width: right - left, height: bottom - top }];
  });
}

/** Wide edges carry many rows; each step of ten adds the same. */
export const edgeWidth = (rows: number | null): number => (rows === null ? 1.5 : 1 + Math.min(8, Math.log10(rows + 1) * 0.9));

export function edgePath(points: Edge["points"]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x} ${first.y}`;
  for (let i = 0; i < rest.length - 1; i++) {
    const here = rest[i]!;
    const next = rest[i + 1]!;
    path += ` Q${here.x} ${here.y} ${(here.x + next.x) / 2} ${(here.y + next.y) / 2}`;
  }
  const last = rest.at(-1);
  return last ? `${path} L${last.x} ${last.y}` : path;
}
