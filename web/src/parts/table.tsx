// A table of any length: rows have one fixed height and only those in sight are in the document.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { here, setQuery } from "../base/url.ts";
import { onKey } from "../base/keys.ts";
import { t } from "../base/words.ts";
import { Icon } from "./icons.tsx";

export interface Column<T> {
  key: string;
  head: string;
  cell: (row: T) => ComponentChildren;
  /** What the column sorts by; without it the column does not sort. */
  by?: (row: T) => number | string | null | undefined;
  num?: boolean;
  width?: number;
  /** Leaves when the page gets narrow: 3 first, then 1, then 2. */
  leaves?: 1 | 2 | 3;
  title?: string;
}

interface TableProps<T> {
  columns: Column<T>[];
  rows: T[];
  id: (row: T) => string | number;
  name: string;
  /** Sort when the address says nothing; a leading minus means descending. */
  sort?: string;
  sortKey?: string;
  rowHeight?: number;
  open?: (row: T) => string;
  /** The first facts of a row, shown beside the table. */
  peek?: (row: T) => ComponentChildren;
  /** Chooses a row, or no longer. */
  pick?: (row: T) => void;
  rowClass?: (row: T) => string;
  /** Own scroll box with this height instead of the page. */
  box?: number;
  empty?: ComponentChildren;
}

/** Rows drawn above and below those in sight. */
const AROUND = 3;
const LEAST = 24;
/** Rows of a box that is not near the window. */
const FIRST = 8;
const NEAR = 200;

export function Table<T>(props: TableProps<T>) {
  const { columns, rows, sort = "", sortKey = "sort" } = props;
  const chosen = here.value.query.get(sortKey) ?? sort;
  const sorted = useMemo(() => sortRows(rows, columns, chosen), [rows, columns, chosen]);
  if (!rows.length && props.empty) return <div class="table-empty">{props.empty}</div>;
  return (
    <Window
      {...props}
      total={sorted.length}
      rowAt={(i) => sorted[i]}
      sorted={chosen}
      onSort={(key) => setQuery({ [sortKey]: key === sort ? null : key })}
      sortable={(c) => c.by !== undefined}
    />
  );
}

function sortRows<T>(rows: T[], columns: Column<T>[], sort: string): T[] {
  const down = sort.startsWith("-");
  const by = columns.find((c) => c.key === sort.replace("-", ""))?.by;
  if (!by) return rows;
  const keyed = rows.map((row, i) => ({ row, i, value: by(row) }));
  keyed.sort((a, b) => compareValues(a.value, b.value, down) || a.i - b.i);
  return keyed.map((k) => k.row);
}

type Value = number | string | null | undefined;

/** Missing values stay last whichever way the column is sorted. */
function compareValues(a: Value, b: Value, down: boolean): number {
  const noA = a === null || a === undefined;
  const noB = b === null || b === undefined;
  if (noA || noB) return Number(noA) - Number(noB);
  const order =
    typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b), undefined, { numeric: true }) : a - b;
  return down ? -order : order;
}

export interface WindowProps<T> {
  columns: Column<T>[];
  total: number;
  rowAt: (index: number) => T | undefined;
  id: (row: T) => string | number;
  name: string;
  sorted: string;
  onSort: (key: string) => void;
  sortable: (column: Column<T>) => boolean;
  rowHeight?: number;
  open?: (row: T) => string;
  peek?: (row: T) => ComponentChildren;
  pick?: (row: T) => void;
  rowClass?: (row: T) => string;
  box?: number;
  /** Told which rows are in sight, for tables that load as they scroll. */
  onRange?: (from: number, to: number) => void;
}

export function Window<T>(props: WindowProps<T>) {
  const { peek, rowAt } = props;
  const outer = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const cursor = useCursor(props, outer, body);
  const peeked = cursor.peeking ? rowAt(cursor.at) : undefined;
  if (!peek) return <Grid {...props} outer={outer} body={body} cursor={cursor} />;
  return (
    <div class={peeked === undefined ? "" : "with-peek"}>
      <Grid {...props} outer={outer} body={body} cursor={cursor} />
      {peeked !== undefined && (
        <aside class="peek" aria-label={t.details}>
          <button type="button" class="btn ghost sm close" onClick={() => cursor.peek(null)} aria-label={t.close}>
            <Icon name="close" />
          </button>
          {peek(peeked)}
        </aside>
      )}
    </div>
  );
}

interface GridProps<T> extends WindowProps<T> {
  outer: Ref<HTMLDivElement>;
  body: Ref<HTMLTableSectionElement>;
  cursor: Cursor;
}

