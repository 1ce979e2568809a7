import assert from "node:assert/strict";
import { test } from "node:test";
import { clock, count, distinct, duration, ends, namesOrNumber, parse, span, visible } from "../src/text";

test("characters that control or reorder text are visible", () => {
  assert.equal(visible("a\u202eb\u0000\u200f\u2066\n"), "a\\u{202e}b\\u{0}\\u{200f}\\u{2066}\\u{a}");
  assert.equal(visible("<script>größe → ✓"), "<script>größe → ✓");
});

test("strings and keys of a document are visible at each depth", () => {
  const parsed = parse<unknown>('{"a\\u202e":["\\u001b[2J",{"b":"\\u200e"}],"n":[1,null,true]}');
  assert.deepEqual(parsed, { "a\\u{202e}": ["\\u{1b}[2J", { b: "\\u{200e}" }], n: [1, null, true] });
});

test("spans have one unit, as on the command line", () => {
  const table: [number, string][] = [
    [-1, "0s"],
    [119, "119s"],
    [120, "2m"],
    [7_199, "119m"],
    [7_200, "2h"],
    [172_800, "2d"],
  ];
  for (const [seconds, shown] of table) {
    assert.equal(span(seconds), shown);
  }
});

test("clocks have a sign unless they are equal", () => {
  const table: [number | null, string][] = [
    [null, "not known"],
    [-49, "0.0s"],
    [3_050, "+3.1s"],
    [-3_050, "-3.1s"],
  ];
  for (const [milliseconds, shown] of table) {
    assert.equal(clock(milliseconds), shown);
  }
});

test("durations have one unit and three digits at most", () => {
  const table: [number, string][] = [
    [0, "0ms"],
    [4.21, "4.2ms"],
    [15, "15ms"],
    [123.4, "123ms"],
    [1_500, "1.5s"],
    [119_000, "119s"],
    [150_000, "2.5m"],
    [3 * 3_600_000, "3h"],
    [3 * 86_400_000, "3d"],
    [400 * 86_400_000, "400d"],
  ];
  for (const [given, shown] of table) {
    assert.equal(duration(given), shown);
  }
});

test("long lists of names are shortened", () => {
  const names = ["member-1", "member-2", "member-3", "member-4"];
  assert.deepEqual([ends(names), ends(names.slice(0, 2))], ["member-1 … member-4", "member-1, member-2"]);
  assert.deepEqual([namesOrNumber([]), namesOrNumber(["a", "b"]), namesOrNumber(names)], ["–", "a, b", "4"]);
  assert.deepEqual([count(1, "pair"), count(1_000, "pair")], ["1 pair", "1,000 pairs"]);
});

test("numbers in names count as numbers", () => {
  assert.deepEqual(distinct(["member-10", "member-2", "member-10", "east"]), ["east", "member-2", "member-10"]);
});
