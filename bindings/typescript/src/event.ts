/** Attribute events (`spec/event.idl`, `spec/wire/event.md`). */
import { CdrReader, CdrWriter } from "./cdr.js";
import { BadBytes } from "./failure.js";
import type { Nanos } from "./time.js";

/** Data types by their number; the names are Tango's. */
export const DATA_TYPES = [
  "", "DevBoolean", "DevUChar", "DevShort", "DevUShort", "DevLong", "DevULong", "DevLong64", "DevULong64", "DevFloat", "DevDouble",
  "DevString", "DevState", "DevEncoded", "DevEnum",
] as const;
export type DataType = Exclude<(typeof DATA_TYPES)[number], "">;
export const FORMATS = ["scalar", "spectrum", "image"] as const;
export type Format = (typeof FORMATS)[number];
export const QUALITIES = ["valid", "invalid", "alarm", "changing", "warning"] as const;
export type Quality = (typeof QUALITIES)[number];
export const STATES = [
  "ON", "OFF", "CLOSE", "OPEN", "INSERT", "EXTRACT", "MOVING", "STANDBY", "FAULT", "INIT", "RUNNING", "ALARM", "DISABLE", "UNKNOWN",
] as const;
export const KINDS = ["change", "alarm", "archive", "periodic", "user", "configuration", "data_ready", "interface", "generic"] as const;
export type EventKind = (typeof KINDS)[number];
const SEVERITIES = ["warning", "error", "panic"] as const;

/** Elements of a value: typed arrays for numbers, so that an image costs no objects. */
export type Elements =
  | boolean[] | string[] | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | BigUint64Array | Float32Array | Float64Array;

export interface Value {
  type: DataType;
  format: Format;
  /** Length of a row, and number of rows of an image. */
  x: number;
  y: number;
  /** The elements, row after row. States are their names; labels are indexes; encoded data is its bytes. */
  elements: Elements;
  /** The format of encoded data, as `JPEG_RGB24`. */
  encoding?: string;
}

export interface Cause {
  reason: string;
  description: string;
  origin: string;
  severity: (typeof SEVERITIES)[number];
}

export interface EventReading {
  /** Time of the reading by the source's clock. */
  time: Nanos;
  /** Number of the event, from 1 in each life of its source. */
  number: bigint;
  epoch: number;
  kinds: EventKind[];
  quality: Quality;
  value?: Value;
  setPoint?: Value;
  /** Errors because of which there is no value, the innermost first. */
  errors: Cause[];
  /** Name of a generic event. */
  name?: string;
}

const ARRAYS = {
  DevUChar: Uint8Array,
  DevShort: Int16Array,
  DevUShort: Uint16Array,
  DevLong: Int32Array,
  DevULong: Uint32Array,
  DevLong64: BigInt64Array,
  DevULong64: BigUint64Array,
  DevFloat: Float32Array,
  DevDouble: Float64Array,
  DevEnum: Int16Array,
} as const;

function numbers(type: keyof typeof ARRAYS, at: CdrReader): Elements {
  const array = ARRAYS[type];
  const width = array.BYTES_PER_ELEMENT;
  const count = at.count(width);
  // A copy: bytes from the network lie at any address, and a platform of other byte order is none that browsers run on.
  const bytes = at.octets(count * width).slice();
  return new array(bytes.buffer as ArrayBuffer) as Elements;
}

function readValue(at: CdrReader, shape?: { format: Format; x: number; y: number }): Value | undefined {
  const number = at.u32() & 0xff;
  if (number === 0) {
    return undefined;
  }
  const type = DATA_TYPES[number];
  if (!type) {
    throw new BadBytes(at.at, `data type ${number} is unknown`);
  }
  let elements: Elements;
  let encoding: string | undefined;
  if (type === "DevBoolean") {
    elements = Array.from(at.octets(at.count(1)), (octet) => octet !== 0);
  } else if (type === "DevState") {
    elements = Array.from(at.octets(at.count(1)), (octet) => STATES[octet] ?? "UNKNOWN");
  } else if (type === "DevString") {
    const texts = at.delimited();
    elements = texts.list(5, () => texts.string());
  } else if (type === "DevEncoded") {
    encoding = at.string();
    elements = at.octets(at.count(1)).slice();
  } else {
    elements = numbers(type, at);
  }
  const count = type === "DevEncoded" ? 1 : elements.length;
  const { format, x, y } = shape ?? { format: count === 1 ? "scalar" : "spectrum", x: count, y: 0 };
  if (count !== (format === "scalar" ? 1 : format === "spectrum" ? x : x * y)) {
    throw new BadBytes(40, `a shape of ${x} x ${y} for ${count} elements`);
  }
  return { type, format, x, y, elements, ...(encoding === undefined ? {} : { encoding }) };
}

