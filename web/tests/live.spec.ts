// A log that grows while its pages are open. Needs LAKESCOPE_LIVE_FOLDER, a folder that the server at LAKESCOPE_URL reads.
import assert from "node:assert/strict";
import { appendFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { applications, settled, useBrowser, visit } from "./browser.ts";

useBrowser();

const FOLDER = process.env["LAKESCOPE_LIVE_FOLDER"];
const skip = FOLDER ? false : "LAKESCOPE_LIVE_FOLDER is not set";

const TASKS = 1200;
const START = Date.now() - 600_000;

const lines = (events: object[]): string => events.map((e) => `${JSON.stringify(e)}\n`).join("");

const STAGE = {
  "Stage ID": 0,
  "Stage Attempt ID": 0,
  "Stage Name": "count at live.py:1",
  "Number of Tasks": TASKS,
  "RDD Info": [],
  "Parent IDs": [],
  Details: "",
  "Submission Time": START + 2000,
  Accumulables: [],
};

const begin = (id: string): string =>
  lines([
    { Event: "SparkListenerLogStart", "Spark Version": "4.0.1" },
    { Event: "SparkListenerApplicationStart", "App Name": `live ${id}`, "App ID": id, Timestamp: START, User: "test" },
    {
      Event: "SparkListenerExecutorAdded",
      Timestamp: START + 1000,
      "Executor ID": "1",
      "Executor Info": { Host: "node", "Total Cores": 4, "Log Urls": {} },
    },
    {
      Event: "SparkListenerJobStart",
      "Job ID": 0,
      "Submission Time": START + 2000,
      "Stage Infos": [STAGE],
      "Stage IDs": [0],
      Properties: {},
    },
    { Event: "SparkListenerStageSubmitted", "Stage Info": STAGE, Properties: {} },
  ]);

function tasks(from: number, to: number): string {
  const events = [];
  for (let task = from; task < to; task++) {
    const launch = START + 2000 + Math.floor(task / 4) * 400;
    const info = {
      "Task ID": task,
      Index: task,
      Attempt: 0,
      "Launch Time": launch,
      "Executor ID": "1",
      Host: "node",
      Locality: "ANY",
      Speculative: false,
      "Getting Result Time": 0,
      "Finish Time": 0,
      Failed: false,
      Killed: false,
      Accumulables: [],
    };
    const place = { "Stage ID": 0, "Stage Attempt ID": 0 };
    events.push({ Event: "SparkListenerTaskStart", ...place, "Task Info": info });
    events.push({
      Event: "SparkListenerTaskEnd",
      ...place,
      "Task Type": "ResultTask",
      "Task End Reason": { Reason: "Success" },
      "Task Info": { ...info, "Finish Time": launch + 390 },
      "Task Metrics": { "Executor Run Time": 380, "Executor CPU Time": 300_000_000, "JVM GC Time": 3 },
    });
  }
  return lines(events);
}

async function listed(id: string): Promise<void> {
  for (let tries = 0; tries < 120; tries++) {
    if ((await applications()).some((app) => app.id === id)) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error(`The server did not notice ${id} within a minute: does it read LAKESCOPE_LIVE_FOLDER?`);
}

test("a running application follows its log, and nothing jumps", { skip, timeout: 180_000 }, async () => {
  const id = `app-${Date.now()}-live`;
  const log = join(FOLDER!, `${id}.inprogress`);
  await writeFile(log, begin(id) + tasks(0, 300));
  try {
    await listed(id);
    const { page, errors } = await visit(`/applications/${id}/-/stages/0/0`);
    await settled(page);
    assert.match(await page.locator("h1").innerText(), /Running/);
    const facts = page.locator(".verdict .facts");
    await facts.getByText("Tasks 300").waitFor();
    const table = page.getByRole("region", { name: "Tasks" });
    await table.focus();
    await page.evaluate(() => {
      Object.assign(window, { loadedOnce: true });
      scrollTo(0, 420);
      document.querySelector("#tasks .table")!.scrollTop = 1400;
    });
    await page.waitForTimeout(500);
    const state = () =>
      page.evaluate(() => ({
        loadedOnce: "loadedOnce" in window,
        scroll: scrollY,
        table: document.querySelector("#tasks .table")!.scrollTop,
        focus: document.activeElement?.getAttribute("aria-label"),
        first: document.querySelector("#tasks tr[data-row='50']")?.textContent,
      }));
    const before = await state();
    assert.equal(before.focus, "Tasks");
    assert.ok(before.table > 1000 && before.scroll > 0);
    await appendFile(log, tasks(300, 700));
    await facts.getByText("Tasks 700").waitFor({ timeout: 60_000 });
    assert.deepEqual(await state(), before, "the reader stays where they were");
    await page.getByRole("button", { name: "400 new" }).click();
    await page.locator("#tasks").getByText("700 tasks").waitFor();
    assert.deepEqual(errors, []);
  } finally {
    await rm(log, { force: true });
  }
});

test("a new application waits under a count until it is asked for", { skip, timeout: 180_000 }, async () => {
  const id = `app-${Date.now()}-late`;
  const log = join(FOLDER!, `${id}.inprogress`);
  const { page } = await visit("/");
  await settled(page);
  const rows = await page.locator("tr[data-row]").allInnerTexts();
  await writeFile(log, begin(id) + tasks(0, 20));
  try {
    await listed(id);
    const news = page.getByRole("button", { name: /new or changed/ });
    await news.waitFor({ timeout: 60_000 });
    assert.deepEqual(await page.locator("tr[data-row]").allInnerTexts(), rows, "no row moved");
    await news.click();
    await page.getByRole("link", { name: `live ${id}` }).waitFor();
  } finally {
    await rm(log, { force: true });
  }
});
