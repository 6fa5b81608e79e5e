import assert from "node:assert/strict";
import { test } from "node:test";

import { columnOf, SLOTS, spansOf, timesOf, type Cell } from "../src/attribute/grid";
import { markOf, msOf, nanosOf, pointOf } from "../src/attribute/kept";
import { Trace, type Point } from "../src/attribute/trace";

const point = (time: number, value: number, number = time, life = "a"): Point => ({ time, value, quality: "valid", life, number: BigInt(number) });

function traceOf(points: Point[]): Trace {
  const trace = new Trace();
  points.forEach((one) => trace.add(one));
  return trace;
}

/** Values of a column with their pixels, without empty places; the first `null` of an interruption stands for all. */
const filled = (values: readonly Cell[]) => values.flatMap((value, at) => (value === undefined || (value === null && values[at - 1] === null) ? [] : [[Math.floor(at / SLOTS), value]]));

test("readings come once and in the order of time", () => {
  const trace = traceOf([point(1, 10), point(3, 30), point(2, 20), point(3, 30), point(3, 31, 4)]);
  assert.deepEqual(trace.points.map(({ value }) => value), [10, 20, 30, 31]);
});

test("history and live readings join by number", () => {
  const trace = traceOf([point(5, 5), point(6, 6), point(7, 7)]);
  trace.join({ intervals: [], points: [point(3, 3), point(5, 5), point(6, 6)], marks: [{ time: 4, kind: "gap", note: "" }] });
  assert.deepEqual(trace.points.map(({ value }) => value), [3, 5, 6, 7]);
  assert.equal(trace.marks.length, 1);
  // The same number of another life is another reading.
  trace.join({ intervals: [], points: [point(6, 60, 7, "b")], marks: [] });
  assert.deepEqual(trace.points.map(({ value }) => value).toSorted((one, other) => one - other), [3, 5, 6, 7, 60]);
});

test("live readings within the intervals of the history are not there twice", () => {
  const trace = traceOf([point(5, 5), point(15, 15), point(25, 25)]);
  const interval = { time: 0, end: 20, count: 9, numbers: 9, min: 1, max: 99, mean: 5, first: 2, last: 3, quality: "alarm" as const };
  trace.join({ intervals: [interval], points: [point(22, 22)], marks: [] });
  assert.deepEqual(trace.points.map(({ value }) => value), [22, 25]);
  const all = trace.statistics(0, 30);
  assert.deepEqual([all.count, all.min, all.max, all.first, all.last, all.deviation], [11, 1, 99, 2, 25, undefined]);
  assert.equal(all.mean, (9 * 5 + 22 + 25) / 11);
});

test("memory is bounded and no peak is lost", () => {
  const trace = new Trace();
  for (let nth = 0; nth < 100_000; nth++) {
    trace.add(point(nth, nth === 777 ? 1e6 : nth === 60_000 ? -1e6 : nth % 10));
  }
  assert.ok(trace.points.length <= 20_000 && trace.intervals.length <= 20_000);
  const { count, min, max, last } = trace.statistics(0, 1e9);
  assert.deepEqual([count, min, max, last], [100_000, -1e6, 1e6, 9]);
});

test("statistics are those of the range", () => {
  const trace = traceOf([point(1, 1e9 + 1), point(2, 1e9 + 2), point(3, 1e9 + 3), point(4, NaN), point(5, 7)]);
  const { count, min, max, mean, deviation } = trace.statistics(1, 4);
  assert.deepEqual([count, min, max, mean], [4, 1e9 + 1, 1e9 + 3, 1e9 + 2]);
  assert.ok(Math.abs((deviation ?? 0) - Math.sqrt(2 / 3)) < 1e-9);
  assert.ok(Number.isNaN(trace.statistics(100, 200).min));
});

test("a pixel keeps the least and the largest value in their order", () => {
  const trace = traceOf([point(1, 5), point(2, 9), point(3, 1), point(4, 6), point(11, 2), point(12, 3)]);
  const { values } = columnOf(trace, { from: 0, to: 100 }, 10, "line", 12, false);
  assert.deepEqual(filled(values).slice(0, 4), [[0, 9], [0, 1], [1, 2], [1, 3]]);
  assert.equal(timesOf({ from: 0, to: 100_000 }, 10).length, values.length);
});

