/** Icon, colour and text of states. A colour always has an icon or a text beside it. */

import type { MemberState, Outcome, Pair, ServiceState, Tone, Verdict } from "./contract";

/** Tone of a state. `unknown` is for what could not be read. */
export type Shade = Tone | "unknown";

export interface Label {
  shade: Shade;
  /** Character that shows the state without its colour. */
  icon: string;
  text: string;
}

const ICONS: Record<Shade, string> = { good: "✓", warning: "!", bad: "✕", plain: "•", unknown: "?" };

/** Returns a text with its icon. */
export function labelOf(shade: Shade, text: string): Label {
  return { shade, icon: ICONS[shade], text };
}

const MEMBERS: Record<MemberState, Shade> = {
  Ready: "good",
  Stopped: "warning",
  Silent: "bad",
  NeverHeard: "bad",
  NoNamespace: "bad",
  GoAgent: "plain",
  Leaving: "bad",
  Unknown: "unknown",
};

export function memberLabel(state: MemberState): Label {
  return labelOf(MEMBERS[state] ?? "unknown", state);
}

const SERVICES: Record<ServiceState, Shade> = {
  Ready: "good",
  Waiting: "warning",
  NotReady: "bad",
  Unknown: "unknown",
};

export function serviceLabel(state: ServiceState): Label {
  return labelOf(SERVICES[state] ?? "unknown", state);
}

export function verdictLabel(verdict: Verdict): Label {
  switch (verdict) {
    case "healthy":
      return labelOf("good", "Healthy");
    case "fault":
      return labelOf("bad", "Fault found");
    default:
      return labelOf("unknown", "Not everything could be read");
  }
}

/** Returns the result of a pair: the cause, `not known`, `waiting` or `ok`. */
export function pairLabel(pair: Pair): Label {
  if (pair.cause) {
    return labelOf("bad", `${pair.cause.code} ${pair.cause.title}`);
  }
  if (pair.verdict === "notKnown") {
    return labelOf("unknown", "not known");
  }
  return pair.steps.some((step) => step.outcome === "waiting") ? labelOf("warning", "waiting") : labelOf("good", "ok");
}

const OUTCOMES: Record<Outcome, Shade> = {
  ok: "good",
  broken: "bad",
  waiting: "warning",
  skipped: "plain",
  unknown: "unknown",
};

/** Returns the result of a step. A notice is no fault, so it is not called broken. */
export function outcomeLabel(outcome: Outcome, isNotice: boolean): Label {
  return outcome === "broken" && isNotice
    ? labelOf("warning", "notice")
    : labelOf(OUTCOMES[outcome] ?? "unknown", outcome);
}

/** Returns the worst of several verdicts. A fault counts more than something that could not be read. */
export function worst(verdicts: Verdict[]): Verdict {
  if (verdicts.includes("fault")) {
    return "fault";
  }
  return verdicts.every((verdict) => verdict === "healthy") ? "healthy" : "notKnown";
}
