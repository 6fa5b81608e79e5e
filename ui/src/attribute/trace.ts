/**
 * The readings of one attribute over a time: kept ones of the history and live ones, each once. Memory is bounded: the
 * oldest readings become intervals with their least and largest value, so that no peak is lost.
 */
import { QUALITIES } from "tampu";

/** Readings that are kept one by one. */
const MOST = 20_000;
/** Readings that become one interval. */
const FOLDED = 8;
/** Marks that are kept. */
const MOST_MARKS = 500;

/** The place of a quality in a list from good to bad. */
const BADNESS = { valid: 0, changing: 1, warning: 2, alarm: 3, invalid: 4 } as const;
export type QualityName = (typeof QUALITIES)[number];

export function worse(one: QualityName, other: QualityName): QualityName {
  return BADNESS[other] > BADNESS[one] ? other : one;
}

/** One reading. Times are ms since 1970 with fractions; the value is NaN if the reading has no number. */
export interface Point {
  time: number;
  value: number;
  quality: QualityName;
  /** Incarnation of the source, and number of the event. */
  life: string;
  number: bigint;
}

/** Readings of an interval. */
export interface Interval {
  time: number;
  end: number;
  count: number;
  /** Readings that have a number. */
  numbers: number;
  min: number;
  max: number;
  mean: number;
  first: number;
  last: number;
  quality: QualityName;
}

export type MarkKind = "gap" | "died" | "hung" | "returned" | "left";

/** Something that is no reading: missing events, or the life of the source. */
export interface Mark {
  time: number;
  kind: MarkKind;
  note: string;
}

export interface Statistics {
  count: number;
  min: number;
  max: number;
  mean: number;
  /** The standard deviation; undefined if a part of the readings is known as intervals only. */
  deviation: number | undefined;
  first: number;
  last: number;
}

function before<T extends { time: number }>(all: readonly T[], time: number): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle] as T).time < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

const nameOf = ({ life, number }: Point) => `${life} ${number}`;

/** Makes one interval of readings. */
export function folded(points: readonly Point[]): Interval {
  const first = points[0] as Point;
  const last = points.at(-1) as Point;
  const values = points.map(({ value }) => value).filter((value) => Number.isFinite(value));
  return {
    time: first.time,
    end: last.time,
    count: points.length,
    numbers: values.length,
    min: values.reduce((one, other) => Math.min(one, other), Infinity),
    max: values.reduce((one, other) => Math.max(one, other), -Infinity),
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    first: values[0] ?? NaN,
    last: values.at(-1) ?? NaN,
    quality: points.reduce<QualityName>((worst, { quality }) => worse(worst, quality), "valid"),
  };
}

export class Trace {
  /** Intervals, all before the readings. */
  intervals: Interval[] = [];
  points: Point[] = [];
  marks: Mark[] = [];
  /** Counts changes, so that a plot knows when to draw. */
  version = 0;

  /** Adds a live reading. A repeated one is left out. */
  add(point: Point): void {
    const { points } = this;
    const last = points.at(-1);
    if (!last || point.time > last.time) {
      points.push(point);
    } else {
      let at = before(points, point.time);
      for (; at < points.length && (points[at] as Point).time === point.time; at++) {
        if ((points[at] as Point).number === point.number && (points[at] as Point).life === point.life) {
          return;
        }
      }
      // A reading before the intervals is in them.
      if (at === 0 && this.intervals.length > 0) {
        return;
      }
      points.splice(at, 0, point);
    }
    this.version++;
    if (points.length > MOST) {
      const old = points.splice(0, Math.floor(MOST / 2 / FOLDED) * FOLDED);
      for (let nth = 0; nth < old.length; nth += FOLDED) {
        this.intervals.push(folded(old.slice(nth, nth + FOLDED)));
      }
      if (this.intervals.length > MOST) {
        this.intervals.splice(0, this.intervals.length - MOST);
      }
    }
  }