test("missing events and the death of a source interrupt the line", () => {
  const trace = traceOf([point(5, 1), point(45, 2), point(65, 3)]);
  trace.mark({ time: 5, kind: "gap", note: "" });
  const { values } = columnOf(trace, { from: 0, to: 100 }, 10, "line", 100, false);
  assert.deepEqual(filled(values), [[0, 1], [0, null], [4, 2], [6, 3], [10, 3]]);
  assert.deepEqual(spansOf(trace, { from: 0, to: 100 }, 100).map(({ from, to }) => [from, to]), [[5, 45]]);
  trace.mark({ time: 70, kind: "died", note: "" });
  const dead = columnOf(trace, { from: 0, to: 100 }, 10, "line", 100, false);
  // A value of a dead source holds no longer.
  assert.deepEqual(filled(dead.values).slice(-2), [[6, 3], [6, null]]);
  assert.ok(dead.values.slice(-10).every((value) => value === null));
  // Steps hold the value until the source goes.
  assert.deepEqual(filled(columnOf(trace, { from: 0, to: 100 }, 10, "steps", 100, false).values).slice(-3), [[6, 3], [6, 3], [7, null]]);
  assert.equal(trace.holdsAt(69)?.time, 65);
  assert.equal(trace.holdsAt(71), undefined);
  assert.deepEqual(spansOf(trace, { from: 0, to: 100 }, 90).map(({ from, to }) => [from, to]), [[5, 45], [70, 90]]);
});

test("the value before the range holds at its begin", () => {
  const trace = traceOf([point(-10, 4), point(30, 8)]);
  const steps = columnOf(trace, { from: 0, to: 100 }, 10, "steps", 50, false);
  assert.deepEqual(filled(steps.values), [[0, 4], [3, 8], [5, 8]]);
  const line = columnOf(trace, { from: 0, to: 100 }, 10, "line", 50, false);
  assert.deepEqual(filled(line.values)[0], [0, 5]);
});

test("a reading without a number interrupts, and a logarithmic axis has positive values only", () => {
  const trace = traceOf([point(5, 1), point(15, NaN), point(25, -3), point(35, 4)]);
  assert.deepEqual(filled(columnOf(trace, { from: 0, to: 100 }, 10, "line", 35, false).values), [[0, 1], [0, null], [2, -3], [3, 4]]);
  assert.deepEqual(filled(columnOf(trace, { from: 0, to: 100 }, 10, "line", 35, true).values), [[0, 1], [0, null], [3, 4]]);
});

test("qualities other than valid are marked", () => {
  const trace = traceOf([point(5, 1), { ...point(15, 2), quality: "alarm" }, { ...point(16, 2), quality: "alarm" }]);
  assert.deepEqual(columnOf(trace, { from: 0, to: 100 }, 10, "line", 20, false).flaws, [{ at: SLOTS, quality: "alarm" }]);
});

test("times keep their nanoseconds as far as a number can", () => {
  assert.equal(msOf("2026-11-29T16:03:51.500000000Z"), Date.UTC(2026, 10, 29, 16, 3, 51) + 500);
  assert.equal(nanosOf(msOf("2026-11-29T16:03:51.123456000Z")) / 1000n, 1_795_968_231_123_456n);
});

test("rows of the API are readings or marks", () => {
  const row = { name: "a/b/c/d", source: "s", incarnation: "i", kinds: [], sequence: "12345678901234567890", time: "2026-11-29T16:03:51.500000000Z", value: null, text: "" };
  assert.equal(markOf({ ...row, reason: "source died" })?.kind, "died");
  assert.equal(markOf({ ...row, reason: "update" }), undefined);
  assert.equal(pointOf({ ...row, value: [1, 2] }, 1).value, 2);
  assert.equal(pointOf(row, undefined).number, 12345678901234567890n);
});
