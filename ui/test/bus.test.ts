import assert from "node:assert/strict";
import { test } from "node:test";

import { isIll, pairsOf, Rates, rateText, type StreamReader } from "../src/site/bus";

const reader = (writer: string, name: string, more: Partial<StreamReader> = {}): StreamReader => ({
  reader: name, process: null, topic: "log/info", writer, stream: 0, state: "live", reliable: true, behind: 0, lost: 0, ...more,
});

test("rates are the differences of counters, and a new life begins anew", () => {
  const rates = new Rates();
  rates.take([["a", 100]], 1000);
  assert.deepEqual(rates.of("a"), []);
  rates.take([["a", 150]], 3000);
  assert.deepEqual(rates.of("a"), [25]);
  rates.take([["a", 10]], 4000);
  assert.deepEqual(rates.of("a"), [25]);
  rates.take([["a", 20], ["b", 1]], 5000);
  assert.deepEqual(rates.of("a"), [25, 10]);
  rates.take([["b", 1]], 6000);
  assert.deepEqual([rates.of("a"), rates.of("b")], [[], [0]]);
  for (let look = 0; look < 100; look++) {
    rates.take([["b", 1]], 7000 + look);
  }
  assert.equal(rates.of("b").length, 60);
});

test("levels are kept as they are", () => {
  const rates = new Rates();
  rates.take([], 1000, [["disk", 7], ["spool", 0]]);
  rates.take([["a", 1]], 2000, [["disk", 5]]);
  assert.deepEqual([rates.of("disk"), rates.of("spool")], [[7, 5], []]);
});

test("readers of two processes are one pair, ill ones first", () => {
  const readers = [reader("w", "b"), reader("w", "b", { topic: "log/error", behind: 3 }), reader("v", "c"), reader("z", "y", { lost: 2 })];
  assert.deepEqual(pairsOf(readers, "").map(({ writer, reader: of, topics, behind }) => [writer, of, topics.length, behind]), [["z", "y", 1, 0], ["v", "c", 1, 0], ["w", "b", 2, 3]]);
  assert.deepEqual(pairsOf(readers, " Error").map(({ writer }) => writer), ["w"]);
  assert.deepEqual(["live", "catching_up", "lagging"].map((state) => isIll({ state, lost: 0 })), [false, false, true]);
});

test("rates are short", () => {
  assert.deepEqual([undefined, 0, 0.25, 15.2, 3400, 1_200_000, 25e9].map(rateText), ["", "0", "0.3", "15", "3.4 k", "1.2 M", "25 G"]);
});
