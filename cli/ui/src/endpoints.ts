/** States of endpoints, with their names and meanings. */

import type { EndpointCount } from "./contract";

export interface EndpointKind {
  field: "ready" | "draining" | "notReady" | "withdrawn" | "notSelected" | "missing";
  /** Class of the bar in the style sheet. */
  name: string;
  text: string;
  meaning: string;
}

const ABSENT = "Ready in the exporter, and the importer does not have it:";

export const ENDPOINT_KINDS: EndpointKind[] = [
  { field: "ready", name: "bar-ready", text: "ready", meaning: "The importer has it, and clients use it." },
  {
    field: "draining",
    name: "bar-draining",
    text: "draining",
    meaning: "The importer has it, and it is terminating. Clients use it only if no other endpoint is ready.",
  },
  {
    field: "notReady",
    name: "bar-not-ready",
    text: "not ready",
    meaning: "The importer has it, and clients do not use it.",
  },
  {
    field: "withdrawn",
    name: "bar-withdrawn",
    text: "withdrawn",
    meaning: `${ABSENT} the weight of the export is 0, or the exporter is silent.`,
  },
  {
    field: "notSelected",
    name: "bar-not-selected",
    text: "not selected",
    meaning: `${ABSENT} a rule or a limit excludes it, such as a conflict, a list of clusters or of address ranges, or a
      limit of the importer. The steps of the pair say which one.`.replace(/\s+/g, " "),
  },
  {
    field: "missing",
    name: "bar-missing",
    text: "missing",
    meaning: `${ABSENT} none of these causes is known. A change that is on its way counts too.`,
  },
];

/** Returns the numbers of a pair as text. Only the number of ready endpoints is shown if it is 0. */
export function endpointsText(one: EndpointCount): string {
  const shown = ENDPOINT_KINDS.filter(({ field }) => field === "ready" || one[field] > 0);
  return shown.map(({ field, text }) => `${one[field]} ${text}`).join(", ");
}
