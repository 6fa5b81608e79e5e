import assert from "node:assert/strict";
import { test } from "node:test";

import { SECOND, Tally, withLive, type Histogram } from "../src/log/tally";

const at = (second: number) => BigInt(second) * SECOND + 5n;
const bar = (from: number, count: number) => ({ from: BigInt(from) * SECOND, counts: count > 0 ? { Info: count } : {}, total: count });
const base: Histogram = { from: 100n * SECOND, to: 120n * SECOND, every: 10n * SECOND, bars: [bar(100, 3), bar(110, 4)], total: 7, highest: 4, complete: true };
const totals = ({ bars }: Histogram) => bars.map(({ from, total }) => [Number(from / SECOND), total]);

test("live records go on where the count of the archive ends, and bars come and go with the time", () => {
  const tally = new Tally();
  tally.begin(112);
  [111, 112, 114, 119, 121, 133].forEach((second) => tally.add(at(second), "Info"));
  tally.add(at(121), "Error");
  // The archive has been counted to 114.
  const shown = withLive(base, tally, 114, at(134), 105n * SECOND);
  assert.deepEqual(totals(shown), [[100, 3], [110, 6], [120, 2], [130, 1]]);
  assert.deepEqual([shown.total, shown.highest, shown.bars[2]?.counts, Number(shown.to / SECOND)], [12, 6, { Info: 1, Error: 1 }, 140]);
  const later = withLive(base, tally, 114, at(134), 111n * SECOND);
  assert.deepEqual([totals(later), later.total], [[[110, 6], [120, 2], [130, 1]], 9], "bars before the range are gone");
  assert.deepEqual(totals(base), [[100, 3], [110, 4]], "the count itself stays");
});

test("a subscription that begins again counts its seconds anew", () => {
  const tally = new Tally();
  tally.add(at(5), "Info");
  assert.equal(tally.since(0).length, 0, "nothing is counted before the begin");
  tally.begin(10);
  [9, 10, 11, 11].forEach((second) => tally.add(at(second), "Info"));
  assert.deepEqual(tally.since(0), [[10, { Info: 1 }], [11, { Info: 2 }]]);
  tally.begin(11);
  tally.add(at(11), "Info");
  assert.deepEqual([tally.from, tally.since(0)], [10, [[10, { Info: 1 }], [11, { Info: 1 }]]]);
  tally.forget(11);
  tally.add(at(10), "Info");
  assert.deepEqual([tally.from, tally.since(0)], [11, [[11, { Info: 1 }]]], "the archive has them");
  tally.end();
  assert.deepEqual([tally.from, tally.since(0)], [undefined, []]);
});
