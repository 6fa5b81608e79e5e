/** An item of a list in the page, with a key that no other item of the list has. */
export interface Keyed<T> {
  key: string;
  item: T;
}

/**
 * Gives each item a key. The names in a list of somebody else may stand twice, and two items with one key would blank the
 * whole page.
 */
export function keyed<T>(items: readonly T[], nameOf: (item: T) => string): Keyed<T>[] {
  const times = new Map<string, number>();
  return items.map((item) => {
    const name = nameOf(item);
    const nth = times.get(name) ?? 0;
    times.set(name, nth + 1);
    return { key: `${nth} ${name}`, item };
  });
}
