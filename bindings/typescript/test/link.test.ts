/** A session against a hub of a few lines: what it sends, and how it comes back. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";

import { WebSocket, WebSocketServer } from "ws";

import { encodeReading, scalar } from "../src/event.js";
import { decodeFrame, encodeFrame, jsonBody, jsonOf, Kind, numberBody, numberOf, samplesIn, type Frame } from "../src/frame.js";
import type { ConnectOptions, Socket } from "../src/link.js";
import { unixSocket } from "../src/node.js";
import { decodeLogBatch } from "../src/log.js";
import { Session } from "../src/session.js";
import { timeText } from "../src/time.js";

const VECTORS = new URL("../../../../testdata/vectors/", import.meta.url);
const socket = (url: string, protocol: string) => new WebSocket(url, protocol) as unknown as Socket;

/** A hub that remembers what it was sent. */
class Hub {
  readonly frames: Frame[] = [];
  readonly hellos: { session?: string; received?: string }[] = [];
  connection: WebSocket | undefined;
  /** Features that it has; hubs before them name none. */
  features: string[] | undefined;
  /** Words of the hub, such as WELCOME, wait while it is true. */
  isSilent = false;
  private greeting: (() => void) | undefined;
  /** A client leaves a hub of which it hears nothing for three of these. */
  beatMs = 20_000;
  private last = 0n;

  private constructor(
    readonly server: WebSocketServer,
    private readonly knows: boolean,
  ) {
    server.on("connection", (connection) => {
      this.connection = connection;
      connection.on("message", (data: Buffer) => this.take(decodeFrame(new Uint8Array(data))));
    });
  }

  static async open(context: TestContext, knows = true): Promise<Hub> {
    const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(server, "listening");
    context.after(() => {
      server.clients.forEach((client) => client.terminate());
      server.close();
    });
    return new Hub(server, knows);
  }

  get address(): string {
    return `http://127.0.0.1:${(this.server.address() as { port: number }).port}`;
  }

  get received(): bigint {
    return this.frames.filter((frame) => frame.number > 0n).reduce((last, frame) => (frame.number > last ? frame.number : last), 0n);
  }

  send(kind: number, id: number, body: Uint8Array, number = ++this.last): void {
    this.sendFlagged(kind, id, body, 0, number);
  }

  sendFlagged(kind: number, id: number, body: Uint8Array, flags: number, number = ++this.last): void {
    this.connection?.send(encodeFrame({ kind, flags, id, number, body }));
  }

  private take(frame: Frame): void {
    if (frame.kind !== Kind.hello) {
      this.frames.push(frame);
      return;
    }
    const hello = jsonOf<{ session?: string; received?: string }>(frame.body);
    this.hellos.push(hello);
    const resumed = hello.session !== undefined && this.knows;
    if (!resumed) {
      this.last = 0n;
    }
    const welcome = { version: 1, hub: "test", domain: "d", session: "5".repeat(32), resumed, received: this.received.toString(), principal: "me", beat_ms: this.beatMs, resume_ms: 60000, window: 1, frame: 1, features: this.features };
    const greet = () => this.send(Kind.welcome, 0, jsonBody(resumed ? welcome : { ...welcome, received: "0" }), 0n);
    this.isSilent ? (this.greeting = greet) : greet();
  }

  /** Sends the WELCOME that waits. */
  speak(): void {
    this.isSilent = false;
    this.greeting?.();
  }
}

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1000 && !condition(); turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.ok(condition(), what);
}

async function session(context: TestContext, hub: Hub, options: ConnectOptions = {}): Promise<Session> {
  const made = await Session.connect(hub.address, { socket, ...options });
  context.after(() => made.close());
  return made;
}

const gap = (from: string) => jsonBody({ incarnation: "i", stream: 1, from, to: from, why: "evicted" });

