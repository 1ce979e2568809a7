import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointCount, Pair, Span, Way, WayStep } from "../src/contract";
import { endpointsText } from "../src/endpoints";
import { pointText, spanText, stepText, timeOfStep, wayText, waysOf } from "../src/ways";

function span(least: number, most: number, byTwoClocks = false): Span {
  return { atLeastMilliseconds: least, atMostMilliseconds: most, byTwoClocks };
}

function step(change: Partial<WayStep> = {}): WayStep {
  const time = "2026-11-30T16:52:19Z";
  return { point: "exported", cluster: "hub", state: "done", time, since: null, clocksDiffer: false, ...change };
}

function way(change: Partial<Way> = {}): Way {
  const [api, whole] = ["networking.fleet.azure.com" as const, span(0, 1_500, true)];
  return { api, exporter: "west", importer: "east", slice: "app-1", steps: [step()], whole, ...change };
}

test("a span says what is known of it", () => {
  const table: [Span, string][] = [
    [span(3.9, 3.9), "3.9ms"],
    [span(0, 117), "at most 117ms"],
    [span(2_000, 4_000), "2s to 4s"],
    [span(0, 117, true), "at most about 117ms"],
    [span(2_000, 4_000, true), "about 2s to 4s"],
  ];
  for (const [given, shown] of table) {
    assert.equal(spanText(given), shown);
  }
});

test("a step shows its span, or why it has none", () => {
  const table: [Partial<WayStep>, string][] = [
    [{ since: span(0, 117) }, "at most 117ms"],
    [{}, ""],
    [{ time: null }, "done, time not known"],
    [{ clocksDiffer: true }, "the clocks differ"],
    [{ state: "notYet", time: null }, "not yet"],
    [{ state: "notNeeded", time: null }, "not needed"],
    [{ state: "leftOut", time: null }, "left out on purpose"],
    [{ state: "unknown", time: null }, "not known"],
  ];
  for (const [change, shown] of table) {
    assert.equal(stepText(step(change)), shown);
  }
});

test("a way shows its last write, or why it has none", () => {
  assert.match(wayText(way()), /^last write at \d\d:\d\d:19, after at most about 1\.5s$/);
  assert.match(wayText(way({ whole: null })), /^last write at \d\d:\d\d:19$/);
  const table: [Partial<WayStep>, string][] = [
    [{ time: null }, "time not known"],
    [{ state: "notYet", time: null }, "not arrived"],
    [{ state: "leftOut", time: null }, "left out on purpose"],
  ];
  for (const [change, shown] of table) {
    assert.equal(wayText(way({ steps: [step(), step(change)], whole: null })), shown);
  }
});

test("the ways of a pair are those of its clusters and its API", () => {
  const ways = [way(), way({ importer: "north" }), way({ api: "multicluster.x-k8s.io" })];
  const pair = { api: "networking.fleet.azure.com", exporter: "west", importer: "east" } as Pair;
  assert.deepEqual(waysOf(ways, pair), [ways[0]]);
  assert.equal(pointText("distributed", way()), "hub: the hub agent writes it for east");
});

test("only a time with a fraction shows milliseconds", () => {
  assert.match(timeOfStep("2026-11-30T16:52:19Z"), /^\d\d:\d\d:19$/);
  assert.match(timeOfStep("2026-11-30T16:52:19.883893Z"), /^\d\d:\d\d:19\.883$/);
  assert.equal(timeOfStep(null), "–");
});

test("numbers of endpoints that are 0 are left out", () => {
  const none = { importer: "east", exporter: "west", ready: 0, draining: 0, notReady: 0, withdrawn: 0, missing: 0 };
  const count = (change: Partial<EndpointCount>): EndpointCount => ({ ...none, notSelected: 0, ...change });
  assert.equal(endpointsText(count({})), "0 ready");
  assert.equal(endpointsText(count({ ready: 4, draining: 1, notSelected: 2 })), "4 ready, 1 draining, 2 not selected");
});
