/** Marks of the entries that somebody has seen, and their rules. */

/** The part of an entry that its mark needs. */
export interface Marked {
  book: string;
  id: number;
  revision: number;
  changed: string;
}

export interface Marks {
  /** Entries that were changed before are read: those of the first visit. */
  since: string;
  /** The same for a logbook. */
  books?: Record<string, string>;
  /** Revisions of single entries. */
  read: Record<string, number>;
}

/** Entries that are remembered one by one. */
export const MOST = 20_000;

const nameOf = ({ book, id }: Marked): string => `${book}/${id}`;

export function isUnread({ since, books, read }: Marks, entry: Marked): boolean {
  return entry.changed > since && entry.changed > (books?.[entry.book] ?? "") && (read[nameOf(entry)] ?? -1) < entry.revision;
}

/** Marks single entries. */
export function withRead(marks: Marks, entries: readonly Marked[]): Marks {
  const read = { ...marks.read };
  for (const entry of entries) {
    const name = nameOf(entry);
    const revision = Math.max(entry.revision, read[name] ?? -1);
    // The mark that was set last stays longest.
    delete read[name];
    read[name] = revision;
  }
  return { ...marks, read: Object.fromEntries(Object.entries(read).slice(-MOST)) };
}

/** Marks all entries of a logbook, or of all for an empty name, until a time: one mark stands for all that it makes needless. */
export function withAllRead(marks: Marks, book: string, until: string): Marks {
  if (book === "") {
    return { since: until > marks.since ? until : marks.since, read: {} };
  }
  const others = Object.entries(marks.read).filter(([name]) => name.slice(0, name.lastIndexOf("/")) !== book);
  const before = marks.books?.[book] ?? "";
  return { ...marks, books: { ...marks.books, [book]: until > before ? until : before }, read: Object.fromEntries(others) };
}
