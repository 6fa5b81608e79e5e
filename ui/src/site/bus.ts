/** The bus of a site, as `GET /site` reports it (`spec/console-api.md`): processes, topics, readers, links, findings. */

export interface Link {
  host?: string;
  own: string;
  other: string;
  /** Bytes since the link was made. */
  sent: number;
  received: number;
  age_ms: number;
}

export interface BusProcess {
  source: string;
  incarnation: string;
  host: string;
  pid: number;
  version: string;
  writes: number;
  reads: number;
  lost: number;
  /** Time that its writers have waited for readers, ns. */
  waited_ns: string;
}

export interface Topic {
  topic: string;
  partitions: string[];
  writers: number;
  readers: number;
  samples: number;
  bytes: number;
}

export interface StreamReader {
  reader: string;
  process: string | null;
  topic: string;
  writer: string;
  stream: number;
  state: string;
  reliable: boolean;
  behind: number;
  lost: number;
}

export interface DoctorFinding {
  subject: string;
  grade: "ok" | "warn" | "fail";
  text: string;
  way_out?: string;
}

export interface Bus {
  time: string;
  hosts: { host: string; offset_ns: string; offset_error_ns: number; links: Link[] }[];
  processes: BusProcess[];
  topics: Topic[];
  readers: StreamReader[];
  silent: { source: string; why: string }[];
  findings: DoctorFinding[];
}

/** Rates that a small plot shows. */
const KEPT = 60;

/** Gains of counters in a second, from one look to the next, and levels as they were at each look. */
export class Rates {
  #last = new Map<string, { count: number; at: number }>();
  #kept = new Map<string, number[]>();

  /** Notes counters, and levels such as free bytes, at a time in ms. Those that are gone are forgotten. */
  take(counters: Iterable<readonly [string, number]>, at: number, levels: Iterable<readonly [string, number]> = []): void {
    const now = new Map<string, { count: number; at: number }>();
    const kept = new Map<string, number[]>();
    for (const [name, count] of counters) {
      const last = this.#last.get(name);
      const before = this.#kept.get(name) ?? [];
      // A counter that is smaller than before belongs to another life.
      const isNews = last !== undefined && at > last.at && count >= last.count;
      kept.set(name, isNews ? [...before.slice(1 - KEPT), ((count - last.count) * 1000) / (at - last.at)] : before);
      now.set(name, { count, at });
    }
    for (const [name, level] of levels) {
      kept.set(name, [...(this.#kept.get(name) ?? []).slice(1 - KEPT), level]);
    }
    this.#last = now;
    this.#kept = kept;
  }

  /** The last rates of a counter, or the last levels, the newest last. A counter has none before the second look. */
  of(name: string): readonly number[] {
    return this.#kept.get(name) ?? [];
  }
}

/** A writing process and one that reads from it. */
export interface Pair {
  writer: string;
  reader: string;
  topics: string[];
  behind: number;
  lost: number;
  isSlow: boolean;
}

/** True if a reader does not get all at the pace of its writer. */
export function isIll(reader: { state: string; lost: number }): boolean {
  return reader.lost > 0 || reader.state === "lagging";
}

/** Pairs whose writer, reader or topic has this text; ill ones first. */
export function pairsOf(readers: readonly StreamReader[], text: string): Pair[] {
  const wanted = text.trim().toLowerCase();
  const pairs = new Map<string, Pair>();
  for (const reader of readers) {
    if (wanted !== "" && ![reader.reader, reader.writer, reader.topic].some((name) => name.toLowerCase().includes(wanted))) {
      continue;
    }
    const key = `${reader.writer}\n${reader.reader}`;
    const pair = pairs.get(key) ?? { writer: reader.writer, reader: reader.reader, topics: [], behind: 0, lost: 0, isSlow: false };
    if (!pair.topics.includes(reader.topic)) {
      pair.topics.push(reader.topic);
    }
    pair.behind += reader.behind;
    pair.lost += reader.lost;
    pair.isSlow ||= isIll(reader);
    pairs.set(key, pair);
  }
  return [...pairs.values()].toSorted((one, other) => Number(other.isSlow) - Number(one.isSlow) || (one.writer < other.writer ? -1 : one.writer > other.writer ? 1 : one.reader < other.reader ? -1 : 1));
}

/** A rate in few signs: `0.2`, `15`, `3.4 k`, `1.2 M`. */
export function rateText(rate: number | undefined): string {
  if (rate === undefined) {
    return "";
  }
  const unit = rate >= 1e9 ? "G" : rate >= 1e6 ? "M" : rate >= 1e3 ? "k" : "";
  const scaled = rate / { G: 1e9, M: 1e6, k: 1e3, "": 1 }[unit]!;
  const digits = scaled >= 10 || scaled === 0 ? scaled.toFixed(0) : scaled.toFixed(1);
  return unit === "" ? digits : `${digits} ${unit}`;
}
