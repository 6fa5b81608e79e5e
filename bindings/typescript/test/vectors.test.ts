/** The bytes of `testdata/vectors` mean the same here as in the other implementations. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { decodeBatch } from "../src/batch.js";
import { decodeEvent, encodeReading, type Value } from "../src/event.js";
import { askBody, decodeFrame, encodeFrame, joined, jsonBody, jsonOf, Kind, numberBody, samplesBody } from "../src/frame.js";
import { decodeLogBatch, recordLine, type LogRecord } from "../src/log.js";
import { encodeLogBatch } from "../src/log_batch.js";
import { timeOf, timeText } from "../src/time.js";

const VECTORS = new URL("../../../../testdata/vectors/", import.meta.url);
const text = (name: string) => readFileSync(new URL(name, VECTORS), "utf8");
const hex = (digits: string) => Uint8Array.from(Buffer.from(digits.replace(/\s/g, ""), "hex"));
const bytesOf = (name: string) => hex(text(name));

test("log batches have the records of their JSON lines", () => {
  const names = readdirSync(new URL("log_batch/", VECTORS)).filter((name) => name.endsWith(".hex"));
  assert.ok(names.length >= 5);
  for (const name of names) {
    const lines = text(`log_batch/${name.replace(".hex", ".json")}`).split("\n").filter((line) => line !== "");
    const plain = (line: string) => JSON.parse(line.replace(/("number": ?)(\d+)/g, '$1"$2"')) as unknown;
    assert.deepEqual(decodeLogBatch(bytesOf(`log_batch/${name}`)).map((record) => plain(recordLine(record))), lines.map(plain), name);
  }
});

test("log batches are written as other writers write them", () => {
  const names = readdirSync(new URL("log_batch/", VECTORS)).filter((name) => /^v1-.*\.hex$/.test(name));
  assert.ok(names.length >= 4);
  for (const name of names) {
    const bytes = bytesOf(`log_batch/${name}`);
    assert.deepEqual(encodeLogBatch(decodeLogBatch(bytes)), bytes, name);
  }
});

test("a record with a wrong level, id or trace is refused by name", () => {
  const record = decodeLogBatch(bytesOf("log_batch/v1-minimal.hex"))[0] as LogRecord;
  assert.throws(() => encodeLogBatch([{ ...record, level: "Fatal" as "Error" }]), /'Fatal' is no level: use Trace, Delouse/);
  assert.throws(() => encodeLogBatch([{ ...record, id: { incarnation: "me", ring: 0, number: 0n } }]), /'me' is no incarnation/);
  assert.throws(() => encodeLogBatch([{ ...record, trace_id: "12" }]), /trace_id '12' must have 32 hexadecimal digits/);
});

test("a log batch that is cut is refused wherever it is cut", () => {
  const whole = bytesOf("log_batch/v1-full.hex");
  for (let length = 0; length < whole.length; length += 1) {
    assert.throws(() => decodeLogBatch(whole.slice(0, length)), `${length} bytes`);
  }
});

test("events are read, and readings are written as other writers write them", () => {
  const time = 1_795_334_400_123_456_789n;
  const names = readdirSync(new URL("event/", VECTORS)).filter((name) => /^v1-.*\.hex$/.test(name) && !name.includes("declaration"));
  assert.ok(names.length >= 20);
  let again = 0;
  for (const name of names) {
    const bytes = bytesOf(`event/${name}`);
    const event = decodeEvent(bytes);
    assert.equal(event.time, time, name);
    const { setPoint, errors, value, quality, kinds } = event;
    if (value && !setPoint && errors.length === 0 && !event.name && !/answer|left-out|-age\./.test(name)) {
      // The hub sets attribute, epoch and number; the rest is the same, byte for byte.
      const written = encodeReading({ value, quality, kinds, time });
      const same = bytes.slice(0, written.length);
      same.fill(0, 8, 16);
      same.fill(0, 24, 32);
      same.fill(0, 38, 39);
      new DataView(same.buffer).setUint32(4, written.length - 8, true);
      assert.deepEqual(written, same, name);
      again += 1;
    }
  }
  assert.ok(again >= 14, `${again} of ${names.length} are readings`);
  const scalar = decodeEvent(bytesOf("event/v1-scalar.hex"));
  assert.deepEqual([scalar.number, scalar.epoch, scalar.kinds, scalar.quality], [41n, 2, ["change", "archive"], "warning"]);
  assert.deepEqual([...(scalar.value as Value).elements], [1.25]);
  const failed = decodeEvent(bytesOf("event/v1-error.hex"));
  assert.deepEqual(failed.errors.map((cause) => cause.reason), ["Io_Timeout", "Cryo_NoReading"]);
  decodeEvent(bytesOf("event/future-event.hex"));
});

test("readings of every length are written as they are read", () => {
  // The writer's memory grows on the way, at each of its steps once.
  for (let length = 0; length < 600; length += 1) {
    const elements = ["x".repeat(length), "", "end"];
    const value: Value = { type: "DevString", format: "spectrum", x: 3, y: 0, elements };
    assert.deepEqual(decodeEvent(encodeReading({ value })).value, value);
    const encoded: Value = { type: "DevEncoded", format: "scalar", x: 1, y: 0, elements: new Uint8Array(length), encoding: "x".repeat(length) };
    assert.deepEqual(decodeEvent(encodeReading({ value: encoded })).value, encoded);
  }
});

test("an event that is cut is refused", () => {
  const whole = bytesOf("event/v1-error.hex");
  for (let length = 0; length < whole.length; length += 1) {
    assert.throws(() => decodeEvent(whole.slice(0, length)), `${length} bytes`);
  }
});

test("the frames of a session are written as they are read", () => {
  const lines = text("gateway/session.txt").split("\n").filter((line) => line !== "");
  assert.ok(lines.length >= 10);
  for (const line of lines) {
    const bytes = hex(line.split("\t")[1] as string);
    assert.deepEqual(encodeFrame(decodeFrame(bytes)), bytes, line.slice(0, 60));
  }
  const sent = lines.filter((line) => line.startsWith("client")).map((line) => decodeFrame(hex(line.split("\t")[1] as string)));
  const of = (kind: number) => sent.filter((frame) => frame.kind === kind);
  assert.deepEqual(of(Kind.credit)[0]?.body, numberBody(1n << 20n));
  assert.deepEqual(of(Kind.publish)[0]?.body, samplesBody([Buffer.from("hello"), Buffer.from("you")]));
  assert.deepEqual(of(Kind.ask)[0]?.body, askBody("log/stat", jsonBody({}), 5000, false));
  const batches = lines.map((line) => decodeFrame(hex(line.split("\t")[1] as string))).filter((frame) => frame.kind === Kind.data);
  assert.ok(batches.length > 0);
  batches.forEach((frame) => assert.ok(decodeBatch(frame.body).samples.length > 0));
  assert.deepEqual(jsonOf(jsonBody({ a: "b" })), { a: "b" });
});

test("times are texts with nine decimals and back, before 1970 too", () => {
  for (const at of [0n, 1_795_334_400_123_456_789n, -1n, -(2n ** 63n), 2n ** 63n - 1n]) {
    assert.equal(timeOf(timeText(at)), at);
  }
  assert.equal(timeText(-1n), "1969-12-31T23:59:59.999999999Z");
  assert.equal(timeOf("2026-11-21T08:15:30"), timeOf("2026-11-21T08:15:30.000000000Z"));
  assert.throws(() => timeOf("yesterday"), /'yesterday' is no time/);
});

test("an answer in parts is one text, wherever they end", () => {
  const whole = jsonBody({ name: "µ∑𝛾" });
  for (let end = 0; end <= whole.length; end++) {
    assert.deepEqual(jsonOf(joined([whole.subarray(0, end), whole.subarray(end)])), { name: "µ∑𝛾" });
  }
});
