/**
 * Columns for the plot: all traces share one list of times, three for each pixel. A pixel with many readings has the
 * least and the largest of them, in their order, so a plot of any number of readings costs the same.
 */
import type { Interval, Mark, Point, QualityName, Trace } from "./trace";

/** A value of a column: a number, null for an interruption, undefined for nothing. */
export type Cell = number | null | undefined;

export interface Flaw {
  /** Place in the list of times. */
  at: number;
  quality: QualityName;
}

export interface Column {
  values: Cell[];
  /** Readings that are not simply valid. */
  flaws: Flaw[];
}

export interface Range {
  from: number;
  to: number;
}

/** Drawing: lines between readings, or steps that hold a value until the next reading. */
export type Draw = "line" | "steps";

/** Flaws of a column that are drawn, and the least distance between equal ones, in pixels. */
const MOST_FLAWS = 300;
const FLAW_DISTANCE = 9;

/** Places of a pixel: two values and an interruption. */
export const SLOTS = 3;

/** The times of all places, in seconds since 1970. */
export function timesOf({ from, to }: Range, pixels: number): number[] {
  const slots = SLOTS * pixels;
  return Array.from({ length: slots + 1 }, (_, nth) => (from + ((to - from) * nth) / slots) / 1000);
}

/** Columns of one trace. */
export function columnOf(trace: Trace, range: Range, pixels: number, draw: Draw, now: number, isLog: boolean): Column {
  const { from, to } = range;
  const slots = SLOTS * pixels;
  const values: Cell[] = new Array<Cell>(slots + 1).fill(undefined);
  const flaws: Flaw[] = [];
  const usable = (value: number) => Number.isFinite(value) && (!isLog || value > 0);
  const width = (to - from) / pixels;

  let bin = -1;
  let [least, largest, leastFirst] = [NaN, NaN, true];
  /** An interruption before the values of the pixel, and one behind them. */
  let [isBrokenBefore, isBroken] = [false, false];
  function flush(): void {
    if (bin < 0) {
      return;
    }
    let slot = SLOTS * bin;
    if (isBrokenBefore) {
      values[slot++] = null;
    }
    if (!Number.isNaN(least)) {
      values[slot++] = leastFirst ? least : largest;
      if (least !== largest) {
        values[slot++] = leastFirst ? largest : least;
      }
    }
    if (isBroken) {
      // The last place of the pixel, or the first one of the next.
      values[slot] = null;
    }
    [least, largest, isBrokenBefore, isBroken] = [NaN, NaN, false, false];
  }
  function put(time: number, value: number): void {
    const of = Math.min(pixels - 1, Math.floor((time - from) / width));
    if (of !== bin) {
      flush();
      bin = of;
    }
    if (!usable(value)) {
      isBrokenBefore ||= Number.isNaN(least);
      isBroken ||= !Number.isNaN(least);
    } else if (Number.isNaN(least)) {
      [least, largest, leastFirst] = [value, value, true];
    } else if (value < least) {
      [least, leastFirst] = [value, false];
    } else if (value > largest) {
      [largest, leastFirst] = [value, true];
    }
  }
  function flaw(time: number, quality: QualityName): void {
    const at = SLOTS * Math.min(pixels - 1, Math.floor((time - from) / width));
    const last = flaws.at(-1);
    if (quality !== "valid" && flaws.length < MOST_FLAWS && (!last || last.quality !== quality || at - last.at >= FLAW_DISTANCE * SLOTS)) {
      flaws.push({ at, quality });
    }
  }

  // Events of the trace in the order of time: intervals, readings, and interruptions among them.
  const breaks = trace.marks.filter(({ kind, time }) => kind !== "returned" && time >= from && time <= to);
  let nextBreak = 0;
  function breaksBefore(time: number): void {
    while (nextBreak < breaks.length && (breaks[nextBreak] as { time: number }).time < time) {
      const mark = breaks[nextBreak++] as { time: number };
      put(mark.time, NaN);
    }
  }

  const held = heldAt(trace, from);
  if (held !== undefined && usable(held.value)) {
    const next = nextOf(trace, from);
    const isAcross = !trace.marks.some(({ kind, time }) => kind !== "returned" && time >= held.time && time < Math.min(from, next?.time ?? from));
    if (isAcross && (next !== undefined || draw === "steps" || held.time > -Infinity)) {
      const part = next && draw === "line" && next.time > held.time ? (from - held.time) / (next.time - held.time) : 0;
      put(from, part > 0 && next && usable(next.value) ? held.value + (next.value - held.value) * part : held.value);
    }
  }
  for (let nth = trace.intervalsFrom(from); nth < trace.intervals.length; nth++) {
    const one = trace.intervals[nth] as Interval;
    if (one.time > to) {
      break;
    }
    breaksBefore(one.time);
    if (one.numbers === 0) {
      put(one.time, NaN);
    } else {
      const ordered = one.first <= one.last ? [one.first, one.min, one.max, one.last] : [one.first, one.max, one.min, one.last];
      ordered.forEach((value, part) => put(Math.min(to, one.time + ((one.end - one.time) * part) / 4), value));
    }
    flaw(one.time, one.quality);
  }
  let last: Point | Interval | undefined;
  for (let nth = trace.from(from); nth < trace.points.length; nth++) {
    const one = trace.points[nth] as Point;
    if (one.time > to) {
      break;
    }
    breaksBefore(one.time);
    put(one.time, one.value);
    flaw(one.time, one.quality);
    last = one;
  }
  breaksBefore(to + 1);
  flush();

  // A value holds until now, if its source lives.
  const end = trace.at(to);
  const isAlive = !trace.marks.some(({ kind, time }) => kind !== "returned" && kind !== "gap" && time >= (end?.time ?? Infinity));
  const until = Math.min(now, to);
  const value = end && ("value" in end ? end.value : end.last);
  if (value !== undefined && isAlive && usable(value) && until > from && until > (last?.time ?? 0)) {
    const slot = Math.min(slots, Math.floor(((until - from) / (to - from)) * slots));
    if (values[slot] === undefined) {
      values[slot] = value;
    }
  }
  interrupt(values, draw);
  return { values, flaws };
}

