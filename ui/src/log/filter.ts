/**
 * Conditions on records, in the language of the command line: `--min-level Warning --source 'CONTROL/*' lock`.
 * `crates/cli/src/filter.rs` has the same options.
 */
import { durationOf, timeOf, timeText, type Nanos, type Zone } from "../lib/time";
import { quoted, Unclosed, wordsOf } from "../lib/words";

export const LEVELS = ["Trace", "Delouse", "Debug", "Info", "Notice", "Warning", "Error", "Critical", "Alert", "Emergency"] as const;
export type LevelName = (typeof LEVELS)[number];
export const MODES = ["engineer", "operator", "scilog"] as const;
export type Mode = (typeof MODES)[number];

/** Fields of a record that a pattern may be asked of. */
export const FIELDS = [
  "logger", "file", "routine", "host", "process", "thread", "context", "source_object", "array", "antenna", "run_id", "stack_id", "log_id", "uri",
] as const;
export type FieldName = (typeof FIELDS)[number];
/** Names of a condition that stand for a record's fields; all others are named data. */
export const SUBJECTS: readonly string[] = ["level", "source", "message", "audience", "line", "trace_id", "span_id", ...FIELDS];

const LEVEL_NUMBERS = [1, 2, 3, 4, 5, 6, 8, 9, 10, 11];
const SYNONYMS: Record<string, LevelName> = {
  warn: "Warning", err: "Error", crit: "Critical", fatal: "Critical", severe: "Error", emerg: "Emergency", panic: "Emergency",
  information: "Info", informational: "Info",
};

/** Records that match one of these are left out. */
export type Exclusion =
  | { kind: "level"; value: LevelName }
  | { kind: "audience" | "source" | "text" | "regex"; value: string }
  | { kind: "field"; field: FieldName; value: string };

export interface Filter {
  minLevel?: LevelName;
  levels: LevelName[];
  audiences: string[];
  mode: Mode;
  sources: string[];
  fields: Partial<Record<FieldName, string[]>>;
  contains?: string;
  regex?: string;
  /** A condition with and, or, not and numbers. */
  where?: string;
  without: Exclusion[];
  words: string[];
  since?: string;
  until?: string;
}

export class BadFilter extends Error {}

export function emptyFilter(): Filter {
  return { levels: [], audiences: [], mode: "engineer", sources: [], fields: {}, without: [], words: [] };
}

function levelOf(text: string): LevelName {
  const word = text.trim().toLowerCase();
  const found = LEVELS.find((level) => level.toLowerCase() === word) ?? SYNONYMS[word] ?? LEVELS[LEVEL_NUMBERS.indexOf(Number(word))];
  if (!found) {
    throw new BadFilter(`'${text}' is not a level; levels are ${LEVELS.join(", ")}`);
  }
  return found;
}

function fieldOf(text: string): [FieldName, string] {
  const at = text.indexOf("=");
  const name = text.slice(0, Math.max(at, 0)).trim().toLowerCase();
  const found = FIELDS.find((field) => field === name);
  if (at < 0 || !found) {
    throw new BadFilter(`write NAME=PATTERN; names are ${FIELDS.join(", ")}`);
  }
  return [found, text.slice(at + 1)];
}

function exclusionOf(text: string): Exclusion {
  const at = text.indexOf("=");
  const [name, value] = [text.slice(0, Math.max(at, 0)).trim(), text.slice(at + 1)];
  switch (name) {
    case "level":
      return { kind: "level", value: levelOf(value) };
    case "audience":
    case "source":
      return { kind: name, value };
    default: {
      const [field, pattern] = fieldOf(text);
      return { kind: "field", field, value: pattern };
    }
  }
}

function addField(filter: Filter, field: FieldName, patterns: string[]): void {
  filter.fields[field] = [...(filter.fields[field] ?? []), ...patterns];
}

function modeOf(text: string): Mode {
  const found = MODES.find((mode) => mode === text);
  if (!found) {
    throw new BadFilter(`'${text}' is not a mode; modes are ${MODES.join(", ")}`);
  }
  return found;
}

const list = (value: string) => value.split(",");

/** One option: its short letter, the form of its value, and its effect. `once` ones may not be repeated. */
interface Option {
  short?: string;
  value: string;
  what: string;
  once?: boolean;
  set(filter: Filter, value: string): void;
}

