// Columns from zero, with a line over them where a second figure belongs.
import { useState } from "preact/hooks";
import { theme } from "../base/settings.ts";
import { NONE } from "../base/units.ts";
import { ink, useCanvas, type Pen } from "./canvas.ts";

interface ColumnsProps {
  values: (number | null)[];
  lines?: (number | null)[];
  labels: string[];
  format: (value: number | null) => string;
  name: string;
  /** The column to set apart. */
  mark?: number | null;
}

const HEIGHT = 150;
const FOOT = 18;
const LEFT = 62;

const biggest = (values: (number | null)[]): number => values.reduce<number>((most, v) => Math.max(most, v ?? 0), 0);

export function Columns(props: ColumnsProps) {
  const { values, lines, labels, format, name } = props;
  const [at, setAt] = useState<number | null>(null);
  const canvas = useCanvas(HEIGHT, (pen) => draw(pen, props, at), [values, lines, labels, at, props.mark, theme.value]);
  const move = (event: PointerEvent) => {
    const width = (event.currentTarget as HTMLElement).clientWidth - LEFT;
    const i = Math.floor(((event.offsetX - LEFT) / width) * values.length);
    setAt(i >= 0 && i < values.length ? i : null);
  };
  const told = at === null ? "" : `${labels[at]}: ${format(values[at] ?? null)}${lines ? ` / ${format(lines[at] ?? null)}` : ""}`;
  return (
    <figure class="columns">
      <canvas
        ref={canvas}
        role="img"
        aria-label={`${name}: ${values.length ? `${format(values[0] ?? null)} … ${format(values.at(-1) ?? null)}, max ${format(biggest(values))}` : NONE}`}
        onPointerMove={move}
        onPointerLeave={() => setAt(null)}
      />
      <figcaption class="dim">{told || "\u00a0"}</figcaption>
    </figure>
  );
}

function draw(pen: Pen, { values, lines, labels, format, mark }: ColumnsProps, at: number | null): void {
  const high = biggest([...values, ...(lines ?? [])]) || 1;
  const width = pen.width - LEFT;
  const each = width / Math.max(1, values.length);
  const y = (value: number) => HEIGHT - FOOT - (value / high) * (HEIGHT - FOOT - 14);
  pen.ctx.strokeStyle = ink("--line");
  for (const share of [0, 0.5, 1]) {
    const level = Math.round(y(share * high)) + 0.5;
    pen.ctx.beginPath();
    pen.ctx.moveTo(LEFT, level);
    pen.ctx.lineTo(pen.width, level);
    pen.ctx.stroke();
    pen.text(format(share * high), LEFT - 6, level + 4, { size: 10, color: "--ink-3", align: "right" });
  }
  values.forEach((value, i) => {
    if (value === null) return;
    pen.ctx.fillStyle = ink(i === at || i === mark ? "--d5" : "--d3");
    pen.ctx.fillRect(LEFT + i * each, y(value), Math.max(1, each - (each > 4 ? 1.5 : 0)), HEIGHT - FOOT - y(value));
  });
  if (lines) drawLine(pen, lines, each, y);
  const step = Math.max(1, Math.ceil(values.length / Math.floor(width / 70)));
  for (let i = 0; i < labels.length; i += step)
    pen.text(labels[i]!, LEFT + (i + 0.5) * each, HEIGHT - 4, { size: 10, color: "--ink-3", align: "center" });
}

function drawLine(pen: Pen, lines: (number | null)[], each: number, y: (value: number) => number): void {
  const { ctx } = pen;
  ctx.strokeStyle = ink("--d5");
  ctx.lineWidth = 2;
  ctx.beginPath();
  let open = false;
  lines.forEach((value, i) => {
    if (value === null) {
      open = false;
      return;
    }
    const x = LEFT + (i + 0.5) * each;
    if (open) ctx.lineTo(x, y(value));
    else ctx.moveTo(x, y(value));
    open = true;
  });
  ctx.stroke();
}
