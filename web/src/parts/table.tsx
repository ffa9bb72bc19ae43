// A table of any length: rows have one fixed height and only those in sight are in the document.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
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
  rowClass?: (row: T) => string;
  /** Own scroll box with this height instead of the page. */
  box?: number;
  empty?: ComponentChildren;
}

const AROUND = 6;

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
  rowClass?: (row: T) => string;
  box?: number;
  /** Told which rows are in sight, for tables that load as they scroll. */
  onRange?: (from: number, to: number) => void;
}

export function Window<T>(props: WindowProps<T>) {
  const { columns, total, rowAt, rowHeight = 28, box } = props;
  const outer = useRef<HTMLDivElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const [from, to] = useSight(outer, body, total, rowHeight, box !== undefined);
  const cursor = useCursor(props, outer, body);
  useEffect(() => props.onRange?.(from, to), [from, to]);
  // A row that leaves on one side comes back on the other: changing texts is far cheaper than making rows.
  const slots = Math.ceil((to - from) / 8) * 8;
  const lines = [];
  for (let i = from; i < to; i++) lines.push(<Line key={i % slots} {...props} index={i} row={rowAt(i)} on={cursor === i} />);
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
            <col key={c.key} class={leaving(c)} style={{ width: c.width ? `${c.width}px` : undefined }} />
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

interface LineProps<T> extends WindowProps<T> {
  index: number;
  row: T | undefined;
  on: boolean;
}

function Line<T>({ columns, index, row, on, open, rowClass, rowHeight = 28 }: LineProps<T>) {
  if (row === undefined)
    return (
      <tr class="pending" style={{ height: `${rowHeight}px` }} aria-rowindex={index + 2}>
        <td>…</td>
      </tr>
    );
  const classes = `${open ? "opens" : ""} ${on ? "on" : ""} ${rowClass?.(row) ?? ""}`;
  return (
    <tr
      class={classes}
      style={{ height: `${rowHeight}px` }}
      aria-rowindex={index + 2}
      data-row={index}
      onClick={(event) => openRow(event, open?.(row))}
    >
      {columns.map((c) => (
        <td key={c.key} class={`${c.num ? "num" : ""} ${leaving(c)}`}>
          {c.cell(row)}
        </td>
      ))}
    </tr>
  );
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
  const [range, setRange] = useState<[number, number]>([0, Math.min(total, 40)]);
  useLayoutEffect(() => {
    const look = () => {
      if (!body.current || !outer.current) return;
      const clip = outer.current.getBoundingClientRect();
      // A box shows its own height whether or not it is in sight; the page shows its window.
      const top = boxed ? clip.top : 0;
      const bottom = boxed ? clip.bottom : innerHeight;
      const first = Math.floor((top - body.current.getBoundingClientRect().top) / height) - AROUND;
      const from = Math.max(0, Math.min(first, total - 1));
      const to = Math.min(total, Math.max(from + 24, first + Math.ceil((bottom - top) / height) + 2 * AROUND));
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

/** j and k walk the rows, Enter opens the one they stand on. */
function useCursor<T>(props: WindowProps<T>, outer: Ref<HTMLDivElement>, body: Ref<HTMLTableSectionElement>): number {
  const [cursor, setCursor] = useState(-1);
  const { total, rowHeight = 28, open, box } = props;
  const at = useRef(-1);
  useEffect(() => {
    if (!open) return;
    const move = (by: number) => {
      at.current = Math.max(0, Math.min(total - 1, at.current + by));
      setCursor(at.current);
      reveal(outer.current, body.current, at.current, rowHeight, box !== undefined);
    };
    const enter = () => {
      if (at.current < 0 || document.activeElement?.closest("a, button, input, summary")) return false;
      body.current?.querySelector<HTMLAnchorElement>(`[data-row="${at.current}"] a[href]`)?.click();
      return true;
    };
    const off = [
      onKey("j", t.keys.next, () => move(1)),
      onKey("k", t.keys.previous, () => move(-1)),
      onKey("Enter", t.keys.open, enter),
    ];
    return () => off.forEach((remove) => remove());
  }, [total, open !== undefined]);
  return cursor;
}

function reveal(outer: HTMLElement | null, body: HTMLElement | null, index: number, height: number, boxed: boolean): void {
  if (!outer || !body) return;
  const head = 34;
  const top = body.getBoundingClientRect().top + index * height;
  const clip = boxed ? outer.getBoundingClientRect() : { top: 48, bottom: innerHeight };
  const by = top < clip.top + head ? top - clip.top - head : top + height > clip.bottom ? top + height - clip.bottom + 4 : 0;
  if (by) (boxed ? outer : window).scrollBy(0, by);
}