test("frames are sent again after a broken connection, and none is taken twice", async (context) => {
  const hub = await Hub.open(context);
  // The client acknowledges at each beat.
  hub.beatMs = 50;
  const states: string[] = [];
  const ours = await session(context, hub, { onConnection: (state) => states.push(state) });
  const topics = ours.topics({ topics: ["a"] });
  await until("the hub has OPEN", () => hub.frames.some((frame) => frame.kind === Kind.open));
  hub.send(Kind.gap, 1, gap("1"));
  assert.equal((await topics.next()).value.gap.from, "1");
  hub.connection?.terminate();
  const asked = ours.ask("log/stat", {});
  await until("it came back", () => states.includes("resumed"));
  assert.equal(hub.hellos[1]?.received, "1");
  await until("the question came with its number", () => hub.frames.some((frame) => frame.kind === Kind.ask && frame.number === 2n));
  hub.send(Kind.gap, 1, gap("1"), 1n);
  hub.send(Kind.gap, 1, gap("2"));
  assert.equal((await topics.next()).value.gap.from, "2", "a repetition is ignored");
  hub.send(Kind.ended, 2, jsonBody({ code: "unanswered", error: "no process answered in time" }));
  await assert.rejects(asked.next(), { code: "unanswered" });
  await until("frames are acknowledged", () => hub.frames.some((frame) => frame.kind === Kind.ack && numberOf(frame.body) >= 3n));
});

test("a hub that began anew gets subscriptions from their positions, and what it had not acknowledged", async (context) => {
  const hub = await Hub.open(context, false);
  const ours = await session(context, hub);
  const topics = ours.topics({ topics: ["a"], from: "held" });
  const publisher = ours.declare({ topic: "b" });
  await until("both are open", () => hub.frames.length >= 2);
  hub.send(Kind.gap, 1, gap("7"));
  hub.send(Kind.opened, 2, jsonBody({}));
  await topics.next();
  const made = await publisher;
  made.publish([new Uint8Array(3)]);
  const lost = assert.rejects(made.reached(), { code: "uncertain" });
  await until("the hub has the sample", () => hub.frames.some((frame) => frame.kind === Kind.publish));
  hub.send(Kind.ack, 0, numberBody(3n), 0n);
  hub.send(Kind.gap, 1, gap("7"));
  await topics.next();
  made.publish([new Uint8Array(5), new Uint8Array(6)]);
  const reached = made.reached();
  hub.frames.length = 0;
  hub.connection?.terminate();
  await lost;
  await until("it publishes again", () => hub.frames.some((frame) => frame.kind === Kind.publish && frame.number === 3n));
  assert.deepEqual(hub.frames.map((frame) => frame.kind).filter((kind) => kind !== Kind.ack), [Kind.open, Kind.declare, Kind.publish]);
  assert.equal(samplesIn((hub.frames.find((frame) => frame.kind === Kind.publish) as Frame).body), 2);
  hub.send(Kind.receipt, 2, jsonBody({ written: "2", delivered: null, kept: null, readers: 0 }));
  await reached;
  assert.equal(made.receipts.written, 3n);
  await assert.rejects(made.reached(1n), { code: "uncertain" });
  const opened = hub.frames.find((frame) => frame.kind === Kind.open) as Frame;
  assert.deepEqual(jsonOf<{ from: unknown }>(opened.body).from, { positions: [["i", 1, "7"]] });
  assert.equal(opened.number, 1n);
});

test("credit follows the loop, and the end of the loop ends the subscription", async (context) => {
  const hub = await Hub.open(context);
  const ours = await session(context, hub);
  const batch = Buffer.alloc(80);
  batch.write("TB");
  batch[2] = 1;
  batch.writeUInt16LE(72, 4);
  batch.writeUInt32LE(1, 36);
  batch.writeUInt32LE(8, 64);
  batch.writeUInt32LE(4, 72);
  let seen = 0;
  const loop = (async () => {
    for await (const item of ours.topics({ topics: ["a"] }, 200)) {
      assert.equal(item.kind, "batch");
      seen += 1;
      if (seen === 5) {
        break;
      }
    }
  })();
  await until("the hub has OPEN", () => hub.frames.length > 0);
  assert.equal(jsonOf<{ credit: number }>((hub.frames[0] as Frame).body).credit, 200);
  for (let nth = 0; nth < 5; nth += 1) {
    hub.send(Kind.data, 1, batch);
  }
  await loop;
  await until("it is closed", () => hub.frames.some((frame) => frame.kind === Kind.close));
  const totals = hub.frames.filter((frame) => frame.kind === Kind.credit).map((frame) => numberOf(frame.body));
  assert.deepEqual(totals, [360n, 520n]);
});

