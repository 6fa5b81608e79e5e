/** Groups of rows: records that differ in one field alone. */
import type { LogRecord } from "tampu";

import { FIELDS, type FieldName } from "./filter";
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
