/** Questions to the archive of logs, over the gateway (`spec/log-services.md`). */
import { decodeLogBatch, Failure, type RecordId } from "tampu";

import { connection } from "../lib/connection.svelte";
import { readJson } from "../lib/json";
import { nowNanos, type Nanos } from "../lib/time";
import type { Asked, Columns, Counts } from "./asked";
import { PATTERN_BINS, type Patterns } from "./patterns";
import { ordered, recordRow, type Row } from "./rows";

export type { Asked } from "./asked";

/** A place in the order of the archive. */
export interface Position {
  time: Nanos;
  id: RecordId;
}

export interface Page {
  /** In the order of time, whatever the order of the question. */
  rows: Row[];
  /** True if the archive has no more in this direction. */
  ends: boolean;
  /** The place up to which everything was searched, if the time of the search was over before the page was full. */
  searched?: Position | undefined;
}

/** True if the hub refuses the same question again, however often it is asked. */
export function isRefusal(why: unknown): why is Failure {
  return why instanceof Failure && (why.code === "denied" || why.code === "bad");
}

/**
 * Waits as long as a pause before a search is asked again, or until the hub says why it can never be: then this is returned. A search
 * that failed does not tell whether its query is at fault. A subscription with the query does, and gets no records here.
 */
export async function refusalOf(query: Asked["query"], pauseMs: number): Promise<Failure | undefined> {
  const pause = new Promise<undefined>((resolve) => setTimeout(resolve, pauseMs));
  const trial = connection.session?.logs({ query }, 0);
  const verdict = trial?.next().then(
    () => pause,
    (why: unknown) => (why instanceof Failure && why.code === "bad" ? why : pause),
  );
  try {
    return await Promise.race([verdict ?? pause, pause]);
  } finally {
    void trial?.return();
  }
}

/** Time for an answer, ms: longer than the collector's limit of a search, after which it returns what it has. */
const ANSWER_MS = 90_000;

/** The id of a record without one. */
const NO_ID: RecordId = { incarnation: "00000000-00000000-0000000000000000", ring: 0, number: 0n };

/** The place of a row. */
export function positionOf(row: Row): Position {
  return { time: row.time, id: row.kind === "record" && row.record.id ? row.record.id : NO_ID };
}

/** A place whose whole numbers are of 64 bits, as JSON has them. */
function placeOf(cursor: { time: number | bigint; id: { incarnation: string; ring: number | bigint; number: number | bigint } } | null): Position | undefined {
  return cursor ? { time: BigInt(cursor.time), id: { incarnation: cursor.id.incarnation, ring: Number(cursor.id.ring), number: BigInt(cursor.id.number) } } : undefined;
}

/** Asks for a page of records, beginning at one end or behind a place. */
export async function page(asked: Asked, order: "newest" | "oldest", limit: number, after?: Position, signal?: AbortSignal): Promise<Page> {
  const { query, since, until } = asked;
  const question = { ...query, since, until, newest_first: order === "newest", limit, after };
  const rows: Row[] = [];
  let scanned: { complete: boolean; cursor: Parameters<typeof placeOf>[0] } | undefined;
  for await (const part of connection.ask("log/query", question, signal, ANSWER_MS)) {
    if (part[0] === 0x7b) {
      ({ scanned } = readJson<{ scanned: NonNullable<typeof scanned> }>(new TextDecoder().decode(part)));
    } else {
      decodeLogBatch(part).forEach((record) => rows.push(recordRow(record)));
    }
  }
  if (signal?.aborted) {
    throw new DOMException("ended", "AbortError");
  }
  if (!scanned) {
    throw new Failure("unanswered", "the answer was interrupted");
  }
  if (rows.length >= limit || scanned.complete) {
    return { rows: ordered(rows), ends: rows.length < limit };
  }
  const end = order === "newest" ? (until ?? nowNanos()) : (since ?? 0n);
  return { rows: ordered(rows), ends: false, searched: placeOf(scanned.cursor) ?? after ?? { time: end, id: NO_ID } };
}

/** Asks for counts of records. */
export function count(asked: Asked, by: Columns, signal?: AbortSignal): Promise<Counts> {
  const { query, since, until } = asked;
  return connection.askJson<Counts>("log/stat", { query: { ...query, since, until }, by }, signal);
}

/** Counts the patterns of a range, the most frequent first. */
export function patterns(asked: Asked, limit: number, signal: AbortSignal): Promise<Patterns> {
  const { query, since, until } = asked;
  return connection.askJson<Patterns>("log/stat", { query: { ...query, since, until }, patterns: { limit, bins: PATTERN_BINS } }, signal);
}
