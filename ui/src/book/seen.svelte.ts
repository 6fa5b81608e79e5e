/** Entries that this browser has shown. The marks are its own; the hub does not know them. */
import type { Entry } from "./api";

const NAME = "tampu.book.seen";
/** Entries that are remembered one by one. */
const MOST = 2000;

interface Kept {
  /** Entries that were changed before are read: those of the first visit. */
  since: string;
  read: Record<string, number>;
}

function kept(): Kept {
  try {
    const found = JSON.parse(localStorage.getItem(NAME) ?? "null") as Kept | null;
    if (found) {
      return found;
    }
  } catch {
    // A browser may keep nothing for this page, or something else.
  }
  // The times of entries may be whole seconds.
  const first = { since: `${new Date(Date.now() - 1000).toISOString().slice(0, 19)}Z`, read: {} };
  keep(first);
  return first;
}

function keep(marks: Kept): void {
  try {
    localStorage.setItem(NAME, JSON.stringify(marks));
  } catch {
    // The marks then end with the page.
  }
}

class Seen {
  private kept = $state.raw<Kept>(kept());

  isUnread({ book, id, revision, changed }: Entry): boolean {
    return changed > this.kept.since && (this.kept.read[`${book}/${id}`] ?? -1) < revision;
  }

  all(entries: readonly Entry[]): void {
    const read = { ...this.kept.read };
    for (const { book, id, revision } of entries) {
      read[`${book}/${id}`] = Math.max(revision, read[`${book}/${id}`] ?? -1);
    }
    const list = Object.entries(read);
    this.kept = { since: this.kept.since, read: Object.fromEntries(list.slice(-MOST)) };
    keep(this.kept);
  }
}

export const seen = new Seen();
