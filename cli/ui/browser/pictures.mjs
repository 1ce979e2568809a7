/** Makes the pictures of the page for the docs, and the text that each shows. */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DESKTOP, goTo, goToService, onPage, part, until } from "./page.mjs";
import { fleet } from "./shown.mjs";

const SCHEMES = ["light", "dark"];

/** Parts with what happens at each moment. */
const LIVE = ["What happens", "Last Events", "Way of the last change"];

/** Returns the text of the page without its live parts. The page is not drawn in between, so no line arrives. */
function stableText(page) {
  return page.locator("body").evaluate((body, live) => {
    const isLive = (part) => live.includes(part.getAttribute("aria-label"));
    const parts = [...body.querySelectorAll("section")].filter(isLive);
    const display = (value) => parts.forEach((part) => (part.style.display = value));
    display("none");
    const text = body.innerText;
    display("");
    return text;
  }, LIVE);
}

async function take(page, folder, name, height) {
  await page.setViewportSize({ width: DESKTOP.width, height });
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`), animations: "disabled" });
  }
  const lines = (await stableText(page)).split("\n").map((line) => `${line.trim()}\n`);
  await writeFile(join(folder, `${name}.txt`), lines.join(""));
}

/** The fleet, a Service with a fault, and the latency between three members. */
export async function pictures(settings) {
  await onPage(settings, async (page) => {
    await page.getByRole("banner").getByText("Fault found").waitFor();
    await goTo(page, "Latency");
    await until("each pair has a latency", async () => {
      const cells = await part(page, "Matrix of the latency").getByRole("button").allInnerTexts();
      assert.ok(cells.length === 9 && !cells.includes("–"), cells.join(" "));
    });
    await take(page, settings.folder, "page-latency", 600);
    await until("the hub agent has counted what the members import", async () => {
      const { members } = await fleet(page);
      assert.ok(members.every(({ Imports }) => Imports !== "–"), JSON.stringify(members));
    });
    await take(page, settings.folder, "page-fleet", 760);
    await goToService(page, "work/shop");
    await part(page, "Names to call").waitFor();
    await take(page, settings.folder, "page-service", 820);
  });
}
