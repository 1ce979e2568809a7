/** The page in Chromium. Everything that must never happen on it is a failure. */

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

/** Time limit of each wait, long enough for a busy machine. */
const LIMIT = 120_000;
/** End of the time for all waits together. */
const END = Date.now() + Number(process.argv[3]);
/** Time after the end for `until`, which says more about its wait than Playwright. */
const GRACE = 5_000;

/** Size of the window. All columns of the tables are shown. */
export const DESKTOP = { width: 1280, height: 800 };
/** Size of a phone. */
export const PHONE = { width: 390, height: 844 };

/** Starts Chromium. Returns an empty page. */
export async function start(executablePath) {
  const browser = await chromium.launch({ executablePath, timeout: LIMIT });
  const close = () => void browser.close({ reason: "the time for all waits together is over" });
  setTimeout(close, END + GRACE - Date.now()).unref();
  const context = await browser.newContext({ viewport: DESKTOP, locale: "en-GB", reducedMotion: "reduce" });
  context.setDefaultTimeout(LIMIT);
  return context.newPage();
}

/**
 * Opens the page of the fleet and does the work on it. Fails if the page opens a dialog, has an error or a violation of
 * its policy, or sends a request to another origin.
 */
export async function onPage({ page, url }, work) {
  const problems = watch(page, new URL(url).origin);
  await page.goto(url);
  await work(page, problems);
  assert.deepEqual(problems, [], "the page has problems");
}

/** Returns a list that gets an entry for each problem of the page. */
function watch(page, origin) {
  const problems = [];
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => problems.push(`error: ${error}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") {
      problems.push(`console: ${message.text()}`);
    }
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) {
      problems.push(`request: ${request.url()}`);
    }
  });
  return problems;
}

/** Shows a view by its link. */
export async function goTo(page, view) {
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view }).click();
  await page.getByRole("heading", { level: 1, name: view }).waitFor();
}

/** Shows a Service by its link in the list of Services. */
export async function goToService(page, name) {
  await goTo(page, "Services");
  await page.getByRole("table", { name: "Services" }).getByRole("link", { name }).click();
  await page.getByRole("region", { name: "Pairs" }).waitFor();
}

/** Returns a part of the page by its heading. */
export function part(page, name) {
  return page.getByRole("region", { name, exact: true });
}

/** Repeats an assertion until it holds. Fails with its last error. */
export async function until(what, assertion) {
  const start = Date.now();
  const end = Math.min(start + LIMIT, END);
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (Date.now() > end) {
        const seconds = Math.round((Date.now() - start) / 1_000);
        throw new Error(`waited ${seconds} s until ${what}: ${error.message}`, { cause: error });
      }
      // The page and the fleet need the processor meanwhile.
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
