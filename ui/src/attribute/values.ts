/** Values of attributes as a page shows them. */
import { STATES, type Elements, type EventReading, type Value } from "tampu";

import { oneLine } from "../log/display";

/** Elements of an array that a text has. */
const WRITTEN_OUT = 6;

/** A number with a sensible number of digits. */
export function numberText(number: number): string {
  if (!Number.isFinite(number)) {
    return `${number}`;
  }
  if (number === 0 || Number.isInteger(number)) {
    return Math.abs(number) < 1e15 ? `${number}` : number.toExponential(6);
  }
  const size = Math.abs(number);
  return size >= 1e-4 && size < 1e7 ? `${Number(number.toPrecision(7))}` : number.toExponential(4);
}

function elementText(element: number | bigint | string | boolean, labels: readonly string[]): string {
  if (typeof element === "number") {
    const label = labels[element];
    return label === undefined ? numberText(element) : oneLine(label, 100);
  }
  return typeof element === "string" ? oneLine(element, 200) : `${element}`;
}

/** A value in one line. */
export function valueText(value: Value, labels: readonly string[] = []): string {
  const { format, type, elements } = value;
  if (type === "DevEncoded") {
    return `${oneLine(value.encoding ?? "", 40)} ${elements.length} B`;
  }
  const named = type === "DevEnum" ? labels : [];
  if (format === "scalar") {
    return elementText(elements[0] as number, named);
  }
  if (format === "image") {
    return `${value.x} × ${value.y}`;
  }
  const shown = Array.from(elements.slice(0, WRITTEN_OUT) as ArrayLike<number>, (element) => elementText(element, named));
  return `[${shown.join(", ")}${elements.length > WRITTEN_OUT ? ` … ${elements.length}` : ""}]`;
}

/** The reason why a reading has no value. */
export function errorText({ errors }: EventReading): string {
  const first = errors[0];
  return first ? oneLine(`${first.reason}: ${first.description}`, 300) : "";
}

/** An element as a number for a plot: states and truths have numbers, texts have none. */
export function numberOf(elements: Elements, nth: number): number {
  const element = elements[nth];
  switch (typeof element) {
    case "number":
      return element;
    case "bigint":
    case "boolean":
      return Number(element);
    case "string": {
      const state = STATES.indexOf(element as (typeof STATES)[number]);
      return state < 0 ? NaN : state;
    }
    default:
      return NaN;
  }
}

/** A value of the API's JSON as a number: 64-bit integers, NaN and states are texts there. */
export function jsonNumber(value: unknown, element: number | undefined): number {
  const one: unknown = Array.isArray(value) ? value[element ?? 0] : value;
  switch (typeof one) {
    case "number":
      return one;
    case "boolean":
      return Number(one);
    case "string": {
      const state = STATES.indexOf(one as (typeof STATES)[number]);
      return state >= 0 ? state : one === "inf" ? Infinity : one === "-inf" ? -Infinity : /^-?\d+$/.test(one) ? Number(one) : NaN;
    }
    default:
      return NaN;
  }
}

/** An age in few signs: `0.4 s`, `3 min`, `5 h`. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 10) {
    return `${seconds.toFixed(1)} s`;
  }
  if (seconds < 120) {
    return `${Math.round(seconds)} s`;
  }
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** One element of a value. */
export function elementValue(value: Value, nth: number, labels: readonly string[] = []): string {
  const element = value.elements[nth];
  return element === undefined ? "" : elementText(element, value.type === "DevEnum" ? labels : []);
}

/** Words of the numbers of a type that has words instead. */
export function wordsOf(type: string, labels: readonly string[]): ((value: number) => string | undefined) | undefined {
  switch (type) {
    case "DevState":
      return (value) => STATES[value];
    case "DevBoolean":
      return (value) => ["false", "true"][value];
    case "DevEnum":
      return (value) => (labels[value] === undefined ? undefined : oneLine(labels[value], 100));
    default:
      return undefined;
  }
}

/** True if values of a type have numbers. */
export function hasNumbers(type: string): boolean {
  return type !== "DevString" && type !== "DevEncoded";
}
