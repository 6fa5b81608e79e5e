/** The logbook's API: its types and requests (`spec/book-api.md`). */
import { read, send } from "../lib/api";

export type Right = "read" | "write" | "edit-own" | "edit-any" | "admin";
export type Encoding = "markdown" | "plain" | "elcode" | "html";

export interface AttributeDef {
  name: string;
  kind: "text" | "options" | "multiple" | "radio" | "boolean" | "numeric" | "date" | "datetime" | "userlist" | "userlists" | "tags";
  options?: string[];
  required?: boolean;
  several?: boolean;
  extendable?: boolean;
  multi_line?: boolean;
  locked?: boolean;
  computed?: string;
  comment?: string;
}
export interface Book {
  name: string;
  comment?: string;
  attributes: AttributeDef[];
  entries: number;
  may: Right[];
}
export interface EntryAttribute {
  name: string;
  values: string[];
}
export interface Attachment {
  name: string;
  size: number;
  sha?: string | null;
}
export interface Link {
  kind: string;
  target: string;
}
export interface Lock {
  by: string;
  host: string;
  since: string;
}
export interface Content {
  attributes: EntryAttribute[];
  text: string;
  encoding?: Encoding;
  attachments?: Attachment[];
  links?: Link[];
}
export interface Entry extends Content {
  book: string;
  id: number;
  date: string;
  by: string;
  changed: string;
  revision: number;
  thread: number;
  parent?: number | null;
  html?: string | null;
  locked?: Lock | null;
  may_edit?: boolean;
}
export interface Hit {
  entry: Entry;
  snippet: { text: string; marks: { start: number; end: number }[] };
}
export interface SearchPage {
  hits: Hit[];
  next?: string | null;
  count?: { exactly: number } | { atleast: number } | null;
  stopped?: string | null;
}
export interface Revision {
  number: number;
  at: string;
  by: string;
  what: string;
  note?: string | null;
  content: Content;
}
export interface ResolvedLink {
  kind: string;
  target: string;
  found: boolean;
  why?: string | null;
  record?: { time: string; level: string; message: string } | null;
  event?: { time: string; text: string; unit?: string } | null;
  transfer?: { began: string; outcome: string; bytes: number } | null;
}
export interface Draft extends Content {
  number?: string;
  book: string;
  saved: string;
  edits?: number | null;
  parent?: number | null;
}
/** The parts of an entry that a person writes; files have been uploaded, or belong to the entry. */
export interface Written {
  attributes: EntryAttribute[];
  text: string;
  encoding: Encoding;
  attachments: { name: string; sha?: string | null }[];
  links: string[];
}

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
export const search = (q: string, book: string, after: string | undefined, signal?: AbortSignal): Promise<SearchPage> =>
  read("search", { q, book: book || undefined, after, limit: "50" }, signal);

export const post = (book: string, written: Written, parent: number | undefined): Promise<{ id: number }> =>
  send("POST", of(book, "/entries"), { ...written, ...(parent === undefined ? {} : { parent }) });
export const change = (book: string, id: number, written: Written, revision: number): Promise<{ id: number }> => send("PUT", at(book, id), written, tag(revision));
export const remove = (book: string, id: number): Promise<unknown> => send("DELETE", at(book, id));
export const upload = (file: File): Promise<{ sha: string; size: number }> => send("POST", "uploads", file);
export const lock = (book: string, id: number): Promise<Lock> => send("PUT", at(book, id, "/lock"), { host: "console" });
export const unlock = (book: string, id: number): Promise<void> => send("DELETE", at(book, id, "/lock"));

export const drafts = (): Promise<Draft[]> => read("drafts");
export const dropDraft = (number: string): Promise<void> => send("DELETE", `drafts/${number}`);
export async function saveDraft(number: string | undefined, draft: object): Promise<string> {
  const saved = await send<{ number: string }>(number === undefined ? "POST" : "PUT", number === undefined ? "drafts" : `drafts/${number}`, draft);
  return saved.number;
}

/** The address of a file of an entry, below the API. */
export const fileAt = (book: string, id: number, nth: number, rest = "?inline=true"): string => `api/v1/${at(book, id, `/attachments/${nth}${rest}`)}`;
