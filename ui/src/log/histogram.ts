/** Counts of records by time and level, for the histogram. */
import type { Nanos } from "../lib/time";
import { count, type Asked } from "./archive";
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

/** Counts the records of a range. Without a beginning, the range begins with the first record. */
export async function histogram(asked: Asked, now: Nanos, signal: AbortSignal): Promise<Histogram | undefined> {
  let { since } = asked;
  const until = asked.until ?? now;
  if (since === undefined) {
    const { earliest } = await count(asked, {}, signal);
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
  const found = await count({ ...asked, since, until }, { level: true, every_s: step }, signal);
  const from = (since / every) * every;
  const bars: Bar[] = [];
  for (let at = from; at < until; at += every) {
    bars.push({ from: at, counts: {}, total: 0 });
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
  return { from, to: from + BigInt(bars.length) * every, every, bars, total: found.total, highest, complete: found.complete };
}
