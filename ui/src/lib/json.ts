/** JSON with whole numbers of 64 bits, which JavaScript's own reader and writer do not know. */

/** Writes JSON; a `bigint` becomes a number with all its digits. */
export function jsonText(value: unknown): string {
  if (typeof value === "bigint") {
    return value.toString();
  }
  if (Array.isArray(value)) {
    return `[${value.map(jsonText).join(",")}]`;
  }
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

export function jsonBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(jsonText(value));
}

/** A text, or a whole number beyond 2^53. */
const PARTS = /"(?:[^"\\]|\\.)*"|(?<![\d.])-?\d{16,}(?![\d.eE])/g;

/** Reads JSON; a whole number of many digits becomes a `bigint`. */
export function readJson<T>(text: string): T {
  // No text that a program sends begins with a zero.
  const marked = text.replace(PARTS, (part) => (part.startsWith('"') ? part : `"\\u0000${part}"`));
  return JSON.parse(marked, (_, value: unknown) => (typeof value === "string" && /^\0-?\d+$/.test(value) ? BigInt(value.slice(1)) : value)) as T;
}
