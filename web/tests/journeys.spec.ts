// What people come for, from the first page to the fix.
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { applications, findApp, pathOf, settled, stageOf, useBrowser, visit } from "./browser.ts";

useBrowser();

test("the failed application is found from the first page, with its evidence", async () => {
  const { page, errors } = await visit("/");
  await settled(page);
  await page.getByRole("button", { name: /^Failed/ }).click();
  const first = page.locator("tr[data-row='0'] a").first();
  const name = (await first.textContent()) ?? "";
  await first.click();
  await settled(page);
  assert.match(await page.locator("h1").innerText(), /Failed/);
  assert.match(await page.locator("h1").innerText(), new RegExp(name.replace(/[^\w ]/g, ".")));
  await page.getByRole("table").first().waitFor();
  assert.ok((await page.locator(".evidence tbody tr").count()) > 0, "the first finding shows its evidence");
  assert.ok((await page.locator(".fix").count()) > 0, "and what to do");
  assert.deepEqual(errors, []);
});

test("the skewed application is found, its tasks are drawn and its remedy is copied", async () => {
  const { page, errors } = await visit("/");
  await settled(page);
  await page.getByRole("button", { name: /^key skew/ }).click();
  await page.locator("tr[data-row='0'] a").first().click();
  await settled(page);
  const finding = page.locator("article.find").filter({ hasText: "SKEW_KEY" }).first();
  assert.ok(await finding.locator(".strip canvas").isVisible(), "the strip of tasks");
  assert.match((await finding.locator(".strip canvas").getAttribute("aria-label")) ?? "", /median/);
  assert.ok((await finding.locator(".nothelp li").count()) > 0, "what would not help");
  const fix = finding
    .locator(".fix")
    .filter({ has: page.locator("pre") })
    .first();
  await fix.getByRole("button", { name: "Copy" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await fix.locator("pre").textContent());
  assert.deepEqual(errors, []);
});

test("the task table sorts on the server and the order is in the address", async () => {
  const app = await findApp((a) => a.worst?.id === "SKEW_KEY", "with key skew");
  const { page } = await visit(`${pathOf(app)}/-/stages/${await stageOf(app)}/0`);
  await settled(page);
  const table = page.getByRole("region", { name: "Tasks" });
  // The rows of the order before stay until those of the new one are there.
  const first = (order: "largest" | "smallest") =>
    page.waitForFunction((order) => {
      const cells = [...document.querySelectorAll("#tasks tr[data-row] td:first-child")];
      const column = cells.map((cell) => Number(String(cell.textContent).replace(/\D/g, "")));
      return column.length > 0 && column[0] === (order === "largest" ? Math.max(...column) : Math.min(...column));
    }, order);
  await table.getByRole("button", { name: "Index" }).click();
  await page.waitForURL(/sort=-index/);
  await first("largest");
  const column = async () =>
    (await table.locator("tr[data-row] td:first-child").allInnerTexts()).map((text) => Number(text.replace(/\D/g, "")));
  const down = await column();
  assert.deepEqual(
    down,
    [...down].sort((a, b) => b - a),
  );
  await table.getByRole("button", { name: "Index" }).click();
  await page.waitForURL(/sort=index/);
  await first("smallest");
  const up = await column();
  assert.deepEqual(
    up,
    [...up].sort((a, b) => a - b),
  );
});

test("what one sees can be sent as a link", async () => {
  const app = await findApp((a) => a.worst?.id === "SKEW_KEY", "with key skew");
  const { page } = await visit(`${pathOf(app)}/-/stages`);
  await settled(page);
  await page.getByRole("searchbox").fill("parquet");
  await page.getByRole("button", { name: "All", exact: true }).click();
  await page.getByRole("columnheader", { name: "Tasks" }).getByRole("button").click();
  await page.keyboard.press("y");
  await page.getByText("Link copied").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(link, page.url());
  const rows = await page.locator("tr[data-row]").allInnerTexts();
  const other = await visit(new URL(link).pathname + new URL(link).search);
  await settled(other.page);
  assert.deepEqual(await other.page.locator("tr[data-row]").allInnerTexts(), rows);
  assert.equal(await other.page.getByRole("searchbox").inputValue(), "parquet");
});

test("a timeline that is zoomed stands in its page's address, and in no other's", async () => {
  const app = await findApp((a) => a.worst?.id === "SKEW_KEY", "with key skew");
  const { page } = await visit(`${pathOf(app)}/-/stages/${await stageOf(app)}/0`);
  await settled(page);
  await page.locator(".timeline canvas").first().waitFor();
  await page.keyboard.press("w");
  await page.waitForURL(/[?&]from=\d+.*[?&]to=\d+/);
  const other = await visit(new URL(page.url()).pathname + new URL(page.url()).search);
  await other.page.locator(".timeline canvas").first().waitFor();
  await other.page.keyboard.press("w");
  await other.page.waitForURL((url) => url.search !== new URL(page.url()).search);
  await other.page.keyboard.press("w");
  await other.page.locator(".tabs a").first().click();
  await other.page.waitForTimeout(600);
  assert.equal(new URL(other.page.url()).search, "");
});

test("a log that is dropped becomes an application", async () => {
  const { page, errors } = await visit("/");
  await settled(page);
  const file = process.env["LAKESCOPE_LOG"] ?? resolve(import.meta.dirname, "../../samples/lab_spill.zstd");
  await page.locator("input[type=file]").setInputFiles(file);
  await page.waitForURL(/\/applications\/.+/, { timeout: 30_000 });
  await settled(page);
  assert.ok((await page.locator(".verdict").count()) > 0);
  assert.deepEqual(errors, []);
});

test("something that is no log is refused with words", async () => {
  const { page } = await visit("/");
  await settled(page);
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no event here\n") });
  const alert = page.getByRole("alert").filter({ hasText: "The log was not read" });
  await alert.waitFor();
  assert.ok((await alert.innerText()).length > 40, "the server's words are shown");
});

const PLAN = `== Physical Plan ==
AdaptiveSparkPlan (7)
+- HashAggregate (6)
   +- Exchange (5)
      +- HashAggregate (4)
         +- BroadcastNestedLoopJoin Inner (3)
            :- Scan parquet shop.orders (1)
            +- Scan parquet shop.customers (2)

(1) Scan parquet shop.orders
Output [2]: [id#1L, amount#2]
Batched: true
Location: InMemoryFileIndex [file:/shop/orders]
ReadSchema: struct<id:bigint,amount:double>

(2) Scan parquet shop.customers
Output [1]: [id#3L]
Batched: true
Location: InMemoryFileIndex [file:/shop/customers]
ReadSchema: struct<id:bigint>
`;

test("a pasted plan becomes a graph whose operators open", async () => {
  const { page, errors } = await visit("/read");
  await page.getByRole("textbox", { name: "Text to read" }).fill(PLAN);
  await page.getByRole("button", { name: "Read", exact: true }).click();
  const nodes = page.locator(".node");
  await nodes.first().waitFor();
  assert.ok((await nodes.count()) >= 5, "operators are drawn");
  const heights = await nodes.evaluateAll((all) =>
    all.map((n) => ({ text: n.textContent ?? "", top: n.getBoundingClientRect().top })),
  );
  const read = heights.filter((n) => /Read/.test(n.text)).map((n) => n.top);
  assert.ok(
    Math.min(...read) >= Math.max(...heights.filter((n) => !/Read/.test(n.text)).map((n) => n.top)),
    "sources lie at the bottom",
  );
  await nodes.filter({ hasText: "Read" }).first().click();
  assert.match(page.url(), /node=/);
  await page.getByRole("heading", { name: "As Spark writes it" }).waitFor();
  assert.deepEqual(errors, []);
});

test("everything can be reached by keys alone", async () => {
  const { page, errors } = await visit("/");
  await settled(page);
  await page.keyboard.press("/");
  await page.keyboard.type("shop");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/applications\/[^/]+$/);
  await settled(page);
  await page.keyboard.press("]");
  await page.waitForURL(/-\/timeline/);
  await settled(page);
  await page.keyboard.press("w");
  await page.waitForURL(/from=/);
  await page.keyboard.press("0");
  await page.waitForURL((url) => !url.search.includes("from="));
  await page.keyboard.press("Escape");
  await page.waitForURL(/\/applications\/[^/]+$/);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys and about" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("calculator");
  await page.keyboard.press("Enter");
  await page.waitForURL(/shuffle-calculator/);
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForURL(/\/applications$/);
  assert.deepEqual(errors, []);
});

test("the theme turns and is kept", async () => {
  const { page } = await visit("/", { theme: "light" });
  await page.getByRole("button", { name: "Dark theme" }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
  await page.reload();
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
});

test("names that look like markup stay text", async (context) => {
  const hostile = (await applications()).find((a) => a.name.includes("<"));
  if (!hostile) return context.skip("no application with such a name is here");
  const { page, errors } = await visit(pathOf(hostile));
  await settled(page);
  assert.ok((await page.locator("h1").innerText()).includes(hostile.name.trim().split(/\s+/)[0]!));
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.deepEqual(errors, []);
});
