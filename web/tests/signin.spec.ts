// A server that asks for tokens. Needs LAKESCOPE_SIGNIN_URL, its address, and LAKESCOPE_SIGNIN_TOKEN, a token of a viewer.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { settled, useBrowser, visit } from "./browser.ts";

useBrowser();

const SERVER = (process.env["LAKESCOPE_SIGNIN_URL"] ?? "").replace(/\/$/, "");
const TOKEN = process.env["LAKESCOPE_SIGNIN_TOKEN"] ?? "";
const skip = SERVER && TOKEN ? false : "LAKESCOPE_SIGNIN_URL and LAKESCOPE_SIGNIN_TOKEN are not set";

const ask = (path: string) => visit(path, { server: SERVER });

async function show(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

async function signedIn(path = "/"): Promise<Page> {
  const { page } = await ask(path);
  await show(page, TOKEN);
  await settled(page);
  return page;
}

test("sign-in: a wrong token is refused with words", { skip }, async () => {
  const { page } = await ask("/");
  await page.waitForURL(/\/login\?next=/);
  await show(page, "wrong");
  const alert = page.getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.innerText(), /wrong, revoked or has expired/);
});

test("sign-in: the right token leads to the page that was asked for", { skip }, async () => {
  const page = await signedIn("/tools/shuffle-calculator?cores=12");
  assert.equal(new URL(page.url()).pathname + new URL(page.url()).search, "/tools/shuffle-calculator?cores=12");
  assert.equal(await page.getByRole("textbox", { name: /^Cores/ }).inputValue(), "12");
});

test("sign-in: who one is can be seen, and signing out ends it", { skip }, async () => {
  const page = await signedIn();
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keys and about" });
  await dialog.getByText("Signed in as").waitFor();
  assert.match(await dialog.innerText(), /\(viewer\)/);
  await dialog.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/\/login/);
  await page.goto(`${SERVER}/applications`);
  await page.waitForURL(/\/login\?next=/);
});

test("sign-in: a viewer cannot drop a log and is told what it takes", { skip }, async () => {
  const page = await signedIn();
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "log.txt", mimeType: "text/plain", buffer: Buffer.from('{"Event":"SparkListenerLogStart"}\n') });
  const alert = page.getByRole("alert").filter({ hasText: "The log was not read" });
  await alert.waitFor();
  assert.match(await alert.innerText(), /needs the role operator/);
});

test("sign-in: a page whose token was taken away offers to sign in again", { skip }, async () => {
  const page = await signedIn();
  await page.context().clearCookies();
  await page.getByRole("link", { name: "Shuffle calculator" }).click();
  const again = page.getByRole("alert").getByRole("link", { name: "Sign in" });
  await again.click();
  await page.waitForURL(/\/login\?next=%2Ftools%2Fshuffle-calculator/);
});
