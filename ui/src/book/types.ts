/** The types of the logbook's API (`spec/book-api.md`). */

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
/** An attribute in a form, under the conditions that the values set. */
export interface FormField extends AttributeDef {
  shown: boolean;
  fixed: boolean;
  decides: boolean;
  tooltip?: string;
}
export interface Form {
  fields: FormField[];
  encodings: Encoding[];
  text_fixed: boolean;
  first?: { attributes: EntryAttribute[]; encoding: Encoding; text: string };
}
/** Purpose of an editor: a change of an entry, a reply, or a new entry. */
export interface Purpose {
  edits?: number;
  parent?: number;
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
  /** The name under which ELOG has it. */
  elog?: string | null;
  added?: string;
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
  /** Names of files that the hub no longer has. */
  missing?: string[];
}
/** The parts of an entry that a person writes; files have been uploaded, or belong to the entry. */
export interface Written {
  attributes: EntryAttribute[];
  text: string;
  encoding: Encoding;
  attachments: { name: string; sha?: string | null }[];
  links: string[];
}
