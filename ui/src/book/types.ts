/** The types of the logbook's API (`spec/book-api.md`). */
import type { Replace, Schemas } from "../lib/schemas";

export type Right = "read" | "write" | "edit-own" | "edit-any" | "admin";
export type Encoding = "markdown" | "plain" | "elcode" | "html";

export type AttributeDef = Schemas["AttributeDef"];
/** An attribute in a form, under the conditions that the values set. */
export type FormField = Schemas["FormField"];
export type Form = Schemas["Form"];
/** Purpose of an editor: a change of an entry, a reply, or a new entry. */
export interface Purpose {
  edits?: number;
  parent?: number;
}
export type Book = Schemas["BookInfo"];
export type EntryAttribute = Schemas["EntryAttribute"];
/** A file; one that was not posted yet has no time. */
export type Attachment = Replace<Schemas["Attachment"], { added?: string }>;
export type Link = Schemas["Link"];
export type Lock = Schemas["Lock"];
export interface Content {
  attributes: EntryAttribute[];
  text: string;
  encoding?: Encoding;
  attachments?: Attachment[];
  links?: Link[];
}
/** An entry; in a list nothing says whether the caller may change it. */
export type Entry = Replace<Schemas["ShownEntry"], { may_edit?: boolean }>;
export type Hit = Schemas["Hit"];
export type SearchPage = Schemas["SearchPage"];
export type Revision = Schemas["Revision"];
export type ResolvedLink = Schemas["ResolvedLink"];
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
