/** Subscriptions of a session: to topics, to log records, to attributes. */
import { decodeBatch, type Batch } from "./batch.js";
import { decodeEvent, type EventKind, type EventReading, type Quality } from "./event.js";
import { BadBytes, Failure } from "./failure.js";
import { jsonOf, Kind, type Frame } from "./frame.js";
import { ArchivedRecords } from "./archived.js";
import { decodeLogBatch, type LogRecord } from "./log.js";
import { Progress, type LifeProgress, type Missed } from "./progress.js";
import { AsyncQueue } from "./queue.js";
import type { Nanos } from "./time.js";

/** A stream of samples of one writer. */
export interface StreamInfo {
  incarnation: string;
  stream: number;
  source: string;
  topic: string;
  partition: string[];
  type: number;
  version: number;
}

/** Samples that are missing, and why. */
export interface Gap {
  incarnation: string;
  stream: number;
  from: string;
  /** The number behind the last one; null if it is unknown. */
  to: string | null;
  why: "evicted" | "dropped" | "writer died" | "writer left" | "too long";
  /** True if the archive's records stand before this. */
  filled?: boolean;
}

/** The life of a source. */
export interface Life {
  source: string;
  incarnation: string;
  state: "appeared" | "silent" | "returned" | "left" | "died";
}

export type TopicItem =
  | { kind: "batch"; stream: StreamInfo | undefined; batch: Batch; archived: boolean }
  | { kind: "gap"; gap: Gap; stream: StreamInfo | undefined }
  | { kind: "life"; life: Life };

export type LogItem =
  | { kind: "record"; record: LogRecord; source: string }
  | { kind: "gap"; gap: Gap; stream: StreamInfo | undefined }
  | { kind: "life"; life: Life };

/** An attribute as its server describes it. */
export interface AttributeInfo {
  attribute: number;
  source: string;
  incarnation: string;
  number: number;
  epoch: number;
  config: { name: string; data_type: string; format: string; unit?: string; label?: string; description?: string; labels?: string[] };
}

export type EventItem =
  | { kind: "event"; attribute: AttributeInfo; reason: "first" | "update" | "resumed"; missed: boolean; sent: Nanos; received: Nanos; reading: EventReading }
  | { kind: "notice"; attribute: AttributeInfo; reason: string; missed: Missed };

/** Beginning of a subscription. */
export type From = "now" | "held" | { last: number } | { positions: [string, number, string][] };

export interface TopicOptions {
  topics: string[];
  partitions?: string[] | null;
  /** For log topics: only records that match (`spec/log-services.md`). */
  query?: unknown;
  from?: From;
  /** For log topics: begin with the archive's records from this time on, as text. */
  since?: string;
  reliable?: boolean;
}

export interface EventOptions {
  attributes: string[];
  kinds?: EventKind[];
  first?: boolean;
  filter?: { qualities?: Quality[]; moved?: { rel?: string; abs?: string }; condition?: string; every_ms?: number };
  reliable?: boolean;
}

/** Bytes that may wait for the program, if it says nothing else. */
export const BUFFER = 1 << 20;

/** A subscription as its session sees it. */
export interface Subscribed {
  id: number;
  /** Returns the body of OPEN, for this or for another session. */
  begun(): object;
  take(frame: Frame): void;
  end(why?: Failure): void;
}

/** Calls of a subscription to its session. */
export interface Opener {
  credit(subscription: Subscribed, total: bigint): void;
  close(subscription: Subscribed): void;
}

/**
 * A subscription: `for await (const item of subscription)`. The hub sends no more than `buffer` bytes ahead of the loop, so a slow or
 * paused loop costs nothing and loses nothing that the caches and the archive have. Leaving the loop ends it.
 */
export abstract class Subscription<T> implements Subscribed, AsyncIterableIterator<T> {
  id = 0;
  private consumed = 0n;
  private granted = 0n;
  private readonly queue: AsyncQueue<{ item: T; bytes: number }>;

