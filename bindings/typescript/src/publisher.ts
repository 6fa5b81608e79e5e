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
  refused?: [string, string][];
}

type Grade = "written" | "delivered" | "kept";

export class Publisher {
  id = 0;
  /** Samples that were published in this session. */
  private count = 0n;
  private receipt: Receipt = { written: 0n, delivered: null, kept: null, readers: 0 };
  private refusals: { index: bigint; why: string }[] = [];
  private waiting: { until: bigint; grade: Grade; resolve: () => void; reject: (why: Failure) => void }[] = [];

  constructor(
    private readonly send: (publisher: Publisher, samples: Uint8Array[], atOnce: boolean) => void,
    private readonly ending: (publisher: Publisher) => void,
    readonly declaration: TopicDeclaration | AttributeDeclaration,
  ) {}

  /** Publishes samples, without waiting; returns the number behind the last one, for {@link reached}. */
  publish(samples: Uint8Array[], atOnce = false): bigint {
    this.send(this, samples, atOnce);
    this.count += BigInt(samples.length);
    return this.count;
  }

  /** Publishes readings of an attribute. */
  push(...readings: Reading[]): bigint {
    return this.publish(readings.map(encodeReading), true);
  }

  /** The last receipt for the samples. */
  get receipts(): Receipt {
    return this.receipt;
  }

  /** Readings that the hub refused since the last call, with the reason. */
  takeRefused(): { index: bigint; why: string }[] {
    return this.refusals.splice(0);
  }

  /**
   * Waits until all samples below this number are written, delivered or kept. The readers that are there confirm a
   * delivery: without one this waits for the next.
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
    const number = (text: string | null) => (text === null ? null : BigInt(text));
    this.receipt = { written: BigInt(told.written), delivered: number(told.delivered), kept: number(told.kept), readers: told.readers };
    this.refusals.push(...(told.refused ?? []).map(([index, why]) => ({ index: BigInt(index), why })));
    this.settle();
  }

  /** In another session nothing is known of what had no receipt. */
  forgotten(why: Failure): void {
    this.waiting.splice(0).forEach((one) => one.reject(why));
    this.count = 0n;
    this.receipt = { written: 0n, delivered: null, kept: null, readers: 0 };
  }

  private settle(): void {
    const isReached = (one: { until: bigint; grade: Grade }) => (this.receipt[one.grade] ?? -1n) >= one.until;
    this.waiting.filter(isReached).forEach((one) => one.resolve());
    this.waiting = this.waiting.filter((one) => !isReached(one));
  }
}
