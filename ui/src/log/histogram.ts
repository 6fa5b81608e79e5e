/** Counts of records by time and level, for the histogram. */
import type { Nanos } from "../lib/time";
import type { Asked, Columns, Counts } from "./asked";
import type { LevelName } from "./filter";
import { SECOND, type Bar, type Histogram } from "./tally";

/** Lengths of a bar, seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400, 172_800, 604_800, 2_592_000, 31_536_000];
/** Most bars. */
const BARS = 120;

function stepOf(span: Nanos): number {
  const seconds = Number(span / SECOND);
  return STEPS.find((step) => seconds / step <= BARS) ?? Math.ceil(seconds / BARS);
}

/** Asks for counts of records. */
export type Ask = (asked: Asked, by: Columns, signal?: AbortSignal) => Promise<Counts>;

/** A count of before, whose bars still hold up to a time. */
export interface Known {
  counted: Histogram;
  until: Nanos;
}

/**
 * Counts the records of a range. Without a beginning, the range begins with the first record. Bars that are known are counted again
 * only if bars of the range have another length.
 */
export async function histogram(ask: Ask, asked: Asked, now: Nanos, signal: AbortSignal, counted?: Known): Promise<Histogram | undefined> {
  // A late record before the first bar needs a new beginning.
  const known = counted && counted.until >= counted.counted.from ? counted : undefined;
  let since = asked.since ?? known?.counted.from;
  const until = asked.until ?? now;
  if (since === undefined) {
    const { earliest } = await ask(asked, {}, signal);
    if (earliest === null) {
      return undefined;
    }
    since = BigInt(Math.floor(earliest / 1e9)) * SECOND;
  }
  if (since >= until) {
    return undefined;
  }
  const step = stepOf(until - since);
  const every = BigInt(step) * SECOND;
  const from = (since / every) * every;
  const before = known?.counted.every === every && known.counted.complete ? known.counted : undefined;
  const whole = before && known ? (known.until / every) * every : from;
  const found = await ask({ ...asked, since: whole > since ? whole : since, until }, { level: true, every_s: step }, signal);
  const bars: Bar[] = [];
  for (let at = from; at < until; at += every) {
    const same = at < whole ? before?.bars[Number((at - before.from) / every)] : undefined;
    bars.push(same ? { ...same, counts: { ...same.counts } } : { from: at, counts: {}, total: 0 });
  }
  for (const { time, level, count: records } of found.rows) {
    // The number is rounded, the beginning of a bar is not.
    const bar = bars[Number((BigInt(Math.round((time ?? 0) / 1e9)) * SECOND - from) / every)];
    if (bar && level) {
      bar.counts[level as LevelName] = records;
      bar.total += records;
    }
  }
  const highest = bars.reduce((most, bar) => Math.max(most, bar.total), 0);
  const total = before ? bars.reduce((sum, bar) => sum + bar.total, 0) : found.total;
  return { from, to: from + BigInt(bars.length) * every, every, bars, total, highest, complete: found.complete };
}
