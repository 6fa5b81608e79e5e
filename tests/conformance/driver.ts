// Driver of the conformance kit in TypeScript. README.md has its protocol, ../peers/conformance.py runs it.
import { createInterface } from "node:readline";
import {
  Session, type DataType, type Elements, type EventItem, type EventKind, type Format, type Level, type LogData, type LogItem, type Publisher, type Quality,
  type Value,
} from "tampu";
import { unixSocket } from "tampu/node";

type Command = Record<string, string | string[]>;

const FLOATS: Record<string, number> = { DevFloat: 4, DevDouble: 8 };
const ARRAYS = {
  DevUChar: Uint8Array, DevShort: Int16Array, DevUShort: Uint16Array, DevLong: Int32Array, DevULong: Uint32Array, DevEnum: Int16Array,
} as const;

function say(line: Record<string, unknown>): void {
  process.stdout.write(JSON.stringify(line) + "\n");
}

const text = (command: Command, name: string): string => (command[name] as string | undefined) ?? "";
const list = (command: Command, name: string): string[] => (command[name] as string[] | undefined) ?? [];
const fromHex = (hex: string): Uint8Array<ArrayBuffer> => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Elements from their texts. The bits of floats never become a number on the way, which might change those of a NaN. */
function elements(type: DataType, texts: string[]): Elements {
  switch (type) {
    case "DevBoolean":
      return texts.map((one) => one === "true");
    case "DevString":
    case "DevState":
      return texts;
    case "DevEncoded":
      return fromHex(texts[1] ?? "");
    case "DevLong64":
      return BigInt64Array.from(texts, BigInt);
    case "DevULong64":
      return BigUint64Array.from(texts, BigInt);
    case "DevFloat":
    case "DevDouble": {
      const bytes = fromHex(texts.map((one) => (one.match(/../g) ?? []).reverse().join("")).join(""));
      return type === "DevFloat" ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
    }
    default:
      return ARRAYS[type].from(texts.map(Number));
  }
}

function shown(value: Value): string[] {
  const width = FLOATS[value.type];
  if (value.type === "DevEncoded") {
    return [value.encoding ?? "", toHex(value.elements as Uint8Array)];
  }
  if (width === undefined) {
    return Array.from(value.elements as ArrayLike<unknown>, String);
  }
  const array = value.elements as Float64Array;
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  return Array.from({ length: array.length }, (_, nth) => toHex(bytes.slice(nth * width, (nth + 1) * width).reverse()));
}

function eventLine(item: EventItem): Record<string, unknown> {
  const line = { line: "event", name: item.attribute.config.name, source: item.attribute.source, reason: item.reason };
  if (item.kind === "notice") {
    return { ...line, missed: item.missed === null ? [] : item.missed === "unknown" ? ["unknown"] : item.missed };
  }
  const { number, quality, value, errors } = item.reading;
  const reading = {
    ...line, missed: item.missed ? ["unknown"] : [], number: number.toString(), quality,
    errors: errors.flatMap(({ reason, description, origin }) => [reason, description, origin]),
  };
  if (!value) {
    return reading;
  }
  return { ...reading, type: value.type, format: value.format, x: String(value.x), y: String(value.y), elements: shown(value) };
}

const NUMBERS: Record<string, (digits: string) => number | bigint | boolean> = { count: BigInt, ratio: Number, truth: (word) => word === "true" };

class Driver {
  private readonly attributes = new Map<string, { publisher: Publisher; type: DataType; format: Format }>();

  constructor(private readonly session: Session) {}

  async run(command: Command): Promise<void> {
    const name = text(command, "name");
    switch (command["do"]) {
      case "declare": {
        const [type, format] = [text(command, "type") as DataType, text(command, "format") as Format];
        const publisher = await this.session.declare({ attribute: { name, data_type: type, format, labels: list(command, "labels") } });
        this.attributes.set(name, { publisher, type, format });
        return;
      }
      case "readable": {
        const publisher = await this.session.declare({ attribute: { name, data_type: "DevDouble", format: "scalar" } });
        this.attributes.set(name, { publisher, type: "DevDouble", format: "scalar" });
        const left = list(command, "elements");
        const next = () => elements("DevDouble", [(left.length > 1 ? left.shift() : left[0]) ?? ""]);
        const read = () => ({ value: { type: "DevDouble", format: "scalar", x: 1, y: 0, elements: next() } as Value });
        await this.session.reads(publisher, read, { freshMs: 0 });
        return;
      }
      case "withdraw":
        this.attributes.get(name)?.publisher.close();
        this.attributes.delete(name);
        return;
      case "push":
        return this.push(name, command);
      case "follow":
        void this.follow(command);
        return;
      case "log": {
        const data = ["word", "count", "ratio", "truth"].map((member) => [member, NUMBERS[member]?.(text(command, member)) ?? text(command, member)]);
        logger.log(text(command, "level") as Level, text(command, "message"), Object.fromEntries(data) as LogData);
        return;
      }
      case "records":
        return this.records(text(command, "process"), Number(text(command, "count")));
      default:
        throw new Error(`there is no command '${text(command, "do")}'`);
    }
  }

  private push(name: string, command: Command): void {
    const attribute = this.attributes.get(name);
    if (!attribute) {
      throw new Error("not declared");
    }
    const { publisher, type, format } = attribute;
    const texts = list(command, "elements");
    const value: Value = {
      type, format, x: Number(text(command, "x")), y: Number(text(command, "y")), elements: elements(type, texts),
      ...(type === "DevEncoded" ? { encoding: texts[0] ?? "" } : {}),
    };
    publisher.push({ value, quality: text(command, "quality") as Quality, kinds: list(command, "kinds") as EventKind[] });
  }

  private async follow(command: Command): Promise<void> {
    for await (const item of this.session.events({ attributes: list(command, "attributes"), kinds: list(command, "kinds") as EventKind[] })) {
      say(eventLine(item));
    }
  }

  /** Prints the records of a process: those of the archive, and the following ones live, as many as asked for. */
  private async records(process: string, count: number): Promise<void> {
    const found: Extract<LogItem, { kind: "record" }>[] = [];
    for await (const item of this.session.logs({ since: "2020-01-01T00:00:00Z", query: { fields: { process: [process] } } })) {
      if (item.kind === "record" && found.push(item) === count) {
        break;
      }
    }
    for (const { record } of found) {
      const data = record.data ?? [];
      say({
        line: "record", process: record.process ?? "", level: record.level, message: record.message, names: data.map((one) => one.name),
        values: data.map((one) => one.value),
      });
    }
  }
}

const socket = unixSocket(process.env["TAMPU_GATEWAY"] ?? "");
const session = await Session.connect("ws://hub", { socket, source: `${process.argv[2] ?? ""}/server` });
const logger = session.logger({ process: process.argv[2] ?? "" });
const driver = new Driver(session);
say({ line: "ready" });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as Command;
  const verb = text(command, "do");
  if (verb === "end") {
    break;
  }
  try {
    await driver.run(command);
    if (verb !== "push" && verb !== "log") {
      say({ line: "done", do: verb, name: text(command, "name") });
    }
  } catch (why) {
    say({ line: "error", do: verb, name: text(command, "name"), why: String(why) });
  }
}
await logger.close();
session.close();
process.exit(0);
