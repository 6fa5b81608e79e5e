/** Proposals for the word of a filter that is being written. */
import { quoted } from "../lib/words";
import { count, type Asked } from "./archive";
import { FIELDS, LEVELS, MODES, OPTIONS, SUBJECTS } from "./filter";

export interface Proposal {
  /** The text that replaces the word. */
  text: string;
  what: string;
}

/** Options whose values the archive knows. */
const COUNTED: Record<string, string> = { source: "source_object", process: "process", host: "host", logger: "logger" };
const MOST = 12;

/** The word before the caret, and the option whose value it is. */
export function wordAt(line: string, caret: number): { from: number; word: string; option?: string } {
  const before = line.slice(0, caret);
  const from = before.search(/\S*$/);
  const word = before.slice(from);
  const joined = /^--([a-z-]+)=(.*)$/.exec(word);
  if (joined) {
    return { from: from + word.length - (joined[2] as string).length, word: joined[2] as string, option: joined[1] as string };
  }
  const last = /(?:^|\s)(--?[a-z-]+)\s+$/.exec(before.slice(0, from))?.[1];
  const option = last && (Object.hasOwn(OPTIONS, last.slice(2)) ? last.slice(2) : Object.keys(OPTIONS).find((name) => `-${OPTIONS[name]?.short}` === last));
  return { from, word, ...(option ? { option } : {}) };
}

/** Proposes options, levels, modes, fields, and values that the archive has in the range. */
export async function proposals(line: string, caret: number, asked: Asked | undefined, signal: AbortSignal): Promise<Proposal[]> {
  const { word, option } = wordAt(line, caret);
  const of = (texts: readonly string[], what = "") => texts.filter((text) => text.toLowerCase().startsWith(word.toLowerCase())).map((text) => ({ text, what }));
  if (option === undefined) {
    return word.startsWith("-") ? Object.entries(OPTIONS).filter(([name]) => `--${name}`.startsWith(word)).map(([name, { what }]) => ({ text: `--${name}`, what })) : [];
  }
  switch (option) {
    case "min-level":
    case "level":
      return of(LEVELS);
    case "mode":
      return of(MODES);
    case "where": {
      const quote = /^['"]?/.exec(word)?.[0] ?? "";
      return SUBJECTS.filter((name) => name.startsWith(word.slice(quote.length).toLowerCase())).map((name) => ({ text: quote + name, what: "" }));
    }
    case "field":
    case "not":
      return word.includes("=") ? [] : of(FIELDS.map((field) => `${field}=`));
    default:
      break;
  }
  const field = COUNTED[option];
  if (field === undefined || !asked) {
    return [];
  }
  const { since, until } = asked;
  const counts = await count({ query: {}, ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) }, { field }, signal);
  const wanted = word.replace(/^'/, "").toLowerCase();
  const found = counts.rows.filter(({ value = "" }) => value !== "" && value.toLowerCase().includes(wanted)).sort((one, other) => other.count - one.count);
  return found.slice(0, MOST).map(({ value = "", count: records }) => ({ text: quoted(value), what: records.toString() }));
}
