import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceRow } from "../src/contract";
import { arrivedAt, arrivedNumber, arrivedLabel, filterServices } from "../src/services";
import { rangeOf } from "../src/window";
import { services } from "./generate";
import conflict from "./fixtures/services.json";

const ALL = { text: "", state: "", onlyConflicts: false } as const;
const [app, shop] = conflict.services as unknown as [ServiceRow, ServiceRow];

test("an export in conflict has its own mark by the API of the fleet only", () => {
  assert.equal(arrivedAt(shop, "member-1", "member-2"), "ok");
  assert.equal(arrivedAt(shop, "member-2", "member-2"), "conflict");
  assert.equal(arrivedAt({ ...shop, api: "multicluster.x-k8s.io" }, "member-2", "member-2"), "ok");
  assert.equal(arrivedLabel(shop).text, "1 exporter in conflict");
});

test("an importer that was not read is not known, and one without endpoints is a fault", () => {
  const row: ServiceRow = {
    ...app,
    arrived: [{ importer: "member-1", endpoints: 12, missingExporters: ["member-3"] }],
  };
  assert.equal(arrivedAt(row, "member-1", "member-1"), "ok");
  assert.equal(arrivedAt(row, "member-3", "member-1"), "missing");
  assert.equal(arrivedAt(row, "member-1", "member-2"), "unknown");
  assert.deepEqual([arrivedLabel(row).shade, arrivedLabel(row).text], ["bad", "0 of 3 importers have all endpoints"]);
  assert.equal(arrivedLabel({ ...app, arrived: [] }).text, "no importer was read");
  const unread: ServiceRow = { ...app, arrived: app.arrived.slice(0, 1) };
  assert.equal(arrivedLabel(unread).shade, "unknown");
  assert.equal(arrivedLabel(unread).text, "1 of 3 importers have all endpoints, 2 not read");
});

test("numbers of arrived endpoints are a range if they differ", () => {
  const [row] = services(10, 3).services.slice(-1) as [ServiceRow];
  assert.deepEqual(
    [arrivedNumber(app), arrivedNumber(row), arrivedNumber({ ...app, arrived: [] })],
    ["18", "4-6", "–"],
  );
});

test("each word of the filter must occur", () => {
  const names = (text: string) => filterServices([app, shop], { ...ALL, text }).map((row) => row.name);
  assert.deepEqual(names("WORK member-3"), ["app"]);
  assert.deepEqual(names("work-shop.fleet-system"), ["shop"]);
  assert.deepEqual(names("nothing"), []);
  assert.deepEqual(filterServices([app, shop], { ...ALL, onlyConflicts: true }), [shop]);
  assert.deepEqual(filterServices([app, shop], { ...ALL, state: "Ready" }), [app]);
});

test("1,000 Services of 100 members are filtered in less than a second", () => {
  const { services: rows } = services(1_000, 100);
  filterServices(rows, ALL);
  const start = performance.now();
  assert.equal(filterServices(rows, { ...ALL, state: "NotReady", text: "team-3" }).length, 14);
  assert.equal(filterServices(rows, { ...ALL, text: "app-999" }).length, 1);
  assert.ok(performance.now() - start < 1_000);
});

test("only rows in view, and some around them, are drawn", () => {
  assert.deepEqual(rangeOf(0, 700, 70, 1_000), { first: 0, end: 18 });
  assert.deepEqual(rangeOf(7_000, 700, 70, 1_000), { first: 92, end: 118 });
  assert.deepEqual(rangeOf(-300, 700, 70, 1_000), { first: 0, end: 14 });
  assert.deepEqual(rangeOf(69_500, 700, 70, 1_000), { first: 984, end: 1_000 });
  assert.deepEqual(rangeOf(0, 700, 70, 3), { first: 0, end: 3 });
  assert.deepEqual(rangeOf(90_000, 700, 70, 3), { first: 3, end: 3 });
});
