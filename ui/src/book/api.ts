/** Requests to the logbook's API (`spec/book-api.md`). */
import { read, send } from "../lib/api";
import { PAGE, type PagePart } from "./pages";
import type { Book, Content, Draft, Encoding, Entry, EntryAttribute, Form, Lock, Purpose, ResolvedLink, Revision, SearchPage, Written } from "./types";

export type * from "./types";

const of = (book: string, rest = ""): string => `books/${encodeURIComponent(book)}${rest}`;
const at = (book: string, id: number, rest = ""): string => of(book, `/entries/${id}${rest}`);
/** An entry's revision as its ETag. */
const tag = (revision: number): string => `"${revision}"`;

export const books = (): Promise<Book[]> => read("books");
export const entry = (book: string, id: number): Promise<Entry> => read(at(book, id), { html: "true" });
export const thread = (book: string, id: number): Promise<{ entries: Entry[] }> => read(at(book, id, "/thread"), { limit: "1000" });
export const history = (book: string, id: number): Promise<{ revisions: Revision[] }> => read(at(book, id, "/history"), { limit: "1000" });
export const resolved = (book: string, id: number): Promise<ResolvedLink[]> => read(at(book, id, "/links/resolved"));
export const templates = (book: string): Promise<{ name: string }[]> => read(of(book, "/templates"));
export const template = (book: string, name: string): Promise<Content> => read(of(book, `/templates/${encodeURIComponent(name)}`), { filled: "true" });
/** Values of an attribute in earlier entries that have a word with this beginning, the newest first. */
export async function proposals(book: string, name: string, begin: string, signal: AbortSignal): Promise<string[]> {
  const word = begin.match(/[\p{L}\p{N}]+$/u)?.[0];
  if (!word || name.includes('"')) {
    return [];
  }
  const { hits } = await read<SearchPage>("search", { q: `"${name}":${word}*`, book, limit: "50", count: "0" }, signal);
  const values = hits.flatMap(({ entry: { attributes } }) => attributes.find((one) => one.name.toLowerCase() === name.toLowerCase())?.values ?? []);
  return [...new Set(values)].filter((value) => value.toLowerCase().includes(word.toLowerCase())).slice(0, 12);
}
export const search = (q: string, book: string, part: PagePart, signal: AbortSignal): Promise<SearchPage> => {
  const { after, skip, count } = part;
  const from = after === undefined ? { skip: String(skip) } : { after };
  return read("search", { q, book: book || undefined, limit: String(PAGE), ...from, ...(count === undefined ? {} : { count: String(count) }) }, signal);
};

export const post = (book: string, written: Written, parent: number | undefined): Promise<{ id: number }> =>
  send("POST", of(book, "/entries"), { ...written, ...(parent === undefined ? {} : { parent }) });
export const change = (book: string, id: number, written: Written, revision: number): Promise<{ id: number }> => send("PUT", at(book, id), written, tag(revision));
export const form = (book: string, purpose: Purpose, attributes?: EntryAttribute[]): Promise<Form> =>
  send("POST", of(book, "/form"), { ...purpose, ...(attributes ? { attributes } : {}) });
export const preview = (book: string, purpose: Purpose, encoding: Encoding, text: string, signal: AbortSignal): Promise<{ html: string }> =>
  send("POST", of(book, "/preview"), { ...purpose, encoding, text }, undefined, signal);
export const remove = (book: string, id: number): Promise<unknown> => send("DELETE", at(book, id));
export const upload = (file: File): Promise<{ sha: string; size: number }> => send("POST", "uploads", file);
export const lock = (book: string, id: number): Promise<Lock> => send("PUT", at(book, id, "/lock"), { host: "console" });
export const unlock = (book: string, id: number): Promise<void> => send("DELETE", at(book, id, "/lock"));

export const drafts = (): Promise<Draft[]> => read("drafts");
export const dropDraft = (number: string): Promise<void> => send("DELETE", `drafts/${number}`);
export const saveDraft = (number: string | undefined, draft: object): Promise<{ number: string; missing?: string[] }> =>
  send(number === undefined ? "POST" : "PUT", number === undefined ? "drafts" : `drafts/${number}`, draft);

/** The address of a file of an entry, below the API. */
export const fileAt = (book: string, id: number, nth: number, rest = "?inline=true"): string => `api/v1/${at(book, id, `/attachments/${nth}${rest}`)}`;
