import assert from "node:assert/strict";
import { test } from "node:test";

import { harmlessCell, fileOf, lossText } from "../src/log/formats";
import { lightsOf, marked, oneLine, wholeText } from "../src/log/display";
import { idOf, idText, indexOf, lossRow, merged, ordered, recordRow, type Row } from "../src/log/rows";
import type { LogRecord } from "tampu";

const LIFE = "00000001-00000002-0000000000000003";

function row(time: number, number: number, message = `m${number}`): Row {
  return recordRow({ id: { incarnation: LIFE, ring: 1, number: BigInt(number) }, time: BigInt(time), level: "Info", message } as LogRecord);
}

const numbers = (rows: Row[]) => rows.map((one) => (one.kind === "record" ? Number(one.record.id?.number) : -1));

test("records of one moment stand in the order of their numbers", () => {
  assert.deepEqual(numbers(ordered([row(5, 10), row(5, 9), row(4, 100)])), [100, 9, 10]);
});

test("merging keeps the order and drops what comes twice", () => {
  const rows = [row(1, 1), row(3, 3), row(5, 5)];
  assert.deepEqual(numbers(merged(rows, [row(2, 2), row(3, 3), row(6, 6)])), [1, 2, 3, 5, 6]);
  assert.deepEqual(numbers(merged(rows, [row(5, 5), row(5, 6)])), [1, 3, 5, 6]);
  assert.deepEqual(numbers(merged(rows, [row(0, 0)])), [0, 1, 3, 5]);
  assert.deepEqual(numbers(merged([], [row(1, 1)])), [1]);
  assert.deepEqual(numbers(merged(rows, [])), [1, 3, 5]);
});

test("many merges agree with one order", () => {
  let seed = 1;
  const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  const all = Array.from({ length: 400 }, (_, nth) => row(random(100), nth));
  let rows: Row[] = [];
  for (let at = 0; at < all.length; at += 20) {
    // Some come a second time.
    rows = merged(rows, ordered([...all.slice(at, at + 20), ...all.slice(Math.max(0, at - 5), at)]));
  }
  assert.deepEqual(numbers(rows), numbers(ordered(all)));
});

test("a loss stands behind the records of its moment, and is never taken for another", () => {
  const loss = () => lossRow({ source: "A", samples: 3n, why: "evicted" }, 5n);
  assert.deepEqual(numbers(merged([row(5, 1), row(6, 2)], ordered([loss(), loss()]))), [1, -1, -1, 2]);
  assert.equal(lossText(loss() as Row & { kind: "loss" }), "3 packets of records missing from A: evicted");
  const hidden = lossText(lossRow({ source: "A\u202eB", samples: 1n, why: "evicted" }, 5n) as Row & { kind: "loss" });
  assert.ok(hidden.includes("A\\u{202e}B"), hidden);
});

test("a place is found by time and id", () => {
  const rows = [row(1, 1), row(3, 3), row(5, 5)];
  assert.equal(indexOf(rows, { time: 3n, id: "" }), 1);
  assert.equal(indexOf(rows, rows[2] as Row), 2);
  assert.equal(indexOf(rows, { time: 9n, id: "" }), 3);
});

test("the id of a record is a text and back", () => {
  const id = { incarnation: LIFE, ring: 7, number: 2n ** 60n };
  assert.deepEqual(idOf(idText(id)), id);
  assert.equal(idOf("<script>"), undefined);
});

test("nothing in a text hides, reorders or breaks a line", () => {
  assert.equal(oneLine("a\u202eb\u0000c\nd\u200be"), "a\\u{202e}b\\u{0}c⏎d\\u{200b}e");
  assert.equal(wholeText("a\n\tb\u001b[31m"), "a\n\tb\\u{1b}[31m");
  assert.equal(oneLine("x".repeat(2000)).length, 1001);
  const parts = marked("RF lock lost, lock", ["lock"], ["lock lost", "rf", "gone"]);
  assert.deepEqual(parts.map(({ text, hit, light }) => [text, hit, light]), [["RF", true, 1], [" ", false, undefined], ["lock lost", true, 0], [", ", false, undefined], ["lock", true, undefined]]);
  assert.deepEqual(lightsOf("rf 'lock lost'  rf a b c d e"), ["rf", "lock lost", "a", "b", "c", "d"]);
  assert.deepEqual([lightsOf("'it is"), lightsOf("  "), marked("ab", [], ["", "b"]).length], [["it is"], [], 2]);
  assert.deepEqual(marked("a lock (x)", ["LOCK", "(x)"]).filter(({ hit }) => hit).map(({ text }) => text), ["lock", "(x)"]);
});

test("files have all rows, and a spreadsheet runs nothing", async () => {
  const rows = [row(1, 1, "=1+1"), row(2, 2, 'say "x",\ny'), lossRow({ source: "S", samples: undefined, why: "dropped" }, 3n)];
  const csv = await fileOf(rows, "csv", "utc").text();
  assert.equal(csv.match(/\n/g)?.length, 5);
  assert.ok(csv.includes(`"'=1+1"`) && csv.includes('"say ""x"",\ny"') && csv.includes('"LOSS"'));
  const traced = { time: 1n, level: "Info", message: "m", audiences: ["Operator", "SciLog"], array: "A1", antenna: "DV05", trace_id: "ab", span_id: "cd", stack_level: 3 } as LogRecord;
  const cells = (await fileOf([recordRow(traced)], "csv", "utc").text()).trimEnd().split("\n").map((line) => line.split(","));
  for (const [column, value] of Object.entries({ audiences: "Operator SciLog", array: "A1", antenna: "DV05", trace_id: "ab", span_id: "cd", stack_level: "3" })) {
    assert.equal(cells[1]?.[cells[0]?.indexOf(`"${column}"`) ?? -1], `"${value}"`, column);
  }
  const lines = (await fileOf(rows, "json", "utc").text()).trimEnd().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(lines[0]?.["message"], "=1+1");
  assert.equal(lines[0]?.["time"], "1970-01-01T00:00:00.000000001Z");
  assert.ok("loss" in (lines[2] ?? {}));
  const text = await fileOf(rows, "text", "utc").text();
  assert.equal(text.trimEnd().split(/\n(?!\t)/).length, 3);
  for (const [cell, made] of [["-1.5e-9", "-1.5e-9"], ["-12 C", "-12 C"], ["@x", "'@x"], ["'=x", "''=x"], ["plain", "plain"]]) {
    assert.equal(harmlessCell(cell as string), made);
  }
});
