/** What the list of Services shows, computed from the document of `fleetnet services`. */

import type { Arrival, ServiceRow, ServiceState } from "./contract";
import { count, natural } from "./text";
import { type Label, labelOf } from "./tone";

/** Largest matrix in a row of the list. */
export const MATRIX = 8;

/** What an importer has of an exporter. */
export type Arrived = "ok" | "missing" | "conflict" | "unknown";

/** Returns the short name of an API, as the option `--api` of the sandbox has it. */
export function apiName(api: string): string {
  return api === "multicluster.x-k8s.io" ? "multicluster" : "fleet";
}

const arrivals = new WeakMap<ServiceRow, Map<string, Arrival>>();

function arrivalsOf(row: ServiceRow): Map<string, Arrival> {
  let found = arrivals.get(row);
  if (!found) {
    found = new Map(row.arrived.map((arrival) => [arrival.importer, arrival]));
    arrivals.set(row, found);
  }
  return found;
}

/** Returns what an importer has of an exporter. */
export function arrivedAt(row: ServiceRow, exporter: string, importer: string): Arrived {
  if (isExcluded(row, exporter)) {
    return "conflict";
  }
  const arrival = arrivalsOf(row).get(importer);
  if (!arrival) {
    return "unknown";
  }
  return arrival.missingExporters.includes(exporter) ? "missing" : "ok";
}

/** True if the endpoints of an exporter are not imported because of a conflict. By the standard API, they are. */
function isExcluded(row: ServiceRow, exporter: string): boolean {
  return apiName(row.api) === "fleet" && row.conflicts.includes(exporter);
}

/** Returns a summary of a Service's exporters and importers. */
export function arrivedLabel(row: ServiceRow): Label {
  const importers = row.importers.length;
  if (importers === 0) {
    return labelOf("plain", "no cluster imports it");
  }
  if (row.exporters.length === 0) {
    return labelOf("bad", "no cluster exports it");
  }
  const excluded = row.exporters.filter((exporter) => isExcluded(row, exporter)).length;
  if (excluded > 0) {
    return labelOf("bad", `${count(excluded, "exporter")} in conflict`);
  }
  const read = row.importers.filter((importer) => arrivalsOf(row).has(importer)).length;
  if (read === 0) {
    return labelOf("unknown", "no importer was read");
  }
  const missing = row.arrived.filter((arrival) => arrival.missingExporters.length > 0).length;
  const text = `${read - missing} of ${count(importers, "importer")} ${importers === 1 ? "has" : "have"} all endpoints`;
  if (missing > 0) {
    return labelOf("bad", text);
  }
  return read < importers ? labelOf("unknown", `${text}, ${importers - read} not read`) : labelOf("good", text);
}

/** Returns the number of endpoints that each importer has, or the smallest and the largest number. */
export function arrivedNumber(row: ServiceRow): string {
  const counts = row.arrived.map((arrival) => arrival.endpoints);
  if (counts.length === 0) {
    return "–";
  }
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? String(least) : `${least}-${most}`;
}

export interface Filter {
  text: string;
  state: ServiceState | "";
  onlyConflicts: boolean;
}

const searchTexts = new WeakMap<ServiceRow, string>();

function searchTextOf(row: ServiceRow): string {
  let text = searchTexts.get(row);
  if (text === undefined) {
    const names = row.namesToCall.map((call) => call.name);
    const parts = [`${row.namespace}/${row.name}`, apiName(row.api), row.type ?? "", ...new Set(names)];
    text = [...parts, ...row.exporters, ...row.importers].join(" ").toLowerCase();
    searchTexts.set(row, text);
  }
  return text;
}

/** Returns the rows that a filter selects, in natural order. Each word of the text must occur. */
export function filterServices(rows: ServiceRow[], filter: Filter): ServiceRow[] {
  const words = filter.text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return rows
    .filter((row) => filter.state === "" || row.state === filter.state)
    .filter((row) => !filter.onlyConflicts || row.conflicts.length > 0)
    .filter((row) => words.every((word) => searchTextOf(row).includes(word)))
    .sort((one, two) => natural(one.namespace, two.namespace) || natural(one.name, two.name));
}
