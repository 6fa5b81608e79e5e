/** Records that came from the archive. A hub that began anew brings some of them again. */
import type { LogRecord } from "./log.js";
import { timeOf, timeText, type Nanos } from "./time.js";

/** Records that are remembered: the newest of them. */
const REMEMBERED = 100_000;
/** A record may come to the archive so much later than younger ones, ns: as long as the collector takes to commit it. */
const LATE = 60_000_000_000n;

function idOf({ id, time, message }: LogRecord): string {
  return id ? `${id.incarnation} ${id.ring} ${id.number}` : `${time} ${message}`;
}

export class ArchivedRecords {
  /** Number of times that each record came; one without an id has others that look like it. */
  private readonly came = new Map<string, number>();
  /** Of these, how often each may come again from the hub that began anew. */
  private again = new Map<string, number>();
  private newest: Nanos | undefined;

  constructor(private readonly since: string) {}

  /** The hub began anew. Returns the time from which on the archive's records are missing. */
  renewed(): string {
    this.again = new Map(this.came);
    if (this.newest === undefined) {
      return this.since;
    }
    const from = this.newest - LATE;
    return from > this.begin() ? timeText(from) : this.since;
  }

  /** Hubs read more forms of a time than this library. Of such a one the later records are asked for again, and left out. */
  private begin(): Nanos {
    try {
      return timeOf(this.since);
    } catch {
      return this.newest ?? 0n;
    }
  }

  /** Notes a record; returns false if it came from the hub before. */
  isNew(record: LogRecord, isArchived: boolean): boolean {
    if (!isArchived && this.again.size === 0) {
      return true;
    }
    const id = idOf(record);
    const left = this.again.get(id) ?? 0;
    if (left > 0) {
      left === 1 ? this.again.delete(id) : this.again.set(id, left - 1);
      return false;
    }
    if (isArchived) {
      this.newest = this.newest === undefined || record.time > this.newest ? record.time : this.newest;
      this.came.set(id, (this.came.get(id) ?? 0) + 1);
      if (this.came.size > REMEMBERED) {
        this.came.delete(this.came.keys().next().value as string);
      }
    }
    return true;
  }
}
