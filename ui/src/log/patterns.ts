/** Records by the place in a program that logged them, which the collector counts over the whole range (`spec/log-services.md`). */
import type { Filter, LevelName } from "./filter";

/** Records of one place in a program, or without one those of one text with other numbers. */
export interface Pattern {
  level: LevelName;
  /** Empty for a pattern of texts. */
  file: string;
  line: number;
  routine: string;
  /** The message of the newest record. */
  message: string;
  count: number;
  /** Number of different sources. */
  sources: number;
  /** Records in each interval. */
  bins: number[];
  /** The expression that its records meet, and no others; none if it would be too long. */
  condition: string | null;
}

export interface Patterns {
  total: number;
  known: number;
  others: number;
  patterns: Pattern[];
  exact: boolean;
  complete: boolean;
}

/** Intervals of a pattern's plot. */
export const PATTERN_BINS = 40;

/** A name that is the same as long as the pattern is. */
export const keyOf = ({ level, file, line, routine, condition, message }: Pattern): string => JSON.stringify([level, file.toLowerCase(), line, routine.toLowerCase(), file === "" ? (condition ?? message) : ""]);

/** A filter for the records of a pattern alone, or for all others. */
export function withPattern(filter: Filter, expression: string, include: boolean): Filter {
  const condition = include ? expression : `not ${expression}`;
  const copy = structuredClone(filter);
  // Only 'or' binds less than 'and'.
  const before = copy.where !== undefined && /\bor\b/i.test(copy.where) ? `(${copy.where})` : copy.where;
  copy.where = before === undefined ? condition : `${before} and ${condition}`;
  return copy;
}
