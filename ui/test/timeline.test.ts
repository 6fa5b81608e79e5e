import assert from "node:assert/strict";
import { test } from "node:test";

import { timeOf, type Nanos } from "../src/lib/time";
import { filterParameters, nanosOf, timelineOf, type Answer, type History } from "../src/timeline/data";
import { Gestures } from "../src/timeline/gestures";
import { alarmsOf, boxesOf, clustersOf, kindOf, logPaths, plotOf, segmentsOf, valueAt } from "../src/timeline/picture";
import { allowed, place, SHORTEST, spanOf, timeAt, zoomed } from "../src/timeline/range";
import { countsAt, readoutOf, statisticsOf } from "../src/timeline/readout";
import { parametersOf, shownOf } from "../src/timeline/shown";
import { plain } from "../src/lib/markdown";
import { summaryOf } from "../src/timeline/summary";
import { ticks } from "../src/timeline/ticks";

const AT = timeOf("2026-11-29T16:00:00Z", 0n, "utc") as Nanos;
const SECOND = 1_000_000_000n;
const range = { from: AT, to: AT + 100n * SECOND };
const SIZE = { width: 1000, height: 60 };

const time = (seconds: number, rest = 0) => new Date(Number(AT / 1_000_000n) + seconds * 1000).toISOString().replace("000Z", `000${rest.toString().padStart(6, "0")}Z`);
/** Members of each row of the API. */
const ROW = { name: "a/b/c/d", source: "s", incarnation: "i", sequence: "1", kinds: [] };
/** Members of each history. */
const WHOLE = { since: time(0), until: time(100), marks_left_out: 0 };
const reading = (seconds: number, value: unknown, text = String(value), quality = "valid") => ({ ...ROW, time: time(seconds), value, text, quality });

function history(values: ReturnType<typeof reading>[], marks: { time: string; reason: string; value: null; text: string }[] = []): History {
  const events = [{ ...WHOLE, name: "a/b/c/d", unit: "K", decimated: false, every_ns: "1000000000", points: [], values, marks: marks.map((mark) => ({ ...ROW, ...mark })), count: values.length, complete: true }];
  return timelineOf({ since: time(0), until: time(100), log: null, events, transfers: [], entries: [], cut: [], missing: [] }).histories[0] as History;
}

test("a zoom from a year to a microsecond keeps the time below the pointer", () => {
  const at = AT + 123_456_789n;
  let zoom = allowed(at - 200n * 86_400n * SECOND, at + 165n * 86_400n * SECOND);
  const part = place(zoom, at);
  for (let nth = 0; spanOf(zoom) > SHORTEST; nth++) {
    zoom = zoomed(zoom, at, 0.5);
    assert.ok(nth < 100);
  }
  assert.equal(spanOf(zoom), 1000n);
  assert.ok(zoom.from <= at && at < zoom.to, "the time is still in sight");
  assert.ok(Math.abs(place(zoom, at) - part) < 0.01, `${place(zoom, at)} ${part}`);
  assert.equal(timeAt(zoom, place(zoom, at)), at);
});

test("ticks are at round times", () => {
  const texts = (from: string, to: string, most = 6) => ticks({ from: timeOf(from, 0n, "utc") as Nanos, to: timeOf(to, 0n, "utc") as Nanos }, "utc", most).map(({ text }) => text);
  assert.deepEqual(texts("2026-11-29T16:00:00.000000100Z", "2026-11-29T16:00:00.000001100Z"), ["00.0000002", "00.0000004", "00.0000006", "00.0000008", "00.0000010"]);
  assert.deepEqual(texts("2026-11-29T16:00:01Z", "2026-11-29T16:00:20Z"), ["16:00:05", "16:00:10", "16:00:15"]);
  assert.deepEqual(texts("2026-11-29T20:00:00Z", "2026-11-30T05:00:00Z"), ["20:00", "22:00", "11-30", "02:00", "04:00"]);
  assert.deepEqual(texts("2026-11-28T20:00:00Z", "2026-12-02T05:00:00Z"), ["2026-11-29", "2026-11-30", "2026-12-01", "2026-12-02"]);
  assert.deepEqual(texts("2026-01-15T00:00:00Z", "2027-01-15T00:00:00Z"), ["2026-04", "2026-07", "2026-10", "2027-01"]);
  assert.ok(texts("1997-01-15T00:00:00Z", "2027-01-15T00:00:00Z").length >= 3);
});

