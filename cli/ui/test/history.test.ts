/** Tests of the history of latencies. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LatencyCell, LatencyDocument } from "../src/contract";
import { append, type History, pairKey } from "../src/history";

function document(members: number, milliseconds: number): LatencyDocument {
  const names = Array.from({ length: members }, (_, index) => `member-${index + 1}`);
  const quantiles = [{ quantile: 0.5, milliseconds, text: "" }];
  const cells: LatencyCell[] = names.flatMap((origin) =>
    names.map((destination) => ({ origin, destination, count: 20, quantiles })),
  );
  return { members: names, cells, withoutSummary: [], verdict: "healthy", notKnown: [] };
}

function time(second: number): string {
  return new Date(second * 1000).toISOString();
}

for (const [members, most] of [
  [2, 600],
  [100, 20],
] as const) {
  test(`the history of ${members} members begins with its first point and stays small`, () => {
    let history: History = new Map();
    for (let second = 0; second < 3 * most; second++) {
      history = append(history, document(members, second), time(second));
    }
    const points = history.get(pairKey("member-1", "member-2")) ?? [];
    assert.ok(points.length <= most && points.length >= most / 2, `${points.length} points`);
    assert.equal(points[0]?.time, time(0));
    assert.equal(points[points.length - 1]?.time, time(3 * most - 1));
    const times = points.map((point) => point.time);
    assert.deepEqual(times, [...times].sort());
  });
}

test("a pair whose values did not change gets no point", () => {
  const one = append(new Map(), document(2, 5), time(0));
  const two = append(one, document(2, 5), time(2));
  assert.equal(two.get(pairKey("member-1", "member-2"))?.length, 1);
});
