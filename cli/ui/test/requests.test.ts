import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestsMessage } from "../src/contract";
import { bars, SECONDS, totals, withRequests } from "../src/requests";

function message(second: number, change: Partial<RequestsMessage> = {}): RequestsMessage {
  const time = new Date(second * 1_000).toISOString();
  return { time, sent: 200, lost: 0, lostByKind: {}, answersByCluster: {}, ...change };
}

test("the last 120 messages are kept, each once", () => {
  const all = Array.from({ length: 130 }, (_, second) => message(second));
  const kept = all.reduce(withRequests, []);
  assert.deepEqual([kept.length, kept[0]?.time, kept[119]?.time], [SECONDS, all[10]?.time, all[129]?.time]);
  const again = [...all.slice(10), message(130)].reduce(withRequests, kept);
  assert.deepEqual([again.length, again[0]?.time, again[119]?.sent], [SECONDS, all[11]?.time, 200]);
});

test("sums have each cluster and each kind with its part", () => {
  const requests = [
    message(1, { lost: 2, lostByKind: { timeout: 2 }, answersByCluster: { "member-10": 98, "member-2": 100 } }),
    message(2, { sent: 3, lost: 1, lostByKind: { refused: 1 }, answersByCluster: { "member-10": 2, "member-2": 0 } }),
  ];
  assert.deepEqual(totals(requests), {
    sent: 203,
    lost: 3,
    most: 200,
    lostByKind: [
      { name: "refused", number: 1, percent: 33.3 },
      { name: "timeout", number: 2, percent: 66.7 },
    ],
    answersByCluster: [
      { name: "member-2", number: 100, percent: 50 },
      { name: "member-10", number: 100, percent: 50 },
    ],
  });
  const none = [message(1, { sent: 0, answersByCluster: { "member-2": 0 } })];
  assert.deepEqual(totals(none).answersByCluster, [{ name: "member-2", number: 0, percent: 0 }]);
});

test("the newest bar is on the right, and a single lost request is seen", () => {
  const requests = [message(1, { sent: 0 }), message(2, { sent: 100, lost: 50 }), message(3, { sent: 500, lost: 1 })];
  assert.deepEqual(bars(requests, 120), [
    { place: 117, sent: 0, lost: 0 },
    { place: 118, sent: 24, lost: 12 },
    { place: 119, sent: 120, lost: 3 },
  ]);
  assert.deepEqual(bars([], 120), []);
});
