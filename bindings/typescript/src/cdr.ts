/**
 * The part of XCDR2 that Tampu's types use (`spec/wire/log-batch.md`): little endian, numbers aligned to their size and to
 * at most 4, strings with a length and a closing zero.
 */
import { BadBytes } from "./failure.js";

const UTF8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
const TO_UTF8 = new TextEncoder();
/**
 * Longest ASCII text, in bytes, that is put together here. A browser keeps each string of a `TextDecoder` outside of its
 * heap, and clearing 100 000 of them a second takes more of a frame than all other work.
 */
const SHORT_TEXT = 256;

/** The header before every sample: D_CDR2_LE. */
const HEADER = [0, 9, 0, 0] as const;

/** The text of UTF-8 bytes. */
function textOf(bytes: Uint8Array, from: number, to: number): string {
  const codes: number[] = [];
  if (to - from <= SHORT_TEXT) {
    for (let at = from; at < to && (bytes[at] as number) < 0x80; at++) {
      codes.push(bytes[at] as number);
    }
  }
  return codes.length === to - from ? String.fromCharCode(...codes) : UTF8.decode(bytes.subarray(from, to));
}

/** Reads one sample, or a delimited part of it. */
export class CdrReader {
  constructor(
    readonly bytes: Uint8Array,
    public at = 0,
    readonly end = bytes.length,
    private readonly view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
  ) {}

  /** Begins behind the header of a sample. */
  static sample(bytes: Uint8Array): CdrReader {
    if (bytes.length < 4 || HEADER.some((byte, nth) => bytes[nth] !== byte)) {
      throw new BadBytes(0, "no D_CDR2_LE header");
    }
    return new CdrReader(bytes, 4);
  }

  private take(size: number, alignment: number): number {
    const at = Math.ceil(this.at / alignment) * alignment;
    if (size < 0 || at + size > this.end) {
      throw new BadBytes(at, `${size} bytes are wanted, ${Math.max(0, this.end - at)} are there`);
    }
    this.at = at + size;
    return at;
  }

  get left(): number {
    return this.end - this.at;
  }

  u8(): number {
    return this.view.getUint8(this.take(1, 1));
  }

  u32(): number {
    return this.view.getUint32(this.take(4, 4), true);
  }

  i32(): number {
    return this.view.getInt32(this.take(4, 4), true);
  }

  u64(): bigint {
    return this.view.getBigUint64(this.take(8, 4), true);
  }

  i64(): bigint {
    return this.view.getBigInt64(this.take(8, 4), true);
  }

  octets(length: number): Uint8Array {
    const at = this.take(length, 1);
    return this.bytes.subarray(at, at + length);
  }

  string(): string {
    const length = this.u32();
    if (length === 0) {
      throw new BadBytes(this.at, "a string has at least its closing zero");
    }
    const at = this.take(length, 1);
    if (this.bytes[at + length - 1] !== 0) {
      throw new BadBytes(this.at, "a string does not end with a zero");
    }
    return textOf(this.bytes, at, at + length - 1);
  }

  /** Returns true if an optional member follows. */
  present(): boolean {
    return this.u8() !== 0;
  }

  /** The part behind a DHEADER; this reader goes on behind it. */
  delimited(): CdrReader {
    const length = this.u32();
    const at = this.take(length, 1);
    return new CdrReader(this.bytes, at, at + length, this.view);
  }

  /** A count of elements that take at least so many bytes each, so that nothing is made room for that did not come. */
  count(least: number): number {
    const count = this.u32();
    if (count * least > this.left) {
      throw new BadBytes(this.at, `${count} elements do not fit into ${this.left} bytes`);
    }
    return count;
  }

  list<T>(least: number, read: () => T): T[] {
    return Array.from({ length: this.count(least) }, read);
  }
}

/** Writes one sample. */
export class CdrWriter {
  private bytes = new Uint8Array(256);
  private view = new DataView(this.bytes.buffer);
  private length = 0;

  constructor() {
    this.octets(HEADER);
  }

  private room(size: number, alignment: number): number {
    const at = Math.ceil(this.length / alignment) * alignment;
    if (at + size > this.bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.bytes.length, at + size));
      larger.set(this.bytes.subarray(0, this.length));
      this.bytes = larger;
      this.view = new DataView(larger.buffer);
    }
    this.length = at + size;
    return at;
  }

  u8(value: number): void {
    // The room first: it may replace the view.
    const at = this.room(1, 1);
    this.view.setUint8(at, value);
  }

  u32(value: number): void {
    const at = this.room(4, 4);
    this.view.setUint32(at, value, true);
  }

  u64(value: bigint): void {
    const at = this.room(8, 4);
    this.view.setBigUint64(at, BigInt.asUintN(64, value), true);
  }

  octets(octets: ArrayLike<number>): void {
    const at = this.room(octets.length, 1);
    this.bytes.set(octets, at);
  }

  string(text: string): void {
    const octets = TO_UTF8.encode(text);
    this.u32(octets.length + 1);
    this.octets(octets);
    this.u8(0);
  }

  /** Writes a part behind its length. */
  delimited(write: () => void): void {
    const at = this.room(4, 4);
    write();
    this.view.setUint32(at, this.length - at - 4, true);
  }

  /** Fills up to a multiple of this. */
  pad(alignment: number): void {
    this.room(0, alignment);
  }

  done(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }
}
