import assert from "node:assert/strict";
import { test } from "node:test";
import type { FleetMessage, Happened } from "../src/contract";
import { routeOf, serviceHash } from "../src/route";
import { type Action, fleetVerdict, initialState, isOld, linesSincePause, reduce, type State } from "../src/state";
import latency from "./fixtures/latency.json";
import services from "./fixtures/services.json";
import status from "./fixtures/status.json";

const NOW = 1_000_000;

/** Returns the state of a new page after some actions. */
function after(...actions: Action[]): State {
  return actions.reduce(reduce, initialState({ page: "fleet" }, NOW));
}

function fleet(change: Partial<FleetMessage> = {}): Action {
  const documents = { status, services, latency } as unknown as FleetMessage;
  return {
    type: "fleet",
    now: NOW,
    message: {
      ...documents,
      time: "2026-11-30T13:00:00Z",
      contextsNotRead: [],
      eventsNotRead: [],
      traffic: null,
      ...change,
    },
  };
}

function happened(second: number, text = ""): { type: "happened"; line: Happened } {
  const time = new Date(second * 1_000).toISOString();
  const line = {
    time,
    cluster: "hub",
    kind: "Event",
    namespace: "a",
    name: "b",
    reason: "c",
    text,
    tone: "plain" as const,
  };
  return { type: "happened", line };
}

test("the verdict is the worst of the documents, and a context that was not read counts", () => {
  assert.equal(fleetVerdict(after()), null);
  assert.equal(fleetVerdict(after(fleet())), "fault");
  const healthy = { status: { ...status, verdict: "healthy" }, services: { ...services, verdict: "healthy" } };
  const message = healthy as unknown as Partial<FleetMessage>;
  assert.equal(fleetVerdict(after(fleet(message))), "healthy");
  assert.equal(fleetVerdict(after(fleet({ ...message, contextsNotRead: ["west"] }))), "notKnown");
});

test("a document that a message leaves out stays", () => {
  const { services: _, ...rest } = (fleet() as { message: FleetMessage }).message;
  const state = after(fleet(), { type: "fleet", now: NOW + 1, message: rest });
  assert.equal(state.services?.services.length, 2);
});

test("data is old without a connection, after a failed reading and after 30 s without a message", () => {
  assert.equal(isOld(after()), false);
  assert.equal(isOld(after(fleet())), false);
  assert.equal(isOld(after(fleet(), { type: "lost" })), true);
  assert.equal(isOld(after(fleet(), { type: "notRead", message: { time: "", why: "refused" } })), true);
  assert.equal(isOld(after(fleet(), { type: "tick", now: NOW + 30_000 })), false);
  assert.equal(isOld(after(fleet(), { type: "tick", now: NOW + 30_001 })), true);
});

test("the last state stays when the connection is lost, and a new message makes it live", () => {
  const lost = after(fleet(), { type: "lost" });
  assert.deepEqual([lost.connection, lost.status?.members.length], ["reconnecting", 3]);
  const back = reduce(lost, fleet());
  assert.deepEqual([back.connection, isOld(back)], ["live", false]);
});

test("lines are ordered by time, occur once and are at most 500", () => {
  const state = after(happened(1), happened(3), happened(2), happened(3));
  assert.deepEqual(
    state.happened.map((line) => Date.parse(line.time)),
    [3_000, 2_000, 1_000],
  );
  const many = after(...Array.from({ length: 600 }, (_, second) => happened(second)));
  assert.deepEqual([many.happened.length, many.happened[0]?.time], [500, "1970-01-01T00:09:59.000Z"]);
});

test("a pause keeps the shown lines and counts the new ones", () => {
  const paused = after(happened(1), { type: "pause" }, happened(2), happened(3));
  assert.deepEqual([paused.paused?.length, linesSincePause(paused)], [1, 2]);
  const further = reduce(paused, { type: "continue" });
  assert.deepEqual([further.paused, further.happened.length, linesSincePause(further)], [null, 3, 0]);
  assert.equal(linesSincePause(after({ type: "pause" }, happened(1))), 1);
});

test("the view of requests is there while the server names a client", () => {
  const sides = { exporters: ["a"], importer: "b" };
  const traffic = { service: "work/app", ...sides, client: "work/client", requestsPerSecond: 200 };
  const counts = { sent: 1, lost: 0, lostByKind: {}, answersByCluster: { a: 1 } };
  const requests = { type: "requests", message: { time: "2026-11-30T13:00:00Z", ...counts } } as const;
  const state = after(fleet({ traffic }), requests, requests);
  assert.deepEqual([state.traffic?.service, state.requests.length], ["work/app", 1]);
  assert.equal(reduce(state, fleet()).traffic, null);
});

test("an answer about a Service that is not shown any more is ignored", () => {
  const shop = { type: "route", route: { page: "service", namespace: "work", name: "shop" } } as const;
  const failed = { type: "noAnswer", namespace: "work", name: "shop", why: "refused" } as const;
  assert.equal(after(shop, failed).shown?.why, "refused");
  const app = { type: "route", route: { page: "service", namespace: "work", name: "app" } } as const;
  assert.equal(after(shop, { type: "choose", choices: { servicePair: "a → b" } }, app, failed).shown?.why, null);
  assert.equal(after(shop, { type: "choose", choices: { servicePair: "a → b" } }, app).choices.servicePair, null);
});

test("routes are read from the address", () => {
  assert.deepEqual(routeOf("#/latency"), { page: "latency" });
  assert.deepEqual(routeOf(serviceHash("work", "a/b")), { page: "service", namespace: "work", name: "a/b" });
  assert.deepEqual(routeOf("#/code/FN312"), { page: "code", code: "FN312" });
  for (const hash of ["", "#", "#/service/work", "#/%E0%A4%A", "#/nothing"]) {
    assert.deepEqual(routeOf(hash), { page: "fleet" });
  }
});