test("what the hub refuses and what it should not send are told", async (context) => {
  const hub = await Hub.open(context);
  const ours = await session(context, hub);
  const refused = ours.declare({ topic: "a" });
  hub.send(Kind.ended, 1, jsonBody({ code: "denied", error: "you may not write a", denied: { verb: "write" } }));
  await assert.rejects(refused, { code: "denied", message: "you may not write a" });
  const events = ours.events(["a/b/c/d"]);
  hub.send(Kind.notice, 2, jsonBody({ attribute: 9, reason: "gap", missed: null }));
  await assert.rejects(events.next(), /attribute 9 was not introduced/);
  await assert.rejects(Session.connect("http://127.0.0.1:1", { socket }), { code: "closed" });
});

test("a receipt settles what no reader confirms any more", async (context) => {
  const hub = await Hub.open(context);
  const ours = await session(context, hub);
  const declared = ours.declare({ topic: "a" });
  hub.send(Kind.opened, 1, jsonBody({}));
  const publisher = await declared;
  publisher.publish([Uint8Array.of(1), Uint8Array.of(2), Uint8Array.of(3)]);
  const [lost, later] = [publisher.reached(2n, "delivered"), publisher.reached(3n, "delivered")];
  hub.send(Kind.receipt, 1, jsonBody({ written: "3", delivered: "1", kept: null, readers: 0, unconfirmed: "2" }));
  await assert.rejects(lost, { code: "unconfirmed" });
  await publisher.reached(1n, "delivered");
  hub.send(Kind.receipt, 1, jsonBody({ written: "3", delivered: "3", kept: null, readers: 1 }));
  await later;
});

test("frames of a unix socket come whole however they are cut", async (context) => {
  const directory = mkdtempSync(join(tmpdir(), "tampu-ts-"));
  context.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "gateway.sock");
  const long = jsonBody({ version: 1, principal: "x".repeat(5000) });
  const frames = [long, new Uint8Array(), new Uint8Array(70000).fill(7)].map((body, nth) => encodeFrame({ kind: Kind.life, flags: 0, id: nth, number: 1n, body }));
  const bytes = Buffer.concat(frames);
  for (const size of [1, 23, 24, 4096, bytes.length]) {
    const server = createServer((connection) => {
      for (let at = 0; at < bytes.length; at += size) {
        connection.write(bytes.subarray(at, at + size));
      }
    });
    server.listen(path);
    await once(server, "listening");
    const made = unixSocket(path)("", "");
    const came: Uint8Array[] = [];
    made.onmessage = (event: { data: ArrayBuffer }) => came.push(new Uint8Array(event.data));
    await until(`pieces of ${size} bytes`, () => came.length === frames.length);
    assert.deepEqual(came, frames);
    made.close();
    server.close();
    await once(server, "close");
  }
  context.diagnostic(`${bytes.length} bytes`);
});

/** Bytes of a frame that publishes one sample of 40 bytes. */
const FRAME = 24 + 4 + 40;
const sample = () => [new Uint8Array(40)];

async function bounded(context: TestContext, hub: Hub, options: ConnectOptions = {}) {
  const ours = await session(context, hub, { maxWaitingBytes: 2 * FRAME, ...options });
  const declared = ours.declare({ topic: "a" });
  await until("the hub has DECLARE", () => hub.frames.some((frame) => frame.kind === Kind.declare));
  hub.send(Kind.opened, 1, jsonBody({}));
  return { ours, publisher: await declared };
}

test("a hub that is behind bounds what waits, and the refused samples are counted", async (context) => {
  const hub = await Hub.open(context);
  const { ours, publisher } = await bounded(context, hub);
  assert.deepEqual([publisher.publish(sample()), publisher.publish(sample()), ours.waiting], [1n, 2n, 2 * FRAME]);
  assert.throws(() => publisher.publish(sample()), { code: "full", message: /136 of 136 bytes wait/ });
  assert.throws(() => publisher.publish([...sample(), ...sample()]), { code: "full" });
  assert.throws(() => ours.ask("log/stat", {}), { code: "full" });
  assert.deepEqual([publisher.lost, ours.waiting], [3n, 2 * FRAME]);
  const topics = ours.topics({ topics: ["b"] });
  await topics.return();
  await until("subscriptions begin and end meanwhile", () => hub.frames.some((frame) => frame.kind === Kind.close));
  let isDrained = false;
  const drained = ours.drained().then(() => (isDrained = true));
  hub.send(Kind.ack, 0, numberBody(2n), 0n);
  await until("one is acknowledged", () => ours.waiting === FRAME);
  assert.equal(isDrained, false);
  assert.equal(publisher.publish(sample()), 3n);
  hub.send(Kind.ack, 0, numberBody(hub.received + 1n), 0n);
  await drained;
  assert.equal(ours.waiting, 0);
  publisher.publish([new Uint8Array(500)]);
  assert.throws(() => publisher.publish(sample()), { code: "full" }, "a larger one goes alone");
  await until("it came", () => hub.frames.some((frame) => frame.body.length === 504));
  assert.equal(hub.frames.filter((frame) => frame.kind === Kind.publish).length, 4);
  const pending = ours.drained();
  ours.close();
  await assert.rejects(pending, { code: "closed" });
  await assert.rejects(ours.drained(), { code: "closed" });
});

