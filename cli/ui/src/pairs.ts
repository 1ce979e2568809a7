/** What one Service shows of its pairs of exporter and importer. */

import type { Api, CodeEntry, EndpointCount, NameToCall, Pair, Step } from "./contract";
import { apiName } from "./services";
import { distinct } from "./text";
import { pairLabel, type Label } from "./tone";

/** Largest number of exporters or importers of a matrix with a button for each pair. */
export const BUTTONS = 12;

/** Pairs of one API as a matrix. */
export interface PairMatrix {
  api: Api;
  exporters: string[];
  importers: string[];
  /** Index of a pair in the explanation, by row and column. */
  pairs: (number | null)[][];
}

/** Returns the name of an exporter or importer. `nobody` if the Service has none. */
export function clusterName(cluster: string | null): string {
  return cluster ?? "nobody";
}

/** Returns one matrix for each API. */
export function matrices(pairs: Pair[]): PairMatrix[] {
  const apis = [...new Set(pairs.map((pair) => pair.api))];
  return apis.map((api) => {
    const own = pairs.map((pair, index) => ({ pair, index })).filter(({ pair }) => pair.api === api);
    const exporters = distinct(own.map(({ pair }) => clusterName(pair.exporter)));
    const importers = distinct(own.map(({ pair }) => clusterName(pair.importer)));
    const places = new Map(own.map(({ pair, index }) => [place(pair.exporter, pair.importer), index]));
    const row = (exporter: string) => importers.map((importer) => places.get(place(exporter, importer)) ?? null);
    return { api, exporters, importers, pairs: exporters.map(row) };
  });
}

function place(exporter: string | null, importer: string | null): string {
  return `${clusterName(exporter)}/${clusterName(importer)}`;
}

/** Returns the name of a pair, such as `west → east`. */
export function pairName(pair: Pair): string {
  const api = apiName(pair.api) === "fleet" ? "" : ` (${pair.api})`;
  return `${clusterName(pair.exporter)} → ${clusterName(pair.importer)}${api}`;
}

/** Returns the index of the pair to show: the chosen one, else the first with a fault, else the first. */
export function shownPair(pairs: Pair[], chosen: string | null): number | null {
  const named = chosen === null ? -1 : pairs.findIndex((pair) => pairName(pair) === chosen);
  if (named >= 0) {
    return named;
  }
  const fault = pairs.findIndex((pair) => pair.cause !== undefined);
  const other = pairs.findIndex((pair) => pairLabel(pair).shade !== "good");
  const found = fault >= 0 ? fault : other >= 0 ? other : 0;
  return pairs.length > 0 ? found : null;
}

/** Pairs with the same result. */
export interface Block {
  label: Label;
  code: string | null;
  indexes: number[];
}

/** Returns the pairs by result, the faults first. */
export function blocks(pairs: Pair[]): Block[] {
  const found = new Map<string, Block>();
  pairs.forEach((pair, index) => {
    const label = pairLabel(pair);
    const block = found.get(label.text) ?? { label, code: pair.cause?.code ?? null, indexes: [] };
    block.indexes.push(index);
    found.set(label.text, block);
  });
  const order = ["bad", "unknown", "warning", "plain", "good"];
  return [...found.values()].sort((one, two) => order.indexOf(one.label.shade) - order.indexOf(two.label.shade));
}

/** Returns the title of a step. That of a step that is not broken says what is right if the step is ok. */
export function stepTitle(step: Step, codes: ReadonlyMap<string, CodeEntry>): string {
  return step.outcome === "broken" ? step.title : (codes.get(step.code)?.ok ?? "");
}

/** Unknown steps with the same reason, such as a cluster that was not reached. */
export interface UnknownSteps {
  why: string;
  number: number;
}

/** Steps of a pair to list at once, without those that are ok, skipped or below. */
export interface ListedSteps {
  steps: Step[];
  unknown: UnknownSteps[];
}

/** Returns the steps to list. Unknown steps with the same reason are one line. */
export function listedSteps(pair: Pair): ListedSteps {
  const reasons = new Map<string, Step[]>();
  for (const step of pair.steps.filter((one) => one.outcome === "unknown")) {
    reasons.set(step.detail ?? "", [...(reasons.get(step.detail ?? "") ?? []), step]);
  }
  const isOne = (step: Step) => step.outcome === "unknown" && reasons.get(step.detail ?? "")?.length === 1;
  const isListed = (step: Step) => step.outcome === "broken" || step.outcome === "waiting" || isOne(step);
  return {
    steps: pair.steps.filter((step) => isListed(step) && step.code !== pair.cause?.code),
    unknown: [...reasons].map(([why, steps]) => ({ why, number: steps.length })).filter(({ number }) => number > 1),
  };
}

/** Importers that call a Service by the same name and ports. */
export interface Called {
  name: string;
  ports: string[];
  importers: string[];
  addresses: string[];
}

/** Returns the names to call, each with its importers. */
export function called(names: NameToCall[]): Called[] {
  const found = new Map<string, Called>();
  for (const { name, ports, importer, addresses } of names) {
    const key = `${name} ${ports.join()}`;
    const entry = found.get(key) ?? { name, ports, importers: [], addresses: [] };
    entry.importers.push(importer);
    entry.addresses.push(...addresses.map((address) => `${importer}=${address}`));
    found.set(key, entry);
  }
  return [...found.values()];
}

/** Returns the endpoints by importer, in natural order. */
export function byImporter(counts: EndpointCount[]): [string, EndpointCount[]][] {
  return distinct(counts.map((count) => count.importer)).map((importer) => [
    importer,
    counts.filter((count) => count.importer === importer),
  ]);
}
