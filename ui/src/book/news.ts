/** News of entries for the views of this tab, from the one stream that all tabs share. */
import { BASE } from "../lib/address.svelte";
import { SharedStream, type Said } from "./shared-stream";
import type { Entry } from "./types";

/** An entry that is new, changed or gone. */
export interface EntryNews {
  book: string;
  id: number;
  /** The thread; not known of an entry that is gone. */
  thread?: number;
}

/** Told of an entry, or without one of news that were missed: whatever is shown is to be read again. */
type Listener = (news: EntryNews | undefined) => void;

/** Time in which the next view may want news, too, ms. */
const REST_MS = 1000;

const listeners = new Set<Listener>();
let shared: SharedStream<EntryNews> | undefined;

function open(after: string | undefined, said: (said: Said<EntryNews>) => void): EventSource {
  const url = new URL("api/v1/search/stream", BASE);
  url.searchParams.set("q", "");
  if (after !== undefined) {
    url.searchParams.set("after", after);
  }
  const stream = new EventSource(url);
  stream.addEventListener("match", ({ data, lastEventId }: MessageEvent<string>) => {
    const { book, id, thread } = (JSON.parse(data) as { entry: Entry }).entry;
    said({ news: { book, id, thread }, number: lastEventId });
  });
  stream.addEventListener("gone", ({ data, lastEventId }: MessageEvent<string>) => {
    const { book, id } = JSON.parse(data) as EntryNews;
    said({ news: { book, id }, number: lastEventId });
  });
  stream.addEventListener("reset", () => said("missed"));
  stream.onopen = () => after === undefined && said("missed");
  // The browser mends a stream that breaks, but not one that the hub refuses.
  stream.onerror = () => stream.readyState === EventSource.CLOSED && said("refused");
  return stream;
}

function make(): SharedStream<EntryNews> {
  const made = new SharedStream<EntryNews>(new BroadcastChannel(`tampu.book ${BASE.pathname}`), open, (said) => {
    const news = typeof said === "object" ? said.news : undefined;
    listeners.forEach((listener) => listener(news));
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") {
      made.end();
    } else if (listeners.size > 0) {
      made.begin();
      listeners.forEach((listener) => listener(undefined));
    }
  });
  // A page that is left, or kept for a step back, holds nothing.
  addEventListener("pagehide", () => made.end());
  addEventListener("pageshow", ({ persisted }) => persisted && listeners.size > 0 && made.begin());
  return made;
}

/** Has a function told of all entries that change while the tab is in sight, and once more when it comes into sight. */
export function onNews(listener: Listener): () => void {
  shared ??= make();
  listeners.add(listener);
  if (document.visibilityState !== "hidden") {
    shared.begin();
  }
  return () => {
    listeners.delete(listener);
    setTimeout(() => listeners.size === 0 && shared?.end(), REST_MS);
  };
}

/** Opens the stream anew for a person who has logged in. */
export function newsOfOther(): void {
  shared?.again();
}