for (const knows of [true, false]) {
  test(`what waits while the hub is away is bounded; the hub ${knows ? "resumes" : "begins anew"}`, async (context) => {
    const hub = await Hub.open(context, knows);
    const states: string[] = [];
    let away = false;
    const { ours, publisher } = await bounded(context, hub, {
      socket: (url, protocol) => socket(away ? "ws://127.0.0.1:1" : url, protocol),
      onConnection: (state) => states.push(state),
    });
    away = true;
    hub.connection?.terminate();
    await until("the connection broke", () => states.includes("broken"));
    publisher.publish(sample());
    publisher.publish(sample());
    assert.throws(() => publisher.publish(sample()), { code: "full" });
    const drained = ours.drained();
    away = false;
    await until("the hub has what waited", () => hub.frames.filter((frame) => frame.kind === Kind.publish).length === 2);
    assert.equal(ours.waiting, 2 * FRAME, "it waits for the acknowledgement");
    assert.throws(() => publisher.publish(sample()), { code: "full" });
    hub.send(Kind.ack, 0, numberBody(3n), 0n);
    await drained;
    assert.deepEqual([publisher.publish(sample()), publisher.lost], [3n, 2n]);
  });
}

test("a gap names its stream, and the end of a session is told once, with its code", async (context) => {
  const hub = await Hub.open(context);
  const ends: string[] = [];
  const ours = await session(context, hub, { onEnd: (why) => ends.push(why.code) });
  const topics = ours.topics({ topics: ["a"] });
  await until("the hub has OPEN", () => hub.frames.some((frame) => frame.kind === Kind.open));
  hub.send(Kind.stream, 1, jsonBody({ incarnation: "i", stream: 1, source: "CONTROL/DV01", topic: "a", partition: [], type: 1, version: 1 }));
  hub.send(Kind.gap, 1, gap("1"));
  assert.equal((await topics.next()).value.stream.source, "CONTROL/DV01");
  hub.send(Kind.bye, 0, jsonBody({ code: "unauthenticated", error: "the login has ended" }), 0n);
  await until("the session ended", () => ends.length > 0);
  ours.close();
  assert.deepEqual(ends, ["unauthenticated"]);
  await assert.rejects(topics.next(), { code: "unauthenticated" });
});

test("a bound that is no number of bytes is refused", async () => {
  for (const maxWaitingBytes of [0, -1, NaN, Infinity]) {
    await assert.rejects(Session.connect("http://127.0.0.1:1", { socket, maxWaitingBytes }), { code: "bad" });
  }
});

test("a hub of another version ends the session, and both versions are named", async (context) => {
  const answers = [
    { kind: Kind.bye, body: { code: "version", error: "this hub speaks version 2" } },
    { kind: Kind.welcome, body: { version: 2, session: "5e", resumed: false } },
  ];
  for (const { kind, body } of answers) {
    const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(server, "listening");
    context.after(() => server.close());
    server.on("connection", (connection) =>
      connection.on("message", () => connection.send(encodeFrame({ kind, flags: 0, id: 0, number: 0n, body: jsonBody(body) }))),
    );
    const address = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    await assert.rejects(Session.connect(address, { socket }), (why: { code: string; message: string }) => {
      assert.equal(why.code, "version");
      assert.match(why.message, /version 2.*; tampu.ts 0.1.0 speaks 1: .*update the hub/);
      return true;
    });
  }
});

