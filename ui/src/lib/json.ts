/** JSON with whole numbers of 64 bits, which JavaScript's own writer does not know. */

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
