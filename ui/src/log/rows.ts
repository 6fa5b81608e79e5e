/** Rows of the log view: records, and losses in their place. */
import type { Gap, LogRecord, RecordId } from "tampu";

/** The place of a row in the order of the archive: time, then id. */
export interface Place {
  time: bigint;
  /** Text of the id that compares as the id does; empty for a record without an id. */
  id: string;
}

export type Row = Place & { key: number } & ({ kind: "record"; record: LogRecord } | { kind: "loss"; loss: Loss });

/** Records that are missing here. */
export interface Loss {
  source: string;
  /** Number of the samples, if it is known. A sample is a packet of records. */
  samples: bigint | undefined;
  why: Gap["why"];
}

export function compare(one: Place, other: Place): number {
  if (one.time !== other.time) {
    return one.time < other.time ? -1 : 1;
  }
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0;
}

/** `incarnation.ring.number`, as everywhere else. */
export function idText(id: RecordId): string {
  return `${id.incarnation}.${id.ring}.${id.number}`;
}

/** Reads such a text. */
export function idOf(text: string): RecordId | undefined {
  const found = /^([0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{16})\.(\d+)\.(\d+)$/.exec(text);
  return found ? { incarnation: found[1] as string, ring: Number(found[2]), number: BigInt(found[3] as string) } : undefined;
}

/** An id as a text that compares like it: numbers have leading zeros. */
function orderText(id: RecordId): string {
  return `${id.incarnation}.${id.ring.toString().padStart(10, "0")}.${id.number.toString().padStart(20, "0")}`;
}

/** Counts rows, so that each has a key of its own in the page. */
let keys = 0;

/** A record's row. Most are never compared with another of the same time, so the text of their id is made when it is asked for. */
class RecordRow {
  readonly kind = "record";
  readonly key = keys++;
  readonly time: bigint;
  private text: string | undefined;

  constructor(readonly record: LogRecord) {
    this.time = record.time;
  }

  get id(): string {
    this.text ??= this.record.id ? orderText(this.record.id) : "";
    return this.text;
  }
}

export function recordRow(record: LogRecord): Row {
  return new RecordRow(record);
}

export function lossRow(loss: Loss, time: bigint): Row {
  // A sign behind all digits: a loss stands behind the records of its moment.
  const key = keys++;
  return { kind: "loss", key, time, id: `~${key.toString().padStart(16, "0")}`, loss };
}

/** The source that tables show: the component, or the process of a record without one. */
export function sourceOf(record: LogRecord): string {
  return record.source_object ?? record.process ?? "";
}

/** The index of the first row that is not before this place. */
export function indexOf(rows: readonly Place[], place: Place): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(rows[middle] as Place, place) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Merges rows into others, both in order. Rows with an id that is there already are left out. */
export function merged(rows: Row[], more: Row[]): Row[] {
  const first = more[0];
  const last = rows.at(-1);
  if (!first || !last || compare(last, first) < 0) {
    return rows.concat(more);
  }
  const begin = indexOf(rows, first);
  const [head, tail] = [rows.slice(0, begin), rows.slice(begin)];
  let [at, other] = [0, 0];
  while (at < tail.length && other < more.length) {
    const order = compare(tail[at] as Row, more[other] as Row);
    if (order === 0 && (tail[at] as Row).id !== "") {
      other++;
    } else if (order <= 0) {
      head.push(tail[at++] as Row);
    } else {
      head.push(more[other++] as Row);
    }
  }
  return head.concat(tail.slice(at), more.slice(other));
}

/** Orders rows, and leaves out the second one of an id. */
export function ordered(rows: Row[]): Row[] {
  const sorted = rows.toSorted(compare);
  return sorted.filter((row, nth) => nth === 0 || compare(row, sorted[nth - 1] as Row) !== 0 || row.id === "");
}