const question = (number: bigint, octets: Uint8Array) => {
  const asker = Buffer.from("local");
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(number, 0);
  head.writeUInt32LE(10_000, 8);
  head.writeUInt16LE(asker.length, 12);
  return new Uint8Array(Buffer.concat([head, asker, octets]));
};

test("questions of the bus are answered, and a hub that cannot pass them on is named", async (context) => {
  const hub = await Hub.open(context, false);
  const states: string[] = [];
  const ours = await session(context, hub, { onConnection: (state) => states.push(state) });
  await assert.rejects(ours.serve("mount/position", () => 1), { code: "version", message: /update the hub/ });
  hub.features = ["serve"];
  hub.connection?.terminate();
  await until("a hub of a later release", () => states.includes("new session"));
  const asked: { signal: AbortSignal; part: (content: Uint8Array) => boolean }[] = [];
  const opening = ours.serve("mount/position", (one) => {
    asked.push(one);
    if (one.octets.length > 2) {
      throw new Error("the drive is off");
    }
    return asked.length === 1 ? { by: one.asker } : new Promise(() => undefined);
  });
  await until("SERVE", () => hub.frames.some((frame) => frame.kind === Kind.serve));
  const id = hub.frames.find((frame) => frame.kind === Kind.serve)?.id ?? 0;
  hub.send(Kind.opened, id, jsonBody({ incarnation: "i" }));
  assert.equal((await opening).incarnation, "i");
  const answers = () => hub.frames.filter((frame) => frame.kind === Kind.answer);
  hub.send(Kind.question, id, question(1n, jsonBody({})));
  await until("an answer", () => answers().length === 1);
  assert.deepEqual([answers()[0]?.flags, numberOf(answers()[0]?.body.subarray(0, 8) as Uint8Array), jsonOf(answers()[0]?.body.subarray(8) as Uint8Array)], [1, 1n, { by: "local" }]);
  hub.send(Kind.question, id, question(2n, jsonBody({ far: true })));
  await until("a refusal", () => answers().length === 2);
  assert.deepEqual([answers()[1]?.flags, jsonOf(answers()[1]?.body.subarray(8) as Uint8Array)], [3, { error: "the drive is off" }]);
  hub.send(Kind.question, id, question(3n, jsonBody({})));
  await until("a question that waits", () => asked.length === 3);
  hub.send(Kind.cancel, id, numberBody(3n));
  await until("it is cancelled", () => asked[2]?.signal.aborted === true);
  assert.equal(asked[2]?.part(jsonBody({})), false);
  // Another session has other numbers: an answer of the old one must not reach its questions.
  hub.send(Kind.question, id, question(4n, jsonBody({})));
  await until("another one", () => asked.length === 4);
  hub.connection?.terminate();
  await until("it is served anew", () => hub.frames.filter((frame) => frame.kind === Kind.serve).length === 2);
  assert.equal(asked[3]?.part(jsonBody({})), false);
  assert.equal(answers().length, 2);
});

test("an attribute is read on demand: the reading is published before the answer", async (context) => {
  const hub = await Hub.open(context, false);
  hub.features = ["serve"];
  const ours = await session(context, hub);
  const declared = ours.declare({ attribute: { name: "obs/mount/1/az", data_type: "DevDouble", format: "scalar" } });
  await until("DECLARE", () => hub.frames.some((frame) => frame.kind === Kind.declare));
  hub.send(Kind.opened, 1, jsonBody({}));
  const readings: (number | Error)[] = [180.5, new Error("the drive is off")];
  const read = () => {
    const next = readings.shift();
    if (next instanceof Error) {
      throw next;
    }
    return next === undefined ? undefined : { value: scalar("DevDouble", next) };
  };
  const reads = ours.reads(await declared, read, { freshMs: 500 });
  await until("SERVE", () => hub.frames.some((frame) => frame.kind === Kind.serve));
  assert.deepEqual(jsonOf(hub.frames.find((frame) => frame.kind === Kind.serve)?.body as Uint8Array), { read: 1, fresh_ms: 500 });
  hub.send(Kind.opened, 2, jsonBody({ incarnation: "i" }));
  assert.equal((await reads).service, "obs/mount/1/az");
  const sent = () => hub.frames.filter((frame) => frame.kind === Kind.publish || frame.kind === Kind.answer);
  for (const number of [1n, 2n, 3n]) {
    hub.send(Kind.question, 2, question(number, jsonBody({})));
    await until("an answer", () => sent().filter((frame) => frame.kind === Kind.answer).length === Number(number));
  }
  assert.deepEqual(sent().map((frame) => [frame.kind, frame.id, frame.flags]), [
    [Kind.publish, 1, 1], [Kind.answer, 2, 1], [Kind.answer, 2, 3], [Kind.answer, 2, 1],
  ]);
  assert.deepEqual(jsonOf(sent()[2]?.body.subarray(8) as Uint8Array), { error: "the drive is off" });
});