export const OPTIONS: Record<string, Option> = {
  "min-level": { short: "l", value: "LEVEL", what: "this level and more severe ones", once: true, set: (f, v) => (f.minLevel = levelOf(v)) },
  level: { value: "LEVEL,...", what: "these levels exactly", set: (f, v) => f.levels.push(...list(v).map(levelOf)) },
  source: { short: "s", value: "PATTERN,...", what: "from these sources, as the column shows them", set: (f, v) => f.sources.push(...list(v)) },
  process: { short: "p", value: "PATTERN,...", what: "from these processes", set: (f, v) => addField(f, "process", list(v)) },
  host: { value: "PATTERN,...", what: "from these hosts", set: (f, v) => addField(f, "host", list(v)) },
  logger: { value: "PATTERN,...", what: "from these loggers", set: (f, v) => addField(f, "logger", list(v)) },
  contains: { value: "TEXT", what: "with this text", once: true, set: (f, v) => (f.contains = v) },
  regex: { value: "REGEX", what: "matching this regular expression", once: true, set: (f, v) => (f.regex = v) },
  where: { value: "CONDITION", what: "meeting a condition: 'scan = 7 or elevation > 60'", once: true, set: (f, v) => (f.where = v) },
  exclude: { value: "TEXT", what: "without this text", set: (f, v) => f.without.push({ kind: "text", value: v }) },
  "exclude-regex": { value: "REGEX", what: "not matching this regular expression", set: (f, v) => f.without.push({ kind: "regex", value: v }) },
  not: { value: "NAME=PATTERN", what: "without records whose level, source, audience or field matches", set: (f, v) => f.without.push(exclusionOf(v)) },
  audience: { value: "NAME,...", what: "for these audiences, or for everybody", set: (f, v) => f.audiences.push(...list(v)) },
  mode: { value: "MODE", what: "ACS's audience mode: engineer, operator, scilog", once: true, set: (f, v) => (f.mode = modeOf(v)) },
  stack: { value: "ID", what: "of the error chain with this id", once: true, set: (f, v) => addField(f, "stack_id", [v]) },
  field: { value: "NAME=PATTERN", what: "with another field that matches", set: (f, v) => addField(f, ...((([name, pattern]) => [name, [pattern]]) as (p: [FieldName, string]) => [FieldName, string[]])(fieldOf(v))) },
  since: { value: "TIME", what: "from this time on: 10m, 08:15, yesterday, 2026-11-21T08:15", once: true, set: (f, v) => (f.since = v) },
  until: { value: "TIME", what: "up to this time", once: true, set: (f, v) => (f.until = v) },
};

/** Reads a filter. Throws `BadFilter` with the reason. */
export function parseFilter(line: string): Filter {
  const filter = emptyFilter();
  const seen = new Set<string>();
  let words: string[];
  try {
    words = wordsOf(line);
  } catch (why) {
    throw why instanceof Unclosed ? new BadFilter(`${why.message} has no end`) : why;
  }
  let onlyWords = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (onlyWords || !word.startsWith("-") || word === "-") {
      filter.words.push(word);
      continue;
    }
    if (word === "--") {
      onlyWords = true;
      continue;
    }
    const { name, given } = optionOf(word);
    const option = OPTIONS[name] as Option;
    const value = given ?? words[++at];
    if (value === undefined || value === "") {
      throw new BadFilter(`--${name} needs ${option.value}`);
    }
    if (option.once && seen.has(name)) {
      throw new BadFilter(`--${name} stands twice`);
    }
    seen.add(name);
    option.set(filter, value);
  }
  return filter;
}

function optionOf(word: string): { name: string; given?: string } {
  if (word.startsWith("--")) {
    const at = word.indexOf("=");
    const name = word.slice(2, at < 0 ? undefined : at);
    if (Object.hasOwn(OPTIONS, name)) {
      return at < 0 ? { name } : { name, given: word.slice(at + 1) };
    }
  } else {
    const found = Object.entries(OPTIONS).find(([, option]) => option.short === word[1]);
    if (found) {
      const rest = word.slice(2).replace(/^=/, "");
      return rest === "" ? { name: found[0] } : { name: found[0], given: rest };
    }
  }
  throw new BadFilter(`there is no option ${word}; options are ${Object.keys(OPTIONS).map((name) => `--${name}`).join(", ")}`);
}

