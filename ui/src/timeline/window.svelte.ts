/** The range in sight: it stands still, follows the present, or follows a replay. */
import { nowNanos, type Nanos } from "../lib/time";
import { moved, place, resized, spanOf, zoomed, type Range } from "./range";

/** Most pictures a second of a range that moves by itself, as ms between two. */
const FRAME_MS = 80;
/** Part of the picture at which the playhead stays, once it is there. */
const PLAYHEAD = 0.8;

export class TimeWindow {
  range = $state.raw<Range>({ from: 0n, to: 1n });
  /** The present, of the last picture. */
  now = $state.raw<Nanos>(nowNanos());
  /** True while the end of the range is the present. */
  live = $state(false);
  /** Speed of the replay, if there is one. */
  speed = $state<number | undefined>(undefined);
  /** A replay that stands still. */
  paused = $state(false);
  /** The time that a replay has reached. */
  head = $state.raw<Nanos>(0n);
  /** Called when a replay has reached the present, and follows it. */
  caughtUp: () => void = () => undefined;
  /** Width of the picture, pixels. */
  width = 800;

  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The moment of the last step, ms of the browser's steady clock. */
  private stepped = 0;

  /** Begins to move by itself, as far as there is a reason. */
  start(): void {
    clearTimeout(this.timer);
    this.stepped = performance.now();
    this.step();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  follow(span: Nanos): void {
    this.speed = undefined;
    this.live = true;
    this.now = nowNanos();
    this.range = resized({ from: this.now - span, to: this.now }, this.now, span);
    this.start();
  }

  still(range: Range): void {
    this.live = false;
    this.range = range;
    this.start();
  }

  /** Replays from a time on. */
  play(from: Nanos, speed: number): void {
    this.live = false;
    this.head = from;
    this.speed = speed;
    this.paused = false;
    this.start();
  }

  endReplay(): void {
    this.speed = undefined;
    this.paused = false;
  }

  pause(paused: boolean): void {
    this.paused = paused;
    this.start();
  }

  /** A live range is zoomed at the present, any other one at the time. */
  zoom(at: Nanos, factor: number): void {
    if (this.live) {
      this.range = zoomed(this.range, this.range.to, factor);
    } else {
      this.range = zoomed(this.range, at, factor);
    }
  }

  /** Moves the range. It follows the present no longer; moved beyond it, it does again. */
  pan(part: number): void {
    const range = moved(this.range, part);
    const now = nowNanos();
    if (this.live && part >= 0) {
      return;
    }
    if (part > 0 && this.speed === undefined && this.range.to <= now && range.to > now) {
      this.follow(spanOf(range));
    } else {
      this.live = false;
      this.range = range;
    }
  }

  /** The end of what is known in the picture: the present, or the playhead. */
  get end(): Nanos {
    return this.speed === undefined ? this.now : this.head;
  }

  private step(): void {
    const at = performance.now();
    const passed = BigInt(Math.round((at - this.stepped) * 1e6));
    this.stepped = at;
    const now = nowNanos();
    if (this.live) {
      const span = spanOf(this.range);
      // A step of less than a pixel changes nothing.
      if (Number(now - this.range.to) * this.width >= Number(span)) {
        this.now = now;
        this.range = { from: now - span, to: now };
      }
    } else if (this.speed !== undefined && !this.paused) {
      this.head += (passed * BigInt(Math.round(this.speed * 1000))) / 1000n;
      if (this.head >= now) {
        // The replay has caught up with the present.
        this.follow(spanOf(this.range));
        this.caughtUp();
        return;
      }
      const part = place(this.range, this.head);
      if (part < 0 || part > 1) {
        this.range = moved({ from: this.head, to: this.head + spanOf(this.range) }, -PLAYHEAD / 2);
      } else if (part > PLAYHEAD) {
        this.range = moved(this.range, part - PLAYHEAD);
      }
    } else if (now - this.now > 1_000_000_000n) {
      this.now = now;
    }
    this.timer = setTimeout(() => this.step(), FRAME_MS);
  }
}