  constructor(
    private readonly opener: Opener,
    private readonly buffer: number,
  ) {
    this.queue = new AsyncQueue(
      ({ bytes }) => this.used(bytes),
      () => opener.close(this),
    );
  }

  /** The body of OPEN without the credit. */
  protected abstract request(): object;
  abstract take(frame: Frame): void;

  begun(): object {
    this.consumed = 0n;
    this.granted = BigInt(this.buffer);
    return { ...this.request(), credit: this.buffer };
  }

  end(why?: Failure): void {
    this.queue.end(why);
  }

  protected put(item: T, bytes: number): void {
    this.queue.put({ item, bytes });
  }

  /** Has used these bytes without an item for the program. */
  protected skip(bytes: number): void {
    this.used(bytes);
  }

  async next(): Promise<IteratorResult<T>> {
    const { value, done } = await this.queue.next();
    return done ? { value: undefined, done } : { value: value.item, done: false };
  }

  async return(): Promise<IteratorResult<T>> {
    await this.queue.return();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  private used(bytes: number): void {
    this.consumed += BigInt(bytes);
    const wanted = this.consumed + BigInt(this.buffer);
    if (bytes > 0 && wanted - this.granted >= BigInt(this.buffer >> 1)) {
      this.granted = wanted;
      this.opener.credit(this, wanted);
    }
  }
}

/** A subscription to topics, whose batches are given as they are. */
export class TopicSubscription<T = TopicItem> extends Subscription<T> {
  private readonly streams = new Map<string, StreamInfo>();
  /** The next number of each stream, for another session. */
  private readonly positions = new Map<string, [string, number, bigint]>();

  constructor(
    opener: Opener,
    private readonly options: TopicOptions,
    buffer: number,
    private readonly items_of: (item: TopicItem) => T[],
  ) {
    super(opener, buffer);
  }

  protected override request(): object {
    const { from, ...rest } = this.options;
    if (this.positions.size === 0) {
      return { ...rest, ...(from === undefined ? {} : { from }) };
    }
    delete rest.since;
    const positions = [...this.positions.values()];
    return { ...rest, from: { positions: positions.map(([incarnation, stream, number]) => [incarnation, stream, number.toString()]) } };
  }

  override take(frame: Frame): void {
    switch (frame.kind) {
      case Kind.stream: {
        const stream = jsonOf<StreamInfo>(frame.body);
        this.streams.set(`${stream.incarnation} ${stream.stream}`, stream);
        return;
      }
      case Kind.data: {
        const batch = decodeBatch(frame.body);
        const archived = (frame.flags & 1) !== 0;
        const key = `${batch.incarnation} ${batch.stream}`;
        if (!archived) {
          this.positions.set(key, [batch.incarnation, batch.stream, batch.first + BigInt(batch.samples.length)]);
        }
        return this.tell({ kind: "batch", stream: this.streams.get(key), batch, archived }, frame.body.length);
      }
      case Kind.gap: {
        const gap = jsonOf<Gap>(frame.body);
        if (gap.to !== null) {
          this.positions.set(`${gap.incarnation} ${gap.stream}`, [gap.incarnation, gap.stream, BigInt(gap.to)]);
        }
        return this.tell({ kind: "gap", gap, stream: this.streams.get(`${gap.incarnation} ${gap.stream}`) }, 0);
      }
      case Kind.life:
        return this.tell({ kind: "life", life: jsonOf<Life>(frame.body) }, 0);
      default:
    }
  }

  protected items(item: TopicItem): T[] {
    return this.items_of(item);
  }

  private tell(item: TopicItem, bytes: number): void {
    const items = this.items(item);
    // The bytes are used up with the last item.
    items.forEach((one, nth) => this.put(one, nth === items.length - 1 ? bytes : 0));
    if (items.length === 0 && bytes > 0) {
      this.skip(bytes);
    }
  }
}

/** A subscription to log records. */
export class LogSubscription extends TopicSubscription<LogItem> {
  private readonly archived: ArchivedRecords | undefined;
  private hasBegun = false;

