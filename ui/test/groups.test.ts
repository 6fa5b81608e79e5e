import assert from "node:assert/strict";
import { test } from "node:test";

import type { LogRecord } from "tampu";

import { emptyFilter, filterText, parseFilter } from "../src/log/filter";
import { maskOf, patternsOf, reduced, withPattern } from "../src/log/groups";
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

test("patterns are places in a program, or texts with other numbers", () => {
  assert.equal(maskOf("at 4.5 mm, id 0x1f of 'DV01' -3"), "at # mm, id # of # #");
  const rows = [row(0, "moved to 4 mm", { process: "a" }), row(5, "moved to 17 mm", { process: "b" }), row(9, "x", { file: "f.rs", line: 7 }), row(10, "y", { file: "f.rs", line: 7 }), row(11, "z", { file: "f.rs", line: 7 }), row(12, "x", { file: "f.rs", line: 8 })];
  const patterns = patternsOf(rows);
  assert.deepEqual(patterns.map(({ site, count, sources, message }) => [site, count, sources, message]), [["f.rs:7", 3, 1, "z"], ["", 2, 2, "moved to 17 mm"], ["f.rs:8", 1, 1, "x"]]);
  assert.deepEqual(patterns.map(({ bins }) => bins.reduce((sum, one) => sum + one)), [3, 2, 1]);
  const [site, text] = patterns;
  assert.ok(site && text);
  // The user's own conditions stay.
  const own = { ...emptyFilter(), where: "a = 1 or b = 2", regex: "moved" };
  const only = withPattern(own, site, true);
  assert.equal(only.where, '(a = 1 or b = 2) and (file = "f.rs" and line = 7 and not routine and level = Info)');
  assert.equal(only.regex, "moved");
  assert.deepEqual(only.fields, {});
  const without = withPattern(only, { ...site, record: { ...site.record, file: "C:\\*.rs", routine: "7" } }, false);
  assert.equal(without.where, String.raw`(${only.where}) and not (file ~ "^(?i:C:\\\\\\*\\.rs)$" and line = 7 and routine ~ "^(?i:7)$" and level = Info)`);
  const both = [withPattern(emptyFilter(), text, true), without];
  both.forEach((filter) => assert.deepEqual(parseFilter(filterText(filter)), filter));
  assert.equal(withPattern(withPattern(emptyFilter(), site, true), site, false).where?.includes("(("), false);
  const where = both[0]?.where ?? "";
  assert.ok(where.startsWith('(not (file and line > 0) and message ~ "^moved to (') && where.endsWith(' mm$" and not routine and level = Info)'), where);
});

test("the condition of a text without a place holds for its pattern alone", () => {
  const regexOf = (message: string): RegExp => {
    const [pattern] = patternsOf([row(0, message)]);
    assert.ok(pattern);
    const written = /message ~ "((?:[^\\"]|\\.)*)"/.exec(withPattern(emptyFilter(), pattern, true).where ?? "")?.[1] ?? "";
    return new RegExp(written.replace(/\\([\\"])/g, "$1"));
  };
  const messages = ["moved to 4 mm", "moved to left mm", "moved to # mm", "it moved to 9 mm", "a (b) [c] 'x' \"y\" 0x1F -1.5e3", "a (b) [c] 7 'z' 2 +3", "a (b) [c] 7 z 2 +3", "done", "done."];
  for (const one of messages) {
    for (const other of messages) {
      assert.equal(regexOf(one).test(other), maskOf(one) === maskOf(other), `${one} | ${other}`);
    }
  }
  assert.notEqual(maskOf("a # b"), maskOf("a 4 b"));
  // A condition has at most 4096 bytes.
  const long = patternsOf([row(0, "7 'x' ".repeat(300))])[0];
  assert.ok(long && (withPattern(emptyFilter(), long, true).where?.length ?? 9999) < 3000);
});

test("files and routines that differ in case are one pattern, as in a filter", () => {
  const rows = [row(0, "x", { file: "F.rs", line: 7, routine: "R" }), row(1, "y", { file: "f.rs", line: 7, routine: "r" }), row(2, "y", { file: "f.rs", line: 7 })];
  assert.deepEqual(patternsOf(rows).map(({ count }) => count), [2, 1]);
});
