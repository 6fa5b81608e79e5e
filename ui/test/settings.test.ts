import assert from "node:assert/strict";
import { test } from "node:test";

import { cleaned, linesOf, wordsOf } from "../src/settings/fields";

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
