/** Makes the pictures of the page for the docs, and the text that each shows. */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DESKTOP, goTo, goToService, onPage, part, until } from "./page.mjs";
import { fleet } from "./shown.mjs";

const SCHEMES = ["light", "dark"];

/** Parts with what happens at each moment. */
const LIVE = ["What happens", "Last Events", "Way of the last change"];

async function take(page, folder, name, height) {
  await page.setViewportSize({ width: DESKTOP.width, height });
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`), animations: "disabled" });
  }
  const parts = await Promise.all(LIVE.map((live) => part(page, live).allInnerTexts()));
  const text = parts.flat().reduce((rest, live) => rest.replace(live, ""), await page.locator("body").innerText());
  const lines = text.split("\n").map((line) => `${line.trim()}\n`);
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
