/** Addresses to which items of the timeline lead. */
import { address, BASE, VIEWS } from "../lib/address.svelte";
import { timeText, type Nanos } from "../lib/time";
import { filterText, parseFilter } from "../log/filter";

/** The filter of the log view for the records of a range; without an end they go on live. */
export function recordsOf(filter: string, from: Nanos, to?: Nanos): string {
  const end = to === undefined ? {} : { until: timeText(to, "utc") };
  return filterText({ ...parseFilter(filter), since: timeText(from, "utc"), ...end });
}

export function logAt(records: string, at: Nanos): string {
  return address.of("log", { q: records, at: timeText(at, "utc") });
}

export function recordAt(records: string, id: string, at: string): string {
  return address.of("log", { q: records, record: `${id}@${at}` });
}

/** Time that the view of attributes shows before and behind a moment. */
const AROUND = 300_000_000_000n;

export function attributeAt(name: string, at: Nanos | undefined): string {
  const range = at === undefined ? {} : { since: timeText(at - AROUND, "utc", 3), until: timeText(at + AROUND, "utc", 3) };
  return address.of("attributes", { a: name, show: name, tree: "no", ...range });
}

export function transferOf(id: string): string {
  return address.of("bulk", { transfer: id });
}

export function entryOf(book: string, id: number): string {
  return address.of("book", { book, entry: String(id) });
}

/** The page of a new entry with this text, and links to these targets. */
export function newEntry(book: string, text: string, links: readonly string[]): string {
  return address.of("book", { book, entry: "new", text, link: links.join("\n") });
}

/** Goes to an address: within this page if it is one of its views. */
export function follow(href: string): void {
  const url = new URL(href);
  const view = VIEWS.find((view) => new URL(view, BASE).pathname === url.pathname && url.origin === BASE.origin);
  if (view) {
    address.go(view, Object.fromEntries(url.searchParams));
  } else {
    location.assign(href);
  }
}
