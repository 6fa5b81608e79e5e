/** Groups of rows: records that differ in one field alone, and records of one place in a program. */
import type { LogRecord } from "tampu";

import { FIELDS, type FieldName, type Filter } from "./filter";
import { sourceOf, type Row } from "./rows";

/** Fields in which the records of one group may differ. */
export const REDUCIBLE = ["source", "process", "host", "antenna", "array", "thread", "logger"] as const;
export type Reducible = (typeof REDUCIBLE)[number];

/** Time between two records of a group, ns. */
const APART = 1_000_000_000n;
/** Values of the field that a group keeps. */
const MOST_VALUES = 1000;

/** The records that stand behind one row. */
export interface Group {
  /** Number of records. */
  count: number;
  /** Their different values of the field. */
  values: Set<string>;
}

export function isReducible(name: string | null | undefined): name is Reducible {
  return REDUCIBLE.some((one) => one === name);
}

const valueOf = (record: LogRecord, field: Reducible): string => (field === "source" ? sourceOf(record) : (record[field] ?? ""));

/** Fields that follow from the one in which records may differ: the same program elsewhere has another process and host. */
const FOLLOWS: Record<Reducible, readonly FieldName[]> = {
  source: ["source_object", "process", "host", "thread", "antenna", "context"],
  process: ["process", "thread", "source_object"],
  host: ["host", "process", "thread"],
  antenna: ["antenna", "source_object", "process", "host", "thread", "context"],
  array: ["array"],
  thread: ["thread"],
  logger: ["logger"],
};

function keyOf(record: LogRecord, field: Reducible): string {
  const rest = FIELDS.filter((one) => !FOLLOWS[field].includes(one) && one !== "stack_id").map((one) => record[one] ?? "");
  return JSON.stringify([record.level, record.message, record.line ?? 0, ...rest, record.data?.map(({ name, value }) => [name, value])]);
}

/**
 * Leaves the first record of each group: records that are alike but for one field and what follows from it, each at most a
 * second after the one before. Rows stay in their order.
 */
export function reduced(rows: readonly Row[], field: Reducible): { rows: Row[]; groups: Map<number, Group> } {
  const open = new Map<string, { key: number; last: bigint }>();
  const groups = new Map<number, Group>();
  const left = rows.filter((row) => {
    if (row.kind === "loss") {
      return true;
    }
    const key = keyOf(row.record, field);
    const before = open.get(key);
    const group = before && row.time - before.last <= APART ? groups.get(before.key) : undefined;
    const value = valueOf(row.record, field);
    if (before && group) {
      before.last = row.time;
      group.count++;
      if (group.values.size < MOST_VALUES) {
        group.values.add(value);
      }
      return false;
    }
    open.set(key, { key: row.key, last: row.time });
    groups.set(row.key, { count: 1, values: new Set([value]) });
    return true;
  });
  return { rows: left, groups };
}

/** Records of one place in a program, or without one those of one text with other numbers. */
export interface Pattern {
  key: string;
  /** `file:line`, if the records have it. */
  site: string;
  /** The message of the newest record. */
  message: string;
  level: LogRecord["level"];
  count: number;
  /** Number of different sources. */
  sources: number;
  /** Records in each interval of the rows' time. */
  bins: number[];
  /** The record that stands for it. */
  record: LogRecord;
}

/** Intervals of a pattern's plot. */
export const PATTERN_BINS = 40;

/** Parts that differ from call to call, in the language of the hub and of browsers: numbers, ids, quoted words. */
const VARIES = `0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{9,}|[-+]?[0-9][0-9.,:eE]*|'[^']*'|"[^"]*"`;
/** Characters of a message that decide about its pattern. */
const LOOKED_AT = 1000;

/** The pieces of a text between what differs. */
const piecesOf = (message: string): string[] => message.slice(0, LOOKED_AT).split(new RegExp(VARIES, "g"));

/** A text without what differs from call to call. */
export function maskOf(message: string): string {
  return piecesOf(message).map((piece) => piece.replaceAll("#", "\\#")).join("#");
}

/** The patterns of rows, the most frequent first. */
export function patternsOf(rows: readonly Row[]): Pattern[] {
  const [first, last] = [rows[0]?.time ?? 0n, rows.at(-1)?.time ?? 0n];
  const span = Number(last - first) + 1;
  const all = new Map<string, Pattern & { of: Set<string> }>();
  for (const row of rows) {
    if (row.kind === "loss") {
      continue;
    }
    const { record } = row;
    const site = record.file && record.line ? `${record.file}:${record.line}` : "";
    // A filter compares files and routines without case.
    const place = [record.routine ?? "", site].map((one) => one.toLowerCase());
    const key = JSON.stringify([record.level, ...place, site === "" ? maskOf(record.message) : ""]);
    let found = all.get(key);
    if (!found) {
      found = { key, site, message: "", level: record.level, count: 0, sources: 0, bins: new Array<number>(PATTERN_BINS).fill(0), record, of: new Set() };
      all.set(key, found);
    }
    found.count++;
    found.of.add(sourceOf(record));
    [found.message, found.record] = [record.message, record];
    const bin = Math.min(PATTERN_BINS - 1, Math.floor((Number(row.time - first) / span) * PATTERN_BINS));
    found.bins[bin] = (found.bins[bin] ?? 0) + 1;
  }
  return [...all.values()].map(({ of, ...one }) => ({ ...one, sources: of.size })).toSorted((one, other) => other.count - one.count);
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const quoted = (text: string) => `"${text.replace(/[\\"]/g, "\\$&")}"`;
/** Longest regular expression of a message; the hub takes conditions of 4096 bytes. */
const LONGEST = 1500;

/** The regular expression of the texts with the same mask; of a long text, of its beginning. */
function regexOf(message: string): string {
  const pieces = piecesOf(message);
  let [text, nth] = [`^${escaped(pieces[0] ?? "")}`, 1];
  for (; nth < pieces.length && text.length < LONGEST; nth++) {
    text += `(${VARIES})${escaped(pieces[nth] ?? "")}`;
  }
  return nth < pieces.length || message.length > LOOKED_AT ? text : `${text}$`;
}

/** A condition that a field has this value. Wildcards and numbers mean more than themselves after `=`. */
function equals(name: string, value: string): string {
  if (value === "") {
    return `not ${name}`;
  }
  return /[*?]|^\s*[-+]?[.\d]/.test(value) ? `${name} ~ ${quoted(`^(?i:${escaped(value)})$`)}` : `${name} = ${quoted(value)}`;
}

/** The condition that the records of a pattern meet, and no others. */
function conditionOf({ record, site, message }: Pattern): string {
  const place = site === "" ? [`not (file and line > 0)`, `message ~ ${quoted(regexOf(message))}`] : [equals("file", record.file ?? ""), `line = ${record.line}`];
  return `(${[...place, equals("routine", record.routine ?? ""), `level = ${record.level}`].join(" and ")})`;
}

/** A filter for the records of a pattern alone, or for all others. */
export function withPattern(filter: Filter, pattern: Pattern, include: boolean): Filter {
  const condition = include ? conditionOf(pattern) : `not ${conditionOf(pattern)}`;
  const copy = structuredClone(filter);
  // Only 'or' binds less than 'and'.
  const before = copy.where !== undefined && /\bor\b/i.test(copy.where) ? `(${copy.where})` : copy.where;
  copy.where = before === undefined ? condition : `${before} and ${condition}`;
  return copy;
}
