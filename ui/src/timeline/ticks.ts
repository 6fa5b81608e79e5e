/** Ticks of an axis of time, from nanoseconds to years, at round times of the zone. */
import { timeText, type Nanos, type Zone } from "../lib/time";
import { spanOf, type Range } from "./range";

export interface Tick {
  at: Nanos;
  text: string;
}

const SECOND = 1_000_000_000n;
const DAY = 86_400n * SECOND;
/** Steps of seconds up to half a day: each divides a day. */
const CLOCK = [1n, 2n, 5n, 10n, 15n, 30n, 60n, 120n, 300n, 600n, 900n, 1800n, 3600n, 7200n, 10_800n, 21_600n, 43_200n].map((seconds) => seconds * SECOND);
/** Steps of days; 1, 2, 3, 6 months; years. */
const DAYS = [1, 2, 7];
const MONTHS = [1, 2, 3, 6, 12, 24, 60, 120];
const MONTH = 30n * DAY;

/** The shortest step that makes at most so many ticks: of ns, of days, or of months. */
function stepOf(span: Nanos, most: number): { ns: Nanos } | { days: number } | { months: number } {
  const fits = (step: Nanos) => span / step < BigInt(most);
  for (let unit = 1n; unit < SECOND; unit *= 10n) {
    for (const digit of [1n, 2n, 5n]) {
      if (fits(digit * unit)) {
        return { ns: digit * unit };
      }
    }
  }
  const clock = CLOCK.find(fits);
  if (clock !== undefined) {
    return { ns: clock };
  }
  const days = DAYS.find((days) => fits(BigInt(days) * DAY));
  return days === undefined ? { months: MONTHS.find((months) => fits(BigInt(months) * MONTH)) ?? 240 } : { days };
}

/** Distance of the zone from UTC at a time. */
function shift(at: Nanos, zone: Zone): Nanos {
  return zone === "utc" ? 0n : BigInt(-new Date(Number(at / 1_000_000n)).getTimezoneOffset()) * 60n * SECOND;
}

const ceiled = (value: Nanos, step: Nanos) => ((value + step - 1n) / step) * step;

/** The tick's text: only what differs between ticks of this step. The axis shows the whole time of its beginning. */
function textOf(at: Nanos, zone: Zone, step: Nanos): string {
  if (step >= DAY) {
    return timeText(at, zone, 0).slice(0, step >= MONTH ? 7 : 10);
  }
  const decimals = step >= SECOND ? 0 : 10 - step.toString().length;
  const clock = timeText(at, zone, decimals).slice(11).replace(/(?:Z|[+-]\d\d:\d\d)$/, "");
  if (step >= 60n * SECOND) {
    return clock.slice(0, 5) === "00:00" ? timeText(at, zone, 0).slice(5, 10) : clock.slice(0, 5);
  }
  // Below a millisecond the second and its decimals have to do.
  return decimals > 3 ? clock.slice(6) : clock;
}

/** Round times of a range, at most so many. */
export function ticks(range: Range, zone: Zone, most: number): Tick[] {
  const step = stepOf(spanOf(range), Math.max(2, Math.floor(most)));
  const found: Tick[] = [];
  if ("ns" in step) {
    const by = shift(range.from, zone);
    for (let at = ceiled(range.from + by, step.ns) - by; at < range.to; at += step.ns) {
      found.push({ at, text: textOf(at, zone, step.ns) });
    }
    return found;
  }
  const date = new Date(Number(range.from / 1_000_000n));
  const [year, month] = zone === "utc" ? [date.getUTCFullYear(), date.getUTCMonth()] : [date.getFullYear(), date.getMonth()];
  const ms = (year: number, month: number, day: number) => (zone === "utc" ? Date.UTC(year, month, day) : new Date(year, month, day).getTime());
  const weekday = (date: Date) => (zone === "utc" ? date.getUTCDay() : date.getDay());
  const take = (at: Nanos, length: Nanos) => {
    if (at >= range.from && at < range.to) {
      found.push({ at, text: textOf(at, zone, length) });
    }
  };
  if ("days" in step) {
    const day = zone === "utc" ? date.getUTCDate() : date.getDate();
    // Steps of days begin on the Monday before, so that they stay where they are while the range moves.
    const monday = day - ((weekday(new Date(ms(year, month, day))) + 6) % 7);
    for (let nth = monday - 7; ; nth += step.days) {
      const at = BigInt(ms(year, month, nth)) * 1_000_000n;
      if (at >= range.to) {
        return found;
      }
      take(at, DAY);
    }
  }
  const first = (Math.floor((year * 12 + month) / step.months) - 1) * step.months;
  for (let nth = first; ; nth += step.months) {
    const at = BigInt(ms(Math.floor(nth / 12), nth % 12, 1)) * 1_000_000n;
    if (at >= range.to) {
      return found;
    }
    take(at, MONTH);
  }
}
