/** Log records (`spec/log.idl`, `spec/wire/log-batch.md`). The members are those of the JSON lines. */
import { incarnationOf } from "./batch.js";
import { CdrReader } from "./cdr.js";
import { BadBytes } from "./failure.js";
import { timeText, type Nanos } from "./time.js";

/** Levels by ACS's number. */
export const LEVELS = ["", "Trace", "Delouse", "Debug", "Info", "Notice", "Warning", "", "Error", "Critical", "Alert", "Emergency"] as const;
export type Level = Exclude<(typeof LEVELS)[number], "">;

export interface Datum {
  name: string;
  value: string;
}

/** The id of a record: the same however often and on whatever way it comes. */
export interface RecordId {
  incarnation: string;
  ring: number;
  number: bigint;
}

export interface LogRecord {
  id?: RecordId;
  time: Nanos;
  received?: Nanos;
  level: Level;
  priority?: number;
  message: string;
  logger?: string;
  file?: string;
  line?: number;
  routine?: string;
  host?: string;
  process?: string;
  thread?: string;
  context?: string;
  source_object?: string;
  audiences?: string[];
  array?: string;
  antenna?: string;
  stack_id?: string;
  stack_level?: number;
  log_id?: string;
  uri?: string;
  run_id?: string;
  trace_id?: string;
  span_id?: string;
  data?: Datum[];
  archive?: { object: string; parameter: string; type: string };
  attributes?: Datum[];
}

/** Texts of an origin, in the order of the wire. */
export const ORIGIN_TEXTS = ["logger", "file", "routine", "host", "process", "thread", "context", "source_object", "array", "antenna", "uri", "run_id"] as const;

/** An origin, and what the records of it have in common. */
interface SharedOrigin {
  members: Partial<LogRecord>;
  life: string | undefined;
  /** A record with the members in their order. A copy of it costs a fraction of an object that is put together. */
  blank: LogRecord;
}

function originOf({ incarnation, ...members }: Origin, incarnations: string[]): SharedOrigin {
  const life = incarnation === 0 ? undefined : incarnations[incarnation - 1];
  const id = life === undefined ? {} : { id: { incarnation: life, ring: 0, number: 0n } };
  return { members, life, blank: { ...id, time: 0n, level: "Info", message: "", ...members } };
}

type Origin = Partial<Pick<LogRecord, (typeof ORIGIN_TEXTS)[number] | "line" | "audiences">> & { incarnation: number };

/** Reads the records of a sample of type 2. */
export function decodeLogBatch(bytes: Uint8Array): LogRecord[] {
  const all = CdrReader.sample(bytes).delimited();
  const records = all.delimited();
  const lives = all.delimited();
  const incarnations = lives.list(16, () => {
    const at = lives.octets(0).length + lives.at;
    lives.octets(16);
    return incarnationOf(bytes, at);
  });
  const texts = all.delimited();
  const strings = texts.list(5, () => texts.string());
  const text = (index: number): string => {
    const found = index === 0 ? "" : strings[index - 1];
    if (found === undefined) {
      throw new BadBytes(texts.at, `string ${index} of ${strings.length}`);
    }
    return found;
  };
  const places = all.delimited();
  const origins = places.list(4, () => originOf(readOrigin(places.delimited(), text), incarnations));
  return records.list(4, () => readRecord(records.delimited(), text, origins));
}

function readOrigin(at: CdrReader, text: (index: number) => string): Origin {
  const line = at.present() ? at.u32() : undefined;
  const origin: Origin = { incarnation: at.u32() };
  if (line !== undefined) {
    origin.line = line;
  }
  for (const name of ORIGIN_TEXTS) {
    const value = text(at.u32());
    if (value !== "") {
      origin[name] = value;
    }
  }
  const audiences = at.list(4, () => text(at.u32()));
  if (audiences.length > 0) {
    origin.audiences = audiences;
  }
  return origin;
}

function data(at: CdrReader, text: (index: number) => string): Datum[] {
  const list = at.delimited();
  return list.list(9, () => {
    const value = list.string();
    return { name: text(list.u32()), value };
  });
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function readRecord(at: CdrReader, text: (index: number) => string, origins: SharedOrigin[]): LogRecord {
  const time = at.i64();
  const number = at.u64();
  const ring = at.u32();
  const place = at.u32();
  const origin = origins[place];
  if (!origin) {
    throw new BadBytes(at.at, `origin ${place} of ${origins.length}`);
  }
  const level = at.u8();
  let priority = at.present() ? at.u8() : undefined;
  const extras = at.present() ? readExtras(at, text) : undefined;
  // A 7 is read as Error, with the 7 as priority.
  const name = LEVELS[level === 7 ? 8 : level];
  if (!name) {
    throw new BadBytes(at.at, `${level} is no level`);
  }
  priority ??= level === 7 ? 7 : undefined;
  const message = at.string();
  const values = data(at, text);
  const { members, life, blank } = origin;
  const id = life === undefined ? undefined : { incarnation: life, ring, number };
  const record: LogRecord = priority === undefined ? { ...blank } : { ...(id ? { id } : {}), time, level: name, priority, message, ...members };
  if (id) {
    record.id = id;
  }
  record.time = time;
  record.level = name;
  record.message = message;
  if (extras) {
    Object.assign(record, extras);
  }
  if (values.length > 0) {
    record.data = values;
  }
  return record;
}

function readExtras(at: CdrReader, text: (index: number) => string): Partial<LogRecord> {
  const extras: Partial<LogRecord> = {};
  if (at.present()) {
    extras.received = at.i64();
  }
  if (at.present()) {
    extras.stack_level = at.i32();
  }
  const [stack, log] = [at.string(), at.string()];
  const trace = at.octets(at.count(1));
  const span = at.octets(at.count(1));
  if (at.present()) {
    extras.archive = { object: text(at.u32()), parameter: text(at.u32()), type: text(at.u32()) };
  }
  const attributes = data(at, text);
  Object.assign(extras, stack && { stack_id: stack }, log && { log_id: log });
  Object.assign(extras, trace.length > 0 && { trace_id: hex(trace) }, span.length > 0 && { span_id: hex(span) });
  Object.assign(extras, attributes.length > 0 && { attributes });
  return extras;
}

/** Writes a record as a JSON line: times as text, 64-bit numbers with all digits. */
export function recordLine(record: LogRecord): string {
  const numbers: string[] = [];
  const shown = JSON.stringify(record, (key, value: unknown) => {
    if ((key === "time" || key === "received") && typeof value === "bigint") {
      return timeText(value);
    }
    return typeof value === "bigint" ? `\u0000${numbers.push(value.toString()) - 1}` : value;
  });
  return shown.replace(/"\\u0000(\d+)"/g, (_, nth: string) => numbers[Number(nth)] ?? "");
}
