import assert from "node:assert/strict";
import { test } from "node:test";

import { commandOf, fileOf, findingsOf, progressOf, Rates, receivingOf, sendingOf, type Running } from "../src/bulk/bulk";
import { durationOf } from "../src/bulk/span";
import { quoted } from "../src/lib/words";

const peer = (source: string) => ({ source, incarnation: "i", address: "a" });
const link = { receiver: peer("ARCHIVE"), status: "live", since: 1, transport: "tcp", protection: "none", behind: 0, acknowledged: 0, lost_bytes: 0, reconnects: 0, gave_up: null, refusal: null, cut: null, why: "" };
const sent = { flow: "f", phase: "data", transfer: 3, bytes: 50, rate: 10, throttle: null, paused: false, window: 0, window_limit: 1, waits: null, waits_for: [], receivers: [link] };
const received = { flow: "f", sender: peer("CORR"), connected: true, transport: "tcp", protection: "none", connected_for: 1, waits_for_sender: null, in_callback: null, bytes: 1, frames: 1, lost_bytes: 0, transfers: 1, refused: 0 };
const running = (flow: object = {}, other: object = {}): Running => ({
  processes: [{ receiver: { stream: "s", source: "ARCHIVE", incarnation: "r", address: "a", refused: 0, flows: [{ ...received, ...other }] } }, { sender: { stream: "s", source: "CORR", incarnation: "c", flows: [{ ...sent, ...flow }] } }],
  unreadable: 0,
});
const found = (flow: object = {}, other: object = {}) => findingsOf(sendingOf(running(flow, other), []), receivingOf(running(flow, other))).map(({ grade, what, who, forWhom }) => `${grade} ${what} ${who} ${forWhom}`);

test("a file under way has a progress", () => {
  const transfer = { id: "", stream: "s", flow: "f", transfer: "3", source: "CORR", incarnation: "c", parameter: '{"file": "run7/dump.bin", "size": 200}', began: "", ended: null, outcome: "under_way", bytes: 0, seconds: 0, bytes_per_s: 0, receivers: 0, lost_bytes: 0, why: [] };
  const [flow] = sendingOf(running(), [transfer]);
  assert.deepEqual([flow?.name, flow?.size, flow && progressOf(flow)], ["run7/dump.bin", 200, 0.25]);
  const [other] = sendingOf(running({ transfer: 4 }), [transfer]);
  assert.equal(other && progressOf(other), undefined, "the transfer before says nothing");
  for (const parameter of ["uid://A002/X1", "{", '{"file":1,"size":-1}', "{}"]) {
    assert.deepEqual(fileOf(parameter), {}, parameter);
  }
});

test("nobody waits for somebody who works at the usual pace", () => {
  assert.deepEqual(found(), []);
  assert.deepEqual(found({ waits: 0.1, waits_for: ["ARCHIVE"] }, { in_callback: 0.2 }), []);
});

test("each wait and each fault is named, faults first", () => {
  assert.deepEqual(found({ waits: 3, waits_for: ["ARCHIVE"] }, { in_callback: 2.5 }), ["warn waits CORR (s/f) ARCHIVE", "warn callback ARCHIVE (s/f) CORR"]);
  assert.deepEqual(found({ waits: 3, receivers: [] }), ["warn alone CORR (s/f) "]);
  assert.deepEqual(found({ paused: true, waits: 9 }), ["note paused CORR (s/f) "]);
  assert.deepEqual(found({ receivers: [{ ...link, status: "cut" }, { ...link, receiver: peer("B"), status: "lagging", since: 9, lost_bytes: 7 }] }), ["fail cut CORR (s/f) ARCHIVE", "fail lost CORR (s/f) B", "warn lagging CORR (s/f) B"]);
  assert.deepEqual(found({}, { waits_for_sender: 4 }), ["warn gone ARCHIVE (s/f) CORR"]);
});

test("a party that answers twice stands there once", () => {
  const twice = running();
  twice.processes.push(...twice.processes);
  assert.deepEqual([sendingOf(twice, []).length, receivingOf(twice).length], [1, 1]);
});

test("rates of the last minute are kept, and those of flows that are gone are not", () => {
  const rates = new Rates(3);
  [1, 2, 3, 4].forEach((rate) => rates.note([{ key: "a", rate }, ...(rate < 3 ? [{ key: "b", rate }] : [])]));
  assert.deepEqual([rates.of("a"), rates.of("b")], [[2, 3, 4], []]);
  assert.equal(rates.path("a", 20, 12), "M0 6L10 3.5L20 1");
});

test("a command for a terminal is quoted", () => {
  assert.equal(commandOf("it's", "pause", "a b", quoted), "tampu bulk control pause 'it'\\''s' --flow 'a b'");
});

test("durations are short", () => {
  assert.deepEqual([null, 0.0123, 14.409, 75.2, 7322].map(durationOf), ["", "12.3 ms", "14.4 s", "1m15s", "2h2m"]);
});
