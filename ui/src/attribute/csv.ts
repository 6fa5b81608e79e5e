/** Files of what a plot shows. */
import { timeText } from "../lib/time";
import { labelOf, type Choice } from "./choice";
import { nanosOf } from "./kept";
import type { Trace } from "./trace";

/** A cell, in quotes where it needs them. A text that a spreadsheet would run begins with an apostrophe. */
export function cellOf(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?[\d.]+(?:e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const numberCell = (value: number) => (Number.isNaN(value) ? "" : `${value}`);

/** Readings and intervals in sight, one a line, in the order of time for each attribute. An interval has its least, largest and mean value. */
export function* seenLines(traces: readonly { choice: Choice; trace: Trace; unit: string }[], from: number, to: number): Generator<string> {
  yield "time,attribute,unit,quality,value,min,max,mean,readings,source_incarnation,sequence";
  for (const { choice, trace, unit } of traces) {
    const [name, unitCell] = [cellOf(labelOf(choice)), cellOf(unit)];
    for (let nth = trace.intervalsFrom(from); nth < trace.intervals.length; nth++) {
      const one = trace.intervals[nth] as Trace["intervals"][number];
      if (one.time > to) {
        break;
      }
      yield [timeText(nanosOf(one.time), "utc"), name, unitCell, one.quality, "", numberCell(one.min), numberCell(one.max), numberCell(one.mean), one.count, "", ""].join(",");
    }
    for (let nth = trace.from(from); nth < trace.points.length; nth++) {
      const one = trace.points[nth] as Trace["points"][number];
      if (one.time > to) {
        break;
      }
      yield [timeText(nanosOf(one.time), "utc"), name, unitCell, one.quality, numberCell(one.value), "", "", "", 1, one.life, one.number].join(",");
    }
  }
}

export function csvFile(lines: Iterable<string>): Blob {
  return new Blob([`${[...lines].join("\n")}\n`], { type: "text/csv" });
}
