import assert from "node:assert/strict";
import { test } from "node:test";

import { histogram, type Ask } from "../src/log/histogram";
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

/** An archive with a record each second, and what it was asked for, in seconds. */
function archive(first: number) {
  const asked: unknown[] = [];
  const ask: Ask = ({ since, until }, { every_s: every }) => {
    const [from, to] = [since === undefined ? first : Math.max(first, Number(since / SECOND)), until === undefined ? Infinity : Number(until / SECOND)];
    asked.push(every === undefined ? "the first one" : [Number((since ?? 0n) / SECOND), to]);
    const rows = new Map<number, number>();
    for (let second = from; every !== undefined && second < to; second++) {
      const time = Math.floor(second / every) * every * 1e9;
      rows.set(time, (rows.get(time) ?? 0) + 1);
    }
    return Promise.resolve({ total: to - from, earliest: first * 1e9, latest: null, complete: true, rows: [...rows].map(([time, count]) => ({ time, level: "Info", count })) });
  };
  return { asked, ask };
}

test("bars that are known are not counted again", async () => {
  const { signal } = new AbortController();
  const { asked, ask } = archive(1003);
  const range = (until: number) => ({ query: {}, until: BigInt(until) * SECOND });
  const whole = await histogram(ask, range(1403), 0n, signal);
  assert.ok(whole);
  assert.deepEqual(asked.splice(0), ["the first one", [1003, 1403]]);
  const known = { counted: whole, until: 1393n * SECOND };
  const later = await histogram(ask, range(1430), 0n, signal, known);
  assert.deepEqual(asked.splice(0), [[1390, 1430]], "from the beginning of a bar");
  assert.deepEqual(later, await histogram(ask, { ...range(1430), since: 1000n * SECOND }, 0n, signal));
  asked.splice(0);
  const longer = await histogram(ask, range(1700), 0n, signal, known);
  assert.deepEqual(asked.splice(0), [[1000, 1700]], "bars of another length are");
  assert.equal(longer?.total, 697);
  await histogram(ask, range(1430), 0n, signal, { ...known, counted: { ...whole, complete: false } });
  assert.deepEqual(asked.splice(0), [[1000, 1430]], "a count that was cut is");
  const moved = await histogram(ask, { query: {}, since: 1050n * SECOND, until: 1450n * SECOND }, 0n, signal, known);
  assert.deepEqual([asked.splice(0), moved?.from, moved?.total], [[[1390, 1450]], 1050n * SECOND, 400]);
});

test("the earliest late second is known", () => {
  const tally = new Tally();
  tally.begin(10);
  [12, 7, 8].forEach((second) => tally.add(at(second), "Info"));
  assert.equal(tally.late, 7);
  tally.end();
  assert.equal(tally.late, undefined);
});
