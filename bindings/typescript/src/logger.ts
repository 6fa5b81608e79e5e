/** Log records of this program, over the gateway: a bounded queue, and packets that go out again until the hub's readers have them. */
import { Failure } from "./failure.js";
import { LEVELS, type Datum, type Level, type LogRecord } from "./log.js";
import { encodeLogBatch, levelNumber } from "./log_batch.js";
import type { Publisher, TopicDeclaration } from "./publisher.js";
import { now } from "./time.js";

/** Bytes that wait in the queue, or for a receipt. */
const QUEUE = 16 << 20;
/** Records of a packet at most. */
const PACKET = 100;
/** Pauses before what the hub refused is tried again, ms: each twice the one before. */
const SHORTEST_PAUSE = 1000;
const LONGEST_PAUSE = 60_000;
/** Reason of records that found the queue full. */
const FULL = "the queue to the gateway stayed full";

/** Values beside the message. They are kept as text. */
export type LogData = Record<string, string | number | bigint | boolean>;

/** Members that each record of a logger has; `process` is the source of the session without one. */
export type LoggerOptions = Omit<Partial<LogRecord>, "id" | "time" | "received" | "level" | "message" | "data"> & {
  /** Records below this level are left out. */
  minLevel?: Level;
  /** Bytes that wait for the hub at most; 16 MiB. Records that find no room are counted, and a record tells of them. */
  maxWaitingBytes?: number;
};

/** The part of a session that a logger uses. */
export interface LogSession {
  readonly source: string;
  declare(declaration: TopicDeclaration): Promise<Publisher>;
  drained(): Promise<void>;
}

interface Queued {
  record: LogRecord;
  size: number;
}

/** Records that are under way together. */
interface Packet {
  sample: Uint8Array;
  level: Level;
  count: number;
  size: number;
}

/** The way of the records of one level and audience. */
interface Way {
  level: Level;
  declaration: TopicDeclaration;
  records: Queued[];
  /** Packets that the hub may not have, in front of the records. */
  again: Packet[];
  publisher: Publisher | undefined;
  isOpening: boolean;
  pause: number;
  refusedUntil: number;
}

/** An incarnation of this logger's own: no process has it, so its records are told apart from all others. */
function newIncarnation(): string {
  const [boot, pid] = crypto.getRandomValues(new Uint32Array(2));
  const hex = (value: number | bigint | undefined, digits: number) => (value ?? 0).toString(16).padStart(digits, "0");
  return `${hex(boot, 8)}-${hex(pid, 8)}-${hex(BigInt.asUintN(64, now()), 16)}`;
}

export class Logger {
  /** The incarnation in the ids of the records. */
  readonly incarnation = newIncarnation();
  private readonly members: Partial<LogRecord>;
  private readonly least: number;
  private readonly most: number;
  private readonly ways = new Map<string, Way>();
  private number = 0n;
  private bytes = 0;
  private lostSoFar = 0n;
  /** Losses that no record has told of. */
  private untold = { byReason: new Map<string, number>(), byLevel: new Map<Level, number>() };
  private timer: ReturnType<typeof setTimeout> | undefined;
  private flushes: (() => void)[] = [];

  constructor(
    private readonly session: LogSession,
    { minLevel = "Trace", maxWaitingBytes = QUEUE, ...members }: LoggerOptions = {},
  ) {
    this.members = { process: session.source, ...members };
    this.least = levelNumber(minLevel);
    this.most = maxWaitingBytes;
  }

  /**
   * Logs a record, without waiting; returns false if there was no room for it. `members` are further ones of the record, such as
   * `trace_id`, `file` and `line`. A level, an id or a trace that is none is a `TypeError`.
   */
  log(level: Level, message: string, data: LogData = {}, members: Partial<LogRecord> = {}): boolean {
    if (levelNumber(level) < this.least) {
      return true;
    }
    const list = Object.entries(data).map(([name, value]): Datum => ({ name, value: String(value) }));
    const record: LogRecord = { ...this.members, time: now(), ...members, level, message, data: list };
    if (Object.keys(members).length > 0) {
      // What is wrong in it is told to the caller, and costs no other record.
      encodeLogBatch([record]);
    }
    const size = sizeOf(record);
    if (this.bytes + size > this.most) {
      this.lose(level, FULL, 1);
      return false;
    }
    this.queue(record, size);
    return true;
  }

  trace(message: string, data?: LogData): boolean {
    return this.log("Trace", message, data);
  }

  debug(message: string, data?: LogData): boolean {
    return this.log("Debug", message, data);
  }

  info(message: string, data?: LogData): boolean {
    return this.log("Info", message, data);
  }

  notice(message: string, data?: LogData): boolean {
    return this.log("Notice", message, data);
  }

  warning(message: string, data?: LogData): boolean {
    return this.log("Warning", message, data);
  }

  error(message: string, data?: LogData): boolean {
    return this.log("Error", message, data);
  }

  critical(message: string, data?: LogData): boolean {
    return this.log("Critical", message, data);
  }

  alert(message: string, data?: LogData): boolean {
    return this.log("Alert", message, data);
  }

  emergency(message: string, data?: LogData): boolean {
    return this.log("Emergency", message, data);
  }

  /** The number of lost records: those that found no room, that the hub refused, or that waited when the session ended. */
  get lost(): bigint {
    return this.lostSoFar;
  }

  /** Bytes of records that the hub's readers do not have yet. */
  get waiting(): number {
    return this.bytes;
  }

  /** Waits until the hub's readers have all records, or they are lost ({@link lost}). */
  flush(): Promise<void> {
    return new Promise((resolve) => {
      this.flushes.push(resolve);
      this.schedule();
      this.settle();
    });
  }

