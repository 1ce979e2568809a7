/** Checks of all views: accessibility, keyboard, and the width of a phone. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { DESKTOP, goTo, PHONE, until } from "./page.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails if axe finds something in the view that is shown, in light or dark. */
export async function isAccessible(page) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    // The policy of the page forbids to add a script to it. The debugger may.
    await page.evaluate(axe);
    const { violations } = await page.evaluate("axe.run()");
    const found = violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => `${id} (${help}): ${html}`));
    assert.deepEqual(found, [], `axe finds something in ${page.url()} in ${colorScheme}`);
  }
}

/** Fails if the view that is shown scrolls sideways on a phone. */
export async function fitsAPhone(page) {
  await page.setViewportSize(PHONE);
  const width = await page.evaluate("document.documentElement.scrollWidth");
  assert.ok(width <= PHONE.width, `${page.url()} is ${width} pixels wide on a phone with ${PHONE.width} pixels`);
  await page.setViewportSize(DESKTOP);
}

/** Fails if the keyboard does not reach a view. */
export async function isReachedByKeyboard(page, view) {
  await page.getByRole("main").focus();
  const link = page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view });
  const isFocused = () => link.evaluate((element) => element === element.ownerDocument.activeElement);
  for (let presses = 0; !(await isFocused()); presses += 1) {
    assert.ok(presses < 20, `20 times Shift-Tab do not lead from the content to the link ${view}`);
    await page.keyboard.press("Shift+Tab");
  }
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: view }).waitFor();
}

/** Returns the names of the views in the navigation. */
async function names(page) {
  const links = page.getByRole("navigation", { name: "Views" }).getByRole("link");
  await links.first().waitFor();
  return links.allInnerTexts();
}

/** Checks each view of the navigation. */
export async function areWell(page) {
  for (const view of await names(page)) {
    await isReachedByKeyboard(page, view);
    await isAccessible(page);
    await fitsAPhone(page);
  }
}

/** Fails if something moves although the user wants no motion. */
export async function movesOnRequestOnly(page) {
  await goTo(page, "Fleet");
  for (const reducedMotion of ["no-preference", "reduce"]) {
    await page.emulateMedia({ reducedMotion });
    await until(`the motion is that of ${reducedMotion}`, async () => {
      const moving = await page.evaluate("document.getAnimations().length");
      assert.equal(moving > 0, reducedMotion === "no-preference", `${moving} parts move`);
    });
  }
}
