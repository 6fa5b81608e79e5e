/** Texts of records as a page may show them: nothing in a text can hide, reorder or imitate anything. */
import { Unclosed, wordsOf } from "../lib/words";

/** Control characters, line ends, and signs that reorder or hide text. */
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Signs of a message that a row shows. Longer ones are cut there, and whole in the details. */
const ROW_SIGNS = 1000;

function shown(sign: string): string {
  if (sign === "\n") {
    return "⏎";
  }
  if (sign === "\t") {
    return " ";
  }
  return `\\u{${sign.charCodeAt(0).toString(16)}}`;
}

/** One line without hidden signs. */
export function oneLine(text: string, most = ROW_SIGNS): string {
  const cut = text.length > most;
  const line = (cut ? text.slice(0, most) : text).replace(HIDDEN, shown);
  return cut ? `${line}…` : line;
}

/** The whole text with its lines, without hidden signs. */
export function wholeText(text: string): string {
  return text.replace(HIDDEN, (sign) => (sign === "\n" || sign === "\t" ? sign : shown(sign)));
}

/** A part of a text: with a word of the filter, with a highlight, or with neither. */
export interface Part {
  text: string;
  hit: boolean;
  /** Place of the highlight in the list; it has a colour and a line of its own. */
  light?: number;
}

/** Cuts a text into parts with and without the words that are looked for, and those that are highlighted. */
export function marked(text: string, words: readonly string[], lights: readonly string[] = []): Part[] {
  // The longest first: a word that is a part of another does not hide it.
  const wanted = [...lights, ...words].filter((word) => word !== "").toSorted((one, other) => other.length - one.length);
  if (wanted.length === 0) {
    return [{ text, hit: false }];
  }
  const escaped = wanted.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = text.split(new RegExp(`(${escaped.join("|")})`, "gi"));
  return parts.flatMap((part, nth): Part[] => {
    const light = lights.findIndex((word) => word.toLowerCase() === part.toLowerCase());
    return part === "" ? [] : [{ text: part, hit: nth % 2 === 1, ...(nth % 2 === 1 && light >= 0 ? { light } : {}) }];
  });
}

/** Highlights that a page can tell apart. */
export const MOST_LIGHTS = 6;

/** The words and phrases of the field of highlights; an open quotation goes to its end. */
export function lightsOf(line: string): string[] {
  const words = (): string[] => {
    try {
      return wordsOf(line);
    } catch (why) {
      if (why instanceof Unclosed) {
        return [line.replace(/["'\\]/g, "")];
      }
      throw why;
    }
  };
  return [...new Set(words().map((word) => word.trim()).filter((word) => word !== ""))].slice(0, MOST_LIGHTS);
}
