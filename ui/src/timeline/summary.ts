/** A snapshot of the timeline in Markdown, for an entry of the logbook. Texts of others can be no markup there. */
import { plain } from "../lib/markdown";
import { timeText, type Nanos } from "../lib/time";
import { bytesText } from "../site/site";
import { oneLine } from "../log/display";
import type { History, Timeline } from "./data";
import { numberText, readoutOf, statisticsOf } from "./readout";
import { alarmsOf } from "./picture";
import { has, type Range } from "./range";
import { TEXT } from "./text";

/** Transfers, entries and alarms that are named. */
const MOST = 10;

/** A text in a code span, whatever signs it has. */
function code(text: string): string {
  const line = oneLine(text, 300);
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest > 0 || line.startsWith("`") ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`;
}

function listed(title: string, lines: string[]): string[] {
  if (lines.length === 0) {
    return [];
  }
  const rest = lines.length - MOST;
  return ["", title, "", ...lines.slice(0, MOST).map((line) => `- ${line}`), ...(rest > 0 ? [`- ${TEXT.summary.more(rest)}`] : [])];
}

function attributeRow(history: History, range: Range, at: Nanos): string {
  const numbers = statisticsOf(history, range);
  const reading = readoutOf(history, at);
  const now = reading ? `${plain(reading.text)}${reading.quality === "valid" ? "" : ` (${reading.quality})`}` : TEXT.noValue;
  const cells = numbers ? [numbers.low, numbers.mean, numbers.high].map((value) => plain(numberText(value))) : ["", "", ""];
  return `| ${[plain(history.name), now, ...cells, (numbers?.count ?? history.count).toString()].join(" | ")} |`;
}

/** The text of an entry: what is in sight, and the link that shows it again. */
export function summaryOf(timeline: Timeline, range: Range, at: Nanos, filter: string, url: string): string {
  const { summary } = TEXT;
  const time = (time: Nanos) => timeText(time, "utc", 3);
  const lines = [`${summary.range(time(range.from), time(range.to))}. ${summary.cursor(timeText(at, "utc"))}.`, "", summary.link(url)];
  if (timeline.log) {
    const { start, every, levels } = timeline.log;
    const inSight = levels.map(({ level, counts }) => {
      const sum = counts.reduce((sum, count, bin) => (has(range, start + BigInt(bin) * every) ? sum + count : sum), 0);
      return sum > 0 ? `${sum} ${level}` : "";
    });
    lines.push("", summary.log(inSight.filter((text) => text !== "").join(", ") || TEXT.noRecords));
    if (filter !== "") {
      lines.push("", `${summary.filter}: ${code(filter)}`);
    }
  }
  if (timeline.histories.length > 0) {
    lines.push("", summary.attributes, "|-|-|-|-|-|-|", ...timeline.histories.map((history) => attributeRow(history, range, at)));
  }
  const alarms = timeline.histories.flatMap((history) =>
    alarmsOf(history, range, 1, range.to).map((alarm) => `${time(alarm.at)} ${plain(TEXT.alarm(history.name, alarm.text))}`),
  );
  const transfers = timeline.transfers.filter(({ from, to }) => from < range.to && (to === undefined || to >= range.from)).map(({ from, transfer }) => {
    const lost = transfer.lost_bytes > 0 ? `, ${summary.lost(bytesText(transfer.lost_bytes))}` : "";
    return `${time(from)} ${plain(`${transfer.stream}/${transfer.flow} ${transfer.transfer}`)}: ${TEXT.outcomes[transfer.outcome] ?? plain(transfer.outcome)}, ${bytesText(transfer.bytes)}${lost}`;
  });
  const entries = timeline.entries.filter((entry) => has(range, entry.at)).map((entry) => `${time(entry.at)} ${plain(`${entry.book}/${entry.id}: ${entry.title} (${entry.by})`)}`);
  const cut = (lane: "transfers" | "entries", of: readonly unknown[]) => (timeline.cut.includes(lane) ? ["", summary.cut(TEXT.lanes[lane], of.length)] : []);
  return [
    ...lines,
    ...listed(summary.alarms, alarms),
    ...listed(summary.transfers, transfers),
    ...cut("transfers", timeline.transfers),
    ...listed(summary.entries, entries),
    ...cut("entries", timeline.entries),
  ].join("\n");
}

/** Targets of an entry's links: the attributes in sight, each at the time of the cursor. */
export function linksOf(histories: readonly History[], at: Nanos): string[] {
  return histories.slice(0, MOST).map(({ name }) => `event:${name}@${timeText(at, "utc")}`);
}