  mark(mark: Mark): void {
    const at = before(this.marks, mark.time);
    const there = this.marks[at];
    if (there && there.time === mark.time && there.kind === mark.kind) {
      return;
    }
    this.marks.splice(at, 0, mark);
    if (this.marks.length > MOST_MARKS) {
      this.marks.shift();
    }
    this.version++;
  }

  /** Puts the history before the live readings. A reading that both have is there once; it has the same number in both. */
  join(history: { intervals: Interval[]; points: Point[]; marks: Mark[] }): void {
    const until = history.intervals.at(-1)?.end ?? -Infinity;
    const known = new Set(history.points.map(nameOf));
    const rest = this.points.filter((point) => point.time > until && !known.has(nameOf(point)));
    const points = [...history.points, ...rest];
    points.sort((one, other) => one.time - other.time);
    const own = this.intervals.filter(({ time }) => time > until && time > (history.points.at(-1)?.time ?? -Infinity));
    // Folded live readings stand after the intervals of the history, and before single ones.
    this.intervals = [...history.intervals, ...own];
    this.points = own.length > 0 ? points.filter(({ time }) => time > (own.at(-1) as Interval).end) : points;
    for (const mark of history.marks) {
      this.mark(mark);
    }
    this.version++;
  }

  /** Forgets everything before a time but the reading that is valid there. */
  forget(time: number): void {
    const points = before(this.points, time) - 1;
    if (points > 0) {
      this.points.splice(0, points);
    }
    const intervals = before(this.intervals, time) - 1;
    if (intervals > 0) {
      this.intervals.splice(0, intervals);
    }
  }

  /** The index of the first reading from a time on. */
  from(time: number): number {
    return before(this.points, time);
  }

  intervalsFrom(time: number): number {
    return before(this.intervals, time);
  }

  /** The reading or interval that is valid at a time. */
  at(time: number): Point | Interval | undefined {
    return this.points[before(this.points, time + 1e-9) - 1] ?? this.intervals[before(this.intervals, time + 1e-9) - 1];
  }

  /** The reading or interval of a time, unless the source has gone since, or events are missing. */
  holdsAt(time: number): Point | Interval | undefined {
    const one = this.at(time);
    return one && this.marks.some((mark) => mark.kind !== "returned" && mark.time >= one.time && mark.time < time) ? undefined : one;
  }

  /** The numbers of all readings from one time to another. */
  statistics(from: number, to: number): Statistics {
    let [count, numbers, sum, squares, min, max, first, last] = [0, 0, 0, 0, Infinity, -Infinity, NaN, NaN];
    let hasIntervals = false;
    for (let nth = this.intervalsFrom(from); nth < this.intervals.length; nth++) {
      const one = this.intervals[nth] as Interval;
      if (one.end > to) {
        break;
      }
      count += one.count;
      if (one.numbers > 0) {
        hasIntervals = true;
        first = numbers === 0 ? one.first : first;
        numbers += one.numbers;
        sum += one.mean * one.numbers;
        min = Math.min(min, one.min);
        max = Math.max(max, one.max);
        last = one.last;
      }
    }
    // Distances from one of the values: squares of large numbers would lose the small differences.
    let base = NaN;
    let distances = 0;
    for (let nth = this.from(from); nth < this.points.length; nth++) {
      const { time, value } = this.points[nth] as Point;
      if (time > to) {
        break;
      }
      count++;
      if (Number.isFinite(value)) {
        base = Number.isNaN(base) ? value : base;
        first = numbers === 0 ? value : first;
        numbers++;
        sum += value;
        distances += value - base;
        squares += (value - base) ** 2;
        min = Math.min(min, value);
        max = Math.max(max, value);
        last = value;
      }
    }
    const deviation = hasIntervals || numbers === 0 ? undefined : Math.sqrt(Math.max(0, squares / numbers - (distances / numbers) ** 2));
    return { count, min: numbers > 0 ? min : NaN, max: numbers > 0 ? max : NaN, mean: sum / numbers, deviation, first, last };
  }
}
