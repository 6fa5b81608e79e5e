/** Entries that this browser has shown. The marks are its own; the hub does not know them. */
import type { Entry } from "./api";
import { isUnread, withAllRead, withRead, type Marks } from "./seen-marks";

const NAME = "tampu.book.seen";

/** The present. The times of entries may be whole seconds. */
const present = (): string => `${new Date(Date.now() - 1000).toISOString().slice(0, 19)}Z`;

function kept(): Marks {
  try {
    const found = JSON.parse(localStorage.getItem(NAME) ?? "null") as Marks | null;
    if (found) {
      return found;
    }
  } catch {
    // A browser may keep nothing for this page, or something else.
  }
  const first = { since: present(), read: {} };
  keep(first);
  return first;
}

function keep(marks: Marks): void {
  try {
    localStorage.setItem(NAME, JSON.stringify(marks));
  } catch {
    // The marks then end with the page.
  }
}

class Seen {
  private kept = $state.raw<Marks>(kept());

  isUnread(entry: Entry): boolean {
    return isUnread(this.kept, entry);
  }

  /** Marks these entries. */
  all(entries: readonly Entry[]): void {
    this.set(withRead(this.kept, entries));
  }

  /** Marks all entries of a logbook, or of all for an empty name; `shown` are those in sight, which may be newer than the clock here. */
  whole(book: string, shown: readonly Entry[]): void {
    this.set(withRead(withAllRead(this.kept, book, present()), shown));
  }

  private set(marks: Marks): void {
    this.kept = marks;
    keep(marks);
  }
}

export const seen = new Seen();
