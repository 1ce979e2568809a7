/**
 * Starts Chromium, and then runs one test of the page. The arguments are the path of Chromium, and the time limit of
 * the whole script in milliseconds. Standard input has one line of JSON: the name of the test, the page, and the
 * clusters.
 */

import { once } from "node:events";
import { createInterface } from "node:readline";
import { start } from "./page.mjs";
import { pictures } from "./pictures.mjs";
import * as scenarios from "./scenarios.mjs";

const input = createInterface({ input: process.stdin });
// The test that started this process has ended. Playwright ends Chromium when this process exits.
input.on("close", () => process.exit(1));
const line = once(input, "line");
const page = await start(process.argv[2]);
console.log("ready");
const settings = JSON.parse((await line)[0]);
await { ...scenarios, pictures }[settings.test]({ ...settings, page });
await page.context().browser().close();
process.exit(0);
