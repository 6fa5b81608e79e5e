import assert from "node:assert/strict";
import { test } from "node:test";

import { commandOf, findingsOf, joined, progressOf, Rates, receivingOf, sendingOf, withOlder, type Page, type Running } from "../src/bulk/bulk";
import { durationOf } from "../src/bulk/span";
import { quoted } from "../src/lib/words";
import type { Transfer } from "../src/timeline/data";

const peer = (source: string) => ({ source, incarnation: "i", address: "a" });
const link = { receiver: peer("ARCHIVE"), status: "live", since: 1, transport: "tcp", protection: "none", behind: 0, acknowledged: 0, lost_bytes: 0, reconnects: 0, gave_up: null, refusal: null, cut: null, why: "" };
const sent = { flow: "f", phase: "data", transfer: 3, bytes: 50, rate: 10, throttle: null, paused: false, window: 0, window_limit: 1, waits: null, waits_for: [], receivers: [link] };
const received = { flow: "f", sender: peer("CORR"), connected: true, transport: "tcp", protection: "none", connected_for: 1, waits_for_sender: null, in_callback: null, bytes: 1, frames: 1, lost_bytes: 0, transfers: 1, refused: 0 };
const running = (flow: object = {}, other: object = {}): Running => ({
  processes: [{ receiver: { stream: "s", source: "ARCHIVE", incarnation: "r", address: "a", refused: 0, flows: [{ ...received, ...other }] } }, { sender: { stream: "s", source: "CORR", incarnation: "c", flows: [{ ...sent, ...flow }] } }],
  unreadable: 0,
});
const transferOf = (id: string, more: Partial<Transfer> = {}): Transfer => ({ id, stream: "s", flow: "f", transfer: "1", source: "CORR", incarnation: "c", parameter: "", file: null, size: null, began: "", ended: null, outcome: "under_way", bytes: 0, seconds: 0, bytes_per_s: 0, receivers: 0, lost_bytes: 0, why: [], host: "", deliveries: [], ...more });
const found = (flow: object = {}, other: object = {}) => findingsOf(sendingOf(running(flow, other), []), receivingOf(running(flow, other))).map(({ grade, what, who, forWhom }) => `${grade} ${what} ${who} ${forWhom}`);

test("a file under way has a progress", () => {
  const transfer = transferOf("", { transfer: "3", file: "run7/dump.bin", size: 200 });
  const [flow] = sendingOf(running(), [transfer]);
  assert.deepEqual([flow?.name, flow?.size, flow && progressOf(flow)], ["run7/dump.bin", 200, 0.25]);
  const [other] = sendingOf(running({ transfer: 4 }), [transfer]);
  assert.equal(other && progressOf(other), undefined, "the transfer before says nothing");
  const [stream] = sendingOf(running(), [transferOf("", { transfer: "3" })]);
  assert.deepEqual([stream?.name, stream?.size, stream && progressOf(stream)], [undefined, undefined, undefined], "a transfer that is no file");
});

test("older transfers stay while newer ones come, unless some are missing between", () => {
  const page = (ids: string, next: string | null): Page => ({ transfers: [...ids].map((id) => transferOf(id, { ended: id === "r" ? null : "2026" })), next, complete: true, left_out: 0 });
  const ids = (past: { transfers: { id: string }[] }) => past.transfers.map(({ id }) => id).join("");
  const first = joined(undefined, page("rcb", "after b"));
  assert.deepEqual([ids(first), first.next], ["rcb", "after b"]);
  const two = withOlder(first, page("ba", "after a"));
  assert.deepEqual([ids(two), two.next], ["rcba", "after a"]);
  const later = joined(two, page("edc", "after c"));
  assert.deepEqual([ids(later), later.next], ["edcba", "after a"], "the running one has ended");
  const far = joined(later, page("zyx", "after x"));
  assert.deepEqual([ids(far), far.next], ["zyx", "after x"]);
  assert.deepEqual([ids(joined(far, page("z", null)))], ["z"], "removed by the retention");
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
