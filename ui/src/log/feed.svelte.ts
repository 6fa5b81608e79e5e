/**
 * The rows of the log view: the end of the archive, then live records without hole or double; or a part of the past.
 *
 * Rows are a bounded window of the archive's one order. Older and newer pages come by the place of the rows at its ends.
 * Live records are merged by their ids, so that those which the archive brought as well stand there once. While
 * somebody reads, and the window is full, the hub gets no more credit: nothing is dropped, and it counts what waits.
 * A question that fails is asked again, and takes nothing else away.
 */
import { Failure, type LogItem, type TopicSubscription } from "tampu";

import { connection } from "../lib/connection.svelte";
import { paced } from "../lib/paced";
import { nowNanos, timeText, type Nanos } from "../lib/time";
import { count, isRefusal, page, positionOf, refusalOf, type Asked, type Position } from "./archive";
import { SECOND, Tally } from "./tally";
import { indexOf, lossRow, merged, ordered, recordRow, type Place, type Row } from "./rows";

/** Rows that the window keeps. */
export const WINDOW = 50_000;
/**
 * Rows that it keeps while it follows the end. Older ones come back from the archive as somebody scrolls up. At 100 000
 * records a second rows that stay longer make the browser's pauses for its memory longer than a picture may take.
 */
const FOLLOWED = 10_000;
/** Rows of a page. */
const PAGE = 1000;
/** Time between two pictures of live rows, ms. */
const FLUSH_MS = 100;
/** Live rows that wait for a picture; then the hub waits. */
const PENDING = 20_000;
/** Least time between two counts of waiting records, ms. */
const COUNT_MS = 2000;
/** Pauses before a question that failed is asked again, ms. */
const PAUSES = { first: 1000, longest: 30_000 };
/** Time before the newest row in which records of other sources may still be committed. */
const SLACK: Nanos = 10_000_000_000n;
/** Waiting records beyond which a view that comes back begins anew at the end. */
const CATCH_UP = 20_000;

export type FeedState = "loading" | "live" | "past" | "failed";

/** The end of the window at which a page is missing, or the live records. */
export type Part = "older" | "newer" | "live";

export class LogFeed {
  rows = $state.raw<Row[]>([]);
  state = $state<FeedState>("loading");
  /** The reason of a failure. */
  why = $state("");
  /** The kind of a failure: the hub could not answer, may not answer this user, or can do nothing with the filter. */
  fault = $state<"failed" | "denied" | "bad">("failed");
  /** Stopped by hand. */
  paused = $state(false);
  /** True while somebody reads rows above the end. */
  reading = $state(false);
  /** Records that wait in the hub while nothing is taken. */
  waiting = $state<number | undefined>(undefined);
  /** True if the archive has nothing older, or newer, than the window within the filter. */
  oldestShown = $state(false);
  newestShown = $state(false);
  /** True while a page is on its way. */
  paging = $state(false);
  /** Places at which searches ran out of time: somebody decides whether they go on. */
  searched = $state.raw<{ older?: Position | undefined; newer?: Position | undefined }>({});
  /** Parts that could not be had, with the reasons. They are asked for again. */
  lacks = $state.raw<{ [part in Part]?: string | undefined }>({});

  /** Counts of what comes live, for the histogram. */
  readonly tally = new Tally();

  private asked: Asked = { query: {} };
  private subscription: TopicSubscription<LogItem> | undefined;
  private pending: Row[] = [];
  private flusher: ReturnType<typeof setTimeout> | undefined;
  private endCount: (() => void) | undefined;
  /** Questions that are asked again after a pause. */
  private readonly retries = new Map<Part, { timer: ReturnType<typeof setTimeout> | undefined; act: () => void }>();
  private readonly pauses = new Map<Part, number>();
  private wake: (() => void) | undefined;
  private ends = new AbortController();

  /** True while live records wait in the hub. */
  get held(): boolean {
    return this.state === "live" && (this.paused || (this.reading && this.rows.length >= WINDOW));
  }

