/** A snapshot of trends for an entry of the logbook: a text in Markdown, and the links of the entry. */
import { plain } from "../lib/markdown";
import { timeText } from "../lib/time";
import type { Range } from "./grid";
import { nanosOf } from "./kept";
import { ATTRIBUTE_TEXT } from "./text";
import type { Statistics } from "./trace";
import { numberText } from "./values";

const TEXT = ATTRIBUTE_TEXT.entry;
/** Attributes that get a link of the entry. */
const MOST_LINKS = 10;

/** A trend in sight. */
export interface Seen {
  label: string;
  unit: string;
  statistics: Statistics | undefined;
}

/** The text: the range, a link that shows it again, and the values of the time in sight. */
export function snapshotText(seen: readonly Seen[], range: Range, url: string): string {
  const time = (ms: number): string => timeText(nanosOf(ms), "utc", 3);
  const rows = seen.map(({ label, unit, statistics }) => {
    const numbers = statistics ? [statistics.last, statistics.min, statistics.mean, statistics.max].map((value) => plain(numberText(value))) : ["", "", "", ""];
    return `| ${[plain(label), ...numbers, plain(unit), (statistics?.count ?? 0).toString()].join(" | ")} |`;
  });
  return [TEXT.range(time(range.from), time(range.to)), "", TEXT.link(url), "", TEXT.head, "|-|-|-|-|-|-|-|", ...rows].join("\n");
}

/** Targets of the entry's links: each attribute at the end of the time in sight. */
export function snapshotLinks(names: readonly string[], range: Range, now: number): string[] {
  const at = timeText(nanosOf(Math.min(range.to, now)), "utc");
  return [...new Map(names.map((name) => [name.toLowerCase(), name])).values()].slice(0, MOST_LINKS).map((name) => `event:${name}@${at}`);
}