/** Options of a filter with their values, in one order. */
export function optionsOf(filter: Filter): [string, string][] {
  const options: [string, string | undefined][] = [
    ["min-level", filter.minLevel],
    ["level", filter.levels.join(",")],
    ["mode", filter.mode === "engineer" ? undefined : filter.mode],
    ["audience", filter.audiences.join(",")],
    ["source", filter.sources.join(",")],
  ];
  for (const [field, patterns] of Object.entries(filter.fields)) {
    if (field === "process" || field === "host" || field === "logger") {
      options.push([field, patterns.join(",")]);
    } else {
      patterns.forEach((pattern) => options.push(["field", `${field}=${pattern}`]));
    }
  }
  options.push(["contains", filter.contains], ["regex", filter.regex], ["where", filter.where]);
  for (const one of filter.without) {
    switch (one.kind) {
      case "text":
        options.push(["exclude", one.value]);
        break;
      case "regex":
        options.push(["exclude-regex", one.value]);
        break;
      default:
        options.push(["not", `${one.kind === "field" ? one.field : one.kind}=${one.value}`]);
    }
  }
  options.push(["since", filter.since], ["until", filter.until]);
  return options.filter((option): option is [string, string] => option[1] !== undefined && option[1] !== "");
}

/** The conditions as parameters of the REST API, without times. */
export function parametersOf(filter: Filter): [string, string][] {
  const options = optionsOf(filter).filter(([name]) => name !== "since" && name !== "until");
  return [...options.map(([name, value]): [string, string] => [name.replaceAll("-", "_"), value]), ...filter.words.map((word): [string, string] => ["word", word])];
}

function lineOf(options: readonly [string, string][], words: readonly string[]): string {
  const shown = options.map(([name, value]) => (value.startsWith("-") ? `--${name}=${quoted(value)}` : `--${name} ${quoted(value)}`));
  // A word that begins with a dash would be an option.
  return [...shown, ...(words.some((word) => word.startsWith("-")) ? ["--"] : []), ...words.map(quoted)].join(" ");
}

/** Writes a filter, so that `parseFilter` and a shell read the same. */
export function filterText(filter: Filter): string {
  return lineOf(optionsOf(filter), filter.words);
}

/** The conditions of a filter, one text for each, with the filter that is left without it. */
export function conditionsOf(filter: Filter): { text: string; without: string }[] {
  const [options, { words }] = [optionsOf(filter), filter];
  const rest = <T>(all: readonly T[], nth: number) => all.filter((_, other) => other !== nth);
  return [
    ...options.map(([name, value], nth) => ({ text: `${name} ${quoted(value)}`, without: lineOf(rest(options, nth), words) })),
    ...words.map((word, nth) => ({ text: quoted(word), without: lineOf(options, rest(words, nth)) })),
  ];
}

/** The command that shows the same records. */
export function commandOf(filter: Filter, zone: Zone, live: boolean): string {
  const words = ["tampu log", live ? "tail" : "query", ...(zone === "utc" ? ["--utc"] : []), filterText(live && filter.since === undefined ? { ...filter, since: "0s" } : filter)];
  return words.filter((word) => word !== "").join(" ");
}

