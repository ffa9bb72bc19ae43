// A canvas that follows its width, the screen's density and the theme's colours.
import { useEffect, useRef } from "preact/hooks";
import { theme } from "../base/settings.ts";

// Asking the style of the document is slow, and a frame asks for the same few tokens many times.
const tokens = new Map<string, string>();
let tokensOf = "";

/** The value of a colour token in the theme of now. */
export function ink(token: string): string {
  if (tokensOf !== theme.value) {
    tokens.clear();
    tokensOf = theme.value;
  }
  let value = tokens.get(token);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(token).trim();
    tokens.set(token, value);
  }
  return value;
}

interface TextStyle {
  size?: number;
  color: string;
  align?: CanvasTextAlign;
  weight?: number;
  /** Draws the paper's colour around the letters so that they read over marks. */
  halo?: boolean;
  /** Cuts the text at this width. */
  max?: number;
}

export class Pen {
  constructor(
    readonly ctx: CanvasRenderingContext2D,
    readonly width: number,
    readonly height: number,
    /** Pixels of the screen for one of the page. */
    readonly dense: number,
  ) {}

  line(x1: number, y1: number, x2: number, y2: number): void {
    this.ctx.beginPath();
    this.ctx.moveTo(Math.round(x1) + 0.5, y1);
    this.ctx.lineTo(Math.round(x2) + 0.5, y2);
    this.ctx.stroke();
  }

  dot(x: number, y: number, r: number): void {
    this.ctx.beginPath();
    this.ctx.arc(x, y, r, 0, Math.PI * 2);
    this.ctx.fill();
  }

  cross(x: number, y: number, r: number): void {
    this.ctx.beginPath();
    this.ctx.moveTo(x - r, y - r);
    this.ctx.lineTo(x + r, y + r);
    this.ctx.moveTo(x + r, y - r);
    this.ctx.lineTo(x - r, y + r);
    this.ctx.stroke();
  }

  font(size: number, weight = 400): void {
    this.ctx.font = `${weight} ${size}px ${ink("--sans")}`;
  }

  measure(text: string, size: number, weight = 400): number {
    this.font(size, weight);
    return this.ctx.measureText(text).width;
  }

  text(text: string, x: number, y: number, style: TextStyle): void {
    const { ctx } = this;
    this.font(style.size ?? 11, style.weight);
    const shown = style.max === undefined ? text : this.cut(text, style.max);
    ctx.textAlign = style.align ?? "left";
    if (style.halo) {
      ctx.strokeStyle = ink("--surface");
      ctx.lineWidth = 3;
      ctx.lineJoin = "round";
      ctx.strokeText(shown, x, y);
    }
    ctx.fillStyle = ink(style.color);
    ctx.fillText(shown, x, y);
  }

  private cut(text: string, max: number): string {
    if (this.ctx.measureText(text).width <= max) return text;
    let low = 0;
    let high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.ctx.measureText(`${text.slice(0, middle)}…`).width <= max) low = middle;
      else high = middle - 1;
    }
    return low ? `${text.slice(0, low)}…` : "";
  }
}

export function penFor(canvas: HTMLCanvasElement, height: number): Pen | null {
  const width = canvas.clientWidth;
  const ctx = canvas.getContext("2d");
  if (!ctx || !width) return null;
  const dense = Math.min(devicePixelRatio || 1, 2);
  if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
    canvas.width = Math.round(width * dense);
    canvas.height = Math.round(height * dense);
    canvas.style.height = `${height}px`;
  }
  ctx.setTransform(dense, 0, 0, dense, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return new Pen(ctx, width, height, dense);
}

/** Draws when something in `when` changes, when the width changes, and once the fonts are there. */
export function useCanvas(height: number, draw: (pen: Pen) => void, when: unknown[]) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const node = canvas.current;
    if (!node) return;
    let asked = 0;
    const paint = () => {
      asked = 0;
      const pen = penFor(node, height);
      if (pen) draw(pen);
    };
    const ask = () => {
      asked ||= requestAnimationFrame(paint);
    };
    paint();
    const watch = new ResizeObserver(ask);
    watch.observe(node);
    document.fonts?.ready.then(ask);
    return () => {
      watch.disconnect();
      cancelAnimationFrame(asked);
    };
  }, [height, ...when]);
  return canvas;
}
