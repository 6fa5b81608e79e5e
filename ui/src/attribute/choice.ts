/** The chosen attributes, as the address names them. Names have no `*` and no `#`, so these separate. */

/** An attribute, or one element of an array whose trend is wanted. */
export interface Choice {
  name: string;
  element?: number;
}

/** Attributes that can be chosen at a time: as many as one subscription and one plot carry well. */
export const MOST_CHOSEN = 60;

/** The same attribute has the same key, however it is spelt. */
export function keyOf({ name, element }: Choice): string {
  return element === undefined ? name.toLowerCase() : `${name.toLowerCase()}#${element}`;
}

/** The words of a choice for people: `sr/vacuum/1/profile[3]`. */
export function labelOf({ name, element }: Choice): string {
  return element === undefined ? name : `${name}[${element}]`;
}

/** The device of an attribute: its name without the last part. */
export function deviceOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("/")));
}

/** Reads `NAME*NAME#ELEMENT`. What cannot be read, and repetitions, are left out. */
export function choicesOf(text: string): Choice[] {
  const found = new Map<string, Choice>();
  for (const part of text.split("*")) {
    const [name = "", element] = part.split("#");
    if (name.split("/").length !== 4) {
      continue;
    }
    const choice = element !== undefined && /^\d{1,9}$/.test(element) ? { name, element: Number(element) } : { name };
    if (!found.has(keyOf(choice))) {
      found.set(keyOf(choice), choice);
    }
  }
  return [...found.values()].slice(0, MOST_CHOSEN);
}

export function choicesText(choices: readonly Choice[]): string {
  return choices.map(({ name, element }) => (element === undefined ? name : `${name}#${element}`)).join("*");
}

/** Adds a choice, or takes it away if it is there. */
export function toggled(choices: readonly Choice[], choice: Choice): Choice[] {
  const key = keyOf(choice);
  const rest = choices.filter((one) => keyOf(one) !== key);
  return rest.length < choices.length ? rest : [...choices, choice].slice(0, MOST_CHOSEN);
}

/** Attributes that the timeline shows, as its address names them; it has no room for more. */
export function timelineNames(choices: readonly Choice[]): string {
  const names = [...new Map(choices.map(({ name }) => [name.toLowerCase(), name])).values()];
  return names.slice(0, 20).map((name) => name.replace(/[%,]/g, encodeURIComponent)).join(",");
}
