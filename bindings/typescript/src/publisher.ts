/** Publishers of a session: samples of a topic, readings of an attribute. */
import { encodeReading, type Reading } from "./event.js";
import { Failure } from "./failure.js";

/** Fate of samples: numbers below which all are written, acknowledged by all reliable readers, stored on a disk. */
export interface Receipt {
  written: bigint;
  delivered: bigint | null;
  kept: bigint | null;
  readers: number;
}

export interface TopicDeclaration {
  topic: string;
  partition?: string[];
  type?: number;
  version?: number;
  receipts?: "delivered" | "kept" | "none";
}

/** The configuration is that of `event/list`: name, data_type, format, unit, criteria. */
export interface AttributeDeclaration {
  attribute: { name: string; data_type: string; format: string } & Record<string, unknown>;
  redundant?: boolean;
  urgent?: boolean;
  acknowledged?: boolean;
}

interface Told {
  written: string;
  delivered: string | null;
  kept: string | null;
  readers: number;
  unconfirmed?: string;
  refused?: [string, string][];
}

const NOTHING: Receipt = { written: 0n, delivered: null, kept: null, readers: 0 };

type Grade = "written" | "delivered" | "kept";

export class Publisher {
  id = 0;
  /** Samples that were published. */
  private count = 0n;
  private withoutRoom = 0n;
  /** The number of the first sample in this session of the hub: its receipts count from there. */
  private base = 0n;
  private receipt: Receipt = NOTHING;
  /** The last receipt of the session before this one. */
  private before: Receipt = NOTHING;
  private uncertain: Failure | undefined;
  /** Samples below this number that no reader will confirm, unless they are delivered. */
  private unconfirmed = 0n;
  private refusals: { index: bigint; why: string }[] = [];
  private waiting: { until: bigint; grade: Grade; resolve: () => void; reject: (why: Failure) => void }[] = [];

  constructor(
    private readonly send: (publisher: Publisher, samples: Uint8Array[], atOnce: boolean) => void,
    private readonly ending: (publisher: Publisher) => void,
    readonly declaration: TopicDeclaration | AttributeDeclaration,
  ) {}

  /**
   * Publishes samples, without waiting; returns the number behind the last one, for {@link reached}. Fails with the code
   * `full`, and publishes none of them, while as many bytes as the session keeps wait for the hub.
   */
  publish(samples: Uint8Array[], atOnce = false): bigint {
    try {
      this.send(this, samples, atOnce);
    } catch (why) {
      if (why instanceof Failure && why.code === "full") {
        this.withoutRoom += BigInt(samples.length);
      }
      throw why;
    }
    this.count += BigInt(samples.length);
    return this.count;
  }

  /** Publishes readings of an attribute, as {@link publish} does. */
  push(...readings: Reading[]): bigint {
    return this.publish(readings.map(encodeReading), true);
  }

  /** The last receipt for the samples. */
  get receipts(): Receipt {
    return this.receipt;
  }

  /** The number of samples that found no room, and were not published. */
  get lost(): bigint {
    return this.withoutRoom;
  }

  /** Readings that the hub refused since the last call, with the reason. */
  takeRefused(): { index: bigint; why: string }[] {
    return this.refusals.splice(0);
  }

  /**
   * Waits until all samples below this number are written, delivered or kept. The readers that are there confirm a
   * delivery: without one this waits for the next. It fails with the code `unconfirmed` if the last reader left before.
   */
  reached(until = this.count, grade: Grade = "written"): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ until, grade, resolve, reject });
      this.settle();
    });
  }

  /** Ends the publisher; its samples are sent first. */
  close(): void {
    this.ending(this);
  }

  told(told: Told): void {
    const number = (text: string | null) => (text === null ? null : this.base + BigInt(text));
    const [written, delivered, kept] = [this.base + BigInt(told.written), number(told.delivered), number(told.kept)];
    this.receipt = { written, delivered, kept, readers: told.readers };
    this.refusals.push(...(told.refused ?? []).map(([index, why]) => ({ index: this.base + BigInt(index), why })));
    this.unconfirmed = number(told.unconfirmed ?? null) ?? 0n;
    this.settle();
  }

  /** The hub knows nothing of this session. The last samples are published again; of those before them nothing more will be heard. */
  beganAnew(again: number, why: Failure): void {
    this.before = this.receipt;
    this.base = this.count - BigInt(again);
    this.receipt = { ...NOTHING, written: this.before.written };
    this.uncertain = why;
    this.unconfirmed = 0n;
    this.settle();
  }

  /** Nothing more is published, and no receipt comes. */
  end(why: Failure): void {
    this.waiting.splice(0).forEach((one) => one.reject(why));
  }

  private settle(): void {
    for (const one of this.waiting.splice(0)) {
      const receipt = one.until > this.base ? this.receipt : this.before;
      if ((receipt[one.grade] ?? -1n) >= one.until) {
        one.resolve();
      } else if (this.uncertain && one.until <= this.base) {
        one.reject(this.uncertain);
      } else if (one.grade === "delivered" && one.until <= this.unconfirmed) {
        one.reject(new Failure("unconfirmed", "the last reader left before it confirmed these samples"));
      } else {
        this.waiting.push(one);
      }
    }
  }
}
