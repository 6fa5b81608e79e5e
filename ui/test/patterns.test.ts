import assert from "node:assert/strict";
import { test } from "node:test";

import { emptyFilter, filterText, parseFilter } from "../src/log/filter";
import { keyOf, withPattern, type Pattern } from "../src/log/patterns";

const site = '(file = "f.rs" and line = 7 and not routine and level = Info)';
const text = String.raw`(not (file and line > 0) and message ~ "^moved to ([0-9]|'[^']*'|\"[^\"]*\") mm$" and not routine and level = Info)`;

test("a pattern's condition is added to the filter's own", () => {
  const own = { ...emptyFilter(), where: "a = 1 or b = 2", regex: "moved" };
  const only = withPattern(own, site, true);
  assert.equal(only.where, `(a = 1 or b = 2) and ${site}`);
  assert.deepEqual([only.regex, only.fields, own.where], ["moved", {}, "a = 1 or b = 2"]);
  const without = withPattern(only, text, false);
  assert.equal(without.where, `(${only.where}) and not ${text}`);
  assert.equal(withPattern(withPattern(emptyFilter(), site, true), site, false).where, `${site} and not ${site}`);
  [only, without, withPattern(emptyFilter(), text, true)].forEach((filter) => assert.deepEqual(parseFilter(filterText(filter)), filter));
});

test("a pattern of texts is told apart by its condition, one of a place by the place", () => {
  const of = (file: string, message: string, condition: string | null): Pattern => ({ level: "Info", file, line: 7, routine: "r", message, count: 1, sources: 1, bins: [], condition });
  assert.equal(keyOf(of("F.rs", "a", "1")), keyOf(of("f.rs", "b", "2")));
  assert.notEqual(keyOf(of("", "a", "1")), keyOf(of("", "a", "2")));
  assert.notEqual(keyOf(of("", "a", null)), keyOf(of("", "b", null)));
});
