/** All kept events of attributes in a time, as a file that the hub makes while the browser stores it. */
import { BASE } from "../lib/address.svelte";
import { timeText } from "../lib/time";
import type { Range } from "./grid";
import { nanosOf } from "./kept";

export type EventFile = "csv" | "parquet";

/** The address of a file of events, the oldest first. */
export function fileAddress(names: readonly string[], range: Range, format: EventFile): string {
  const url = new URL("api/v1/event/export", BASE);
  names.forEach((name) => url.searchParams.append("name", name));
  const time = (ms: number) => timeText(nanosOf(ms), "utc");
  for (const [name, value] of Object.entries({ since: time(range.from), until: time(range.to), order: "oldest", format })) {
    url.searchParams.set(name, value);
  }
  return url.href;
}

/** Downloads a file of events. The page does not hold it, so it has no bound. */
export function saveEvents(names: readonly string[], range: Range, format: EventFile, file: string): void {
  const link = document.createElement("a");
  link.href = fileAddress(names, range, format);
  link.download = file;
  link.click();
}
