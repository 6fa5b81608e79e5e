/** Values of fields, as the API takes them. */
/** Words of a field with commas or spaces between them. */
export function wordsOf(text: string): string[] {
  return text.split(/[\s,;]+/).filter((word) => word !== "");
}

/** Options of a field, one a line. */
export function linesOf(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

/** Attributes as a book takes them: without those whose name is empty, and without members that say nothing. */
export function cleaned<T extends { name: string }>(attributes: readonly T[]): T[] {
  return attributes
    .filter(({ name }) => name.trim() !== "")
    .map((attribute) => {
      const members: [string, unknown][] = Object.entries({ ...attribute, name: attribute.name.trim() });
      const saysNothing = (value: unknown) => value === undefined || value === false || value === "" || (Array.isArray(value) && value.length === 0);
      return Object.fromEntries(members.filter(([, value]) => !saysNothing(value))) as T;
    });
}
