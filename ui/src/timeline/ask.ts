/** Questions for the lanes of a range. */
import { read } from "../lib/api";
import type { Nanos } from "../lib/time";
import { filterParameters, timelineOf, valueOf, type Answer, type Reading, type Timeline, type Value } from "./data";
import type { Range } from "./range";

export interface Asked {
  range: Range;
  lanes: readonly string[];
  attributes: readonly string[];
  filter: string;
  bins: number;
}

/** Asks for all lanes of a range. */
export async function load({ range, lanes, attributes, filter, bins }: Asked, signal: AbortSignal): Promise<Timeline> {
  const asked = { ...filterParameters(filter), since: range.from.toString(), until: range.to.toString(), event: attributes, bins: bins.toString() };
  // An empty list means all lanes; one that is never shown by itself costs nothing.
  const wanted = ["log", "transfers", "entries"].filter((lane) => lanes.includes(lane)).join(",");
  const [timeline, before] = await Promise.all([
    read<Answer>("timeline", { ...asked, lanes: wanted || "transfers" }, signal).then(timelineOf),
    Promise.all(attributes.map((name) => lastBefore(name, range.from, signal))),
  ]);
  const histories = timeline.histories.map((history) => {
    const nth = attributes.findIndex((name) => name.toLowerCase() === history.name.toLowerCase());
    const value = before[nth];
    return value ? { ...history, before: value } : history;
  });
  return { ...timeline, histories, transfers: lanes.includes("transfers") ? timeline.transfers : [] };
}

/** Returns the last reading before a time: what holds at the beginning of a range. */
async function lastBefore(name: string, at: Nanos, signal: AbortSignal): Promise<Value | undefined> {
  // The name is a pattern there; a name has no signs of patterns.
  const asked = { name, until: at.toString(), limit: "1", order: "newest" };
  const { rows } = await read<{ rows: Reading[] }>("event/rows", asked, signal).catch((why: unknown) => {
    if (signal.aborted) {
      throw why;
    }
    // Without the right to the history the timeline itself names the reason.
    return { rows: [] };
  });
  const [row] = rows;
  // A gap or the end of a source: nothing is known since.
  return row?.quality === undefined ? undefined : valueOf(row);
}
