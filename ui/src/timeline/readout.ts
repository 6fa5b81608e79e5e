/** The values of the lanes at a time: what stands beside them, and in a summary. */
import type { Nanos } from "../lib/time";
import type { Bar, Counts, Entry, History, Point } from "./data";
import { binOf, isBad, valueAt } from "./picture";
import type { Range } from "./range";
import { TEXT } from "./text";

/** A number for people, with at most six digits that count. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) {
    return String(value);
  }
  const size = Math.abs(value);
  return size !== 0 && (size >= 1e7 || size < 1e-4) ? value.toExponential(3) : String(Number(value.toPrecision(6)));
}

/** `12 Error, 3 Warning` of the bin at a time. */
export function countsAt(log: Counts, at: Nanos): { total: number; text: string } | undefined {
  const bin = binOf(log, at);
  if (bin === undefined) {
    return undefined;
  }
  const there = log.levels.map(({ level, counts }) => ({ level, count: counts[bin] ?? 0 })).filter(({ count }) => count > 0);
  return { total: there.reduce((sum, { count }) => sum + count, 0), text: there.map(({ level, count }) => `${count} ${level}`).join(", ") };
}

export interface Readout {
  text: string;
  quality: string;
  /** The time of the reading. */
  at?: Nanos;
}

function pointAt(history: History, at: Nanos): Point | undefined {
  return history.points.find((point) => point.at <= at && at < point.at + history.every) ?? history.points.findLast((point) => point.at <= at);
}

/** The value of an attribute at a time, or of the interval there. */
export function readoutOf(history: History, at: Nanos): Readout | undefined {
  const unit = history.unit === "" ? "" : ` ${history.unit}`;
  if (history.points.length > 0) {
    const point = pointAt(history, at);
    if (!point) {
      return undefined;
    }
    const { low, high, mean, last, count, quality, at: time } = point;
    const isInside = at < time + history.every;
    if (low === undefined || high === undefined || mean === undefined) {
      return { text: TEXT.events(count), quality, at: time };
    }
    const text = !isInside && last !== undefined ? numberText(last) : low === high ? numberText(low) : `${numberText(mean)} (${numberText(low)}…${numberText(high)})`;
    return { text: text + unit, quality, at: time };
  }
  const value = valueAt(history, at);
  return value && { text: value.error || (value.number === undefined ? value.text : numberText(value.number)) + unit, quality: value.quality, at: value.at };
}

/** Least, mean and largest number of a range, and the number of events. */
export function statisticsOf(history: History, range: Range): { low: number; high: number; mean: number; count: number } | undefined {
  const points = history.points.filter((point) => point.at + history.every > range.from && point.at < range.to && point.mean !== undefined);
  if (points.length > 0) {
    const count = points.reduce((sum, point) => sum + point.count, 0);
    return {
      low: Math.min(...points.map(({ low = 0 }) => low)),
      high: Math.max(...points.map(({ high = 0 }) => high)),
      mean: points.reduce((sum, point) => sum + (point.mean ?? 0) * point.count, 0) / count,
      count,
    };
  }
  const numbers = history.values.filter(({ at, number }) => number !== undefined && Number.isFinite(number) && at >= range.from && at < range.to).map(({ number }) => number as number);
  if (numbers.length === 0) {
    return undefined;
  }
  return { low: Math.min(...numbers), high: Math.max(...numbers), mean: numbers.reduce((sum, one) => sum + one, 0) / numbers.length, count: numbers.length };
}

/** Attributes that are not valid at a time. */
export function alarmsAt(histories: readonly History[], at: Nanos): { name: string; quality: string }[] {
  return histories.flatMap((history) => {
    const quality = history.points.length > 0 ? pointAt(history, at)?.quality : valueAt(history, at)?.quality;
    return quality !== undefined && isBad(quality) ? [{ name: history.name, quality }] : [];
  });
}

/** Transfers that ran at a time. */
export function transfersAt(bars: readonly Bar[], at: Nanos): Bar[] {
  return bars.filter(({ from, to }) => from <= at && (to === undefined || at < to));
}

/** The last entry up to a time, within the range. */
export function entryBefore(entries: readonly Entry[], at: Nanos, range: Range): Entry | undefined {
  return entries.findLast((entry) => entry.at <= at && entry.at >= range.from);
}