/**
 * Extends interruptions to the readings around them: the plot draws between places that hold a number. Steps hold their
 * value until the interruption, lines end with the reading before it.
 */
function interrupt(values: Cell[], draw: Draw): void {
  let isBroken = false;
  let last: number | undefined;
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (value === null && !isBroken) {
      isBroken = true;
      for (let back = at - 1; draw === "line" && back >= 0 && values[back] === undefined; back--) {
        values[back] = null;
      }
      if (draw === "steps" && last !== undefined && values[at - 1] === undefined) {
        values[at - 1] = last;
      }
    } else if (value === undefined && isBroken) {
      values[at] = null;
    } else if (typeof value === "number") {
      [isBroken, last] = [false, value];
    }
  }
}

/** The last reading before a time. */
function heldAt(trace: Trace, time: number): { time: number; value: number } | undefined {
  const point = trace.points[trace.from(time) - 1];
  if (point) {
    return point;
  }
  const interval = trace.intervals[trace.intervalsFrom(time) - 1];
  return interval && { time: interval.end, value: interval.last };
}

function nextOf(trace: Trace, time: number): { time: number; value: number } | undefined {
  const interval = trace.intervals[trace.intervalsFrom(time)];
  if (interval) {
    return { time: interval.time, value: interval.first };
  }
  return trace.points[trace.from(time)];
}

/** A time without readings that somebody should know of: events are missing, or the source is away. */
export interface Span {
  from: number;
  to: number;
  mark: Mark;
}

/** The spans of a trace in a range. Each ends with the next reading, or with the source's return. */
export function spansOf(trace: Trace, range: Range, now: number): Span[] {
  const spans: Span[] = [];
  trace.marks.forEach((mark, nth) => {
    if (mark.kind === "returned" || mark.time > range.to) {
      return;
    }
    // A source that hung may return; another life of it begins with a reading.
    const returned = (mark.kind === "hung" && trace.marks.slice(nth + 1).find(({ kind }) => kind === "returned")?.time) || Infinity;
    // A gap of the history has the time of the reading before it.
    const next = nextOf(trace, mark.time + 1e-6)?.time ?? Infinity;
    const last = mark.kind === "gap" ? (heldAt(trace, mark.time + 1e-6)?.time ?? mark.time) : mark.time;
    const to = Math.min(next, returned, now);
    if (to >= range.from) {
      spans.push({ from: Math.min(last, mark.time), to: Math.max(to, mark.time), mark });
    }
  });
  return spans;
}
