import assert from "node:assert/strict";
import { test } from "node:test";

import { chainOf, type Branch, type ChainRecord } from "../src/log/chain";
import { recordRow } from "../src/log/rows";

/** Records with these levels, in the order of their times; each is named by its letter. */
function chain(text: string): ChainRecord[] {
  const record = (name: string, time: number) => ({ time: BigInt(time), level: "Error", message: name, stack_level: Number(name.slice(1)) }) as Parameters<typeof recordRow>[0];
  return text.split(" ").map((name, time) => recordRow(record(name, time)) as ChainRecord);
}

const shape = (branches: Branch[]): string => branches.map(({ row, causes }) => row.record.message + (causes.length > 0 ? `(${shape(causes)})` : "")).join(" ");

test("branches of one level keep their own causes, whichever end of the chain was logged first", () => {
  assert.equal(shape(chainOf(chain("r0 a1 x2 y3 b1 z2"))), "r0(a1(x2(y3)) b1(z2))");
  assert.equal(shape(chainOf(chain("x2 a1 z2 b1 r0"))), "r0(a1(x2) b1(z2))");
});

test("levels may be missing, and a chain may have several outermost records", () => {
  assert.equal(shape(chainOf(chain("r0 x3 y5 b1"))), "r0(x3(y5) b1)");
  assert.equal(shape(chainOf(chain("a1 b1 x2"))), "a1 b1(x2)");
  assert.equal(shape(chainOf([])), "");
});
