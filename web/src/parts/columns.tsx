// Columns that many tables have.
import type { Maybe } from "../base/api.ts";
import { duration, show, type Unit } from "../base/units.ts";
import { t } from "../base/words.ts";
import { Moment } from "./bits.tsx";
import type { Column } from "./table.tsx";

type Rest = Pick<Column<never>, "leaves" | "title">;
type Figure<T> = (row: T) => Maybe<number>;

/** A number; zero and nothing are quiet. */
export const figureColumn = <T,>(
  key: string,
  head: string,
  unit: Unit,
  width: number,
  by: Figure<T>,
  rest: Rest = {},
): Column<T> => ({
  key,
  head,
  num: true,
  width,
  by,
  cell: (row) => <Quiet value={by(row)} unit={unit} />,
  ...rest,
});

export const Quiet = ({ value, unit }: { value: Maybe<number>; unit: Unit }) => (
  <span class={value ? "" : "dim"}>{show(value, unit)}</span>
);

/** How long something ran: the number that a row is about. */
export const durationColumn = <T,>(width: number, by: Figure<T>, key = "duration"): Column<T> => ({
  key,
  head: t.duration,
  num: true,
  width,
  by,
  cell: (row) => <b class="figure">{duration(by(row))}</b>,
});

export const momentColumn = <T,>(key: string, head: string, width: number, by: Figure<T>, rest: Rest = {}): Column<T> => ({
  key,
  head,
  num: true,
  width,
  by,
  cell: (row) => <Moment ms={by(row)} seconds date={false} />,
  ...rest,
});
