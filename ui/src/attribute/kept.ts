/** Kept events of the API (`spec/book-api.md`), as traces take them. */
import type { Replace, Schemas } from "../lib/schemas";
import type { Nanos } from "../lib/time";
import type { Interval, Mark, MarkKind, Point, QualityName } from "./trace";
import { jsonNumber } from "./values";

/** A kept event of the API. */
export type KeptEvent = Replace<Schemas["ShownEvent"], { quality?: QualityName | null; shape?: [number, number] | null }>;

export type HistoryPoint = Replace<Schemas["HistoryPoint"], { quality: QualityName }>;

export type AttributeHistory = Replace<Schemas["AttributeHistory"], { points: HistoryPoint[]; values: KeptEvent[]; marks: KeptEvent[] }>;

export type KeptPage = Replace<Schemas["KeptPage"], { rows: KeptEvent[] }>;

export interface Joined {
  intervals: Interval[];
  points: Point[];
  marks: Mark[];
  /** False if the search ran out of time. */
  complete: boolean;
  /** True if the values of arrays are missing, because there are too many of them. */
  tooMany: boolean;
}

/** Milliseconds with fractions of a text with nine decimals. */
export function msOf(text: string): number {
  const dot = text.indexOf(".");
  const whole = Date.parse(dot < 0 ? text : `${text.slice(0, dot)}Z`);
  return dot < 0 ? whole : whole + Number(text.slice(dot, -1)) * 1000;
}

const KINDS: Record<string, MarkKind> = { gap: "gap", "source died": "died", "source hung": "hung", "source returned": "returned", "source left": "left" };

/** A row as a mark, if it is one. */
export function markOf(row: KeptEvent): Mark | undefined {
  const kind = KINDS[row.reason ?? ""];
  return kind && { time: msOf(row.time), kind, note: row.note ?? "" };
}

export function pointOf(row: KeptEvent, element: number | undefined): Point {
  return { time: msOf(row.time), value: jsonNumber(row.value, element), quality: row.quality ?? "valid", life: row.incarnation, number: BigInt(row.sequence) };
}

export function intervalOf(point: HistoryPoint, width: number): Interval {
  const time = msOf(point.time);
  const number = (value: number | null | undefined) => value ?? NaN;
  const has = point.min !== null && point.min !== undefined;
  return {
    time, end: time + width, count: point.count, numbers: has ? point.count : 0, min: number(point.min), max: number(point.max), mean: number(point.mean),
    first: number(point.first), last: number(point.last), quality: point.quality,
  };
}

/** Nanoseconds of milliseconds with fractions. */
export function nanosOf(ms: number): Nanos {
  const whole = Math.floor(ms);
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6));
}