test("an address keeps the whole state", () => {
  const shown = { range, lanes: ["log", "entries"], attributes: ["a/b/c,1/d", "e/f/g/50%"], filter: "--min-level Warning", at: AT + 1n, speed: 60 } as const;
  const parameters = new URLSearchParams(Object.entries(parametersOf(shown)).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== ""));
  assert.deepEqual(shownOf(parameters, AT), shown);
  const live = shownOf(new URLSearchParams("last=15m&event=a/b/c/d,A/B/c/d&speed=7&at=soon"), AT);
  assert.deepEqual(live, { range: { last: 900n * SECOND }, lanes: ["log", "alarms", "transfers", "entries"], attributes: ["A/B/c/d"], filter: "" });
  assert.deepEqual(shownOf(new URLSearchParams("lanes=none"), AT).lanes, []);
});

test("a filter has the names of the API's parameters", () => {
  assert.deepEqual(filterParameters("--min-level Warning --source 'A*' --not level=Info --since 1h lock 'two words'"), { min_level: ["Warning"], source: ["A*"], not: ["level=Info"], word: ["lock", "two words"] });
});

test("a value holds until the next one, and not beyond a gap", () => {
  const known = history([reading(10, 1), reading(20, 3)], [{ time: time(50), reason: "source died", value: null, text: "" }]);
  assert.equal(kindOf(known), "numbers");
  assert.equal(valueAt(known, AT + 15n * SECOND)?.number, 1);
  assert.equal(valueAt(known, AT + 20n * SECOND)?.number, 3);
  assert.equal(valueAt(known, AT + 9n * SECOND), undefined);
  assert.equal(valueAt(known, AT + 60n * SECOND), undefined);
  assert.equal(valueAt({ ...known, before: { at: AT - SECOND, number: 7, text: "7", quality: "valid", error: "" } }, AT)?.number, 7);
  const plot = plotOf(known, range, SIZE, range.to);
  assert.equal(plot?.line, "M100 56.8H200V3.2H500");
  assert.equal(plotOf(known, range, SIZE, AT + 30n * SECOND)?.line, "M100 56.8H200V3.2H300", "nothing is drawn beyond the present");
});

test("many events are intervals with their least and largest value", () => {
  const points = [{ time: time(10), count: 5, min: 1, max: 9, mean: 4, last: 2, quality: "alarm" }, { time: time(11), count: 1, min: 5, max: 5, mean: 5, last: 5, quality: "valid" }];
  const events = [{ ...WHOLE, name: "a/b/c/d", unit: "", decimated: true, every_ns: "1000000000", points, values: [], marks: [], count: 6, complete: true }];
  const [many] = timelineOf({ since: time(0), until: time(100), log: null, events, transfers: [], entries: [], cut: [], missing: [] } satisfies Answer).histories as [History];
  assert.equal(plotOf(many, range, SIZE, range.to)?.band.match(/M/g)?.length, 2);
  assert.equal(readoutOf(many, AT + 10n * SECOND)?.text, "4 (1…9)");
  assert.equal(readoutOf(many, AT + 30n * SECOND)?.text, "5");
  assert.deepEqual(statisticsOf(many, range), { low: 1, high: 9, mean: 25 / 6, count: 6 });
  assert.deepEqual(alarmsOf(many, range, 1000, range.to).map(({ left, width, quality }) => [left, width, quality]), [[100, 10, "alarm"]]);
});

test("states and alarms are segments", () => {
  const states = history([reading(0, "ON"), reading(10, "FAULT", "FAULT", "alarm"), reading(20, "FAULT", "FAULT", "alarm"), reading(30, "ON")]);
  assert.equal(kindOf(states), "states");
  assert.deepEqual(segmentsOf(states, range, 100, range.to).map(({ left, width, text }) => [left, width, text]), [[0, 10, "ON"], [10, 20, "FAULT"], [30, 70, "ON"]]);
  assert.deepEqual(alarmsOf(states, range, 100, range.to).map(({ left, width }) => [left, width]), [[10, 20]]);
  assert.equal(kindOf(history([reading(1, [1, 2], "[1, 2]")])), "marks");
  assert.equal(history([reading(1, "9007199254740993")]).values[0]?.number, 9_007_199_254_740_992);
});

test("each level of a bar can be seen", () => {
  const log = { start: AT, every: SECOND, bins: 100, total: 1001, levels: [{ level: "Error" as const, counts: [0, 1] }, { level: "Debug" as const, counts: [0, 1000] }], complete: true };
  const paths = logPaths(log, range, SIZE);
  assert.equal(paths[0]?.d, "M10 60v-1.5h8.6v1.5z");
  assert.ok(paths[1]?.d.startsWith("M10 58.5v-"));
  assert.deepEqual(countsAt(log, AT + SECOND), { total: 1001, text: "1 Error, 1000 Debug" });
  assert.equal(countsAt(log, AT - 1n), undefined);
});