/** Start and end of a filter, as meant at this time. */
export function spanOf(filter: Filter, now: Nanos, zone: Zone): { since?: Nanos; until?: Nanos } {
  const resolve = (name: string, text: string | undefined) => {
    const at = text === undefined ? undefined : timeOf(text, now, zone);
    if (text !== undefined && at === undefined) {
      throw new BadFilter(`--${name}: '${text}' is not a time; write 10m, 08:15, yesterday or 2026-11-21T08:15:30`);
    }
    return at;
  };
  const [since, until] = [resolve("since", filter.since), resolve("until", filter.until)];
  if (since !== undefined && until !== undefined && since >= until) {
    throw new BadFilter(`--since ${filter.since} is not before --until ${filter.until}`);
  }
  return { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
}

/** A time with as many decimals as it needs. */
function exact(at: Nanos, zone: Zone): string {
  return timeText(at, zone, [0, 3, 6].find((decimals) => at % 10n ** BigInt(9 - decimals) === 0n) ?? 9);
}

/** True for `10m`, which goes on with the time, and for a whole time with its zone: each means the same to everybody. */
function isForAll(text: string): boolean {
  const word = text.trim().toLowerCase();
  return word === "now" || durationOf(word.replace(/ago$/, "").trim().replace(/^-/, "")) !== undefined || /^\d{4}-\d\d-\d\d[t ].*(?:z|[+-]\d\d?(?::?\d\d)?)$/.test(word);
}

/**
 * The filter with whole times in place of `08:15` and `yesterday`, which mean another time tomorrow or in another zone;
 * undefined if it has none.
 */
export function forAll(filter: Filter, now: Nanos, zone: Zone): Filter | undefined {
  const changed = Object.fromEntries(
    (["since", "until"] as const).flatMap((name) => {
      const at = filter[name] === undefined || isForAll(filter[name]) ? undefined : timeOf(filter[name], now, zone);
      return at === undefined ? [] : [[name, exact(at, zone)]];
    }),
  );
  return Object.keys(changed).length === 0 ? undefined : { ...filter, ...changed };
}

function withSpan(filter: Filter, span: { since?: Nanos; until?: Nanos }): Filter {
  const { since, until } = span;
  return { ...filter, ...(since === undefined ? {} : { since: exact(since, "utc") }), ...(until === undefined ? {} : { until: exact(until, "utc") }) };
}

/** The filter with its times in UTC as they are meant now, for a link that shows the same later. */
export function fixed(filter: Filter, now: Nanos, zone: Zone): Filter {
  const second = 1_000_000_000n;
  return withSpan(filter, spanOf(filter, now - (now % second), zone));
}

/** The filter with a range that has this time: longer by the range's own length before or behind it. Undefined if it has it. */
export function including(filter: Filter, at: Nanos, now: Nanos, zone: Zone): Filter | undefined {
  const { since, until } = spanOf(filter, now, zone);
  const hour = 3_600_000_000_000n;
  if (since !== undefined && at < since) {
    const length = (until ?? now) - since;
    return withSpan(filter, { since: at - (length > 0n ? length : hour) });
  }
  if (until !== undefined && at >= until) {
    return withSpan(filter, { until: at + (since === undefined ? hour : until - since) });
  }
  return undefined;
}

/** The conditions as the collector reads them (`spec/log-services.md`), without times. */
export function queryOf(filter: Filter): Record<string, unknown> {
  const without = filter.without.map((one) => {
    switch (one.kind) {
      case "level":
        return { levels: [one.value] };
      case "audience":
        return { audiences: [one.value] };
      case "source":
        return { sources: [one.value] };
      case "field":
        return { fields: { [one.field]: [one.value] } };
      default:
        return { [one.kind]: one.value };
    }
  });
  return {
    ...(filter.minLevel ? { min_level: filter.minLevel } : {}),
    ...(filter.levels.length > 0 ? { levels: filter.levels } : {}),
    ...(filter.audiences.length > 0 ? { audiences: filter.audiences } : {}),
    ...(Object.keys(filter.fields).length > 0 ? { fields: filter.fields } : {}),
    ...(filter.sources.length > 0 ? { sources: filter.sources } : {}),
    ...(filter.words.length > 0 ? { words: filter.words } : {}),
    ...(filter.contains ? { text: filter.contains } : {}),
    ...(filter.regex ? { regex: filter.regex } : {}),
    ...(filter.where ? { where: filter.where } : {}),
    ...(without.length > 0 ? { without } : {}),
    ...(filter.mode === "engineer" ? {} : { mode: filter.mode }),
  };
}

/** A value as a pattern that matches it alone. Signs of patterns match themselves as one arbitrary sign, commas too. */
export function patternOf(value: string): string {
  return value.replace(/[*,]/g, "?");
}

/** Adds or removes a condition on a field, as a click does. */
export function toggled(filter: Filter, field: FieldName | "source" | "level", value: string, include: boolean): Filter {
  const copy = structuredClone(filter);
  const pattern = field === "level" ? value : patternOf(value);
  if (!include) {
    const one: Exclusion = field === "level" ? { kind: "level", value: value as LevelName } : field === "source" ? { kind: "source", value: pattern } : { kind: "field", field, value: pattern };
    const same = (other: Exclusion) => JSON.stringify(other) === JSON.stringify(one);
    copy.without = copy.without.some(same) ? copy.without.filter((other) => !same(other)) : [...copy.without, one];
    return copy;
  }
  const flip = <T>(values: readonly T[], one: T) => (values.includes(one) ? values.filter((other) => other !== one) : [...values, one]);
  if (field === "level") {
    copy.levels = flip(copy.levels, value as LevelName);
    delete copy.minLevel;
  } else if (field === "source") {
    copy.sources = flip(copy.sources, pattern);
  } else {
    const values = flip(copy.fields[field] ?? [], pattern);
    if (values.length > 0) {
      copy.fields[field] = values;
    } else {
      delete copy.fields[field];
    }
  }
  return copy;
}
