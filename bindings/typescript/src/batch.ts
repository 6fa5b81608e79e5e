/** A batch of samples as it travels on the bus (`spec/wire/batch-header.md`). */
import { BadBytes } from "./failure.js";
import type { Nanos } from "./time.js";

export interface Batch {
  /** Type of the samples: 2 is a LogBatch, 4 an event, 5 a declaration. */
  type: number;
  version: number;
  /** One life of the writer, as 8-8-16 hexadecimal digits. */
  incarnation: string;
  stream: number;
  /** Number of the first sample. */
  first: bigint;
  /** Times at which the first sample was handed to the writer, and at which the batch was sealed. */
  acquired: Nanos;
  sent: Nanos;
  domain: string;
  source: string;
  samples: Uint8Array[];
}

const UTF8 = new TextDecoder();

/** Reads 16 bytes: boot, process, start. */
export function incarnationOf(bytes: Uint8Array, at: number): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const hex = (value: bigint | number, digits: number) => value.toString(16).padStart(digits, "0");
  return [hex(view.getUint32(at, true), 8), hex(view.getUint32(at + 4, true), 8), hex(view.getBigUint64(at + 8, true), 16)].join("-");
}

/** Reads a batch without loans. */
export function decodeBatch(bytes: Uint8Array): Batch {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 72 || bytes[0] !== 0x54 || bytes[1] !== 0x42) {
    throw new BadBytes(0, "no batch");
  }
  if (bytes[2] !== 1) {
    throw new BadBytes(2, `layout ${bytes[2]} of a batch is unknown`);
  }
  const head = view.getUint16(4, true);
  const length = view.getUint32(64, true);
  const [domain, source] = [view.getUint8(68), view.getUint8(69)];
  if (head < 72 + domain + source || head + length > bytes.length) {
    throw new BadBytes(4, "a batch is shorter than it says");
  }
  const count = view.getUint32(36, true);
  const samples: Uint8Array[] = [];
  const end = head + length;
  for (let at = head; samples.length < count; ) {
    if (at + 4 > end) {
      throw new BadBytes(at, `a batch has ${samples.length} of ${count} samples`);
    }
    const size = view.getUint32(at, true);
    if (at + 4 + size > end) {
      throw new BadBytes(at, "a sample is longer than its batch, or lies elsewhere");
    }
    samples.push(bytes.subarray(at + 4, at + 4 + size));
    at += 4 + Math.ceil(size / 4) * 4;
  }
  return {
    type: view.getUint32(8, true),
    version: view.getUint16(12, true),
    incarnation: incarnationOf(bytes, 16),
    stream: view.getUint32(32, true),
    first: view.getBigUint64(40, true),
    acquired: view.getBigInt64(48, true),
    sent: view.getBigInt64(56, true),
    domain: UTF8.decode(bytes.subarray(72, 72 + domain)),
    source: UTF8.decode(bytes.subarray(72 + domain, 72 + domain + source)),
    samples,
  };
}
