/** Tests of the page, one for each fleet. */

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { goTo, goToService, onPage, part, until } from "./page.mjs";
import * as said from "./said.mjs";
import * as shown from "./shown.mjs";
import { areWell, fitsAPhone, isAccessible, isReachedByKeyboard, movesOnRequestOnly } from "./views.mjs";

/** Waits until a view shows what the command says. Both are live, so they are compared until they agree. */
async function agree(view, page, settings, ...of) {
  await until(`the view ${view} shows what the command says`, async () => {
    const command = await said[view](settings, ...of);
    const seen = await shown[view](page, ...of, command);
    assert.ok(isDeepStrictEqual(seen, command), `page ${JSON.stringify(seen)}, command ${JSON.stringify(command)}`);
  });
}

async function allAgree(page, settings, service) {
  await agree("fleet", page, settings);
  await agree("services", page, settings);
  await agree("service", page, settings, service);
}

/** Two members export a Service with different ports, and nobody corrects it. */
export async function conflict(settings) {
  await onPage(settings, async (page) => {
    await goToService(page, "work/shop");
    await page.getByRole("main").getByText("Fault found").waitFor();
    await allAgree(page, settings, "work/shop");
    await isAccessible(page);
    await fitsAPhone(page);
    await part(page, "Pairs").getByRole("button", { name: "FN" }).first().click();
    await page.getByRole("main").getByRole("link", { name: /^FN\d+$/ }).first().click();
    await page.getByRole("heading", { level: 1, name: /^FN\d+$/ }).waitFor();
    await isAccessible(page);
    await fitsAPhone(page);
    await areWell(page);
    await movesOnRequestOnly(page);
  });
}

/** A member is silent, so its endpoints are draining. Then it is back, and the first latencies arrive. */
export async function memberSilent(settings) {
  await onPage(settings, async (page) => {
    await goToService(page, "work/app");
    const draining = part(page, "Endpoints by cluster").getByText(/\d draining/).first();
    await draining.waitFor();
    await draining.waitFor({ state: "detached" });
    await until("there are latencies", async () => {
      assert.notDeepEqual(await said.latency(settings), {});
    });
    await agree("latency", page, settings);
    await isAccessible(page);
    await fitsAPhone(page);
    await allAgree(page, settings, "work/app");
  });
}

/** The hub does not answer for a while. Then the browser loses its connection to the page. */
export async function hubDown(settings) {
  await onPage(settings, async (page, problems) => {
    const alert = page.getByRole("alert");
    await alert.getByText("The hub could not be read: not reached").waitFor();
    await isAccessible(page);
    await fitsAPhone(page);
    await alert.waitFor({ state: "detached" });
    await allAgree(page, settings, "work/app");

    await page.context().setOffline(true);
    // The connection that is open stays. A page connects again when its tab is shown again.
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByRole("banner").getByText("reconnecting").waitFor();
    await alert.getByText("There is no connection to fleetnet ui.").waitFor();
    await page.context().setOffline(false);
    await page.getByRole("banner").getByText("live").waitFor();
    await alert.waitFor({ state: "detached" });
    // The browser reports the requests that failed meanwhile.
    assert.ok(problems.every((problem) => problem.includes("ERR_INTERNET_DISCONNECTED")), problems.join("\n"));
    problems.length = 0;
  });
}

/** 40 slices have changed 10 times each, as fast as possible. */
export async function sliceStorm(settings) {
  await onPage(settings, async (page) => {
    await allAgree(page, settings, "work/storm");
  });
}

/** Objects contain markup, characters that change the order of a text, and the longest names. */
export async function hostile({ texts, ...settings }) {
  await onPage(settings, async (page) => {
    await goTo(page, "Fleet");
    for (const text of texts.members) {
      await part(page, "Members").getByText(text).first().waitFor();
    }
    await fitsAPhone(page);
    await isAccessible(page);
    await goToService(page, texts.long);
    await fitsAPhone(page);
    await goToService(page, texts.service);
    await page.getByRole("main").getByText(texts.evidence).first().waitFor();
    await part(page, "Last Events").getByText(texts.event).first().waitFor();
    await fitsAPhone(page);
    await isAccessible(page);
    for (const view of ["Services", "Latency", "What happens"]) {
      await goTo(page, view);
      await fitsAPhone(page);
    }
    const scripts = await page.evaluate("[...document.scripts].map((script) => script.src)");
    assert.deepEqual(scripts, [new URL("app.js", settings.url).href]);
  });
}

export async function requests({ clusters, ...settings }) {
  await onPage(settings, async (page) => {
    await isReachedByKeyboard(page, "Requests");
    for (const cluster of clusters) {
      await page.getByRole("main").getByText(cluster).first().waitFor();
    }
    await fitsAPhone(page);
    await isAccessible(page);
  });
}
