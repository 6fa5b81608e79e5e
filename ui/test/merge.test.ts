import assert from "node:assert/strict";
import { test } from "node:test";

import { difference, merged } from "../src/book/merge";

test("a difference leads from one text to the other", () => {
  for (const [from, to] of [["a\nb\nc", "a\nx\nc"], ["", "a"], ["a\nb", "b\na"], ["a\n\na", "a"], ["same", "same"]] as const) {
    const pieces = difference(from, to);
    const side = (without: string) => pieces.filter(({ kind }) => kind !== without).flatMap(({ lines }) => lines).join("\n");
    assert.equal(side("new"), from);
    assert.equal(side("gone"), to);
  }
  assert.deepEqual(difference("a\nb\nc", "a\nx\nc").map(({ kind }) => kind), ["same", "gone", "new", "same"]);
});

test("changes of different lines are merged, and of the same lines marked", () => {
  assert.deepEqual(merged("a\nb\nc\nd", "A\nb\nc\nd", "a\nb\nc\nD"), { text: "A\nb\nc\nD", conflicts: 0 });
  assert.deepEqual(merged("a\nb", "a\nb\nmine", "a\nb"), { text: "a\nb\nmine", conflicts: 0 });
  assert.deepEqual(merged("a", "b", "b"), { text: "b", conflicts: 0 });
  const both = merged("a\nb\nc", "a\nmine\nc", "a\ntheirs\nc");
  assert.equal(both.conflicts, 1);
  assert.equal(both.text, "a\n<<<<<<< mine\nmine\n=======\ntheirs\n>>>>>>> theirs\nc");
});
