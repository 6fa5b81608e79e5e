/** Loads the lanes: a little more than the range in sight, anew when it leaves what is there, and again while it follows. */
import { contains, spanOf, widened, type Range } from "./range";
import { load, type Asked } from "./ask";
import type { Timeline } from "./data";

/** Part of the range that is loaded beyond each of its ends. */
const MARGIN = 0.25;
/** Time for which a range has to rest before it is loaded, ms. */
const REST_MS = 150;
/** Pixels of an interval. */
const PIXELS = 3;
/** Time between two answers of a range that follows, ms: part of its length, within bounds. */
const FOLLOW = { least: 1000, most: 10_000 };
const AGAIN_MS = 5000;

export interface Wish {
  range: Range;
  width: number;
  lanes: readonly string[];
  attributes: readonly string[];
  filter: string;
  /** True if the newest data are of interest. */
  fresh: boolean;
}

export class TimelineLoader {
  shown = $state.raw<Timeline>();
  busy = $state(false);
  why = $state("");

  private wish: Wish | undefined;
  private asked: { name: string; range: Range; at: number } | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private due = 0;
  private ends = new AbortController();

  /** Notes what is in sight; called for each picture. */
  want(wish: Wish): void {
    this.wish = wish;
    if (wish.width === 0) {
      return;
    }
    const wait = this.waits(wish);
    if (wait === undefined || (this.busy && this.serves(wish))) {
      return;
    }
    const due = performance.now() + wait;
    // A range that moves on does not put off what is due.
    if (this.timer === undefined || due < this.due) {
      clearTimeout(this.timer);
      this.due = due;
      this.timer = setTimeout(() => void this.ask(), wait);
    }
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.ends.abort();
  }

  again(): void {
    this.asked = undefined;
    if (this.wish) {
      this.want(this.wish);
    }
  }

  private name({ lanes, attributes, filter }: Wish): string {
    return JSON.stringify([lanes, attributes, filter]);
  }

  /** True if the answer on its way has much of what is in sight. A range that moves on would else never get one. */
  private serves(wish: Wish): boolean {
    const { asked } = this;
    const [span, there] = [spanOf(wish.range), asked ? spanOf(asked.range) : 0n];
    const near = asked !== undefined && asked.range.from < wish.range.to && wish.range.from < asked.range.to;
    return near && asked.name === this.name(wish) && there < span * 4n && span < there * 2n;
  }

  /** Time until the next question is due, ms; undefined if what is there is good enough. */
  private waits(wish: Wish): number | undefined {
    const { asked } = this;
    if (!asked || asked.name !== this.name(wish)) {
      return REST_MS;
    }
    const [span, there] = [spanOf(wish.range), spanOf(asked.range)];
    const isFine = there < span * 3n && contains(asked.range, wish.range);
    if (!isFine && !(wish.fresh && wish.range.from >= asked.range.from && there < span * 3n)) {
      return REST_MS;
    }
    if (!wish.fresh || this.busy) {
      return undefined;
    }
    const every = Math.max(FOLLOW.least, Math.min(FOLLOW.most, Number(span) / 1e6 / 300));
    return Math.max(0, asked.at + every - performance.now());
  }

  private async ask(): Promise<void> {
    this.timer = undefined;
    const { wish } = this;
    if (!wish) {
      return;
    }
    this.ends.abort();
    const ends = new AbortController();
    this.ends = ends;
    const range = widened(wish.range, MARGIN);
    this.asked = { name: this.name(wish), range, at: performance.now() };
    this.busy = true;
    const bins = Math.max(20, Math.min(2000, Math.round((wish.width * (1 + 2 * MARGIN)) / PIXELS)));
    const question: Asked = { range, lanes: wish.lanes, attributes: wish.attributes, filter: wish.filter, bins };
    try {
      const found = await load(question, ends.signal);
      if (!ends.signal.aborted) {
        this.shown = found;
        this.why = "";
        this.busy = false;
        // The range may have moved on meanwhile.
        this.want(this.wish ?? wish);
      }
    } catch (why) {
      if (!ends.signal.aborted) {
        this.why = why instanceof Error ? why.message : String(why);
        this.busy = false;
        this.timer = setTimeout(() => this.again(), AGAIN_MS);
        this.due = performance.now() + AGAIN_MS;
      }
    }
  }
}
