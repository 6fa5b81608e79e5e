/** Times in nanoseconds of UTC since 1970. A `bigint`, because a number ends at 2^53. */
export type Nanos = bigint;

const SECOND = 1_000_000_000n;

/** Writes a time as RFC 3339 in UTC with nine decimals. */
export function timeText(at: Nanos): string {
  const inSecond = ((at % SECOND) + SECOND) % SECOND;
  const seconds = (at - inSecond) / SECOND;
  const day = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  return `${day}.${inSecond.toString().padStart(9, "0")}Z`;
}

/** Reads such a text; with fewer decimals or none, too. */
export function timeOf(text: string): Nanos {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z?$/.exec(text);
  const ms = found ? Date.parse(`${found[1]}Z`) : Number.NaN;
  if (!found || Number.isNaN(ms)) {
    throw new RangeError(`'${text}' is no time; write 2026-11-21T08:15:30.123456789Z`);
  }
  return BigInt(ms / 1000) * SECOND + BigInt((found[2] ?? "").padEnd(9, "0"));
}

/** The present time, as exact as the platform tells it. */
export function now(): Nanos {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;
}

/** The nearest `Date`. */
export function dateOf(at: Nanos): Date {
  return new Date(Number(at / 1_000_000n));
}
