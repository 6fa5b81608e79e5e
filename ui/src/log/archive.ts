/** Questions to the archive of logs, over the gateway (`spec/log-services.md`). */
import { decodeLogBatch } from "tampu";

import { connection } from "../lib/connection.svelte";
import type { Nanos } from "../lib/time";
import { PATTERN_BINS, type Patterns } from "./patterns";
import { ordered, recordRow, type Row } from "./rows";

/** A query: the conditions of a filter, and from when to when. */
export interface Asked {
  query: Record<string, unknown>;
  since?: Nanos;
  until?: Nanos;
}

export interface Page {
  /** In the order of time, whatever the order of the question. */
  rows: Row[];
  /** True if the archive has no more in this direction. */
  ends: boolean;
  /** False if the search ended early, at its time limit. */
  complete: boolean;
}

function position(row: Row): unknown {
  const none = { incarnation: "00000000-00000000-0000000000000000", ring: 0, number: 0n };
  return { time: row.time, id: row.kind === "record" && row.record.id ? row.record.id : none };
}

/** Asks for a page of records, beginning at one end or behind a row. */
export async function page(asked: Asked, order: "newest" | "oldest", limit: number, after?: Row, signal?: AbortSignal): Promise<Page> {
  const { query, since, until } = asked;
  const question = { ...query, since, until, newest_first: order === "newest", limit, after: after && position(after) };
  const rows: Row[] = [];
  let complete = false;
  for await (const part of connection.ask("log/query", question, signal)) {
    if (part[0] === 0x7b) {
      complete = (JSON.parse(new TextDecoder().decode(part)) as { scanned: { complete: boolean } }).scanned.complete;
    } else {
      decodeLogBatch(part).forEach((record) => rows.push(recordRow(record)));
    }
  }
  const isFull = rows.length >= limit;
  return { rows: ordered(rows), ends: complete && !isFull, complete: complete || isFull };
}

export interface Counts {
  total: number;
  earliest: number | null;
  latest: number | null;
  rows: { time?: number; level?: string; value?: string; count: number }[];
  complete: boolean;
}

/** Asks for counts of records. */
export function count(asked: Asked, by: { level?: boolean; field?: string; every_s?: number }, signal?: AbortSignal): Promise<Counts> {
  const { query, since, until } = asked;
  return connection.askJson<Counts>("log/stat", { query: { ...query, since, until }, by }, signal);
}

/** Counts the patterns of a range, the most frequent first. */
export function patterns(asked: Asked, limit: number, signal: AbortSignal): Promise<Patterns> {
  const { query, since, until } = asked;
  return connection.askJson<Patterns>("log/stat", { query: { ...query, since, until }, patterns: { limit, bins: PATTERN_BINS } }, signal);
}
