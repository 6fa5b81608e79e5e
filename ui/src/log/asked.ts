/** The forms of questions to the archive of logs, and of its counts. */
import type { Nanos } from "../lib/time";

/** A query: the conditions of a filter, and from when to when. */
export interface Asked {
  query: Record<string, unknown>;
  since?: Nanos;
  until?: Nanos;
}

/** The columns by which records are counted. */
export interface Columns {
  level?: boolean;
  field?: string;
  every_s?: number;
}

export interface Counts {
  total: number;
  earliest: number | null;
  latest: number | null;
  rows: { time?: number; level?: string; value?: string; count: number }[];
  complete: boolean;
}