  /**
   * Shows other records: the end of the archive and live ones, or the first ones of the past from a time on. It is asked
   * for until it comes. Returns false if something else was to be shown meanwhile, or if it will never come.
   */
  async start(asked: Asked, from?: Nanos): Promise<boolean> {
    this.stop();
    this.tally.end();
    this.asked = asked;
    this.rows = [];
    this.state = "loading";
    Object.assign(this, { why: "", waiting: undefined, oldestShown: false, newestShown: false, searched: {}, paging: true });
    const { signal } = this.ends;
    for (let pause = PAUSES.first; ; pause = Math.min(2 * pause, PAUSES.longest)) {
      try {
        await this.begin(from, signal);
        return !signal.aborted;
      } catch (why) {
        this.failed(why, signal);
        if (signal.aborted || isRefusal(why)) {
          return false;
        }
        // At each pause: a slow hub may have had no time for its verdict before.
        const refusal = await refusalOf(asked.query, pause);
        if (refusal) {
          this.failed(refusal, signal);
        }
        if (signal.aborted || refusal) {
          return false;
        }
      }
    }
  }

  /** Asks for the first page. */
  private async begin(from: Nanos | undefined, signal: AbortSignal): Promise<void> {
    const { asked } = this;
    if (from !== undefined) {
      const older = await page({ ...asked, until: from }, "newest", PAGE / 2, undefined, signal);
      const newer = await page({ ...asked, since: from }, "oldest", PAGE, undefined, signal);
      this.rows = ordered([...older.rows, ...newer.rows]);
      this.oldestShown = older.ends;
      this.searched = { older: older.searched, newer: newer.searched };
      this.settle(newer.ends);
    } else {
      const found = await page(asked, "newest", PAGE, undefined, signal);
      this.rows = found.rows;
      this.oldestShown = found.ends;
      this.searched = { older: found.searched };
      this.settle(true);
    }
    this.paging = false;
  }

  /** Ends all that goes on. */
  stop(): void {
    this.ends.abort();
    this.ends = new AbortController();
    clearTimeout(this.flusher);
    this.flusher = undefined;
    this.endWatch();
    this.retries.forEach(({ timer }) => clearTimeout(timer));
    this.retries.clear();
    this.pauses.clear();
    this.lacks = {};
    this.pending = [];
    this.leave();
  }

  /** Ends the subscription, and lets its loop see that. */
  private leave(): void {
    const { subscription } = this;
    this.subscription = undefined;
    void subscription?.return();
    this.wake?.();
    this.wake = undefined;
  }

  /** Goes on after another session with the hub began: with what the archive has had since. */
  async resume(): Promise<void> {
    const newest = this.rows.findLast((row) => row.kind === "record");
    if (this.state !== "live" || !newest) {
      return this.state === "past" ? undefined : void (await this.start(this.asked));
    }
    const { rows, asked } = this;
    this.stop();
    const { signal } = this.ends;
    // Without the count, all of them come live.
    const missed = await count({ ...asked, since: newest.time }, {}, signal).catch(() => undefined);
    if (signal.aborted) {
      return;
    }
    this.paging = false;
    if (missed && missed.total > CATCH_UP && !this.reading) {
      await this.start(asked);
      return;
    }
    this.rows = rows;
    this.live();
  }

  pause(): void {
    this.paused = true;
    this.flush();
    this.watch();
  }

  goOn(): void {
    this.paused = false;
    this.release();
  }

  /** Tells whether somebody reads above the end. At the end, rows that waited come. */
  setReading(reading: boolean): void {
    this.reading = reading;
    if (!reading) {
      this.release();
    }
  }

  /** Loads the page before the first row. A search that ran out of time goes on only if it is told to. */
  async older(goesOn = false): Promise<void> {
    const first = this.rows.find((row) => row.kind === "record");
    const after = this.searched.older ?? (first && positionOf(first));
    if (this.paging || this.oldestShown || !after || (this.searched.older && !goesOn)) {
      return;
    }
    await this.paged("older", goesOn, async (signal) => {
      const found = await page(this.asked, "newest", PAGE, after, signal);
      return () => {
        this.oldestShown = found.ends;
        this.searched = { ...this.searched, older: found.searched };
        let rows = merged(found.rows, this.rows);
        if (rows.length > WINDOW) {
          rows = rows.slice(0, WINDOW);
          this.detach();
        }
        this.rows = rows;
      };
    });
  }

