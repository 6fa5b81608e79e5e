/** Writes log batches (`spec/log.idl`, `spec/wire/log-batch.md`), as `log.ts` reads them. */
import { CdrWriter } from "./cdr.js";
import { LEVELS, ORIGIN_TEXTS, type Datum, type LogRecord } from "./log.js";

/** The number of a level. */
export function levelNumber(level: string): number {
  const number = level === "" ? -1 : (LEVELS as readonly string[]).indexOf(level);
  if (number < 0) {
    throw new TypeError(`'${level}' is no level: use ${LEVELS.filter((name) => name !== "").join(", ")}`);
  }
  return number;
}

/** Entries that records share, by their content. An entry has the number of its first use. */
class Table<T> {
  readonly entries: T[] = [];
  private readonly places = new Map<string, number>();

  place(key: string, entry: T): number {
    const place = this.places.get(key) ?? this.entries.push(entry) - 1;
    this.places.set(key, place);
    return place;
  }
}

/** An origin in numbers of the other tables. */
interface OriginEntry {
  line: number | undefined;
  incarnation: number;
  texts: number[];
  audiences: number[];
}

class Tables {
  readonly incarnations = new Table<string>();
  readonly strings = new Table<string>();
  readonly origins = new Table<OriginEntry>();

  text(text: string | undefined): number {
    return text === undefined || text === "" ? 0 : this.strings.place(text, text) + 1;
  }

  origin(record: LogRecord): number {
    const life = record.id?.incarnation;
    const texts = ORIGIN_TEXTS.map((name) => record[name] ?? "");
    const audiences = record.audiences ?? [];
    const key = JSON.stringify([life ?? "", record.line ?? -1, texts, audiences]);
    return this.origins.place(key, {
      line: record.line,
      incarnation: life === undefined ? 0 : this.incarnations.place(life, life) + 1,
      texts: texts.map((text) => this.text(text)),
      audiences: audiences.map((name) => this.text(name)),
    });
  }
}

/** Writes records as a sample of type 2. A record without an id may be stored twice. */
export function encodeLogBatch(records: LogRecord[]): Uint8Array {
  const out = new CdrWriter();
  const tables = new Tables();
  const list = <T>(all: T[], write: (one: T) => void) =>
    out.delimited(() => {
      out.u32(all.length);
      all.forEach(write);
    });
  const struct = (write: () => void) =>
    out.delimited(() => {
      write();
      // So it means the same at another place.
      out.pad(4);
    });
  out.delimited(() => {
    list(records, (record) => struct(() => writeRecord(out, record, tables)));
    list(tables.incarnations.entries, (life) => writeIncarnation(out, life));
    list(tables.strings.entries, (text) => out.string(text));
    list(tables.origins.entries, (origin) => struct(() => writeOrigin(out, origin)));
    out.pad(4);
  });
  return out.done();
}

function writeIncarnation(out: CdrWriter, life: string): void {
  const [boot, pid, start] = /^([0-9a-f]{8})-([0-9a-f]{8})-([0-9a-f]{16})$/.exec(life)?.slice(1) ?? [];
  if (boot === undefined || pid === undefined || start === undefined) {
    throw new TypeError(`'${life}' is no incarnation: write 1a2b3c4d-00001267-18ea008b6316cd15`);
  }
  out.u32(parseInt(boot, 16));
  out.u32(parseInt(pid, 16));
  out.u64(BigInt(`0x${start}`));
}

function writeOrigin(out: CdrWriter, origin: OriginEntry): void {
  optional(out, origin.line, (line) => out.u32(line));
  out.u32(origin.incarnation);
  origin.texts.forEach((text) => out.u32(text));
  out.u32(origin.audiences.length);
  origin.audiences.forEach((name) => out.u32(name));
}

function optional<T>(out: CdrWriter, value: T | undefined, write: (value: T) => void): void {
  out.u8(value === undefined ? 0 : 1);
  if (value !== undefined) {
    write(value);
  }
}

function writeData(out: CdrWriter, data: Datum[], tables: Tables): void {
  out.delimited(() => {
    out.u32(data.length);
    for (const { name, value } of data) {
      out.string(value);
      out.u32(tables.text(name));
    }
  });
}

function hexBytes(text: string | undefined, length: number, name: string): Uint8Array {
  if (text === undefined || text === "") {
    return new Uint8Array();
  }
  if (text.length !== 2 * length || !/^[0-9a-fA-F]*$/.test(text)) {
    throw new TypeError(`${name} '${text}' must have ${2 * length} hexadecimal digits`);
  }
  return Uint8Array.from({ length }, (_, nth) => parseInt(text.slice(2 * nth, 2 * nth + 2), 16));
}

function writeRecord(out: CdrWriter, record: LogRecord, tables: Tables): void {
  const origin = tables.origin(record);
  out.u64(record.time);
  out.u64(record.id?.number ?? 0n);
  out.u32(record.id?.ring ?? 0);
  out.u32(origin);
  out.u8(levelNumber(record.level));
  optional(out, record.priority, (priority) => out.u8(priority));
  optional(out, hasExtras(record) ? record : undefined, () => writeExtras(out, record, tables));
  out.string(record.message);
  writeData(out, record.data ?? [], tables);
}

function hasExtras(record: LogRecord): boolean {
  const { received, stack_level, stack_id, log_id, trace_id, span_id, archive, attributes } = record;
  const texts = [stack_id, log_id, trace_id, span_id];
  const hasText = texts.some((text) => text !== undefined && text !== "");
  return received !== undefined || stack_level !== undefined || archive !== undefined || hasText || (attributes ?? []).length > 0;
}

function writeExtras(out: CdrWriter, record: LogRecord, tables: Tables): void {
  optional(out, record.received, (received) => out.u64(received));
  optional(out, record.stack_level, (level) => out.u32(level >>> 0));
  out.string(record.stack_id ?? "");
  out.string(record.log_id ?? "");
  for (const octets of [hexBytes(record.trace_id, 16, "trace_id"), hexBytes(record.span_id, 8, "span_id")]) {
    out.u32(octets.length);
    out.octets(octets);
  }
  optional(out, record.archive, ({ object, parameter, type }) => [object, parameter, type].forEach((text) => out.u32(tables.text(text))));
  writeData(out, record.attributes ?? [], tables);
}
