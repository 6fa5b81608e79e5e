/** Ranges of time and their places in a picture. Times stay whole nanoseconds; only distances within a range become numbers. */
import { durationText, type Nanos } from "../lib/time";

export interface Range {
  readonly from: Nanos;
  readonly to: Nanos;
}

/** The shortest and the longest range that is shown. */
export const SHORTEST: Nanos = 1000n;
export const LONGEST: Nanos = 30n * 366n * 86_400_000_000_000n;

/** Parts of a range in which a place is counted, when it becomes a time. */
const PARTS = 1_000_000;

export function spanOf(range: Range): Nanos {
  return range.to - range.from;
}

/** The place of a time in a range, 0 at its beginning and 1 at its end; beyond them for other times. */
export function place(range: Range, at: Nanos): number {
  return Number(at - range.from) / Number(range.to - range.from);
}

/** The time at a place of a range. */
export function timeAt(range: Range, part: number): Nanos {
  return range.from + (spanOf(range) * BigInt(Math.round(part * PARTS))) / BigInt(PARTS);
}

function within(span: Nanos): Nanos {
  return span < SHORTEST ? SHORTEST : span > LONGEST ? LONGEST : span;
}

/** A range of an allowed length with the same beginning; its ends in order. */
export function allowed(from: Nanos, to: Nanos): Range {
  const [first, last] = from <= to ? [from, to] : [to, from];
  return { from: first, to: first + within(last - first) };
}

/** A range with another length, in which a time keeps its place. */
export function resized(range: Range, at: Nanos, span: Nanos): Range {
  const wanted = within(span);
  const from = at - ((at - range.from) * wanted) / spanOf(range);
  return { from, to: from + wanted };
}

/** A range that is longer or shorter by a factor, in which a time keeps its place. */
export function zoomed(range: Range, at: Nanos, factor: number): Range {
  return resized(range, at, (spanOf(range) * BigInt(Math.round(factor * PARTS))) / BigInt(PARTS));
}

/** A range moved by a part of its length. */
export function moved(range: Range, part: number): Range {
  const by = (spanOf(range) * BigInt(Math.round(part * PARTS))) / BigInt(PARTS);
  return { from: range.from + by, to: range.to + by };
}

/** The range with a part of its length more on both sides. */
export function widened(range: Range, part: number): Range {
  const by = (spanOf(range) * BigInt(Math.round(part * PARTS))) / BigInt(PARTS);
  return { from: range.from - by, to: range.to + by };
}

export function contains(outer: Range, inner: Range): boolean {
  return outer.from <= inner.from && outer.to >= inner.to;
}

export function has(range: Range, at: Nanos): boolean {
  return at >= range.from && at < range.to;
}

/** A length with its two largest units: the rest says nothing to a reader. */
export function lengthText(span: Nanos): string {
  return /^(?:\d+[a-z]+){1,2}/.exec(durationText(span))?.[0] ?? "";
}