  /** Loads the page behind the last row, while the end of the archive is elsewhere. */
  async newer(goesOn = false): Promise<void> {
    const last = this.rows.findLast((row) => row.kind === "record");
    const after = this.searched.newer ?? (last && positionOf(last));
    if (this.paging || this.newestShown || this.state !== "past" || !after || (this.searched.newer && !goesOn)) {
      return;
    }
    await this.paged("newer", goesOn, async (signal) => {
      const found = await page(this.asked, "oldest", PAGE, after, signal);
      return () => {
        const rows = merged(this.rows, found.rows);
        this.searched = { ...this.searched, newer: found.searched };
        this.cut(rows, WINDOW);
        this.settle(found.ends);
      };
    });
  }

  /** Asks at once for what could not be had. */
  again(): void {
    this.retries.forEach(({ timer, act }) => {
      clearTimeout(timer);
      act();
    });
  }

  /** Loads one more page for a list that is not full, while the window has room for it. */
  fill(): void {
    const room = this.state === "live" && !this.reading ? FOLLOWED : WINDOW;
    if ((this.state === "live" || this.state === "past") && this.rows.length + PAGE <= room) {
      // One of them at a time.
      void this.older();
      void this.newer();
    }
  }

  /** The index of a place in the window. */
  indexOf(place: Place): number {
    return indexOf(this.rows, place);
  }

  private async paged(part: "older" | "newer", goesOn: boolean, load: (signal: AbortSignal) => Promise<() => void>): Promise<void> {
    if (this.retries.has(part)) {
      return;
    }
    this.paging = true;
    const { signal } = this.ends;
    try {
      const take = await load(signal);
      if (!signal.aborted) {
        this.had(part);
        take();
      }
    } catch (why) {
      this.lack(part, why, signal, () => void this[part](goesOn));
    } finally {
      if (!signal.aborted) {
        this.paging = false;
      }
    }
  }

  /** Notes that a part came. */
  private had(part: Part): void {
    this.pauses.delete(part);
    if (this.lacks[part] !== undefined) {
      this.lacks = { ...this.lacks, [part]: undefined };
    }
  }

  /** Notes that a part did not come, and asks for it again after a pause. */
  private lack(part: Part, why: unknown, signal: AbortSignal, ask: () => void): void {
    if (signal.aborted) {
      return;
    }
    this.lacks = { ...this.lacks, [part]: why instanceof Error ? why.message : String(why) };
    const pause = this.pauses.get(part) ?? PAUSES.first;
    this.pauses.set(part, Math.min(2 * pause, PAUSES.longest));
    const act = () => {
      this.retries.delete(part);
      ask();
    };
    // A refused page may be asked for by hand.
    this.retries.set(part, { timer: isRefusal(why) ? undefined : setTimeout(act, pause), act });
  }

  /** Takes rows, at most so many: the older ones go. */
  private cut(rows: Row[], most: number): void {
    if (rows.length > most) {
      rows = rows.slice(-most);
      this.oldestShown = false;
      this.searched = { ...this.searched, older: undefined };
    }
    this.rows = rows;
  }

  private failed(why: unknown, signal: AbortSignal): void {
    if (!signal.aborted) {
      this.state = "failed";
      this.fault = isRefusal(why) ? (why.code as "denied" | "bad") : "failed";
      this.paging = this.fault === "failed";
      this.why = why instanceof Error ? why.message : String(why);
    }
  }

  /** Decides whether the view is live: it is at its end, unless the filter has an end. */
  private settle(atEnd: boolean): void {
    this.newestShown = atEnd;
    if (atEnd && this.asked.until === undefined) {
      this.live();
    } else {
      this.state = "past";
    }
  }

