import assert from "node:assert/strict";
import { test } from "node:test";
import type { CodeEntry, LatencyDocument, Pair, Step } from "../src/contract";
import { heatClass, quantileNames, slowest, textOf, withoutSummary } from "../src/latency";
import { blocks, byImporter, called, listedSteps, matrices, pairName, shownPair, stepTitle } from "../src/pairs";
import { outcomeLabel, pairLabel, worst } from "../src/tone";
import explanation from "./fixtures/explain.json";
import conflict from "./fixtures/latency.json";
import { latency } from "./generate";

const pairs = explanation.pairs as unknown as Pair[];
const document = conflict as unknown as LatencyDocument;

test("pairs have a label, and the first fault is shown first", () => {
  assert.deepEqual(
    pairs.map((pair) => pairLabel(pair).text),
    ["ok", "FN312 The export conflicts with another exporter"],
  );
  assert.deepEqual(
    [null, "member-1 → member-2", "gone → member-2"].map((name) => shownPair(pairs, name)),
    [1, 0, 1],
  );
  assert.deepEqual([shownPair([], null), shownPair(pairs.slice(0, 1), null)], [null, 0]);
  const [ok] = pairs as [Pair];
  assert.equal(pairLabel({ ...ok, verdict: "notKnown" }).text, "not known");
  assert.equal(pairLabel({ ...ok, steps: [{ code: "FN401", title: "", outcome: "waiting" }] }).text, "waiting");
});

test("each API has its own matrix", () => {
  const nobody = { ...pairs[0], api: "multicluster.x-k8s.io", importer: null } as Pair;
  const [fleet, standard] = matrices([...pairs, nobody]);
  assert.deepEqual([fleet?.exporters, fleet?.importers], [["member-1", "member-2"], ["member-2"]]);
  assert.deepEqual([fleet?.pairs, standard?.pairs, standard?.importers], [[[0], [1]], [[2]], ["nobody"]]);
  assert.equal(pairName(nobody), "member-1 → nobody (multicluster.x-k8s.io)");
});

test("pairs with equal results are one block, the faults first", () => {
  const found = blocks([...pairs, ...pairs]).map((block) => [block.label.shade, block.indexes]);
  assert.deepEqual(found, [
    ["bad", [1, 3]],
    ["good", [0, 2]],
  ]);
});

test("the title of a step that is ok says what is right", () => {
  const step: Step = { code: "FN102", title: "The API server is not reachable", outcome: "ok" };
  const codes = new Map([["FN102", { ok: "The API server is reachable" } as CodeEntry]]);
  assert.equal(stepTitle(step, codes), "The API server is reachable");
  assert.equal(stepTitle(step, new Map()), "");
  assert.equal(stepTitle({ ...step, outcome: "broken" }, codes), "The API server is not reachable");
  assert.deepEqual([outcomeLabel("broken", true).text, outcomeLabel("broken", false).text], ["notice", "broken"]);
});

test("unknown steps with the same reason are one line, and the cause is not listed again", () => {
  const step = (code: string, outcome: Step["outcome"], detail: string): Step => ({ code, title: "", outcome, detail });
  const steps = [step("FN101", "ok", ""), step("FN102", "unknown", "a"), step("FN103", "unknown", "a")];
  const others = [step("FN104", "unknown", "b"), step("FN312", "broken", ""), step("FN401", "waiting", "c")];
  const found = listedSteps({ ...(pairs[1] as Pair), steps: [...steps, ...others] });
  assert.deepEqual(
    found.steps.map(({ code }) => code),
    ["FN104", "FN401"],
  );
  assert.deepEqual(found.unknown, [{ why: "a", number: 2 }]);
});

test("importers with one name to call are one entry", () => {
  const call = { api: "networking.fleet.azure.com", name: "a.fleet-system.svc", ports: ["80/TCP"] } as const;
  const names = ["east", "west"].map((importer) => ({ ...call, ports: ["80/TCP"], importer, addresses: ["10.0.0.1"] }));
  const entry = {
    name: call.name,
    ports: ["80/TCP"],
    importers: ["east", "west"],
    addresses: ["east=10.0.0.1", "west=10.0.0.1"],
  };
  assert.deepEqual(called(names), [entry]);
});

test("endpoints are grouped by importer", () => {
  const absent = { withdrawn: 0, notSelected: 0, missing: 0 };
  const one = (importer: string) => ({ importer, exporter: "a", ready: 1, draining: 0, notReady: 0, ...absent });
  assert.deepEqual(
    byImporter([one("m-10"), one("m-2")]).map(([importer]) => importer),
    ["m-2", "m-10"],
  );
});

test("a fault counts more than something that could not be read", () => {
  assert.deepEqual([worst(["healthy", "notKnown", "fault"]), worst(["notKnown", "healthy"])], ["fault", "notKnown"]);
});

test("latencies have classes, names and reasons", () => {
  assert.deepEqual([4.9, 5, 24, 99, 999, 1_000].map(heatClass), [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(quantileNames(document), ["p50", "p99"]);
  const [cell] = document.cells as [LatencyDocument["cells"][0]];
  assert.equal(textOf({ ...cell, clockMilliseconds: -3_149 }, 0), "clocks differ by 3.1s");
  assert.equal(textOf(undefined, 0), "–");
  const without = [
    { member: "a", why: "old" },
    { member: "b", why: "none" },
    { member: "c", why: "old" },
  ];
  assert.deepEqual(withoutSummary({ ...document, withoutSummary: without }), [
    ["old", ["a", "c"]],
    ["none", ["b"]],
  ]);
});

test("the ten slowest pairs of 100 members are found", () => {
  const found = slowest(latency(100), 1);
  assert.deepEqual([found.length, found[0]?.origin, found[0]?.destination], [10, "member-100", "member-100"]);
});
