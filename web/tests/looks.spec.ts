// Every page in both themes: no serious fault for assistive tools, no sideways scroll, and pictures to look at.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { AxeBuilder } from "@axe-core/playwright";
import { allPages, settled, useBrowser, visit } from "./browser.ts";

useBrowser();

const FOLDER = process.env["LAKESCOPE_SCREENSHOTS"];
const WIDTHS = [1440, 390];

for (const theme of ["light", "dark"] as const) {
  test(`every page in the ${theme} theme`, async (context) => {
    if (FOLDER) await mkdir(FOLDER, { recursive: true });
    for (const [name, path] of await allPages()) {
      for (const width of WIDTHS) await context.test(`${name} at ${width}`, () => look(name, path, theme, width));
    }
  });
}

/** The window grows to the page first: long lists draw only what is in sight. */
async function picture(page: Page, path: string, width: number): Promise<void> {
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.setViewportSize({ width, height: Math.min(height, 4000) });
  await settled(page);
  await page.screenshot({ path });
  await page.setViewportSize({ width, height: 1000 });
}

async function look(name: string, path: string, theme: "light" | "dark", width: number): Promise<void> {
  const { page, errors } = await visit(path, { theme, width });
  await settled(page);
  if (FOLDER) await picture(page, join(FOLDER, `${name}-${theme}-${width}.png`), width);
  const { violations } = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]).analyze();
  const serious = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  assert.deepEqual(
    serious.map(
      (v) =>
        `${v.id}: ${v.nodes
          .slice(0, 3)
          .map((n) => `${n.target.join(" ")} ${n.any[0]?.message ?? ""}`)
          .join(" | ")}`,
    ),
    [],
  );
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `the page is ${wide} pixels wider than the window`);
  assert.deepEqual(errors, []);
  await page.context().close();
}

for (const width of [900, 1100, 1280, 1920, 2560]) {
  test(`no page scrolls sideways at ${width}`, async () => {
    const { page } = await visit("/", { width });
    for (const [name, path] of await allPages()) {
      await page.goto(new URL(path, page.url()).href);
      await settled(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${name} is ${wide} pixels wider than the window`);
    }
  });
}
