import assert from "node:assert/strict";
import { test } from "node:test";

import type { LogRecord } from "tampu";

import { reduced } from "../src/log/groups";
import { lossRow, recordRow, type Row } from "../src/log/rows";

const SECOND = 1_000_000_000n;
const row = (at: number, message: string, more: Partial<LogRecord> = {}): Row => recordRow({ time: BigInt(at) * (SECOND / 10n), level: "Info", message, ...more } as LogRecord);

test("records that differ in one field are one row", () => {
  const rows = [row(0, "reset", { source_object: "DV01" }), row(1, "reset", { source_object: "DV02" }), row(2, "other", { source_object: "DV02" }), row(3, "reset", { source_object: "DV02", host: "pc" }), row(4, "reset", { source_object: "DV03", level: "Error" }), row(30, "reset", { source_object: "DV04" })];
  const { rows: left, groups } = reduced(rows, "source");
  assert.deepEqual(left.map((one) => rows.indexOf(one)), [0, 2, 4, 5]);
  const group = groups.get(rows[0]?.key ?? -1);
  assert.deepEqual([group?.count, [...(group?.values ?? [])]], [3, ["DV01", "DV02"]]);
  // A chain of records each close to the one before stays one; data make records different, and a loss is never in a group.
  assert.equal(reduced([row(0, "x"), row(9, "x"), row(18, "x")], "host").rows.length, 1);
  assert.equal(reduced([row(0, "x", { data: [{ name: "a", value: "1" }] }), row(1, "x", { data: [{ name: "a", value: "2" }] })], "host").rows.length, 2);
  assert.equal(reduced([row(0, "x", { logger: "a" }), lossRow({ source: "s", samples: 1n, why: "dropped" }, 5n), row(1, "x", { logger: "b" })], "host").rows.length, 3);
});