function Grid<T>(props: GridProps<T>) {
  const { columns, total, rowAt, rowHeight = 28, box, outer, body, cursor } = props;
  const [from, to] = useSight(outer, body, total, rowHeight, box !== undefined);
  const key = useRowKeys(from, to);
  useEffect(() => props.onRange?.(from, to), [from, to]);
  const lines = [];
  for (let i = from; i < to; i++) lines.push(<Line key={key(i)} {...props} index={i} row={rowAt(i)} on={cursor.at === i} />);
  const style = { maxHeight: box === undefined ? undefined : `${box}px` };
  return (
    <div
      class={box === undefined ? "table" : "table box"}
      ref={outer}
      style={style}
      tabIndex={0}
      role="region"
      aria-label={props.name}
    >
      <table aria-rowcount={total + 1}>
        <colgroup>
          {columns.map((c) => (
            <col key={c.key} class={`col-${c.key} ${leaving(c)}`} style={{ width: c.width ? `${c.width}px` : undefined }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((c) => (
              <Head key={c.key} column={c} {...props} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {/* One cell only: spanning all columns would bring back those that left. */}
          {from > 0 && (
            <tr class="gap" aria-hidden="true">
              <td style={{ height: `${from * rowHeight}px` }} />
            </tr>
          )}
          {lines}
          {to < total && (
            <tr class="gap" aria-hidden="true">
              <td style={{ height: `${(total - to) * rowHeight}px` }} />
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

/** A row that leaves on one side comes back on the other, and after a jump every row keeps its place: changing texts is far cheaper than making or moving rows. */
function useRowKeys(from: number, to: number): (index: number) => number {
  const last = useRef({ from, slots: 0, turn: 0 });
  const { current } = last;
  const slots = Math.max(current.slots, Math.ceil((to - from) / 8) * 8);
  const jump = Math.abs(from - current.from) >= slots ? from - current.from : 0;
  last.current = { from, slots, turn: current.turn + jump };
  const { turn } = last.current;
  return (index) => (((index - turn) % slots) + slots) % slots;
}

const leaving = <T,>(column: Column<T>): string => (column.leaves ? `leaves-${column.leaves}` : "");

function Head<T>({ column, sorted, onSort, sortable }: WindowProps<T> & { column: Column<T> }) {
  const key = sorted.replace("-", "");
  const on = key === column.key && sortable(column);
  const down = sorted.startsWith("-");
  const next = on ? (down ? column.key : `-${column.key}`) : column.num ? `-${column.key}` : column.key;
  return (
    <th
      class={`${column.num ? "num" : ""} ${leaving(column)}`}
      scope="col"
      title={column.title}
      aria-sort={on ? (down ? "descending" : "ascending") : undefined}
    >
      {sortable(column) ? (
        <button type="button" aria-label={column.head ? undefined : column.title} onClick={() => onSort(next)}>
          {column.head}
          <Icon name={on && !down ? "up" : "down"} class={on ? "sort on" : "sort"} />
        </button>
      ) : (
        column.head
      )}
    </th>
  );
}

interface LineProps<T> extends GridProps<T> {
  index: number;
  row: T | undefined;
  on: boolean;
}

function Line<T>({ columns, index, row, on, open, peek, cursor, rowClass, rowHeight = 28 }: LineProps<T>) {
  // Until a row has come its place keeps the cells of the row before, unseen.
  const before = useRef<T | undefined>(undefined);
  if (row !== undefined) before.current = row;
  const shown = before.current;
  const classes = `${row === undefined ? "pending" : ""} ${open ? "opens" : ""} ${on ? "on" : ""} ${row === undefined ? "" : (rowClass?.(row) ?? "")}`;
  const peekAt = peek ? cursor.peek : null;
  return useMemo(() => {
    if (shown === undefined)
      return (
        <tr class="pending" style={{ height: `${rowHeight}px` }} aria-rowindex={index + 2}>
          <td />
        </tr>
      );
    // The button lies over the end of the widest text, not over a number.
    const widest = columns.findIndex((c) => !c.width);
    return (
      <tr
        class={classes}
        style={{ height: `${rowHeight}px` }}
        aria-rowindex={index + 2}
        data-row={row === undefined ? undefined : index}
        onClick={(event) => openRow(event, open?.(shown))}
      >
        {columns.map((c, i) => (
          <td key={c.key} class={`${c.num ? "num" : ""} ${leaving(c)}`}>
            {c.cell(shown)}
            {peekAt && i === widest && (
              <button type="button" class="peek-on" tabIndex={-1} aria-label={t.keys.peek} onClick={() => peekAt(index)}>
                <Icon name="peek" />
              </button>
            )}
          </td>
        ))}
      </tr>
    );
  }, [columns, index, row, shown, classes, rowHeight, peekAt]);
}

/** A click anywhere in a row follows its link; selecting text or using a control inside does not. */
function openRow(event: MouseEvent, to: string | undefined): void {
  if (!to || (event.target as Element).closest("a, button, input, label, summary")) return;
  if (getSelection()?.toString()) return;
  const link = (event.currentTarget as Element).querySelector<HTMLAnchorElement>("a[href]");
  link?.dispatchEvent(
    new MouseEvent("click", {
      bubbles: true,
      cancelable: true,
      ctrlKey: event.ctrlKey,
      metaKey: event.metaKey,
      shiftKey: event.shiftKey,
    }),
  );
}

type Ref<E> = { current: E | null };

/** Which rows are in sight, with some around them. */
function useSight(
  outer: Ref<HTMLDivElement>,
  body: Ref<HTMLTableSectionElement>,
  total: number,
  height: number,
  boxed: boolean,
): [number, number] {
  const [range, setRange] = useState<[number, number]>([0, Math.min(total, boxed ? FIRST : LEAST)]);
  useLayoutEffect(() => {
    const look = () => {
      if (!body.current || !outer.current) return;
      const clip = outer.current.getBoundingClientRect();
      // A box shows its own height whether or not it is in sight; the page shows its window.
      const top = boxed ? clip.top : 0;
      const bottom = boxed ? clip.bottom : innerHeight;
      const first = Math.floor((top - body.current.getBoundingClientRect().top) / height) - AROUND;
      const from = Math.max(0, Math.min(first, total - 1));
      // One far below is not worth a frame yet.
      const far = boxed && clip.top > innerHeight + NEAR;
      const end = far ? from + FIRST : Math.max(from + LEAST, first + Math.ceil((bottom - top) / height) + 2 * AROUND);
      const to = Math.min(total, end);
      setRange((old) => (old[0] === from && old[1] === to ? old : [from, to]));
    };
    look();
    addEventListener("scroll", look, { passive: true, capture: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look, { capture: true });
      removeEventListener("resize", look);
    };
  }, [total, height, boxed]);
  return [Math.min(range[0], Math.max(0, total - 1)), Math.min(range[1], total)];
}

interface Cursor {
  /** The row that the keys stand on, or -1. */
  at: number;
  /** Whether the facts of that row are shown beside the table. */
  peeking: boolean;
  /** Shows the facts of a row, or no longer. */
  peek: (row: number | null) => void;
}

const isOwnControl = (): boolean => document.activeElement?.closest("a, button, input, summary") !== null;

/** j and k walk the rows, Enter opens the one they stand on, Space peeks at it and x picks it. */
function useCursor<T>(props: WindowProps<T>, outer: Ref<HTMLDivElement>, body: Ref<HTMLTableSectionElement>): Cursor {
  const [at, setAt] = useState(-1);
  const [peeking, setPeeking] = useState(false);
  const { total, rowHeight = 28, open, peek, pick, box } = props;
  const now = useRef({ at, peeking, props });
  now.current = { at, peeking, props };
  const move = (to: number) => {
    const next = Math.max(0, Math.min(total - 1, to));
    now.current.at = next;
    setAt(next);
    reveal(outer.current, body.current, next, rowHeight, box !== undefined);
  };
  useEffect(() => {
    if (!open || !total) return;
    const enter = () => {
      if (now.current.at < 0 || isOwnControl()) return false;
      body.current?.querySelector<HTMLAnchorElement>(`[data-row="${now.current.at}"] a[href]`)?.click();
      return true;
    };
    const look = () => {
      if (isOwnControl()) return false;
      if (now.current.at < 0) move(0);
      setPeeking(!now.current.peeking);
      return true;
    };
    const choose = () => {
      const row = now.current.props.rowAt(now.current.at);
      if (row === undefined) return false;
      now.current.props.pick?.(row);
      return true;
    };
    const off = [
      onKey("j", t.keys.next, () => move(now.current.at + 1)),
      onKey("k", t.keys.previous, () => move(now.current.at - 1)),
      onKey("Enter", t.keys.open, enter),
      ...(peek ? [onKey(" ", t.keys.peek, look)] : []),
      ...(pick ? [onKey("x", t.keys.pick, choose)] : []),
    ];
    return () => off.forEach((remove) => remove());
  }, [total, open !== undefined]);
  useEffect(() => (peeking ? onKey("Escape", t.keys.back, () => setPeeking(false)) : undefined), [peeking]);
  const show = useCallback((row: number | null) => {
    if (row !== null) setAt(row);
    setPeeking(row !== null);
  }, []);
  return { at, peeking, peek: show };
}

function reveal(outer: HTMLElement | null, body: HTMLElement | null, index: number, height: number, boxed: boolean): void {
  if (!outer || !body) return;
  const head = 34;
  const top = body.getBoundingClientRect().top + index * height;
  const clip = boxed ? outer.getBoundingClientRect() : { top: 48, bottom: innerHeight };
  const by = top < clip.top + head ? top - clip.top - head : top + height > clip.bottom ? top + height - clip.bottom + 4 : 0;
  if (by) (boxed ? outer : window).scrollBy(0, by);
}
