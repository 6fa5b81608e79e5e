/** Files of the rows that are shown: text, JSON lines and CSV made here, ACS's XML and Parquet made by the hub. */
import { recordLine } from "tampu";

import { timeText, type Zone } from "../lib/time";
import { oneLine, wholeText } from "./display";
import { parametersOf, type Filter } from "./filter";
import { sourceOf, type Row } from "./rows";

export const FORMATS = { text: "log", json: "jsonl", csv: "csv" } as const;
export type Format = keyof typeof FORMATS;
/** Formats of files that the hub makes. */
export const HUB_FORMATS = { xml: "xml", parquet: "parquet" } as const;
export type HubFormat = keyof typeof HUB_FORMATS;

const TYPES: Record<Format, string> = { text: "text/plain", json: "application/x-ndjson", csv: "text/csv" };

/** A loss in the words of a row. */
export function lossText(row: Row & { kind: "loss" }): string {
  const { source, samples, why } = row.loss;
  return `${samples === undefined ? "an unknown number of packets" : samples === 1n ? "1 packet" : `${samples} packets`} of records missing from ${source ? oneLine(source, 200) : "an unknown source"}: ${why}`;
}

/** A row as a line of text. Lines of a message stay together: the others are indented. */
export function textLine(row: Row, zone: Zone): string {
  const time = timeText(row.time, zone);
  if (row.kind === "loss") {
    return `${time} LOSS ${lossText(row)}`;
  }
  const { record } = row;
  const data = (record.data ?? []).map(({ name, value }) => ` ${name}=${value}`).join("");
  return `${time} ${record.level} ${wholeText(sourceOf(record))} ${wholeText(record.message + data).replaceAll("\n", "\n\t")}`;
}

/** A cell that a spreadsheet takes for text and not for a formula, as in the tables of the command line. */
export function harmlessCell(cell: string): string {
  const bare = cell.replace(/^'+/, "");
  const isNumber = /^[+-]?\d*\.?\d+(?:[eE][+-]?\d+)?(?: .*)?$/.test(bare);
  return /^[=+\-@\t\r]/.test(bare) && !isNumber ? `'${cell}` : cell;
}

function csvLine(cells: readonly string[]): string {
  return cells.map((cell) => `"${harmlessCell(cell).replaceAll('"', '""')}"`).join(",");
}

const COLUMNS = ["time", "level", "source", "message", "data", "logger", "process", "host", "file", "line", "routine", "thread", "context", "audiences", "array", "antenna", "stack_id", "stack_level", "trace_id", "span_id", "run_id", "id"];

function cells(row: Row, zone: Zone): string[] {
  const time = timeText(row.time, zone);
  if (row.kind === "loss") {
    return [time, "LOSS", row.loss.source, lossText(row), ...COLUMNS.slice(4).map(() => "")];
  }
  const { record } = row;
  const data = (record.data ?? []).map(({ name, value }) => `${name}=${value}`).join(" ");
  const { logger, process, host, file, line, routine, thread, context, audiences, array, antenna, stack_id, stack_level, trace_id, span_id, run_id, id } = record;
  const rest = [logger, process, host, file, line?.toString(), routine, thread, context, audiences?.join(" "), array, antenna, stack_id, stack_level?.toString(), trace_id, span_id, run_id, id && `${id.incarnation}.${id.ring}.${id.number}`];
  return [time, record.level, sourceOf(record), record.message, data, ...rest.map((cell) => cell ?? "")];
}

/** The content of a file with these rows. */
export function fileOf(rows: readonly Row[], format: Format, zone: Zone): Blob {
  const line = (row: Row): string => {
    switch (format) {
      case "text":
        return textLine(row, zone);
      case "csv":
        return csvLine(cells(row, zone));
      case "json":
        return row.kind === "record" ? recordLine(row.record) : JSON.stringify({ time: timeText(row.time, "utc"), loss: { ...row.loss, samples: row.loss.samples?.toString() ?? null } });
    }
  };
  const lines = rows.map((row) => `${line(row)}\n`);
  return new Blob(format === "csv" ? [`${csvLine(COLUMNS)}\n`, ...lines] : lines, { type: TYPES[format] });
}

/** The address, below that of the hub, of a file that the hub makes of the same records. */
export function addressOf(rows: readonly Row[], filter: Filter, format: HubFormat): string | undefined {
  const records = rows.filter((row) => row.kind === "record");
  const [first, last] = [records[0], records.at(-1)];
  if (!first || !last) {
    return undefined;
  }
  const span = [["since", timeText(first.time, "utc")], ["until", timeText(last.time + 1n, "utc")]];
  const asked = [...parametersOf(filter), ...span, ["order", "oldest"], ["format", format]] as [string, string][];
  return `api/v1/log/export?${new URLSearchParams(asked)}`;
}

/** Gives a file to the browser. */
export function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  fetchFile(address, name);
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Has the browser save what is at an address. */
export function fetchFile(address: string, name: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}
