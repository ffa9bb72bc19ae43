// Line icons on a 16 pixel grid.

const PATHS = {
  app: "M8 1.8 14 5v6l-6 3.2L2 11V5zM2 5l6 3.2L14 5M8 8.2v6",
  plan: "M6 2.5h4v3H6zM1.8 10.5h4v3h-4zM10.2 10.5h4v3h-4zM8 5.5v2.5M3.8 10.5V8h8.4v2.5",
  search: "M11.5 7a4.5 4.5 0 1 1-9 0a4.5 4.5 0 0 1 9 0M10.5 10.5l3.2 3.2",
  right: "m6 4 4 4-4 4",
  down: "m4 6 4 4 4-4",
  clock: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M8 4.5V8l2.5 1.5",
  ok: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M5.3 8.2l1.9 1.9 3.5-4",
  fail: "M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5zM6 6l4 4M10 6l-4 4",
  warn: "M8 2 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.01",
  run: "M14 8a6 6 0 1 1-3-5.2",
  blocked: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M5 8h6",
  dash: "M3 8h10",
  dot: "M10.5 8a2.5 2.5 0 1 1-5 0a2.5 2.5 0 0 1 5 0",
  wrench: "M10.5 2.2a3.5 3.5 0 0 0-3.3 4.7L2.3 11.8a1.3 1.3 0 0 0 1.9 1.9l4.9-4.9a3.5 3.5 0 0 0 4.5-4.4L11.5 6.5 9.6 4.6z",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  moon: "M13 9.5A5.5 5.5 0 1 1 6.5 3a4.5 4.5 0 0 0 6.5 6.5z",
  sun: "M10.8 8a2.8 2.8 0 1 1-5.6 0a2.8 2.8 0 0 1 5.6 0M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1",
  compare: "M2.5 3h4.5v10H2.5zM9 3h4.5v10H9zM4 6h1.5M4 8.5h1.5M10.5 6H12M10.5 8.5H12M10.5 11H12",
  paste: "M5.5 3H3v11h10V3h-2.5M5.5 1.8h5v2.7h-5zM5.5 7.5h5M5.5 10.5h3",
  shuffle: "M2 4.5h3l5.5 7H14M2 11.5h3l1.5-2M9 6.5l1.5-2H14M12 2.5l2 2-2 2M12 9.5l2 2-2 2",
  help: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0M6.2 6.3c0-1 .8-1.7 1.8-1.7s1.8.700 1.8 1.6c0 1.3-1.8 1.4-1.8 2.7M8 11.3v.01",
  close: "m4 4 8 8M12 4l-8 8",
  upload: "M8 10.5v-8M4.8 5.5 8 2.3l3.2 3.2M2.5 10.5v3h11v-3",
  bolt: "M9 1.5 3 9h4.2L7 14.5 13 7H8.8z",
  up: "m4 10 4-4 4 4",
  peek: "M2.5 3h11v10h-11zM9.5 3v10",
  link: "M6.5 9.5 9.5 6.5M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, title, class: extra = "" }: { name: IconName; title?: string; class?: string }) {
  return (
    <svg
      class={`i ${extra}`}
      viewBox="0 0 16 16"
      role={title ? "img" : undefined}
      aria-label={title}
      aria-hidden={title ? undefined : "true"}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
      <circle cx="11" cy="11" r="10" class="logo-disc" />
      <path d="M3.6 12.5c1.7 0 1.7-1.3 3.5-1.3s1.9 1.3 3.7 1.3 1.9-1.3 3.7-1.3 1.8 1.3 3.6 1.3" class="logo-wave" />
      <path d="M6.5 15.8c1.2 0 1.2-1 2.4-1s1.2 1 2.4 1 1.2-1 2.4-1 1 .6 1.6.8" class="logo-wave two" />
      <circle cx="11" cy="6.6" r="1.9" class="logo-sun" />
    </svg>
  );
}
