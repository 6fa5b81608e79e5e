import assert from "node:assert/strict";
import { test } from "node:test";

import { choicesOf, choicesText, keyOf, MOST_CHOSEN, timelineNames, toggled } from "../src/attribute/choice";
import { changeOf, fieldsOf } from "../src/attribute/criteria";
import { cellOf } from "../src/attribute/csv";
import { coloursOf, extent, paint } from "../src/attribute/colours";
import { matcherOf, namesOf, rowsOf, treeOf, type Attribute, type Config } from "../src/attribute/directory";
import { causesOf, rivals, standing, type Facts } from "../src/attribute/doctor";
import { limitsOf, linesOf } from "../src/attribute/lines";
import { scaleWith } from "../src/attribute/plot";
import { ageText, jsonNumber, numberText, valueText } from "../src/attribute/values";

const config: Config = {
  name: "a/b/c/d", data_type: "DevDouble", format: "scalar", unit: "V", label: "", description: "", labels: [], limits: {}, max_x: 1, max_y: 0, polled_ms: 100, writable: "read",
  criteria: { change: { abs: "0.5", rel: null }, archive: { abs: null, rel: "-1,2" }, archive_period_ms: null, period_ms: 1000 },
};
const attribute = (name: string, more: Partial<Attribute> = {}): Attribute => ({
  name, source: "s", incarnation: "i", type: "DevDouble", format: "scalar", unit: "", label: "", description: "", sequence: "1", epoch: 1, config, ...more,
});

test("the address names attributes and elements", () => {
  const choices = choicesOf("a/b/c/d*A/B/C/D*x/y/z/w#3*nonsense**a/b/c/e#x");
  assert.deepEqual(choices, [{ name: "a/b/c/d" }, { name: "x/y/z/w", element: 3 }, { name: "a/b/c/e" }]);
  assert.deepEqual(choicesOf(choicesText(choices)), choices);
  assert.deepEqual(toggled(choices, { name: "A/b/c/d" }).map(keyOf), ["x/y/z/w#3", "a/b/c/e"]);
  assert.equal(timelineNames([{ name: "a/b/c,d/e" }, { name: "A/b/c,d/e", element: 2 }, { name: "x/y/z/w" }]), "A/b/c%2Cd/e,x/y/z/w");
  const many = Array.from({ length: 100 }, (_, nth) => `a/b/c/${nth}`).join("*");
  assert.equal(choicesOf(many).length, MOST_CHOSEN);
  assert.equal(toggled(choicesOf(many), { name: "q/q/q/q" }).length, MOST_CHOSEN);
});

test("a plot has the limits of its attributes, and its axis those that are near", () => {
  const limits = { min: null, max: 90, alarm_low: null, alarm_high: 50, warning_low: -5, warning_high: Number.NaN };
  assert.deepEqual(limitsOf(limits).map(({ grade, words, value }) => [grade, words, value]), [["warning", "warning up to -5", -5], ["alarm", "alarm from 50", 50], ["range", "largest possible 90", 90]]);
  const of = () => attribute("a/b/c/d", { config: { ...config, limits } });
  const line = (all: boolean, type = "DevDouble") => linesOf([{ name: "a/b/c/d" }], () => ({ ...of(), type }), "unit", all)[0]?.line;
  assert.equal(line(true)?.limits?.length, 3);
  assert.equal(line(false)?.limits, undefined);
  assert.equal(line(true, "DevBoolean")?.limits, undefined, "states have words, no limits");
  assert.deepEqual(scaleWith(10, 30, [50, 90, -5, -11]), [-5, 50]);
  assert.deepEqual(scaleWith(10, 10, [10.5, 12]), [10, 10.5]);
  assert.deepEqual(scaleWith(0, 0, []), [0, 0]);
});

test("a tree has each part once, and its rows only where it is open", () => {
  const root = treeOf(["sr/vac/1/p", "sr/vac/1/t", "sr/vac/2/p", "SR/mag/1/i", "obs/lone/1/x"].map((name) => attribute(name)));
  assert.deepEqual(root.children.map(({ name, count }) => [name, count]), [["sr", 4], ["obs", 1]]);
  const closed = rowsOf(root, () => false);
  assert.deepEqual(closed.map(({ label }) => label), ["sr", "obs/lone/1/x"]);
  const open = rowsOf(root, () => true);
  assert.deepEqual(open.map(({ label, depth }) => `${depth} ${label}`), ["1 sr", "2 vac", "3 1", "4 p", "4 t", "3 2/p", "2 mag/1/i", "1 obs/lone/1/x"]);
  assert.deepEqual([open[3]!.position, open[3]!.size], [1, 2]);
  assert.deepEqual(namesOf(root.children[0]!.children[0]!), ["sr/vac/1/p", "sr/vac/1/t", "sr/vac/2/p"]);
  // Two servers of one name are one attribute.
  assert.equal(treeOf([attribute("a/b/c/d"), attribute("a/b/c/d", { source: "t" })]).count, 1);
});

test("a tree of 10 000 attributes is made and searched in one frame or two", () => {
  const all = Array.from({ length: 10_000 }, (_, nth) => attribute(`sr/vac${nth % 7}/c${Math.floor(nth / 100)}/p${nth}`)).toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const root = treeOf(all);
  assert.equal(root.count, 10_000);
  assert.equal(rowsOf(root, () => true).filter(({ node }) => node.attribute).length, 10_000);
  assert.equal(all.filter(matcherOf("c42 p42")).length, 100);
});

