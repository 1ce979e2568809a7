/** Texts of the way of a change of a Service. */

import type { Pair, Point, Span, Way, WayState, WayStep } from "./contract";
import { duration, timeOfDay } from "./text";
import { type Label, labelOf } from "./tone";

/** Returns the ways of a pair. */
export function waysOf(ways: Way[], pair: Pair): Way[] {
  return ways.filter(
    (way) => way.api === pair.api && way.exporter === pair.exporter && way.importer === pair.importer,
  );
}

/** Returns what happens at a point of a way. */
export function pointText(point: Point, way: Way): string {
  switch (point) {
    case "changed":
      return `${way.exporter}: the endpoints change`;
    case "seen":
      return `${way.exporter}: the agent sees the change`;
    case "exported":
      return `hub: the agent of ${way.exporter} writes it`;
    case "distributed":
      return `hub: the hub agent writes it for ${way.importer}`;
    case "imported":
      return `${way.importer}: the agent writes its slice`;
  }
}

const STATES: Record<WayState, Label> = {
  done: labelOf("good", "done"),
  notYet: labelOf("warning", "not yet"),
  notNeeded: labelOf("plain", "not needed"),
  leftOut: labelOf("plain", "left out on purpose"),
  unknown: labelOf("unknown", "not known"),
};

export function stateLabel(state: WayState): Label {
  return STATES[state] ?? STATES.unknown;
}

/** Returns a time span with what is known of it. `about` says that two clocks measured it. */
export function spanText(span: Span): string {
  const about = span.byTwoClocks ? "about " : "";
  const [least, most] = [duration(span.atLeastMilliseconds), duration(span.atMostMilliseconds)];
  if (span.atLeastMilliseconds <= 0) {
    return `at most ${about}${most}`;
  }
  return least === most ? `${about}${most}` : `${about}${least} to ${most}`;
}

/** Returns how long a step took, or why that is not known. */
export function stepText(step: WayStep): string {
  if (step.state !== "done") {
    return stateLabel(step.state).text;
  }
  if (step.clocksDiffer) {
    return "the clocks differ";
  }
  return step.since ? spanText(step.since) : step.time === null ? "done, time not known" : "";
}

/** Returns the local time of day, with milliseconds if the time has a fraction. */
export function timeOfStep(time: string | null): string {
  const fraction = /\.(\d{3})/.exec(time ?? "");
  return fraction ? `${timeOfDay(time)}.${fraction[1]}` : timeOfDay(time);
}

/** Returns the result of a way. The time of the last write can be later than that of the arrival. */
export function wayText(way: Way): string {
  const states = way.steps.map((step) => step.state);
  if (states.includes("notYet")) {
    return "not arrived";
  }
  if (states.includes("leftOut")) {
    return "left out on purpose";
  }
  const last = way.steps[way.steps.length - 1]?.time ?? null;
  if (last === null) {
    return "time not known";
  }
  return `last write at ${timeOfDay(last)}${way.whole ? `, after ${spanText(way.whole)}` : ""}`;
}
