/** Links of entries: the views that show their targets, and the targets in words. */
import { address } from "../lib/address.svelte";
import { nowNanos, timeOf, type Nanos, type Zone } from "../lib/time";
import { oneLine } from "../log/display";
import { emptyFilter, filterText, patternOf } from "../log/filter";
import { attributeAt, entryOf, recordAt, recordsOf, transferOf } from "../timeline/places";
import { shortTime, sizeText } from "./format";
import { BOOK_TEXT } from "./text";
import type { ResolvedLink } from "./types";

/** Time that the log shows at each side of a record, ns. */
const BESIDE = 300_000_000_000n;
/** Reasons that are no loss: the hub keeps it, but not for this person. */
const REFUSED = /^you may not /;

const nanos = (time: string | undefined): Nanos | undefined => (time === undefined ? undefined : timeOf(time, nowNanos(), "utc"));

/** The address of the view that shows a target; none of what is gone. */
export function placeOf({ kind, target, found, record, event, transfer, entry }: ResolvedLink): string | undefined {
  switch (kind) {
    case "record": {
      const at = nanos(record?.time);
      return at === undefined ? undefined : recordAt(recordsOf("", at - BESIDE, at + BESIDE), target, record?.time ?? "");
    }
    case "event": {
      const [name = "", time] = target.split("@");
      // The attribute may live on without this event.
      return attributeAt(name, nanos(event?.time ?? time));
    }
    case "transfer":
      return found ? transferOf(transfer?.id ?? target) : undefined;
    case "entry":
      return entry ? entryOf(entry.book, entry.id) : undefined;
    case "run":
      return address.of("log", { q: filterText({ ...emptyFilter(), fields: { run_id: [patternOf(target)] } }) });
  }
}

/** A target in words: its time, and its level, value or outcome. */
export function targetText({ kind, found, why, record, event, transfer, entry }: ResolvedLink, zone: Zone): string {
  const at = (time: string): string => shortTime(time, zone);
  if (record) {
    return `${at(record.time)} ${record.level} ${oneLine(record.message, 300)}`;
  }
  if (event) {
    return [at(event.time), oneLine(event.text, 200), event.unit, event.quality === "valid" ? "" : event.quality].filter(Boolean).join(" ");
  }
  if (transfer) {
    return [at(transfer.began), transfer.file ?? `${transfer.stream}/${transfer.flow}`, `${transfer.outcome}, ${sizeText(transfer.bytes)}`].map((part) => oneLine(part, 200)).join(" ");
  }
  if (entry) {
    return [at(entry.date), entry.by, entry.title].map((part) => oneLine(part, 200)).join(" ");
  }
  if (kind === "run") {
    return BOOK_TEXT.run;
  }
  return found ? "" : REFUSED.test(why ?? "") ? oneLine(why ?? "", 200) : BOOK_TEXT.gone(oneLine(why ?? "", 200));
}
