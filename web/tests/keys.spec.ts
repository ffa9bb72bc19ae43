// What has a key has a place for the mouse, and the other way round.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { applications, findApp, pathOf, settled, stageOf, useBrowser, visit } from "./browser.ts";

useBrowser();

const skewed = () => findApp((a) => a.worst?.id === "SKEW_KEY", "with key skew");
const search = (page: Page) => new URL(page.url()).searchParams;

test("Space peeks at a row, and j, Space and Esc do what they say", async () => {
  const { page, errors } = await visit("/");
  await settled(page);
  const peek = page.getByRole("complementary", { name: "Details" });
  const title = () => peek.locator("h3").first().innerText();
  await page.keyboard.press("j");
  await page.keyboard.press("Space");
  await peek.waitFor();
  const first = await title();
  assert.equal(first, await page.locator("tr[data-row='0'] a").first().innerText());
  assert.ok((await peek.locator(".findline").count()) > 0, "its findings");
  await page.keyboard.press("j");
  assert.notEqual(await title(), first);
  await page.keyboard.press("Space");
  await peek.waitFor({ state: "hidden" });
  await page.keyboard.press("Space");
  await peek.waitFor();
  await page.keyboard.press("Escape");
  await peek.waitFor({ state: "hidden" });
  assert.match(new URL(page.url()).pathname, /^\/(applications)?$/, "Esc closed the panel and nothing else");
  assert.deepEqual(errors, []);
});

test("the mouse peeks too, on every list of an application", async () => {
  const base = pathOf(await skewed());
  for (const tab of ["stages", "jobs", "sql"]) {
    const { page } = await visit(`${base}/-/${tab}`);
    await settled(page);
    await page.locator("tr[data-row='1']").hover();
    await page.locator("tr[data-row='1']").getByRole("button", { name: "Peek at the row" }).click();
    const peek = page.getByRole("complementary", { name: "Details" });
    await peek.waitFor();
    assert.ok((await peek.locator(".panel-list > div").count()) >= 6, tab);
    await peek.getByRole("button", { name: "Close" }).click();
    await peek.waitFor({ state: "hidden" });
  }
});

test("x picks rows, which are compared, and runs are added and left out", async () => {
  const { page, errors } = await visit("/");
  await settled(page);
  for (const key of ["j", "x", "j", "x", "j"]) await page.keyboard.press(key);
  assert.equal(search(page).getAll("pick").length, 2);
  await page.locator("tr[data-row='2']").getByRole("checkbox").click();
  await page.getByText("3 selected").waitFor();
  await page.getByRole("link", { name: "Compare", exact: true }).last().click();
  await page.waitForURL(/\/compare\?/);
  await settled(page);
  assert.equal(search(page).getAll("base").length, 2);
  assert.equal(await page.locator(".runs .chip").count(), 2);
  const picked = await page.locator(".verdict .say").innerText();
  await page.getByLabel("Add a run to compare with").selectOption({ index: 1 });
  await settled(page);
  assert.equal(search(page).getAll("base").length, 3);
  await page.locator(".runs .chip button").last().click();
  await page.waitForFunction(() => document.querySelectorAll(".runs .chip").length === 2);
  await settled(page);
  assert.equal(await page.locator(".verdict .say").innerText(), picked);
  await page.locator(".runs .chip button").first().click();
  await page.getByLabel("Before").waitFor();
  assert.equal(search(page).getAll("base").length, 1);
  assert.deepEqual(errors, []);
});

test("p pins the lane of the selected task, a click on its name frees it, and the address keeps it", async () => {
  const { page, errors } = await visit(`${pathOf(await skewed())}/-/timeline`);
  await settled(page);
  const canvas = page.locator(".timeline canvas");
  await canvas.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("p");
  await page.waitForURL(/pin=/);
  const pinned = search(page).get("pin");
  const other = await visit(new URL(page.url()).pathname + new URL(page.url()).search);
  await settled(other.page);
  const box = (await other.page.locator(".timeline canvas").boundingBox())!;
  await other.page.mouse.move(box.x + 20, box.y + 90);
  await other.page.getByText("no longer at the top").waitFor();
  await other.page.mouse.click(box.x + 20, box.y + 90);
  await other.page.waitForURL((url) => !url.searchParams.has("pin"));
  assert.ok(pinned);
  assert.deepEqual([...errors, ...other.errors], []);
});

test("a stage hides columns of zeros and says so", async () => {
  const app = await skewed();
  const { page } = await visit(`${pathOf(app)}/-/stages/${await stageOf(app)}/0`);
  await settled(page);
  const heads = page.getByRole("region", { name: "Tasks" }).getByRole("columnheader");
  const few = await heads.count();
  await page.getByRole("button", { name: /columns? of zeros hidden/ }).click();
  assert.ok((await heads.count()) > few);
  assert.equal(search(page).get("columns"), "all");
});

test("the keys are listed where they work", async () => {
  assert.ok((await applications()).length > 1);
  const { page } = await visit("/");
  await settled(page);
  await page.keyboard.press("?");
  const list = await page.getByRole("dialog").innerText();
  for (const words of ["Peek at the row", "Select the row", "Space"]) assert.ok(list.includes(words), words);
  await page.goto(new URL(`${pathOf(await skewed())}/-/timeline`, page.url()).href);
  await settled(page);
  await page.keyboard.press("?");
  assert.ok((await page.getByRole("dialog").innerText()).includes("Pin the lane"));
});
