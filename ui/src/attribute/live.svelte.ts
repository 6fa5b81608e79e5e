/** Live readings of the chosen attributes, over the one session of the tab. */
import { Failure, type AttributeInfo, type EventItem, type EventReading, type EventSubscription } from "tampu";

import { connection } from "../lib/connection.svelte";
import type { MarkKind } from "./trace";

/** Seconds over which a rate is counted. */
const RATE_SECONDS = 10;
/** Bytes ahead of the page: an image has to fit. */
const BUFFER = 8 << 20;
/** Time after which an earlier subscription ends, though the later one has delivered nothing, ms. */
const HANDOVER_MS = 3000;
/** Time between two images, ms: nobody sees more, and each is large. */
const IMAGE_MS = 500;

export type LifeState = "waiting" | "alive" | "hung" | "died" | "left";

/** The state of an attribute; the page reads it at its own pace. */
export class Live {
  info: AttributeInfo | undefined;
  reading: EventReading | undefined;
  life: LifeState = "waiting";
  /** Events that are missing, and whether more are whose number is unknown. */
  missed = 0n;
  missedUnknown = false;
  events = 0;
  why = "";
  private readonly bins: number[] = new Array<number>(RATE_SECONDS + 1).fill(0);
  private second = 0;
  private begun = 0;

  constructor(readonly name: string) {}

  private turn(now: number): void {
    const second = Math.floor(now / 1000);
    for (let at = Math.max(this.second + 1, second - RATE_SECONDS); at <= second; at++) {
      this.bins[at % this.bins.length] = 0;
    }
    this.second = second;
  }

  count(now: number): void {
    this.begun ||= now;
    this.turn(now);
    const at = this.second % this.bins.length;
    this.bins[at] = (this.bins[at] ?? 0) + 1;
    this.events++;
  }

  /** Events per second, over the last whole seconds. */
  rate(now: number): number {
    this.turn(now);
    const whole = this.bins.reduce((sum, bin) => sum + bin, 0) - (this.bins[this.second % this.bins.length] ?? 0);
    const seconds = Math.min(RATE_SECONDS, Math.floor(now / 1000) - Math.floor(this.begun / 1000));
    return this.begun === 0 || seconds < 1 ? 0 : whole / seconds;
  }
}

/** Calls of a feed to a plot. */
export interface Listener {
  event(name: string, info: AttributeInfo, reading: EventReading): void;
  mark(name: string, kind: MarkKind, note: string): void;
}

const MARKS: Record<string, MarkKind> = { gap: "gap", "source died": "died", "source hung": "hung", "source returned": "returned", "source left": "left" };
const STATES: Record<string, LifeState> = { "source died": "died", "source hung": "hung", "source returned": "alive", "source left": "left" };

export class LiveFeed {
  /** States by name in lower case. */
  readonly states = new Map<string, Live>();
  listener: Listener | undefined;
  /** Arrivals of any attribute, for whoever shows whole arrays. */
  readonly arrived = new Set<(name: string) => void>();
  private open: EventSubscription[] = [];

  state(name: string): Live {
    const key = name.toLowerCase();
    let state = this.states.get(key);
    if (!state) {
      state = new Live(name);
      this.states.set(key, state);
    }
    return state;
  }

  /** Subscribes to these attributes. The earlier subscription goes on until the later one delivers, so nothing is lost between. */
  subscribe(names: readonly string[], isImage: (name: string) => boolean): void {
    const wanted = new Set(names.map((name) => name.toLowerCase()));
    for (const key of this.states.keys()) {
      if (!wanted.has(key)) {
        this.states.delete(key);
      }
    }
    const earlier = this.open;
    this.open = [];
    const plain = names.filter((name) => !isImage(name));
    const images = names.filter(isImage);
    let isOver = false;
    const handOver = () => {
      if (!isOver) {
        isOver = true;
        clearTimeout(timer);
        earlier.forEach((subscription) => void subscription.return());
      }
    };
    const timer = setTimeout(handOver, HANDOVER_MS);
    if (names.length === 0) {
      handOver();
    }
    this.start(plain, {}, handOver);
    this.start(images, { every_ms: IMAGE_MS }, handOver);
  }

  stop(): void {
    this.subscribe([], () => false);
  }

  private start(names: readonly string[], filter: { every_ms?: number }, handOver: () => void): void {
    const { session } = connection;
    if (names.length === 0 || !session) {
      return;
    }
    names.forEach((name) => this.state(name));
    let subscription: EventSubscription;
    try {
      // A browser is no reader that servers wait for: the hub keeps the newest events, and reports the others as missing.
      subscription = session.events({ attributes: [...names], reliable: false, ...(filter.every_ms ? { filter } : {}) }, BUFFER);
    } catch (why) {
      this.failed(names, why);
      return;
    }
    this.open.push(subscription);
    void this.read(subscription, names, filter, handOver);
  }

  private async read(subscription: EventSubscription, names: readonly string[], filter: { every_ms?: number }, handOver: () => void): Promise<void> {
    try {
      for await (const item of subscription) {
        this.take(item);
        handOver();
      }
    } catch (why) {
      if (!this.open.includes(subscription)) {
        return;
      }
      this.open = this.open.filter((one) => one !== subscription);
      const isRefused = why instanceof Failure && (why.code === "denied" || why.code === "bad");
      if (isRefused && names.length > 1) {
        // One that is refused is no reason to show none: halves find it.
        const half = names.length >> 1;
        this.start(names.slice(0, half), filter, handOver);
        this.start(names.slice(half), filter, handOver);
      } else if (isRefused || (why instanceof Failure && why.code !== "closed")) {
        this.failed(names, why);
      }
    }
  }

  private failed(names: readonly string[], why: unknown): void {
    names.forEach((name) => (this.state(name).why = why instanceof Error ? why.message : String(why)));
  }

  private take(item: EventItem): void {
    const { name } = item.attribute.config;
    const state = this.states.get(name.toLowerCase());
    if (!state) {
      return;
    }
    const isOther = state.info?.incarnation !== item.attribute.incarnation;
    if (item.kind === "notice") {
      const { reason, missed } = item;
      state.life = STATES[reason] ?? state.life;
      if (reason === "gap") {
        if (missed === "unknown") {
          state.missedUnknown = true;
        } else if (missed) {
          // The second number is that of the event behind the missing ones.
          state.missed += BigInt(missed[1]) - BigInt(missed[0]);
        }
      }
      const kind = MARKS[reason];
      if (kind) {
        this.listener?.mark(name, kind, missed === null ? "" : missed === "unknown" ? missed : `${missed[0]} – ${BigInt(missed[1]) - 1n}`);
      }
      if (reason === "configuration changed") {
        state.info = item.attribute;
      }
      this.arrived.forEach((tell) => tell(name));
      return;
    }
    // An event that the earlier subscription has delivered.
    if (!isOther && state.reading && item.reading.number <= state.reading.number) {
      return;
    }
    if (item.missed) {
      state.missedUnknown = true;
      this.listener?.mark(name, "gap", "unknown");
    }
    state.info = item.attribute;
    state.life = "alive";
    state.why = "";
    // A remark has no reading; the value stays.
    state.reading = item.reading;
    if (item.reason !== "first") {
      state.count(Date.now());
    }
    this.listener?.event(name, item.attribute, item.reading);
    this.arrived.forEach((tell) => tell(name));
  }
}