test("transfers that overlap have rows of their own, and near entries are one sign", () => {
  const transfer = (id: string) => ({ id, stream: "s", flow: "f", transfer: "1", source: "", incarnation: "", parameter: "", file: null, size: null, began: "", ended: null, outcome: "complete", bytes: 1, seconds: 1, bytes_per_s: 1, receivers: 1, lost_bytes: 0, why: [], host: "", deliveries: [] });
  const bars = [{ from: AT, to: AT + 50n * SECOND, transfer: transfer("a") }, { from: AT + 40n * SECOND, transfer: transfer("b") }, { from: AT + 60n * SECOND, to: AT + 70n * SECOND, transfer: transfer("c") }];
  assert.deepEqual(boxesOf(bars, range, 1000, AT + 90n * SECOND, 3).map(({ left, width, row }) => [left, width, row]), [[0, 500, 0], [400, 500, 1], [600, 100, 0]]);
  const entry = (seconds: number) => ({ at: AT + BigInt(seconds) * SECOND, book: "b", id: seconds, by: "", title: "" });
  assert.deepEqual(clustersOf([entry(1), entry(2), entry(50)], range, 1000, 22).map(({ entries }) => entries.length), [2, 1]);
});

test("times of the API have nanoseconds", () => {
  assert.equal(nanosOf("2026-11-29T16:00:00.000000001Z"), AT + 1n);
});

test("a summary names what is in sight, and runs nothing", () => {
  const name = "a/b/c/<img src=x>|`*_";
  const answer: Answer = {
    since: time(0), until: time(100), cut: ["entries"], missing: [],
    log: { since: time(0), until: time(100), start: time(0), every_ns: "50000000000", bins: 2, total: 5, levels: { Error: [2, 3] }, complete: true },
    events: [{ ...WHOLE, name, unit: "K", decimated: false, every_ns: "1", points: [], values: [reading(10, 4.5, "4.5", "alarm")], marks: [], count: 1, complete: true }],
    transfers: [{ id: "i.1.s#f", stream: "s", flow: "f", transfer: "1", source: "", incarnation: "", parameter: "", file: null, size: null, began: time(5), ended: time(9), outcome: "incomplete", bytes: 1000, seconds: 4, bytes_per_s: 1, receivers: 1, lost_bytes: 500, why: [], host: "", deliveries: [] }],
    entries: [{ book: "Shift log", id: 7, date: time(30), by: "zoe", title: "[click](javascript:x)", links: [] }],
  };
  const text = summaryOf(timelineOf(answer), range, AT + 20n * SECOND, "--min-level Error `x`", "http://h/timeline?from=1");
  assert.match(text, /Records: 5 Error/);
  assert.match(text, /\| 4\.5 K \(alarm\) \| 4\.5 \| 4\.5 \| 4\.5 \| 1 \|/);
  assert.ok(text.includes("Logbook: there were more than 1") && !text.includes("Transfers: there were more"));
  assert.match(text, /incomplete, 1\.0 kB, 500 B lost/);
  assert.match(text, /\]\(http:\/\/h\/timeline\?from=1\)/);
  assert.ok(!/[^\\](?:<img|\[click)/.test(text) && text.includes("`` --min-level Error `x` ``"), text);
  assert.equal(plain("a*b|c\n"), "a\\*b\\|c⏎");
});

test("a short press is a click, a longer way a drag, and two fingers zoom", () => {
  const done: string[] = [];
  const note = (name: string) => (...values: unknown[]) => void done.push(`${name} ${values.filter((value) => typeof value === "number").join(" ")}`);
  const gestures = new Gestures({ brush: note("brush"), brushed: note("brushed"), pan: note("pan"), pinch: note("pinch"), click: note("click"), cancelled: note("cancelled") });
  const target = {} as Element;
  gestures.press({ id: 1, x: 10, moves: false });
  gestures.move(1, 12);
  gestures.release(1, 12, target);
  gestures.press({ id: 1, x: 10, moves: false });
  gestures.move(1, 40);
  gestures.release(1, 50, target);
  gestures.press({ id: 2, x: 100, moves: true });
  gestures.move(2, 120);
  gestures.press({ id: 3, x: 220, moves: true });
  gestures.move(3, 320);
  gestures.release(3, 320, target);
  gestures.release(2, 120, target);
  assert.deepEqual(done, ["click 12", "brush 10 40", "brushed 10 50", "pan 20", "pinch 220 0.5"]);
});