/** Reads a sample of type 4. */
export function decodeEvent(bytes: Uint8Array): EventReading {
  const at = CdrReader.sample(bytes).delimited();
  at.u32();
  const epoch = at.u32();
  const time = at.i64();
  const number = at.u64();
  const bits = at.u32();
  const quality = QUALITIES[at.u8()] ?? "invalid";
  const format = FORMATS[at.u8()];
  at.octets(2);
  const [x, y] = [at.u32(), at.u32()];
  if (!format) {
    throw new BadBytes(37, "the format is unknown");
  }
  const value = readValue(at, { format, x, y });
  const setPoint = at.present() ? readValue(at) : undefined;
  const errors = at.present() ? causes(at.delimited()) : [];
  if (at.present()) {
    at.u64();
  }
  const name = at.present() ? at.string() : "";
  return {
    time,
    number,
    epoch,
    kinds: KINDS.filter((_, bit) => (bits & (1 << bit)) !== 0),
    quality,
    ...(value ? { value } : {}),
    ...(setPoint ? { setPoint } : {}),
    errors,
    ...(name === "" ? {} : { name }),
  };
}

function causes(at: CdrReader): Cause[] {
  return at.list(16, () => {
    const [reason, description, origin] = [at.string(), at.string(), at.string()];
    return { reason, description, origin, severity: SEVERITIES[at.u8()] ?? "error" };
  });
}

/** A reading for a publisher. */
export interface Reading {
  value?: Value;
  quality?: Quality;
  /** The present time if it is absent. */
  time?: Nanos;
  /** Kinds to send it as; the attribute's criteria decide if there are none. */
  kinds?: readonly EventKind[];
}

function writeValue(to: CdrWriter, value: Value | undefined): void {
  if (!value) {
    to.u32(0);
    return;
  }
  const { type, elements } = value;
  to.u32(DATA_TYPES.indexOf(type));
  if (type === "DevString") {
    to.delimited(() => {
      to.u32(elements.length);
      (elements as string[]).forEach((text) => to.string(text));
    });
  } else if (type === "DevEncoded") {
    to.string(value.encoding ?? "");
    to.u32(elements.length);
    to.octets(elements as Uint8Array);
  } else if (type === "DevBoolean") {
    to.u32(elements.length);
    to.octets((elements as boolean[]).map(Number));
  } else if (type === "DevState") {
    to.u32(elements.length);
    to.octets((elements as string[]).map((state) => STATES.indexOf(state as (typeof STATES)[number])));
  } else {
    const array = elements as InstanceType<(typeof ARRAYS)[keyof typeof ARRAYS]>;
    to.u32(array.length);
    to.octets(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  }
}

/** Writes a reading as a sample of type 4. */
export function encodeReading(reading: Reading): Uint8Array {
  const to = new CdrWriter();
  to.delimited(() => {
    to.u32(0);
    to.u32(0);
    to.u64(reading.time ?? 0n);
    to.u64(0n);
    to.u32((reading.kinds ?? []).reduce((bits, kind) => bits | (1 << KINDS.indexOf(kind)), 0));
    to.u8(QUALITIES.indexOf(reading.quality ?? "valid"));
    to.u8(reading.value ? FORMATS.indexOf(reading.value.format) : 0);
    to.octets([0, 0]);
    to.u32(reading.value?.x ?? 0);
    to.u32(reading.value?.y ?? 0);
    writeValue(to, reading.value);
    // No set point, errors, token or name.
    to.octets([0, 0, 0, 0]);
    to.pad(4);
  });
  return to.done();
}

/** Makes a value of one number, text or truth. */
export function scalar(type: DataType, element: number | bigint | string | boolean): Value {
  const elements = ((): Elements => {
    if (type in ARRAYS) {
      const array = ARRAYS[type as keyof typeof ARRAYS];
      const wide = array === BigInt64Array || array === BigUint64Array;
      if (typeof element !== (wide ? "bigint" : "number")) {
        throw new TypeError(`${type} takes a ${wide ? "bigint" : "number"}, not a ${typeof element}`);
      }
      return (array as unknown as { of(one: unknown): Elements }).of(element);
    }
    const wanted = type === "DevBoolean" ? "boolean" : "string";
    if (typeof element !== wanted || type === "DevEncoded") {
      throw new TypeError(`${type} takes a ${wanted}, not a ${typeof element}`);
    }
    return [element] as Elements;
  })();
  return { type, format: "scalar", x: 1, y: 0, elements };
}

/** Makes a value of a row. */
export function spectrum(type: DataType, elements: Elements): Value {
  return { type, format: "spectrum", x: elements.length, y: 0, elements };
}
