/** A logger beside a session that the test plays. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Failure } from "../src/failure.js";
import { decodeLogBatch, type LogRecord } from "../src/log.js";
import { Logger, type LogSession } from "../src/logger.js";
import { Publisher, type TopicDeclaration } from "../src/publisher.js";

/** A hub that takes what is published, and gives receipts when the test says so. */
class Hub implements LogSession {
  readonly source = "ts/test";
  readonly packets: { topic: string; partition: string[]; records: LogRecord[] }[] = [];
  readonly publishers: { publisher: Publisher; count: number }[] = [];
  refusal: Failure | undefined;
  full = false;
  private drains: (() => void)[] = [];

  declare(declaration: TopicDeclaration): Promise<Publisher> {
    if (this.refusal && declaration.topic === "log/info") {
      return Promise.reject(this.refusal);
    }
    const own = { publisher: new Publisher((_, samples) => this.take(own, declaration, samples), () => undefined, declaration), count: 0 };
    this.publishers.push(own);
    return Promise.resolve(own.publisher);
  }

  private take(own: { count: number }, { topic, partition = [] }: TopicDeclaration, samples: Uint8Array[]): void {
    if (this.full) {
      throw new Failure("full", "too much waits");
    }
    for (const sample of samples) {
      this.packets.push({ topic, partition, records: decodeLogBatch(sample) });
      own.count += 1;
    }
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.drains.push(resolve));
  }

  makeRoom(): void {
    this.full = false;
    this.drains.splice(0).forEach((resolve) => resolve());
  }

  /** All that was published has reached the readers. */
  deliver(): void {
    for (const { publisher, count } of this.publishers) {
      publisher.told({ written: String(count), delivered: String(count), kept: null, readers: 1 });
    }
  }

  get messages(): string[] {
    return this.packets.flatMap(({ records }) => records.map(({ message }) => message));
  }
}

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1000 && !condition(); turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.ok(condition(), what);
}

test("records of one turn go together, with the members of their logger and ids of their own", async () => {
  const hub = new Hub();
  const logger = new Logger(hub, { logger: "mount", audiences: ["Operator"], minLevel: "Info" });
  for (let number = 0; number < 250; number += 1) {
    assert.ok(logger.info(`m${number}`, { scan: 7, isOn: true, big: 2n ** 63n }));
  }
  assert.ok(logger.debug("left out"));
  await until("three packets", () => hub.packets.length === 3);
  assert.deepEqual(hub.packets.map(({ topic, partition, records }) => [topic, partition, records.length]), [100, 100, 50].map((count) => ["log/info", ["Operator"], count]));
  const records = hub.packets.flatMap((packet) => packet.records);
  assert.deepEqual(records.map(({ id }) => id), records.map((_, number) => ({ incarnation: logger.incarnation, ring: 0, number: BigInt(number) })));
  const { logger: name, process, data, audiences } = records[0] as LogRecord;
  assert.deepEqual([name, process, audiences], ["mount", "ts/test", ["Operator"]]);
  assert.deepEqual(data, [{ name: "scan", value: "7" }, { name: "isOn", value: "true" }, { name: "big", value: "9223372036854775808" }]);
  let isFlushed = false;
  const flushed = logger.flush().then(() => (isFlushed = true));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(!isFlushed && logger.waiting > 0, "no receipt yet");
  hub.deliver();
  await flushed;
  assert.equal(logger.waiting, 0);
});

test("a full queue loses records, counts them and tells of them", async () => {
  const hub = new Hub();
  const logger = new Logger(hub, { maxWaitingBytes: 2000 });
  assert.deepEqual(Array.from({ length: 8 }, (_, number) => logger.error(`m${number}`)), [true, true, true, true, true, true, false, false]);
  await until("they went", () => hub.messages.length === 6);
  hub.deliver();
  await until("the report went", () => hub.messages.length === 7);
  assert.equal(logger.lost, 2n);
  const report = hub.packets.at(-1)?.records[0] as LogRecord;
  assert.deepEqual([report.level, report.message], ["Warning", "2 records lost here: the queue to the gateway stayed full"]);
  assert.deepEqual(report.data, [{ name: "lost", value: "2" }, { name: "Error", value: "2" }]);
});

test("what the hub refuses is counted, and other levels go on", async () => {
  const hub = new Hub();
  hub.refusal = new Failure("denied", "no rule lets ts/test write log/info");
  const logger = new Logger(hub);
  logger.info("refused");
  logger.error("accepted");
  await until("the other one went", () => hub.messages.includes("accepted"));
  hub.deliver();
  await until("the report went", () => hub.messages.some((message) => message.startsWith("1 records lost here: the hub refused them: no rule")));
  assert.equal(logger.lost, 1n);
});

test("packets wait for room, and go again where their fate is unknown", async () => {
  const hub = new Hub();
  hub.full = true;
  const logger = new Logger(hub);
  logger.notice("once");
  await until("it is declared", () => hub.publishers.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(hub.messages, []);
  hub.makeRoom();
  await until("it went", () => hub.messages.length === 1);
  hub.publishers[0]?.publisher.beganAnew(0, new Failure("uncertain", "the hub began anew"));
  await until("it went again", () => hub.messages.length === 2);
  const ids = hub.packets.map(({ records }) => records[0]?.id);
  assert.deepEqual(ids[0], ids[1], "it is the same record");
});

test("a session that ends loses what waits, and says how much", async () => {
  const hub = new Hub();
  const logger = new Logger(hub);
  logger.warning("a");
  logger.warning("b");
  await until("they went", () => hub.messages.length === 2);
  hub.publishers[0]?.publisher.end(new Failure("closed", "the session was closed"));
  await logger.flush();
  assert.equal(logger.lost, 2n);
});

test("wrong records are refused by name", () => {
  const logger = new Logger(new Hub());
  assert.throws(() => logger.log("Fatal" as "Error", "m"), /'Fatal' is no level/);
  assert.throws(() => logger.log("Info", "m", {}, { trace_id: "xyz" }), /trace_id 'xyz' must have 32/);
  assert.throws(() => new Logger(new Hub(), { minLevel: "All" as "Info" }), /'All' is no level/);
  assert.equal(logger.waiting, 0);
});
