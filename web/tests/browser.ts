// One browser for all tests, and the words to drive it.
import { after, afterEach, before } from "node:test";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

export const URL_ = (process.env["LAKESCOPE_URL"] ?? "").replace(/\/$/, "");
if (!URL_) throw new Error("Set LAKESCOPE_URL to the address of a running lakescope that reads the folder samples.");

/** How many times slower the processor of the page should seem: 8 shows tests that count on a quick machine. */
const SLOWDOWN = Number(process.env["SLOWDOWN"] ?? 1);
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
export const launch = (): Promise<Browser> => chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
let browser: Browser;
let open: BrowserContext[] = [];

let used = false;

/** Starts the browser before the first test and ends it after the last, however many files ask. */
export function useBrowser(): void {
  if (used) return;
  used = true;
  before(async () => {
    browser = await launch();
  });
  afterEach(async () => {
    const done = open;
    open = [];
    await Promise.all(done.map((context) => context.close()));
  });
  after(() => browser.close());
}

interface Look {
  theme?: "light" | "dark";
  width?: number;
  height?: number;
  /** Another server than the usual one. */
  server?: string;
}

/** A page of its own context. Errors of scripts and refusals by the security policy fail the test that waits for `quiet`. */
export async function visit(
  path: string,
  { theme = "light", width = 1440, height = 1000, server = URL_ }: Look = {},
): Promise<{ page: Page; errors: string[] }> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    permissions: ["clipboard-read", "clipboard-write"],
    locale: "en-US",
    reducedMotion: "reduce",
  });
  open.push(context);
  const page = await context.newPage();
  if (SLOWDOWN > 1) {
    const tools = await context.newCDPSession(page);
    await tools.send("Emulation.setCPUThrottlingRate", { rate: SLOWDOWN });
  }
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (/Content Security Policy/i.test(message.text())) errors.push(message.text());
  });
  page.on("dialog", (dialog) => {
    errors.push(`a dialog opened: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(server + path);
  return { page, errors };
}

/** Until the page of the address is drawn, nothing loads and nothing waits. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(
    () =>
      document.documentElement.dataset["drawn"] === location.pathname &&
      document.querySelector("main") !== null &&
      document.querySelector('[aria-busy="true"]') === null,
    undefined,
    { timeout: 30_000 },
  );
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(150);
}

interface AppRow {
  id: string;
  attempt: string | null;
  name: string;
  failed: boolean;
  tasks: number;
  worst: { id: string } | null;
}

export async function applications(): Promise<AppRow[]> {
  for (let tries = 0; tries < 60; tries++) {
    const response = await fetch(`${URL_}/api/lakescope/v1/applications`);
    const list = (await response.json()) as { ready: boolean; applications: AppRow[] };
    if (list.ready) return list.applications;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error("The server did not finish reading its logs within half a minute.");
}

export const pathOf = (app: AppRow): string =>
  `/applications/${encodeURIComponent(app.id)}${app.attempt ? `/${encodeURIComponent(app.attempt)}` : ""}`;

export async function findApp(test: (app: AppRow) => boolean, what: string): Promise<AppRow> {
  const app = (await applications()).find(test);
  if (!app) throw new Error(`No application ${what}: does the server read the folder samples?`);
  return app;
}

/** Every page, by name. */
export async function allPages(): Promise<[string, string][]> {
  const skewed = await findApp((a) => a.worst?.id === "SKEW_KEY", "with key skew");
  const failed = await findApp((a) => a.failed, "that failed");
  const base = pathOf(skewed);
  const stage = await stageOf(skewed);
  const stream = await streaming();
  return [
    ...(stream ? ([["streaming", `${pathOf(stream)}/-/streaming`]] as [string, string][]) : []),
    ["applications", "/"],
    ["application", base],
    ["application-failed", pathOf(failed)],
    ["timeline", `${base}/-/timeline`],
    ["sql", `${base}/-/sql`],
    ["query", `${base}/-/sql/0`],
    ["jobs", `${base}/-/jobs`],
    ["stages", `${base}/-/stages`],
    ["stage", `${base}/-/stages/${stage}/0`],
    ["executors", `${base}/-/executors`],
    ["storage", `${base}/-/storage`],
    ["environment", `${base}/-/environment`],
    ["compare", `/compare?base=${encodeURIComponent(failed.id)}&new=${encodeURIComponent(skewed.id)}`],
    ["read", "/read"],
    ["calculator", "/tools/shuffle-calculator"],
    ["calculator-from-stage", `/tools/shuffle-calculator?app=${encodeURIComponent(skewed.id)}&stage=${stage}&attempt=0`],
    ["no-page", "/nowhere"],
  ];
}

/** An application that streams, if there is one. */
export async function streaming(): Promise<AppRow | null> {
  for (const app of await applications()) {
    const response = await fetch(`${URL_}/api/lakescope/v1${pathOf(app)}/page`);
    const page = (await response.json()) as { counts?: { streams: number } };
    if (page.counts?.streams) return app;
  }
  return null;
}

/** The stage that the worst finding of an application is about. */
export async function stageOf(app: AppRow): Promise<number> {
  const response = await fetch(`${URL_}/api/lakescope/v1${pathOf(app)}/page`);
  const page = (await response.json()) as { chapters: { root: { stage: number | null } }[] };
  return page.chapters.find((c) => c.root.stage !== null)?.root.stage ?? 0;
}
