/** Times of the console: nanoseconds as `bigint`, shown and read in UTC or in the zone of the browser. */

export type Nanos = bigint;
export type Zone = "utc" | "local";

const SECOND = 1_000_000_000n;
const MS = 1_000_000n;

const UNITS: Record<string, bigint> = {
  ns: 1n, us: 1000n, "µs": 1000n, ms: MS, s: SECOND, m: 60n * SECOND, h: 3600n * SECOND, d: 86_400n * SECOND, w: 604_800n * SECOND,
};

export function nowNanos(): Nanos {
  return BigInt(Date.now()) * MS;
}

function pad(value: number, digits = 2): string {
  return value.toString().padStart(digits, "0");
}

function parts(at: Nanos, zone: Zone): { day: string; clock: string; rest: string } {
  const inSecond = ((at % SECOND) + SECOND) % SECOND;
  const date = new Date(Number((at - inSecond) / MS));
  const rest = inSecond.toString().padStart(9, "0");
  if (zone === "utc") {
    const text = date.toISOString();
    return { day: text.slice(0, 10), clock: text.slice(11, 19), rest };
  }
  return {
    day: `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`,
    clock: `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`,
    rest,
  };
}

/** The offset of the browser's zone at a time, as `+01:00`. */
function offset(at: Nanos): string {
  const minutes = -new Date(Number(at / MS)).getTimezoneOffset();
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

/** `2026-11-21T08:15:30.123456789Z`, with as many decimals; the zone stands at its end. */
export function timeText(at: Nanos, zone: Zone, decimals = 9): string {
  const { day, clock, rest } = parts(at, zone);
  return `${day}T${clock}${decimals > 0 ? `.${rest.slice(0, decimals)}` : ""}${zone === "utc" ? "Z" : offset(at)}`;
}

/** Date and time of day for a row, without the zone. */
export function rowTime(at: Nanos, zone: Zone): { day: string; clock: string } {
  const { day, clock, rest } = parts(at, zone);
  return { day, clock: `${clock}.${rest.slice(0, 3)}` };
}

/** The shortest text of a duration: `1h30m`, `250ms`. */
export function durationText(span: Nanos): string {
  let rest = span;
  let text = "";
  for (const unit of ["d", "h", "m", "s", "ms", "us", "ns"]) {
    const size = UNITS[unit] as bigint;
    if (rest >= size) {
      text += `${rest / size}${unit}`;
      rest %= size;
    }
  }
  return text || "0s";
}

/** Reads `10m`, `2h30m`, `1.5s`; undefined for anything else. */
export function durationOf(text: string): Nanos | undefined {
  const found = /^(?:\d+(?:\.\d+)?\s*(?:ns|us|µs|ms|s|m|h|d|w)\s*)+$/.test(text);
  if (!found) {
    return undefined;
  }
  let sum = 0n;
  for (const [, number = "", unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|m|h|d|w)/g)) {
    const size = UNITS[unit] as bigint;
    sum += number.includes(".") ? BigInt(Math.round(Number(number) * Number(size))) : BigInt(number) * size;
  }
  return sum;
}

function midnight(now: Nanos, zone: Zone, days: number): Date {
  const date = new Date(Number(now / MS));
  return zone === "utc"
    ? new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + days))
    : new Date(date.getFullYear(), date.getMonth(), date.getDate() + days);
}

const DATED = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?\s*(Z|z|[+-]\d\d?(?::?\d\d)?)?$/;
const CLOCK = /^(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?$/;

function minutesOf(zone: string): number {
  const [, sign = "+", hours = "0", minutes = "0"] = /^([+-])(\d\d?):?(\d\d)?$/.exec(zone) ?? [];
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

/**
 * Reads a time as people type it on the command line: `10m` (ago), `08:15`, `yesterday`, `2026-11-21T08:15:30`, the same
 * with `Z` or `+01:00`. Undefined if the text is no time.
 */
export function timeOf(text: string, now: Nanos, zone: Zone): Nanos | undefined {
  const word = text.trim().toLowerCase();
  if (word === "now") {
    return now;
  }
  if (word === "today" || word === "yesterday") {
    return BigInt(midnight(now, zone, word === "today" ? 0 : -1).getTime()) * MS;
  }
  const ago = durationOf(word.replace(/ago$/, "").trim().replace(/^-/, ""));
  if (ago !== undefined) {
    return now - ago;
  }
  const clock = CLOCK.exec(word);
  if (clock) {
    const [, hours = "0", minutes = "0", seconds = "0", rest = ""] = clock;
    if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) {
      return undefined;
    }
    const day = midnight(now, zone, 0);
    const ms = Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000;
    const at = zone === "utc" ? day.getTime() + ms : new Date(day).setHours(Number(hours), Number(minutes), Number(seconds));
    return BigInt(at) * MS + BigInt(rest.padEnd(9, "0"));
  }
  return dated(text.trim(), zone);
}

function dated(text: string, zone: Zone): Nanos | undefined {
  const found = DATED.exec(text);
  if (!found) {
    return undefined;
  }
  const [year, month, day, hours, minutes, seconds] = found.slice(1, 7).map((part) => Number(part ?? 0)) as [number, number, number, number, number, number];
  const [rest = "", of] = found.slice(7);
  const asUtc = new Date(Date.UTC(year, month - 1, day, hours, minutes, seconds));
  // A day that does not exist, as 30 February, becomes another one.
  if (asUtc.getUTCMonth() !== month - 1 || asUtc.getUTCDate() !== day || hours > 23 || minutes > 59 || seconds > 59) {
    return undefined;
  }
  let ms = asUtc.getTime();
  if (of !== undefined && of.toLowerCase() !== "z") {
    ms -= minutesOf(of) * 60_000;
  } else if (of === undefined && zone === "local") {
    ms = new Date(year, month - 1, day, hours, minutes, seconds).getTime();
  }
  return BigInt(ms) * MS + BigInt(rest.padEnd(9, "0"));
}
