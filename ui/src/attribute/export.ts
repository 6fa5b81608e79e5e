/** All kept events of attributes in a time, as a file. */
import { read } from "../lib/api";
import { timeText } from "../lib/time";
import { download } from "../log/formats";
import { csvFile, EVENT_HEADER, eventLine } from "./csv";
import type { Range } from "./grid";
import { nanosOf, type KeptPage } from "./kept";

/** Events of a file that a browser makes. `tampu event history` has no bound. */
const MOST = 200_000;

export async function saveEvents(names: string[], range: Range, file: string, onRows: (rows: number) => void): Promise<void> {
  const lines = [EVENT_HEADER];
  const time = (ms: number) => timeText(nanosOf(ms), "utc");
  let after: string | undefined;
  do {
    const page = await read<KeptPage>("event/rows", { name: names, since: time(range.from), until: time(range.to), order: "oldest", limit: "1000", after });
    lines.push(...page.rows.map(eventLine));
    after = page.next ?? undefined;
    onRows(lines.length - 1);
  } while (after !== undefined && lines.length <= MOST);
  download(csvFile(lines), file);
  if (after !== undefined) {
    throw new Error(`the file has the first ${lines.length - 1} events; choose a shorter time for the others`);
  }
}