test("nothing is sent between HELLO and WELCOME, and then each frame once, with the numbers of the session", async (context) => {
  for (const knows of [true, false]) {
    const hub = await Hub.open(context, knows);
    hub.beatMs = 20;
    const states: string[] = [];
    const { ours, publisher } = await bounded(context, hub, { maxWaitingBytes: 10 * FRAME, onConnection: (state) => states.push(state) });
    publisher.publish(sample());
    await until("the hub has the sample", () => hub.frames.some((frame) => frame.kind === Kind.publish));
    hub.send(Kind.ack, 0, numberBody(2n), 0n);
    await until("it is acknowledged", () => ours.waiting === 0);
    hub.frames.length = 0;
    hub.isSilent = true;
    hub.connection?.terminate();
    await until("the client greets again", () => hub.hellos.length === 2);
    publisher.publish(sample());
    // Several beats: no acknowledgement either.
    for (let turn = 0; turn < 5; turn += 1) {
      await new Promise((resolve) => setTimeout(resolve, hub.beatMs));
    }
    assert.equal(hub.frames.length, 0);
    hub.speak();
    await until("the hub has the sample", () => hub.frames.some((frame) => frame.kind === Kind.publish));
    const numbered = hub.frames.filter((frame) => frame.number > 0n).map((frame) => [frame.kind, frame.number]);
    // The hub counts what it has received, which is nothing after its frames were forgotten here.
    assert.deepEqual(numbered, knows ? [[Kind.publish, 3n]] : [[Kind.declare, 1n], [Kind.publish, 2n]]);
    assert.equal(states.at(-1), knows ? "resumed" : "new session");
  }
});

test("a hub that accepts and says nothing is left", async (context) => {
  const hub = await Hub.open(context);
  hub.isSilent = true;
  await assert.rejects(Session.connect(hub.address, { socket, answerMs: 20 }), { code: "closed", message: /not answered within 20 ms/ });
  hub.isSilent = false;
  const states: string[] = [];
  await session(context, hub, { answerMs: 500, onConnection: (state) => states.push(state) });
  hub.isSilent = true;
  hub.connection?.terminate();
  await until("it is tried again and again", () => hub.hellos.length >= 4);
  hub.speak();
  await until("it is back", () => states.at(-1) === "resumed");
});

/** A frame EVENTS with one reading. */
function events(handle: number, number: bigint, reason: number): Uint8Array {
  const event = encodeReading({ value: scalar("DevLong", 7), kinds: ["change"] });
  new DataView(event.buffer, event.byteOffset).setBigUint64(24, number, true);
  const body = new Uint8Array(32 + Math.ceil(event.length / 8) * 8);
  const view = new DataView(body.buffer);
  view.setUint32(0, event.length, true);
  view.setUint32(4, handle, true);
  view.setUint8(8, reason);
  body.set(event, 32);
  return body;
}

