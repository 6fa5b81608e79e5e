import assert from "node:assert/strict";
import { test } from "node:test";

import { EntryPages, PAGE, type PagePart } from "../src/book/pages";
import type { Hit, SearchPage } from "../src/book/types";

/** A hub with entries, and the requests that it got. */
class Hub {
  asked: PagePart[] = [];
  failing = false;
  constructor(public entries: number) {}

  ask = async (part: PagePart): Promise<SearchPage> => {
    this.asked.push(part);
    await Promise.resolve();
    if (this.failing) {
      throw new Error("gone");
    }
    const from = part.after === undefined ? part.skip : Number(part.after);
    const hits = Array.from({ length: Math.max(0, Math.min(PAGE, this.entries - from)) }, (_, nth) => ({ entry: { id: this.entries - from - nth } }) as Hit);
    const next = from + PAGE < this.entries ? { next: String(from + PAGE) } : {};
    const count = part.count ? { count: this.entries <= part.count ? { exactly: this.entries } : { atleast: part.count } } : {};
    return { hits, ...next, ...count };
  };
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
const listOf = (hub: Hub, faults: unknown[] = []): EntryPages => new EntryPages(hub.ask, () => undefined, (problem) => faults.push(problem));

test("a long list is counted, and any place of it is loaded", async () => {
  const hub = new Hub(20_000);
  const list = listOf(hub);
  await list.refresh();
  assert.deepEqual([list.total, list.isExact, list.at(0)?.entry.id, list.at(100)], [20_000, true, 20_000, undefined]);
  list.see(12_340, 12_360);
  await settle();
  assert.deepEqual([list.at(12_345)?.entry.id, list.at(19_999)], [20_000 - 12_345, undefined]);
  // The page that follows a known one is found by its cursor, which costs the same everywhere.
  list.see(12_400, 12_410);
  await settle();
  assert.equal(hub.asked.at(-1)?.after, "12400");
});

test("few pages are held, however far somebody scrolls", async () => {
  const list = listOf(new Hub(20_000));
  await list.refresh();
  for (let row = 0; row < 20_000; row += 30) {
    list.see(row, row + 30);
    await Promise.resolve();
  }
  await settle();
  list.see(19_950, 19_999);
  await settle();
  assert.equal(list.at(19_999)?.entry.id, 1);
  assert.ok(list.held().length <= 14 * PAGE, `${list.held().length}`);
});

test("a refresh shows the new state at once, and a failed one leaves the old", async () => {
  const hub = new Hub(300);
  const faults: unknown[] = [];
  const list = listOf(hub, faults);
  await list.refresh();
  list.see(200, 220);
  await settle();
  hub.entries = 301;
  await list.refresh();
  assert.deepEqual([list.total, list.at(210)?.entry.id, list.at(0)?.entry.id], [301, 91, 301]);
  hub.failing = true;
  await list.refresh();
  assert.deepEqual([list.total, list.at(210)?.entry.id, faults.length], [301, 91, 1]);
});

test("a list of unknown length grows as somebody scrolls", async () => {
  const hub = new Hub(400_000);
  const list = listOf(hub);
  await list.refresh();
  assert.deepEqual([list.total, list.isExact], [200_000, false]);
  const few = listOf(new Hub(3));
  await few.refresh();
  assert.deepEqual([few.total, few.isExact, few.at(2)?.entry.id], [3, true, 1]);
  const none = listOf(new Hub(0));
  await none.refresh();
  assert.deepEqual([none.total, none.isExact, none.isThere], [0, true, true]);
});