  /** Waits as {@link flush} does, and ends the logger. */
  async close(): Promise<void> {
    await this.flush();
    for (const way of this.ways.values()) {
      way.publisher?.close();
    }
    this.ways.clear();
  }

  private queue(record: LogRecord, size: number): void {
    this.bytes += size;
    record.id = { incarnation: this.incarnation, ring: 0, number: this.number++ };
    this.way(record.level, record.audiences ?? []).records.push({ record, size });
    this.schedule();
  }

  private way(level: Level, audiences: string[]): Way {
    const key = [level, ...audiences].join("\n");
    let way = this.ways.get(key);
    if (!way) {
      const partition = audiences.length > 0 ? { partition: audiences } : {};
      const declaration: TopicDeclaration = { topic: `log/${level.toLowerCase()}`, ...partition, type: 2, version: 1, receipts: "delivered" };
      way = { level, declaration, records: [], again: [], publisher: undefined, isOpening: false, pause: SHORTEST_PAUSE, refusedUntil: 0 };
      this.ways.set(key, way);
    }
    return way;
  }

  /** Sends at the end of this turn, so that what is logged together goes together. */
  private schedule(after = 0): void {
    if (this.timer === undefined) {
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.ways.forEach((way) => this.send(way));
      }, after);
    }
  }

  private send(way: Way): void {
    if (way.records.length + way.again.length === 0 || way.isOpening) {
      return;
    }
    if (!way.publisher) {
      if (Date.now() < way.refusedUntil) {
        this.drop(way, "the hub refused them");
      } else {
        this.open(way);
      }
      return;
    }
    for (let packet = this.next(way); packet; packet = this.next(way)) {
      try {
        const until = way.publisher.publish([packet.sample], true);
        this.follow(way, way.publisher, packet, until);
      } catch (why) {
        way.again.unshift(packet);
        if (!(why instanceof Failure) || why.code !== "full") {
          this.refuse(way, why);
          return;
        }
        // A session that ends tells the publisher.
        this.session.drained().then(() => this.schedule(), () => undefined);
        return;
      }
    }
  }

  private next(way: Way): Packet | undefined {
    const again = way.again.shift();
    if (again || way.records.length === 0) {
      return again;
    }
    const taken = way.records.splice(0, PACKET);
    const size = taken.reduce((sum, one) => sum + one.size, 0);
    return { sample: encodeLogBatch(taken.map((one) => one.record)), level: way.level, count: taken.length, size };
  }

  private open(way: Way): void {
    way.isOpening = true;
    this.session.declare(way.declaration).then(
      (publisher) => {
        [way.isOpening, way.publisher, way.pause] = [false, publisher, SHORTEST_PAUSE];
        this.send(way);
      },
      (why: unknown) => {
        way.isOpening = false;
        this.refuse(way, why);
      },
    );
  }

  /** Waits for the receipt of a packet. */
  private follow(way: Way, publisher: Publisher, packet: Packet, until: bigint): void {
    publisher.reached(until, "delivered").then(
      () => {
        this.bytes -= packet.size;
        this.tell();
        this.settle();
      },
      (why: unknown) => {
        const mayGoAgain = why instanceof Failure && ["uncertain", "unconfirmed"].includes(why.code);
        way.again.push(packet);
        if (mayGoAgain) {
          // Records have ids, so one that comes twice is stored once.
          this.schedule(SHORTEST_PAUSE);
        } else {
          this.refuse(way, why);
        }
      },
    );
  }

  private refuse(way: Way, why: unknown): void {
    way.publisher = undefined;
    way.refusedUntil = Date.now() + way.pause;
    way.pause = Math.min(2 * way.pause, LONGEST_PAUSE);
    this.drop(way, `the hub refused them: ${why instanceof Error ? why.message : String(why)}`);
  }

  /** Gives up all that waits on a way. */
  private drop(way: Way, reason: string): void {
    const packets = way.again.splice(0);
    for (const { size } of way.records.splice(0)) {
      packets.push({ sample: new Uint8Array(), level: way.level, count: 1, size });
    }
    for (const packet of packets) {
      this.bytes -= packet.size;
      this.lose(packet.level, reason, packet.count);
    }
    this.settle();
  }

  private lose(level: Level, reason: string, count: number): void {
    const { byReason, byLevel } = this.untold;
    this.lostSoFar += BigInt(count);
    byReason.set(reason, (byReason.get(reason) ?? 0) + count);
    byLevel.set(level, (byLevel.get(level) ?? 0) + count);
  }

  /** Logs a record about losses, once there is room. It is beside the bound. */
  private tell(): void {
    const { byReason, byLevel } = this.untold;
    if (byReason.size === 0 || 2 * this.bytes > this.most) {
      return;
    }
    this.untold = { byReason: new Map(), byLevel: new Map() };
    const count = [...byReason.values()].reduce((sum, one) => sum + one, 0);
    const levels = LEVELS.filter((level): level is Level => level !== "" && byLevel.has(level));
    const counts = levels.map((level) => ({ name: level, value: String(byLevel.get(level)) }));
    const message = `${count} records lost here: ${[...byReason.keys()].join("; ")}`;
    const data = [{ name: "lost", value: String(count) }, ...counts];
    const record: LogRecord = { ...this.members, time: now(), level: "Warning", message, data };
    delete record.audiences;
    this.queue(record, sizeOf(record));
  }

  private settle(): void {
    if (this.bytes === 0) {
      this.flushes.splice(0).forEach((resolve) => resolve());
    }
  }
}

function sizeOf(record: LogRecord): number {
  return (record.data ?? []).reduce((sum, { name, value }) => sum + name.length + value.length + 16, 300 + record.message.length);
}
