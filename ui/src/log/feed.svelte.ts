/**
 * The rows of the log view: the end of the archive, then live records without hole or double; or a part of the past.
 *
 * Rows are a bounded window of the archive's one order. Older and newer pages come by the place of the rows at its ends.
 * Live records are merged by their ids, so that those which the archive brought as well stand there once. While
 * somebody reads, and the window is full, the hub gets no more credit: nothing is dropped, and it counts what waits.
 */
import { type LogItem, type TopicSubscription } from "tampu";

import { connection } from "../lib/connection.svelte";
import { nowNanos, timeText, type Nanos } from "../lib/time";
import { count, page, type Asked } from "./archive";
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
/** Time between two counts of waiting records, ms. */
const COUNT_MS = 2000;
/** Time before the newest row in which records of other sources may still be committed. */
const SLACK: Nanos = 10_000_000_000n;
/** Waiting records beyond which a view that comes back begins anew at the end. */
const CATCH_UP = 20_000;

export type FeedState = "loading" | "live" | "past" | "failed";

export class LogFeed {
  rows = $state.raw<Row[]>([]);
  state = $state<FeedState>("loading");
  /** The reason of a failure. */
  why = $state("");
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
  /** True if a search ended early. */
  incomplete = $state(false);

  /** Counts of what comes live, for the histogram. */
  readonly tally = new Tally();

  private asked: Asked = { query: {} };
  private subscription: TopicSubscription<LogItem> | undefined;
  private pending: Row[] = [];
  private flusher: ReturnType<typeof setTimeout> | undefined;
  private counter: ReturnType<typeof setInterval> | undefined;
  private wake: (() => void) | undefined;
  private ends = new AbortController();

  /** True while live records wait in the hub. */
  get held(): boolean {
    return this.state === "live" && (this.paused || (this.reading && this.rows.length >= WINDOW));
  }

  /** Shows other records: the end of the archive and live ones, or the first ones of the past from a time on. */
  async start(asked: Asked, from?: Nanos): Promise<void> {
    this.stop();
    this.tally.end();
    this.asked = asked;
    this.rows = [];
    this.state = "loading";
    Object.assign(this, { why: "", waiting: undefined, oldestShown: false, newestShown: false, incomplete: false, paging: true });
    const { signal } = this.ends;
    try {
      if (from !== undefined) {
        const older = await page({ ...asked, until: from }, "newest", PAGE / 2, undefined, signal);
        const newer = await page({ ...asked, since: from }, "oldest", PAGE, undefined, signal);
        if (!signal.aborted) {
          this.take([...older.rows, ...newer.rows], older.complete && newer.complete);
          this.oldestShown = older.ends;
          this.settle(newer.ends);
        }
        return;
      }
      const found = await page(asked, "newest", PAGE, undefined, signal);
      if (!signal.aborted) {
        this.take(found.rows, found.complete);
        this.oldestShown = found.ends;
        this.settle(true);
      }
    } catch (why) {
      this.failed(why, signal);
    } finally {
      if (!signal.aborted) {
        this.paging = false;
      }
    }
  }

  /** Ends all that goes on. */
  stop(): void {
    this.ends.abort();
    this.ends = new AbortController();
    clearTimeout(this.flusher);
    clearInterval(this.counter);
    this.flusher = this.counter = undefined;
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
      return this.state === "past" ? undefined : this.start(this.asked);
    }
    const { rows, asked } = this;
    this.stop();
    const { signal } = this.ends;
    try {
      const missed = await count({ ...asked, since: newest.time }, {}, signal);
      if (signal.aborted) {
        return;
      }
      if (missed.total > CATCH_UP && !this.reading) {
        return await this.start(asked);
      }
      this.rows = rows;
      this.live();
    } catch (why) {
      this.failed(why, signal);
    }
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

  /** Loads the page before the first row. */
  async older(): Promise<void> {
    const first = this.rows.find((row) => row.kind === "record");
    if (this.paging || this.oldestShown || !first) {
      return;
    }
    await this.paged(async (signal) => {
      const found = await page(this.asked, "newest", PAGE, first, signal);
      return () => {
        this.oldestShown = found.ends;
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
  async newer(): Promise<void> {
    const last = this.rows.findLast((row) => row.kind === "record");
    if (this.paging || this.newestShown || this.state !== "past" || !last) {
      return;
    }
    await this.paged(async (signal) => {
      const found = await page(this.asked, "oldest", PAGE, last, signal);
      return () => {
        const rows = merged(this.rows, found.rows);
        if (rows.length > WINDOW) {
          this.oldestShown = false;
        }
        this.rows = rows.slice(-WINDOW);
        this.settle(found.ends);
      };
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

  private async paged(load: (signal: AbortSignal) => Promise<() => void>): Promise<void> {
    this.paging = true;
    const { signal } = this.ends;
    try {
      const take = await load(signal);
      if (!signal.aborted) {
        take();
      }
    } catch (why) {
      this.failed(why, signal);
    } finally {
      if (!signal.aborted) {
        this.paging = false;
      }
    }
  }

  private take(rows: Row[], complete: boolean): void {
    this.rows = ordered(rows);
    this.incomplete = !complete;
  }

  private failed(why: unknown, signal: AbortSignal): void {
    if (!signal.aborted) {
      this.state = "failed";
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
    clearTimeout(this.flusher);
    this.flusher = undefined;
    this.pending = [];
    this.tally.end();
    this.state = "past";
    this.newestShown = false;
  }

  /** Subscribes from shortly before the newest row on. */
  private live(): void {
    const { session } = connection;
    if (!session) {
      return this.failed(new Error(connection.why), this.ends.signal);
    }
    this.state = "live";
    this.newestShown = true;
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
        if (done || this.subscription !== subscription) {
          return;
        }
        this.put(item);
      }
    } catch (why) {
      // The end of a session is the business of the connection, which begins another one.
      if (this.subscription === subscription && connection.session) {
        this.failed(why, signal);
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
      let rows = merged(this.rows, since === undefined ? fresh : fresh.filter((row) => row.time >= since));
      if (!this.reading && rows.length > FOLLOWED) {
        rows = rows.slice(-FOLLOWED);
        this.oldestShown = false;
      }
      this.rows = rows;
    }
    if (this.held) {
      this.watch();
    } else {
      this.release();
    }
  }

  private release(): void {
    if (!this.held) {
      clearInterval(this.counter);
      this.counter = undefined;
      this.waiting = undefined;
      this.wake?.();
      this.wake = undefined;
    }
  }

  /** Counts the records that wait, by the archive. */
  private watch(): void {
    if (this.counter) {
      return;
    }
    const ask = () => {
      const { signal } = this.ends;
      const newest = this.rows.findLast((row) => row.kind === "record");
      const since = newest ? newest.time + 1n : this.asked.since;
      count({ ...this.asked, ...(since === undefined ? {} : { since }) }, {}, signal).then(
        ({ total }) => {
          if (this.held && !signal.aborted) {
            this.waiting = total;
          }
        },
        () => undefined,
      );
    };
    this.counter = setInterval(ask, COUNT_MS);
    ask();
  }
}

