// How quick the pages feel with the largest stage of a running server: one line per figure, to be read by a person.
// Times of tasks are printed twice: by the clock, and by the processor, which other programs on the machine do not lengthen.
import type { CDPSession, Page } from "playwright-core";
import { launch, pathOf, applications, URL_ } from "./browser.ts";

interface Largest {
  path: string;
  stage: number;
  attempt: number;
  tasks: number;
}

/** The largest stage of the applications with the most tasks. */
async function largestStage(): Promise<Largest> {
  const apps = (await applications()).sort((a, b) => b.tasks - a.tasks).slice(0, 5);
  const found: Largest[] = [];
  for (const app of apps) {
    const response = await fetch(`${URL_}/api/v1${pathOf(app)}/stages`);
    for (const s of (await response.json()) as { stageId: number; attemptId: number; numTasks: number }[])
      found.push({ path: pathOf(app), stage: s.stageId, attempt: s.attemptId, tasks: s.numTasks });
  }
  const largest = found.sort((a, b) => b.tasks - a.tasks)[0];
  if (!largest) throw new Error("The server has no stage.");
  return largest;
}

const tell = (name: string, value: number): void => console.log(`${name} ${Math.round(value * 10) / 10}`);

// What runs in the page

interface Watch {
  usable: number;
  tasks: number[];
  gaps: number[];
}

/** Notes when the page can be used, long tasks, and the time between frames. */
function watch(): void {
  const seen: Watch = { usable: 0, tasks: [], gaps: [] };
  (window as unknown as { seen: Watch }).seen = seen;
  new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((e) => e.duration))).observe({
    type: "longtask",
    buffered: true,
  });
  const small = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
  const isDrawn = (canvas: HTMLCanvasElement | null): boolean => {
    if (!canvas?.width || !canvas.height) return false;
    small.clearRect(0, 0, 40, 40);
    small.drawImage(canvas, canvas.width * 0.3, canvas.height * 0.3, canvas.width * 0.5, canvas.height * 0.5, 0, 0, 40, 40);
    return small.getImageData(0, 0, 40, 40).data.filter((v, i) => i % 4 === 3 && v > 0).length > 160;
  };
  let before = 0;
  const frame = (now: number) => {
    if (before) seen.gaps.push(now - before);
    before = now;
    const table = document.querySelector("#tasks") === null || document.querySelector("#tasks tr[data-row]") !== null;
    if (!seen.usable && table && isDrawn(document.querySelector(".timeline canvas"))) seen.usable = performance.now();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

const clear = (page: Page) =>
  page.evaluate(() => {
    const { seen } = window as unknown as { seen: Watch };
    seen.tasks.length = seen.gaps.length = 0;
  });
const read = (page: Page) => page.evaluate(() => (window as unknown as { seen: Watch }).seen);

// Processor time of the tasks of the page's main thread

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  ph: string;
  tdur?: number;
}

/** The longest task while something is done. A mark of the page tells its thread from those of the browser's own pages. */
async function traced(page: Page, tools: CDPSession, act: () => Promise<void>): Promise<number> {
  const events: TraceEvent[] = [];
  const take = ({ value }: { value: object[] }) => void events.push(...(value as TraceEvent[]));
  tools.on("Tracing.dataCollected", take);
  await tools.send("Tracing.start", {
    traceConfig: { includedCategories: ["toplevel", "blink.user_timing"] },
    transferMode: "ReportEvents",
  });
  await act();
  await page.evaluate(() => performance.mark("this page"));
  const ended = new Promise((resolve) => tools.once("Tracing.tracingComplete", resolve));
  await tools.send("Tracing.end");
  await ended;
  tools.off("Tracing.dataCollected", take);
  const own = events.find((e) => e.name === "this page");
  const lengths = events
    .filter((e) => e.name.endsWith("RunTask") && e.pid === own?.pid && e.tid === own.tid)
    .map((e) => e.tdur ?? 0);
  return lengths.reduce((most, us) => Math.max(most, us / 1000), 0);
}

// What a person does

async function panAndZoom(page: Page): Promise<void> {
  const canvas = page.locator(".timeline canvas").first();
  await canvas.scrollIntoViewIfNeeded();
  const box = (await canvas.boundingBox())!;
  const view = page.viewportSize()!;
  const y = Math.min(box.y + box.height * 0.6, view.height - 60);
  const x = (share: number) => box.x + 150 + share * (box.width - 200);
  const until = (ms: number) => Date.now() + ms;
  await page.keyboard.press("w");
  await page.mouse.move(x(0.8), y);
  await page.mouse.down();
  for (let i = 0, end = until(1000); Date.now() < end; i++) await page.mouse.move(x(0.5 + 0.3 * Math.cos(i / 20)), y);
  await page.mouse.up();
  await page.keyboard.down("Control");
  for (let i = 0, end = until(1000); Date.now() < end; i++) await page.mouse.wheel(0, i % 40 < 20 ? -30 : 30);
  await page.keyboard.up("Control");
  for (let i = 0, end = until(1000); Date.now() < end; i++) await page.keyboard.press("dwdsasaw"[i % 8]!);
  await page.keyboard.press("0");
  await page.waitForTimeout(500);
}

/** Page by page, then from end to end, through the table of tasks. */
async function jumpThroughTable(page: Page): Promise<void> {
  const table = page.getByRole("region", { name: "Tasks" });
  await table.scrollIntoViewIfNeeded();
  await table.focus();
  for (const key of ["PageDown", "PageDown", "PageDown", "PageUp", "End", "Home", "PageDown"]) {
    await page.keyboard.press(key);
    await page.waitForTimeout(150);
  }
}

async function measure(page: Page, tools: CDPSession, name: string, act: (page: Page) => Promise<void>): Promise<void> {
  await clear(page);
  const cpu = await traced(page, tools, () => act(page));
  const { tasks, gaps } = await read(page);
  tell(`${name}longest_task_ms`, Math.max(0, ...tasks));
  tell(`${name}longest_task_cpu_ms`, cpu);
  tell(`${name}frames`, gaps.length);
  tell(`${name}longest_frame_ms`, Math.max(0, ...gaps));
}

async function open(page: Page, tools: CDPSession, path: string, name: string): Promise<void> {
  const cpu = await traced(page, tools, async () => {
    await page.goto(URL_ + path);
    await page.waitForFunction(() => (window as unknown as { seen: Watch }).seen.usable > 0, undefined, { timeout: 120_000 });
    await page.waitForTimeout(1000);
  });
  const { usable, tasks } = await read(page);
  tell(`${name}usable_ms`, usable);
  tell(`${name}loading_longest_task_ms`, Math.max(0, ...tasks));
  tell(`${name}loading_longest_task_cpu_ms`, cpu);
}

const { path, stage, attempt, tasks } = await largestStage();
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, reducedMotion: "reduce", locale: "en-US" });
await context.addInitScript(watch);
const page = await context.newPage();
const tools = await context.newCDPSession(page);
tell("tasks", tasks);
// The start of the browser itself is not the page's.
await page.goto(URL_);
await page.waitForSelector("table");
await open(page, tools, `${path}/-/stages/${stage}/${attempt}`, "");
await measure(page, tools, "", panAndZoom);
await measure(page, tools, "table_", jumpThroughTable);
await open(page, tools, `${path}/-/timeline`, "timeline_");
await measure(page, tools, "timeline_", panAndZoom);
await browser.close();
