/** Frames of the gateway (`spec/wire/gateway.md`): 24 bytes, then the body. */
import { BadBytes } from "./failure.js";

/** Kinds of frames by name. */
export const Kind = {
  hello: 1,
  welcome: 2,
  ack: 3,
  bye: 4,
  open: 16,
  credit: 17,
  close: 18,
  declare: 19,
  publish: 20,
  ask: 21,
  serve: 22,
  answer: 23,
  opened: 32,
  stream: 33,
  data: 34,
  gap: 35,
  life: 36,
  attribute: 37,
  events: 38,
  notice: 39,
  receipt: 40,
  part: 41,
  ended: 42,
  question: 43,
  cancel: 44,
} as const;

export interface Frame {
  kind: number;
  flags: number;
  /** The subscription, publisher, question or service; 0 for the session. */
  id: number;
  /** The number of a counted frame; 0 in the others. */
  number: bigint;
  body: Uint8Array;
}

/** Bytes of a frame before its body. */
export const HEAD = 24;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const TO_UTF8 = new TextEncoder();

/** Writes a frame. */
export function encodeFrame(frame: Frame): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(HEAD + frame.body.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, frame.body.length, true);
  view.setUint8(4, frame.kind);
  view.setUint8(5, frame.flags);
  view.setUint32(8, frame.id, true);
  view.setBigUint64(16, frame.number, true);
  bytes.set(frame.body, HEAD);
  return bytes;
}

/** Reads a whole frame. */
export function decodeFrame(bytes: Uint8Array): Frame {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < HEAD || view.getUint32(0, true) !== bytes.length - HEAD) {
    throw new BadBytes(0, `a frame of another length than its message of ${bytes.length} bytes`);
  }
  return {
    kind: view.getUint8(4),
    flags: view.getUint8(5),
    id: view.getUint32(8, true),
    number: view.getBigUint64(16, true),
    body: bytes.subarray(HEAD),
  };
}

/** The body of a frame that is one number. */
export function numberBody(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
}

/** Reads such a body. */
export function numberOf(body: Uint8Array): bigint {
  if (body.length < 8) {
    throw new BadBytes(0, "a number of 8 bytes is wanted");
  }
  return new DataView(body.buffer, body.byteOffset, body.length).getBigUint64(0, true);
}

/** The body of a frame that is an object. */
export function jsonBody(value: unknown): Uint8Array {
  return TO_UTF8.encode(JSON.stringify(value));
}

/** Reads such a body. */
export function jsonOf<T>(body: Uint8Array): T {
  return JSON.parse(UTF8.decode(body)) as T;
}

/** The bytes of several parts, one after the other. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** The body of PUBLISH: samples, each with its length, at a multiple of 4. */
export function samplesBody(samples: readonly Uint8Array[]): Uint8Array {
  const place = (length: number) => 4 + Math.ceil(length / 4) * 4;
  const bytes = new Uint8Array(samples.reduce((sum, sample) => sum + place(sample.length), 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const sample of samples) {
    view.setUint32(at, sample.length, true);
    bytes.set(sample, at + 4);
    at += place(sample.length);
  }
  return bytes;
}

/** The number of samples in such a body. */
export function samplesIn(body: Uint8Array): number {
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  let count = 0;
  for (let at = 0; at < body.length; at += 4 + Math.ceil(view.getUint32(at, true) / 4) * 4) {
    count++;
  }
  return count;
}

/** The body of ASK. */
export function askBody(service: string, question: Uint8Array, timeoutMs: number, all: boolean): Uint8Array {
  const name = TO_UTF8.encode(service);
  const bytes = new Uint8Array(8 + name.length + question.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, timeoutMs, true);
  view.setUint8(4, all ? 1 : 0);
  view.setUint16(6, name.length, true);
  bytes.set(name, 8);
  bytes.set(question, 8 + name.length);
  return bytes;
}
