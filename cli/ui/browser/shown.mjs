/** Views of the page as plain data. Everything is found by its role and name. */

import { goTo, goToService, part } from "./page.mjs";

/** Icons of states. A text is beside each. */
const ICON = /^[✓!✕•?●↻]\s*/u;

const clean = (text) => text.trim().replace(ICON, "").replace(/\s+/g, " ");

async function rows(table) {
  const all = await table.getByRole("row").all();
  const cells = (row) => row.getByRole("columnheader").or(row.getByRole("rowheader")).or(row.getByRole("cell"));
  const texts = await Promise.all(all.map((row) => cells(row).allInnerTexts()));
  const [head = [], ...body] = texts.map((row) => row.map(clean));
  return body.map((row) => Object.fromEntries(row.map((text, index) => [head[index], text])));
}

/** View `Fleet`, without what changes all the time. */
export async function fleet(page) {
  await goTo(page, "Fleet");
  const names = await page.getByRole("term").allInnerTexts();
  const values = await page.getByRole("definition").allInnerTexts();
  const figures = Object.fromEntries(names.map((name, index) => [name, values[index]?.split("\n")[0]]));
  const members = await rows(part(page, "Table of the members").getByRole("table"));
  return {
    verdict: clean(await page.getByRole("banner").getByRole("status").innerText()),
    ready: figures["Members Ready"],
    services: figures["Services Ready"],
    conflicts: figures["Services with conflicts"],
    endpoints: figures["Exported endpoints"],
    members: members.map(({ Heard: _, ...rest }) => rest),
  };
}

/** View `Services`. */
export async function services(page) {
  await goTo(page, "Services");
  return rows(page.getByRole("table", { name: "Services" }));
}

/** View of one Service: its verdict, and for each pair the result, the numbers of its steps, and what it has of the facts of the command. */
export async function service(page, name, command) {
  await goToService(page, name);
  const buttons = await part(page, "Matrix of exporters and importers").getByRole("button").all();
  const pairs = [];
  for (const [index, button] of buttons.entries()) {
    await button.click();
    const result = (await button.getAttribute("aria-label")) ?? "";
    const card = part(page, result.split(":")[0]);
    // The page draws the card in its next frame.
    await card.waitFor();
    const summary = await card.getByText("All steps:").allInnerTexts();
    const text = clean(await card.innerText());
    const facts = command.pairs[index]?.facts.filter((fact) => text.includes(fact));
    pairs.push({ result, steps: summary.map(clean), facts });
  }
  const verdict = await page.getByRole("main").getByText("read at").first().innerText();
  const names = await part(page, "Names to call").getByRole("code").allInnerTexts();
  return { verdict: clean(verdict).replace(/ read at.*/, ""), pairs, names };
}

/** View `Latency`: the text of each pair by quantile. */
export async function latency(page) {
  await goTo(page, "Latency");
  const shown = {};
  const group = page.getByRole("group", { name: "Quantile" });
  for (const name of await group.getByRole("button").allInnerTexts()) {
    await group.getByRole("button", { name }).click();
    await group.getByRole("button", { name, pressed: true }).waitFor();
    const cells = await part(page, "Matrix of the latency").getByRole("button").all();
    shown[name] = await Promise.all(cells.map((cell) => cell.getAttribute("aria-label")));
  }
  return shown;
}