test("words and wildcards search names, labels and descriptions", () => {
  const one = attribute("SR/Vacuum/1/Pressure", { label: "Gauge (hot)", description: "near the RF cavity" });
  for (const text of ["vacuum", "press vac", "sr/*/pressure", "gauge", "cavity", "(hot)", "pressur?", ""]) {
    assert.ok(matcherOf(text)(one), text);
  }
  for (const text of ["vacuum cold", "sr/?/pressure", "[", "."]) {
    assert.equal(matcherOf(text)(one), false, text);
  }
});

test("numbers have a sensible length", () => {
  assert.deepEqual([0, 1, 0.1 + 0.2, 1e-9 / 3, 123456.789, 2.5e20, NaN, -Infinity].map(numberText), ["0", "1", "0.3", "3.3333e-10", "123456.8", "2.500000e+20", "NaN", "-Infinity"]);
  assert.deepEqual([400, 15_000, 300_000, 1e7, 9e8].map(ageText), ["0.4 s", "15 s", "5 min", "3 h", "10 d"]);
  assert.equal(valueText({ type: "DevDouble", format: "spectrum", x: 9, y: 0, elements: new Float64Array(9) }), "[0, 0, 0, 0, 0, 0 … 9]");
  assert.equal(valueText({ type: "DevEnum", format: "scalar", x: 1, y: 0, elements: new Int16Array([1]) }, ["off", "on"]), "on");
  assert.equal(valueText({ type: "DevString", format: "scalar", x: 1, y: 0, elements: ["a\u202eb\n"] }), "a\\u{202e}b⏎");
  assert.deepEqual([1.5, true, "ON", "FAULT", "9007199254740993", "inf", "text", null, [3, 4]].map((value) => jsonNumber(value, undefined)), [1.5, 1, 0, 8, 9007199254740992, Infinity, NaN, NaN, 3]);
  assert.equal(jsonNumber([3, "NaN"], 1), NaN);
});

test("a spreadsheet runs nothing of a file", () => {
  assert.deepEqual(["=1+1", "+x", "-4.5", "-x", "@a", 'a"b', "a,b"].map(cellOf), ["'=1+1", "'+x", "-4.5", "'-x", "'@a", '"a""b"', '"a,b"']);
});

test("colours go from the least to the largest, and no number is transparent", () => {
  const elements = [0, 5, 10, NaN, 99];
  assert.deepEqual(extent([3, NaN, -2, Infinity]), [-2, 3]);
  const pixels = new Uint32Array(5);
  paint(elements, pixels, 0, 10, coloursOf("grey"));
  assert.deepEqual([...pixels].map((pixel) => pixel.toString(16)), ["ff000000", "ff808080", "ffffffff", "0", "ffffffff"]);
});

test("criteria are read and written as the service has them", () => {
  const fields = fieldsOf(config);
  assert.deepEqual(changeOf(fields), { criteria: config.criteria, polled_ms: 100 });
  assert.match(changeOf({ ...fields, changeAbs: "much" }) as string, /'much' is no threshold/);
  assert.match(changeOf({ ...fields, archiveMs: "1.5" }) as string, /milliseconds/);
  assert.match(changeOf({ ...fields, periodMs: "" }) as string, /period/);
  assert.deepEqual((changeOf({ ...fields, changeAbs: "", pollMs: "" }) as { criteria: unknown }).criteria, { ...config.criteria, change: { abs: null, rel: null } });
});

test("each cause of missing events is named, and health is none", () => {
  const healthy: Facts = {
    name: "a/b/c/d", source: "s", incarnation: "i", polled_ms: null, change_by_value: true, archive_by_value: true, criteria: config.criteria, pushes: 3, pushed_at: 5e18, held_back: 0, number: 3, failing: null,
    taken_by: null, redundant: false, subscribers: [], clock: "free", now: 5e18,
  };
  const causes = (more: Partial<Facts>) => causesOf({ ...healthy, ...more }, "utc", 5e12, 5e12);
  assert.deepEqual(causes({}), []);
  const waits = (at: number) => ({ source: "panel", state: "live", behind: 4, lost: 0, at });
  for (const [more, text] of [
    [{ pushes: 0 }, "not polled"], [{ pushes: 0, polled_ms: 100 }, "every 100 ms"], [{ change_by_value: false, held_back: 1 }, "threshold"], [{ taken_by: "x" }, "Another process"], [{ failing: "Io: gone" }, "cannot be read"],
    [{ polled_ms: 100, pushed_at: 4e18 }, "late"], [{ now: 5e18 + 4e9 }, "differ by 4.0 s"], [{ subscribers: [{ ...waits(1), state: "lagging" }] }, "behind by 4"],
  ] as [Partial<Facts>, string][]) {
    const found = causes(more);
    assert.ok(found.length === 1 && found[0]!.includes(text), `${text}: ${found.join("; ")}`);
  }
  assert.equal(rivals([healthy]), undefined);
  assert.match(rivals([healthy, { ...healthy, source: "t" }]) ?? "", /2 processes have it: s, t/);
  const of = (at: number) => [{ ...healthy, subscribers: [waits(at)] }];
  assert.equal(standing(of(1), of(2)).length, 0);
  assert.equal(standing(of(1), of(1)).length, 1);
});
