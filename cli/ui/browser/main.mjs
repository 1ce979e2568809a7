/** Runs one test of the page. The argument has its name, the page, the clusters and the programs as JSON. */

import { pictures } from "./pictures.mjs";
import * as scenarios from "./scenarios.mjs";

const settings = JSON.parse(process.argv[2]);
// The test that started this process has ended. Chromium ends with this process.
process.stdin.on("end", () => process.exit(1)).resume();
await { ...scenarios, pictures }[settings.test](settings);
process.exit(0);
