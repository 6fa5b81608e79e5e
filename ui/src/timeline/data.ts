/** The answer of the hub about a range (`/api/v1/timeline`), with times in nanoseconds. */
import type { Replace, Schemas, Sent } from "../lib/schemas";
import type { Nanos } from "../lib/time";
import { LEVELS, optionsOf, parseFilter, type LevelName } from "../log/filter";
import type { Range } from "./range";

/** A transfer of bulk data, as the API has it. */
export type Transfer = Sent<Schemas["ShownTransfer"], "file" | "size" | "ended" | "seconds" | "bytes_per_s">;

/** An event, as the API has it. */
export type Reading = Schemas["ShownEvent"];

/** The answer of the API. */
export type Answer = Replace<Schemas["Timeline"], { transfers: Transfer[] }>;

export interface Counts {
  start: Nanos;
  every: Nanos;
  bins: number;
  total: number;
  /** Counts of all bins by level, the gravest first. */
  levels: { level: LevelName; counts: number[] }[];
  complete: boolean;
}

/** An event with a reading. */
export interface Value {
  at: Nanos;
  /** The number of a scalar; undefined for other values. */
  number?: number;
  text: string;
  quality: string;
  error: string;
}

/** The events of an interval. */
export interface Point {
  at: Nanos;
  count: number;
  low?: number;
  high?: number;
  mean?: number;
  last?: number;
  quality: string;
}

/** A gap, or a change of the source: readings before it say nothing about the time behind it, unless it returned. */
export interface Mark {
  at: Nanos;
  text: string;
}

export interface History {
  name: string;
  unit: string;
  /** Width of an interval. */
  every: Nanos;
  /** Intervals if there are too many events for a picture, else none. */
  points: Point[];
  values: Value[];
  marks: Mark[];
  /** The last reading before the range. */
  before?: Value;
  count: number;
  complete: boolean;
}

export interface Bar {
  from: Nanos;
  /** Undefined while it runs. */
  to?: Nanos;
  transfer: Transfer;
}

export interface Entry {
  at: Nanos;
  book: string;
  id: number;
  by: string;
  title: string;
}

export interface Timeline {
  range: Range;
  log?: Counts;
  histories: History[];
  transfers: Bar[];
  entries: Entry[];
  /** Lanes whose oldest items are left out. */
  cut: string[];
  missing: { lane: string; why: string }[];
}

/** Reads a time of the API: RFC 3339 with nine decimals, in UTC. */
export function nanosOf(text: string): Nanos {
  return BigInt(Date.parse(`${text.slice(0, 19)}Z`)) * 1_000_000n + BigInt(text.slice(20, 29).padEnd(9, "0").replace(/\D/g, "0"));
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") {
    return value;
  }
  // Whole numbers beyond 2^53 and infinities are texts.
  return typeof value === "string" && /^[-+]?(?:\d+|inf(?:inity)?)$/i.test(value) ? Number(value.replace(/inf.*$/i, "Infinity")) : undefined;
}

export function valueOf(reading: Reading): Value {
  const number = numberOf(reading.value);
  // A label, as of an enumeration, is more than its number.
  const isNumber = number !== undefined && (reading.text === "" || !Number.isNaN(Number(reading.text.replace(/^([-+]?)inf.*$/i, "$1Infinity"))));
  return { at: nanosOf(reading.time), ...(isNumber ? { number } : {}), text: reading.text, quality: reading.quality ?? "valid", error: reading.error ?? "" };
}

/** Makes numbers of the texts of an answer, and leaves out what has none. */
export function timelineOf(answer: Answer): Timeline {
  const { log } = answer;
  const range = { from: nanosOf(answer.since), to: nanosOf(answer.until) };
  const levels = LEVELS.toReversed().flatMap((level) => (log?.levels[level] ? [{ level, counts: log.levels[level] }] : []));
  const known = (value: number | null | undefined) => value ?? undefined;
  return {
    range,
    ...(log ? { log: { start: nanosOf(log.start), every: BigInt(log.every_ns), bins: log.bins, total: log.total, levels, complete: log.complete } } : {}),
    histories: answer.events.map((history) => ({
      name: history.name,
      unit: history.unit,
      every: BigInt(history.every_ns),
      points: history.points.map(({ time, count, min, max, mean, last, quality }) => {
        const numbers = { low: known(min), high: known(max), mean: known(mean), last: known(last) };
        const there = Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined));
        return { at: nanosOf(time), count, quality, ...there };
      }),
      values: history.values.map(valueOf),
      marks: history.marks.map((mark) => ({ at: nanosOf(mark.time), text: [mark.reason, mark.note].filter((text) => text).join(": ") })),
      count: history.count,
      complete: history.complete,
    })),
    transfers: [...new Map(answer.transfers.map((transfer) => [transfer.id, transfer])).values()].map((transfer) => ({ from: nanosOf(transfer.began), ...(transfer.ended === null ? {} : { to: nanosOf(transfer.ended) }), transfer })),
    entries: answer.entries.map(({ book, id, date, by, title }) => ({ at: nanosOf(date), book, id, by, title })).toSorted((one, other) => (one.at < other.at ? -1 : 1)),
    cut: answer.cut,
    missing: answer.missing,
  };
}

/** A filter as parameters of the API: the options of the command line with `_` for `-`. */
export function filterParameters(line: string): Record<string, string[]> {
  const parameters: Record<string, string[]> = {};
  const filter = parseFilter(line);
  delete filter.since;
  delete filter.until;
  for (const [name, value] of [...optionsOf(filter), ...filter.words.map((word) => ["word", word] as const)]) {
    (parameters[name.replaceAll("-", "_")] ??= []).push(value);
  }
  return parameters;
}
