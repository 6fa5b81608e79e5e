import assert from "node:assert/strict";
import { test } from "node:test";

import { chosen, parts, type Parts, type Side } from "../src/book/merge-entry";
import { fileOf } from "../src/book/rendered";
import { fieldOf } from "../src/book/search-field";

const made = (values: Record<string, string[]>, more: Partial<Parts> = {}): Parts => ({
  text: "text",
  encoding: "markdown",
  attributes: Object.entries(values).map(([name, list]) => ({ name, values: list })),
  attachments: [],
  links: [],
  ...more,
});
const several = (name: string): boolean => name === "System";
const merge = (base: Parts, mine: Parts, theirs: Parts, sides: Record<string, Side> = {}) => {
  const all = parts(base, mine, theirs, several);
  return { all, result: chosen(mine, theirs, all, Object.fromEntries(all.map((part) => [part.key, sides[part.key] ?? part.side]))) };
};
const valueOf = (entry: Parts, name: string): string[] | undefined => entry.attributes.find((one) => one.name === name)?.values;

test("parts that one person changed have that change", () => {
  const base = made({ Type: ["Routine"], Author: ["Zoe"] });
  const { all, result } = merge(base, made({ Type: ["Fixed"], Author: ["Zoe"] }), made({ Type: ["Routine"], Author: ["Max"], Shift: ["night"] }, { text: "theirs" }));
  assert.deepEqual(all.map(({ key, side }) => [key, side]), [["text", "theirs"], ["attribute Type", "mine"], ["attribute Author", "theirs"], ["attribute Shift", "theirs"]]);
  assert.deepEqual([valueOf(result, "Type"), valueOf(result, "Author"), valueOf(result, "Shift"), result.text], [["Fixed"], ["Max"], ["night"], "theirs"]);
});

test("a value that both changed is for a person to choose", () => {
  const base = made({ Type: ["Routine"] });
  const [mine, theirs] = [made({ Type: ["Fixed"] }), made({ Type: ["Problem"] })];
  const { all } = merge(base, mine, theirs);
  assert.deepEqual(all.map(({ key, side, both }) => [key, side, both]), [["attribute Type", undefined, undefined]]);
  for (const side of ["mine", "theirs"] as const) {
    assert.deepEqual(valueOf(merge(base, mine, theirs, { "attribute Type": side }).result, "Type"), side === "mine" ? ["Fixed"] : ["Problem"]);
  }
  // A value that I removed, and they changed.
  assert.equal(merge(base, made({}), theirs).all[0]?.side, undefined);
  assert.deepEqual(merge(base, made({}), made({ type: ["Routine"] })).result.attributes, []);
});

test("lists have what either added, and not what either removed", () => {
  const file = (name: string, sha: string) => ({ name, size: 1, sha });
  const link = (target: string) => ({ kind: "run" as const, target });
  const base = made({ System: ["A", "B"] }, { links: [link("1"), link("2")], attachments: [file("a", "1"), file("b", "2")] });
  const mine = made({ System: ["B", "C"] }, { links: [link("1"), link("3")], attachments: [file("a", "1"), file("b", "2"), file("plot", "3")] });
  const theirs = made({ System: ["A", "B", "D"] }, { links: [link("2"), link("4")], attachments: [file("b", "2"), file("plot", "4")] });
  const { result } = merge(base, mine, theirs);
  assert.deepEqual(valueOf(result, "System"), ["B", "D", "C"]);
  assert.deepEqual(result.links?.map(({ target }) => target), ["4", "3"]);
  assert.deepEqual(result.attachments?.map(({ name, sha }) => `${name}${sha}`), ["b2", "plot4", "plot3"], "two files of one name");
  // The hub does not give back a file that they removed.
  assert.deepEqual(merge(base, mine, theirs, { files: "mine" }).result.attachments?.map(({ sha }) => sha), ["2", "3"]);
  assert.deepEqual(merge(base, mine, theirs, { links: "theirs" }).result.links?.map(({ target }) => target), ["2", "4"]);
});

test("addresses of files are found as they were written and as they are stored", () => {
  const files = [
    { name: "a b.png", added: "2026-11-29T20:15:07.000000000Z" },
    { name: "old.png", elog: "080910_002051_old.png" },
    { name: "odd.png", elog: "odd.png", added: "2026-11-29T20:15:08.000000000Z" },
  ];
  for (const [address, nth] of [
    ["attachment:a%20b.png", 0],
    ["261129_201507/a_b.png", 0],
    ["080910_002051/old.png", 1],
    ["080910_002051_old.png", 1],
    ["261129_201508/odd.png", 2],
    ["attachment:none.png", -1],
    ["261129_201509/a_b.png", -1],
    ["https://example.org/a.png", -1],
    ["attachment:%ff", -1],
    ["undefined/x", -1],
  ] as const) {
    assert.equal(fileOf(address, files), nth, address);
  }
});

test("an attribute is a field of the search", () => {
  assert.deepEqual(["Type", "Run number", 'a"b', "Größe"].map(fieldOf), ["Type:", '"Run number":', '"a b":', "Größe:"]);
});
