import assert from "node:assert/strict";
import { test } from "node:test";

import { cleaned, linesOf, wordsOf } from "../src/settings/fields";
import { changeOf, isSet, namesOf, removalText, settingText, tableText, valueText } from "../src/settings/hub";
import { emptyRow, rowOf, valueOf } from "../src/settings/tables";

test("fields are read as lists", () => {
  assert.deepEqual(wordsOf(" read, write;query\nset "), ["read", "write", "query", "set"]);
  assert.deepEqual(linesOf("one \n\n  two words\n"), ["one", "two words"]);
});

test("attributes go without members that say nothing", () => {
  assert.deepEqual(cleaned([{ name: " Author ", kind: "text", required: true, locked: false, options: [] }, { name: " ", kind: "text" }, { name: "Type", kind: "options", options: ["a", "b"], comment: "" }]), [
    { name: "Author", kind: "text", required: true },
    { name: "Type", kind: "options", options: ["a", "b"] },
  ]);
});

test("settings of the hub are texts for people, and lines of its configuration", () => {
  const text = (name: string, value: unknown) => valueText(name, value);
  assert.deepEqual([text("collector.keep_days", 0), text("collector.keep_days", 365), text("collector.keep_at_least_days", 0), text("book.user_gb", 2.5), text("collector.keep_gb", 3)], ["no limit", "365 days", "0 days", "2.5 GB", "3 GiB"]);
  assert.deepEqual([text("events.history", true), text("events.keep", []), text("events.keep", ["a/*", "b\u202e"])], ["yes", "none", "a/*, b\\u{202e}"]);
  assert.equal(settingText({ name: "events.keep", value: ["a/\"*", "\u202e"], default: [] }), '[events]\nkeep = ["a/\\"*", "\\u202e"]');
  assert.equal(tableText({ name: "quota.source", value: { names: "CORR/*", records_per_s: 0 } }), '[[quota.source]]\nnames = "CORR/*"\nrecords_per_s = 0');
  assert.equal(tableText({ name: "target.the night.x", value: { file: "/n" } }), '[target."the night.x"]\nfile = "/n"');
  assert.deepEqual([isSet({ name: "a", value: 1, default: 1, line: 3 }), isSet({ name: "a", value: 1, default: 1, line: null })], [true, false]);
});

test("names of a list are separated by commas", () => {
  assert.deepEqual(namesOf(" a/* ,, b "), ["a/*", "b"]);
  assert.deepEqual(namesOf(" "), []);
});

test("a change of the retention names the data that go", () => {
  const of = (what: string, records: number) => ({ what, records, files: 1, bytes: 1, earliest: null, latest: null });
  assert.equal(removalText(undefined), "remove an unknown number of records for good");
  assert.equal(removalText([of("log records", 0), of("events", 0)]), "use limits that remove nothing at this moment");
  assert.equal(removalText([of("log records", 12), of("events", 0), of("bulk transfers", 3)]), "remove 12 log records, 3 bulk transfers for good");
});

test("tables of the configuration are forms, and go back as they came", () => {
  const route = { name: "route", value: { min_level: "Error", source: ["CORR/*", "A"], to: ["night"], archive: false } };
  const target = { name: "target.night", value: { format: "acs", files: 3 } };
  const source = { name: "quota.source", value: { names: "CORR/*", records_per_s: 0 } };
  assert.deepEqual(valueOf("route", [rowOf("route", route)]), [route.value]);
  assert.deepEqual(valueOf("target", [rowOf("target", target)]), { night: target.value });
  assert.deepEqual(valueOf("quota.source", [rowOf("quota.source", source)]), [source.value]);
  assert.deepEqual(valueOf("route", [emptyRow("route")]), [{}]);
  assert.deepEqual(valueOf("quota.source", [{ ...emptyRow("quota.source"), names: " x ", streams: "many" }]), [{ names: "x", streams: "many" }]);
  const changes = { target: { by: "user:zoe", at: "" } };
  assert.deepEqual([changeOf({ changes }, "target.night")?.by, changeOf({ changes }, "route"), changeOf({ changes }, "toString")], ["user:zoe", undefined, undefined]);
});