  /** Leaves the live end: it is no part of the window any more. */
  private detach(): void {
    this.leave();
    clearTimeout(this.retries.get("live")?.timer);
    this.retries.delete("live");
    this.had("live");
    clearTimeout(this.flusher);
    this.flusher = undefined;
    this.pending = [];
    this.tally.end();
    this.state = "past";
    this.newestShown = false;
    this.searched = { ...this.searched, newer: undefined };
  }

  /** Subscribes from shortly before the newest row on. */
  private live(): void {
    this.state = "live";
    this.newestShown = true;
    const { session } = connection;
    if (!session) {
      // The next session resumes it.
      return;
    }
    const [oldest, newest] = [this.rows[0]?.time, this.rows.at(-1)?.time];
    const near = (newest ?? nowNanos()) - SLACK;
    const floor = oldest ?? this.asked.since;
    // From a whole second on, so that the records of each second are counted once.
    const whole = (near / SECOND) * SECOND;
    const since = floor !== undefined && floor > whole ? floor : whole;
    const inside = floor !== undefined && floor > whole && floor !== this.asked.since;
    if (inside) {
      // The rest of that second comes again, and is in no whole second of before.
      this.tally.end();
    }
    this.tally.begin(Number(inside ? since / SECOND + 1n : since / SECOND));
    this.lacks = { ...this.lacks, live: undefined };
    const subscription = session.logs({ query: this.asked.query, since: timeText(since, "utc") });
    this.subscription = subscription;
    void this.follow(subscription, this.ends.signal);
    if (this.paused) {
      this.watch();
    }
  }

  private async follow(subscription: TopicSubscription<LogItem>, signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        const { value: item, done } = await subscription.next();
        while (this.subscription === subscription && (this.held || this.pending.length >= PENDING)) {
          await new Promise<void>((resolve) => (this.wake = resolve));
        }
        if (this.subscription !== subscription) {
          return;
        }
        if (done) {
          throw new Failure("failed", "the live records ended");
        }
        this.had("live");
        this.put(item);
      }
    } catch (why) {
      // The end of a session is the business of the connection, which begins another one.
      if (this.subscription === subscription && connection.session) {
        this.leave();
        this.flush();
        this.lack("live", why, signal, () => this.live());
      }
    }
  }

  private put(item: LogItem): void {
    if (item.kind === "record") {
      this.tally.add(item.record.time, item.record.level);
      this.pending.push(recordRow(item.record));
    } else if (item.kind === "gap" && !item.gap.filled) {
      const { from, to, why } = item.gap;
      const time = this.pending.at(-1)?.time ?? this.rows.at(-1)?.time ?? nowNanos();
      this.pending.push(lossRow({ source: item.stream?.source ?? "", samples: to === null ? undefined : BigInt(to) - BigInt(from), why }, time));
    } else {
      return;
    }
    this.flusher ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  private flush(): void {
    clearTimeout(this.flusher);
    this.flusher = undefined;
    if (this.pending.length > 0) {
      const fresh = ordered(this.pending);
      this.pending = [];
      const { since } = this.asked;
      const rows = merged(this.rows, since === undefined ? fresh : fresh.filter((row) => row.time >= since));
      this.cut(rows, this.reading ? rows.length : FOLLOWED);
    }
    if (this.held) {
      this.watch();
    } else {
      this.release();
    }
  }

  private release(): void {
    if (!this.held) {
      this.endWatch();
      this.waiting = undefined;
      this.wake?.();
      this.wake = undefined;
    }
  }

  /** Counts the records that wait, by the archive, until the view takes them. */
  private watch(): void {
    if (this.endCount) {
      return;
    }
    const { signal } = this.ends;
    const ask = async () => {
      const newest = this.rows.findLast((row) => row.kind === "record");
      const since = newest ? newest.time + 1n : this.asked.since;
      const counted = await count({ ...this.asked, ...(since === undefined ? {} : { since }) }, {}, signal).catch(() => undefined);
      if (counted && this.held && !signal.aborted) {
        this.waiting = counted.total;
      }
      return true;
    };
    this.endCount = paced(ask, COUNT_MS);
  }

  private endWatch(): void {
    this.endCount?.();
    this.endCount = undefined;
  }
}