test("events that were missed while the hub was restarted are told", async (context) => {
  const hub = await Hub.open(context, false);
  const states: string[] = [];
  const ours = await session(context, hub, { onConnection: (state) => states.push(state) });
  const follow = ours.events(["a/b/c/*"]);
  const introduce = (handle: number, name: string, incarnation: string) =>
    hub.send(Kind.attribute, 1, jsonBody({ attribute: handle, source: "s", incarnation, number: handle, epoch: 1, config: { name } }));
  const taken = async () => {
    const item = (await follow.next()).value;
    const missed = item.kind === "event" ? item.missed : item.missed;
    return [item.attribute.config.name, item.reason, item.kind === "event" ? item.reading.number : null, missed];
  };
  const restart = async () => {
    const before = states.length;
    hub.frames.length = 0;
    hub.connection?.terminate();
    await until("it is opened again", () => states.length === before + 2 && hub.frames.some((frame) => frame.kind === Kind.open));
  };
  await until("the hub has OPEN", () => hub.frames.length > 0);
  for (const [handle, name] of [[1, "a/b/c/exact"], [2, "a/b/c/same"], [3, "a/b/c/other"]] as const) {
    introduce(handle, name, "life1");
    hub.send(Kind.events, 1, events(handle, 5n, 0));
    assert.deepEqual(await taken(), [name, "first", 5n, false]);
  }
  hub.send(Kind.notice, 1, jsonBody({ attribute: 1, reason: "gap", missed: ["6", "9"] }));
  assert.deepEqual(await taken(), ["a/b/c/exact", "gap", null, ["6", "9"]]);
  await restart();
  introduce(11, "A/b/c/exact", "life1");
  hub.send(Kind.events, 1, events(11, 12n, 0));
  assert.deepEqual(await taken(), ["A/b/c/exact", "gap", null, ["9", "12"]]);
  assert.deepEqual(await taken(), ["A/b/c/exact", "resumed", 12n, false]);
  introduce(12, "a/b/c/same", "life1");
  hub.send(Kind.events, 1, events(12, 5n, 0));
  assert.deepEqual(await taken(), ["a/b/c/same", "resumed", 5n, false]);
  hub.send(Kind.events, 1, events(12, 6n, 1));
  assert.deepEqual(await taken(), ["a/b/c/same", "update", 6n, false]);
  // A life that had ended, and one that ends while there is no hub.
  await restart();
  introduce(21, "a/b/c/other", "life2");
  hub.send(Kind.events, 1, events(21, 1n, 0));
  assert.deepEqual(await taken(), ["a/b/c/other", "resumed", 1n, true]);
  hub.send(Kind.events, 1, events(21, 2n, 1));
  assert.deepEqual(await taken(), ["a/b/c/other", "update", 2n, false]);
  introduce(22, "a/b/c/new", "life1");
  hub.send(Kind.events, 1, events(22, 3n, 0));
  assert.deepEqual(await taken(), ["a/b/c/new", "first", 3n, false]);
});

test("records of the archive that came are not given again by a hub that began anew", async (context) => {
  const hub = await Hub.open(context, false);
  const states: string[] = [];
  const ours = await session(context, hub, { onConnection: (state) => states.push(state) });
  const logs = ours.logs({ since: "2000-01-01T00:00:00Z" }, 1024);
  await until("the hub has OPEN", () => hub.frames.length > 0);
  const give = (file: string, flags: number) => {
    const batch = new Uint8Array(Buffer.from(readFileSync(new URL(`log_batch/${file}`, VECTORS), "utf8").replace(/\s/g, ""), "hex"));
    const head = Buffer.alloc(76);
    head.write("TB");
    head[2] = 1;
    head.writeUInt16LE(72, 4);
    head.writeUInt32LE(1, 36);
    head.writeUInt32LE(4 + Math.ceil(batch.length / 4) * 4, 64);
    head.writeUInt32LE(batch.length, 72);
    const body = new Uint8Array(Buffer.concat([head, batch, Buffer.alloc(-batch.length & 3)]));
    hub.sendFlagged(Kind.data, 1, body, flags);
    return decodeLogBatch(batch);
  };
  const taken = async (count: number) => {
    const messages: string[] = [];
    while (messages.length < count) {
      const item = (await logs.next()).value;
      assert.equal(item.kind, "record");
      messages.push(item.record.message);
    }
    return messages;
  };
  const archived = give("v1-origins.hex", 1);
  const messages = archived.map((record) => record.message);
  assert.deepEqual(await taken(archived.length), messages);
  hub.frames.length = 0;
  hub.connection?.terminate();
  await until("it is opened again", () => hub.frames.some((frame) => frame.kind === Kind.open));
  const newest = archived.map((record) => record.time).reduce((one, other) => (one > other ? one : other));
  const { since, from } = jsonOf<{ since?: string; from?: unknown }>((hub.frames.find((frame) => frame.kind === Kind.open) as Frame).body);
  assert.deepEqual([since, from], [timeText(newest - 60_000_000_000n), undefined]);
  give("v1-origins.hex", 1);
  // What is left out has used its credit, too.
  await until("it is credited", () => hub.frames.some((frame) => frame.kind === Kind.credit));
  const others = give("v1-full.hex", 1).map((record) => record.message);
  assert.deepEqual(await taken(others.length), others);
});
