/** The state of the timeline as its address has it. */
import { durationOf, durationText, timeOf, timeText, type Nanos } from "../lib/time";
import { allowed, type Range } from "./range";

export const LANES = ["log", "alarms", "transfers", "entries"] as const;
export type LaneName = (typeof LANES)[number];

/** Speeds of a replay. */
export const SPEEDS = [0.1, 1, 10, 60, 600, 3600] as const;

/** Most attributes: those that the hub answers at once. */
export const MOST_ATTRIBUTES = 20;

export interface Shown {
  /** Length of a range that ends now and follows, or a range that stands still. */
  range: { last: Nanos } | Range;
  lanes: readonly LaneName[];
  attributes: readonly string[];
  /** The filter of records, in the language of the log view. */
  filter: string;
  /** The time at which the cursor is held. */
  at?: Nanos;
  /** Speed of a replay from the cursor on. */
  speed?: number;
}

const HOUR = 3600n * 1_000_000_000n;

const escaped = (name: string) => name.replace(/[%,]/g, encodeURIComponent);

function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Names of attributes that differ; upper and lower case do not count. */
export function distinct(names: readonly string[]): string[] {
  return [...new Map(names.map((name) => [name.toLowerCase(), name])).values()].slice(0, MOST_ATTRIBUTES);
}

/** Reads an address. A part that cannot be read has the value of an address without it. */
export function shownOf(parameters: URLSearchParams, now: Nanos): Shown {
  const time = (name: string) => timeOf(parameters.get(name) ?? "", now, "utc");
  const [from, to, at] = [time("from"), time("to"), time("at")];
  const last = durationOf(parameters.get("last") ?? "") ?? HOUR;
  const range = from !== undefined && to !== undefined ? allowed(from, to) : { last };
  const given = parameters.get("lanes");
  const names = (parameters.get("event") ?? "").split(",").map((name) => unescaped(name.trim())).filter((name) => name !== "");
  const speed = SPEEDS.find((speed) => speed === Number(parameters.get("speed")));
  return {
    range,
    lanes: given === null ? LANES : LANES.filter((lane) => given.split(",").includes(lane)),
    attributes: distinct(names),
    filter: parameters.get("q") ?? "",
    ...(at === undefined ? {} : { at }),
    ...(speed === undefined ? {} : { speed }),
  };
}

/** The parameters of an address that shows the same. */
export function parametersOf(shown: Shown): Record<string, string | undefined> {
  const time = (at: Nanos | undefined) => (at === undefined ? undefined : timeText(at, "utc"));
  const { range, lanes } = shown;
  return {
    ...("last" in range ? { last: durationText(range.last) } : { from: time(range.from), to: time(range.to) }),
    lanes: lanes.length === LANES.length ? undefined : lanes.join(",") || "none",
    event: shown.attributes.map(escaped).join(","),
    q: shown.filter,
    at: time(shown.at),
    speed: shown.speed?.toString(),
  };
}
