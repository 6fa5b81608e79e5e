/** A draft of the summary of a shift, from all services that the caller may read. */

import { plain } from "../lib/markdown";

/** One range of the timeline, as the API returns it. */
export interface Shift {
  since: string;
  until: string;
  log?: { levels: Record<string, number[]> } | null;
  transfers: { stream: string; flow: string; outcome: string; bytes: number }[];
  entries: { book: string; id: number; by: string; title: string }[];
  /** Lanes whose oldest items are left out. */
  cut: string[];
  missing: { lane: string; why: string }[];
}

/** Writes the summary in Markdown. */
export function summaryText({ since, until, log, transfers, entries, cut, missing }: Shift): string {
  const minute = (time: string): string => time.slice(0, 16).replace("T", " ");
  const lines = [`# Shift summary`, "", `${minute(since)} to ${minute(until)} UTC`, ""];
  if (log) {
    const counts = Object.entries(log.levels).map(([level, bins]) => [level, bins.reduce((sum, bin) => sum + bin, 0)] as const);
    lines.push("## Log records", "", ...counts.filter(([, count]) => count > 0).map(([level, count]) => `- ${level}: ${count}`), "");
  }
  const more = (lane: string, count: number): string[] => (cut.includes(lane) ? [`There were more than ${count}; the oldest are not in this list.`, ""] : []);
  lines.push("## Transfers", "", ...more("transfers", transfers.length));
  const outcomes = new Map<string, Shift["transfers"]>();
  for (const transfer of transfers) {
    const name = `${transfer.stream}#${transfer.flow}: ${transfer.outcome}`;
    outcomes.set(name, [...(outcomes.get(name) ?? []), transfer]);
  }
  lines.push(...(outcomes.size > 0 ? [...outcomes].map(([name, list]) => `- ${plain(name)}, ${list.length}, ${list.reduce((sum, { bytes }) => sum + bytes, 0)} bytes`) : ["None."]), "");
  lines.push("## Entries", "", ...more("entries", entries.length), ...(entries.length > 0 ? entries.map(({ book, id, by, title }) => `- ${plain(book)}/${id} (${plain(by)}): ${plain(title)}`) : ["None."]), "");
  if (missing.length > 0) {
    lines.push("## Not available", "", ...missing.map(({ lane, why }) => `- ${plain(lane)}: ${plain(why)}`), "");
  }
  return lines.join("\n");
}