  constructor(opener: Opener, options: TopicOptions, buffer: number) {
    super(opener, options, buffer, logItems);
    this.archived = options.since === undefined ? undefined : new ArchivedRecords(options.since);
  }

  protected override request(): object {
    const request = super.request() as { since?: string };
    const since = this.hasBegun ? this.archived?.renewed() : undefined;
    this.hasBegun = true;
    return request.since === undefined || since === undefined ? request : { ...request, since };
  }

  protected override items(item: TopicItem): LogItem[] {
    const { archived } = this;
    const items = super.items(item);
    if (item.kind !== "batch" || !archived) {
      return items;
    }
    return items.filter((one) => one.kind !== "record" || archived.isNew(one.record, item.archived));
  }
}

/** The records of a batch, one by one. */
export function logItems(item: TopicItem): LogItem[] {
  if (item.kind !== "batch") {
    return [item];
  }
  const { batch, stream } = item;
  const records = batch.samples.flatMap(decodeLogBatch);
  return records.map((record) => ({ kind: "record", record, source: stream?.source ?? batch.source }));
}

const REASONS = ["first", "update", "resumed"] as const;

/** An attribute that the hub has introduced. */
interface Known {
  info: AttributeInfo;
  life: LifeProgress;
}

/** A subscription to attributes. */
export class EventSubscription extends Subscription<EventItem> {
  private readonly attributes = new Map<number, Known>();
  private readonly progress = new Progress();

  constructor(
    opener: Opener,
    private readonly options: EventOptions,
    buffer: number,
  ) {
    super(opener, buffer);
  }

  protected override request(): object {
    this.attributes.clear();
    this.progress.renewed();
    return this.options;
  }

  override take(frame: Frame): void {
    switch (frame.kind) {
      case Kind.attribute: {
        const info = jsonOf<AttributeInfo>(frame.body);
        this.attributes.set(info.attribute, { info, life: this.progress.of(info.config.name, info.incarnation) });
        return;
      }
      case Kind.events:
        return this.events(frame.body);
      case Kind.notice: {
        const { attribute, reason, missed } = jsonOf<{ attribute: number; reason: string; missed: Missed }>(frame.body);
        const { info, life } = this.known(attribute);
        if (reason === "source died" || reason === "source left") {
          this.attributes.delete(attribute);
          life.hasEnded = true;
        }
        if (Array.isArray(missed)) {
          life.gap(BigInt(missed[1]));
        }
        return this.put({ kind: "notice", attribute: info, reason, missed }, 0);
      }
      default:
    }
  }

  private known(handle: number): Known {
    const found = this.attributes.get(handle);
    if (!found) {
      throw new Failure("protocol", `attribute ${handle} was not introduced`);
    }
    return found;
  }

  private events(body: Uint8Array): void {
    const view = new DataView(body.buffer, body.byteOffset, body.length);
    for (let at = 0; at < body.length; ) {
      const length = at + 32 <= body.length ? view.getUint32(at, true) : body.length;
      const end = at + 32 + length;
      if (end > body.length) {
        throw new BadBytes(at, "an event is longer than its frame");
      }
      const next = Math.min(Math.ceil(end / 8) * 8, body.length);
      const { info: attribute, life } = this.known(view.getUint32(at + 4, true));
      const reading = decodeEvent(body.subarray(at + 32, end));
      const after = life.event(reading.number);
      if (Array.isArray(after?.missed)) {
        this.put({ kind: "notice", attribute, reason: "gap", missed: after.missed }, 0);
      }
      const item: EventItem = {
        kind: "event",
        attribute,
        reason: after ? "resumed" : (REASONS[view.getUint8(at + 8)] ?? "update"),
        missed: view.getUint8(at + 9) !== 0 || after?.missed === "unknown",
        sent: view.getBigInt64(at + 16, true),
        received: view.getBigInt64(at + 24, true),
        reading,
      };
      this.put(item, next === body.length ? body.length : 0);
      at = next;
    }
  }
}
