/** The time in sight, as the address has it: the last time up to the present, or a fixed one. */
import { durationOf, timeOf, timeText, type Nanos } from "../lib/time";
import type { Range } from "./grid";
import { nanosOf } from "./kept";

export type Sight = { span: number } | Range;

export const FIRST_RANGE = "15m";
/** The shortest and the longest time, ms. */
const LIMITS = { least: 1, most: 20 * 366 * 86_400_000 };

const ms = (nanos: Nanos) => Number(nanos / 1000n) / 1000;

/** Reads `range=15m`, or `since` and `until`. */
export function sightOf(parameters: URLSearchParams): Sight {
  const [since, until] = ["since", "until"].map((name) => timeOf(parameters.get(name) ?? "", 0n, "utc"));
  if (since !== undefined && until !== undefined && until > since) {
    return { from: ms(since), to: ms(until) };
  }
  const span = durationOf(parameters.get("range") ?? FIRST_RANGE);
  return { span: Math.min(LIMITS.most, Math.max(1000, ms(span ?? (durationOf(FIRST_RANGE) as Nanos)))) };
}

export interface SightParameters {
  range: string | undefined;
  since: string | undefined;
  until: string | undefined;
}

/** The parameters of a range. */
export function sightParameters(range: Range): SightParameters {
  const text = (time: number) => timeText(nanosOf(time), "utc", range.to - range.from < 10_000 ? 6 : 3);
  return { range: undefined, since: text(range.from), until: text(range.to) };
}

/** A range that is wider by a factor, and moved by a part of its width. One that would end in the future ends now. */
export function changed(range: Range, factor: number, move: number, now: number): Range {
  const width = Math.min(LIMITS.most, Math.max(LIMITS.least, (range.to - range.from) * factor));
  const middle = (range.from + range.to) / 2 + (range.to - range.from) * move;
  const to = Math.min(middle + width / 2, Math.max(now, range.to));
  return { from: to - width, to };
}
