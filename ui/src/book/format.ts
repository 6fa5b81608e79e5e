/** Times, attributes and problems of logbooks as text. */
import { Problem } from "../lib/api";
import { nowNanos, timeOf, timeText, type Zone } from "../lib/time";
import type { AttributeDef, EntryAttribute, Hit } from "./api";

/** A time of the API in the zone that the page shows, to the minute. */
export function shortTime(time: string, zone: Zone): string {
  const at = timeOf(time, nowNanos(), "utc");
  return at === undefined ? time : timeText(at, zone, 0).replace("T", " ").replace(/:\d\d(Z|[+-]\d\d:?\d\d)?$/, "$1");
}

/** The values of an attribute; a date is seconds since 1970 in the API. */
export function valuesText({ values }: EntryAttribute, def: AttributeDef | undefined, zone: Zone): string {
  const isTime = def?.kind === "date" || def?.kind === "datetime";
  return values
    .map((value) => {
      if (isTime && /^-?\d+$/.test(value)) {
        const text = timeText(BigInt(value) * 1_000_000_000n, zone, 0);
        return def?.kind === "date" ? text.slice(0, 10) : text.replace("T", " ");
      }
      return def?.kind === "boolean" ? (value === "1" ? "yes" : "no") : value;
    })
    .join(", ");
}

export function why(problem: unknown): string {
  return problem instanceof Problem ? [problem.message, problem.wayOut].filter(Boolean).join(": ") : problem instanceof Error ? problem.message : String(problem);
}

/** True if the hub does not know the caller, as after the end of a session. */
export function needsLogin(problem: unknown): boolean {
  return problem instanceof Problem && problem.status === 401;
}

/** The text of a hit in pieces, with its matches marked. The places count bytes of UTF-8. */
export function pieces({ snippet }: Hit): { text: string; isMatch: boolean }[] {
  const bytes = new TextEncoder().encode(snippet.text);
  const decoder = new TextDecoder();
  const out: { text: string; isMatch: boolean }[] = [];
  let at = 0;
  for (const { start, end } of snippet.marks) {
    out.push({ text: decoder.decode(bytes.slice(at, start)), isMatch: false }, { text: decoder.decode(bytes.slice(start, end)), isMatch: true });
    at = end;
  }
  out.push({ text: decoder.decode(bytes.slice(at)), isMatch: false });
  return out.filter(({ text }) => text !== "");
}

export const sizeText = (bytes: number): string => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
