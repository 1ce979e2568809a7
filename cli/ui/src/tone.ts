/** Signs, colours and words of states. A colour never stands without its sign. */

import type { MemberState, Outcome, Pair, ServiceState, Tone, Verdict } from "./contract";

/** Tone of a state. `unknown` is for what could not be read. */
export type Shade = Tone | "unknown";

export interface Sign {
  shade: Shade;
  /** Sign that tells the state without its colour. */
  sign: string;
  text: string;
}

const SIGNS: Record<Shade, string> = { good: "✓", warning: "!", bad: "✕", plain: "•", unknown: "?" };

/** Returns a sign with its text. */
export function signOf(shade: Shade, text: string): Sign {
  return { shade, sign: SIGNS[shade], text };
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

export function memberSign(state: MemberState): Sign {
  return signOf(MEMBERS[state] ?? "unknown", state);
}

const SERVICES: Record<ServiceState, Shade> = {
  Ready: "good",
  Waiting: "warning",
  NotReady: "bad",
  Unknown: "unknown",
};

export function serviceSign(state: ServiceState): Sign {
  return signOf(SERVICES[state] ?? "unknown", state);
}

export function verdictSign(verdict: Verdict): Sign {
  switch (verdict) {
    case "healthy":
      return signOf("good", "Healthy");
    case "fault":
      return signOf("bad", "Fault found");
    default:
      return signOf("unknown", "Not everything could be read");
  }
}

/** Returns the result of a pair: the cause, `not known`, `waiting` or `ok`. */
export function pairSign(pair: Pair): Sign {
  if (pair.cause) {
    return signOf("bad", `${pair.cause.code} ${pair.cause.title}`);
  }
  if (pair.verdict === "notKnown") {
    return signOf("unknown", "not known");
  }
  return pair.steps.some((step) => step.outcome === "waiting") ? signOf("warning", "waiting") : signOf("good", "ok");
}

const OUTCOMES: Record<Outcome, Shade> = {
  ok: "good",
  broken: "bad",
  waiting: "warning",
  skipped: "plain",
  unknown: "unknown",
};

/** Returns the result of a step. A notice is no fault, so it is not called broken. */
export function outcomeSign(outcome: Outcome, isNotice: boolean): Sign {
  return outcome === "broken" && isNotice
    ? signOf("warning", "notice")
    : signOf(OUTCOMES[outcome] ?? "unknown", outcome);
}

/** Returns the worst of several verdicts. A fault counts more than something that could not be read. */
export function worst(verdicts: Verdict[]): Verdict {
  if (verdicts.includes("fault")) {
    return "fault";
  }
  return verdicts.every((verdict) => verdict === "healthy") ? "healthy" : "notKnown";
}
