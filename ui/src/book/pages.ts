/** A long list in pages, of which only those near the sight are held. */
import type { Hit, SearchPage } from "./types";

/** Entries of a page. */
export const PAGE = 50;
/** Pages that are held. */
const MOST = 12;
/** Cursors that are held; a page without one is found by its place, which costs more. */
const CURSORS = 1000;
/** Entries up to which they are counted at first, and afterwards while the first ones are shown. */
const [FEW, MANY] = [1000, 200_000];

/** The place of a page, and the number up to which entries are counted. */
export interface PagePart {
  skip: number;
  after?: string;
  count?: number;
}
type Ask = (part: PagePart, signal: AbortSignal) => Promise<SearchPage>;

export class EntryPages {
  /** Entries that the list has, as far as they are known. */
  total = 0;
  isExact = false;
  isStopped = false;
  /** True if an answer has come. */
  isThere = false;
  private pages = new Map<number, Hit[]>();
  private cursors = new Map<number, string>();
  private asking = new Map<number, AbortController>();
  private refreshing: AbortController | undefined;
  private sight: [number, number] = [0, 0];

  constructor(
    private readonly ask: Ask,
    private readonly changed: () => void,
    private readonly failed: (problem: unknown) => void,
  ) {}

  at(index: number): Hit | undefined {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** The entries that are held. */
  held(): Hit[] {
    return [...this.pages.values()].flat();
  }

  /** Loads the pages of these rows, and ends the requests for others. */
  see(first: number, last: number): void {
    this.sight = [Math.floor(Math.max(0, first) / PAGE), Math.floor(Math.max(0, last) / PAGE)];
    for (const [page, asking] of this.asking) {
      if (page < this.sight[0] || page > this.sight[1]) {
        asking.abort();
        this.asking.delete(page);
      }
    }
    for (let page = this.sight[0]; page <= this.sight[1]; page++) {
      if (this.pages.has(page)) {
        this.touch(page);
      } else if (!this.asking.has(page) && (page === 0 || page * PAGE < this.total)) {
        const mine = new AbortController();
        this.asking.set(page, mine);
        void this.load(page, mine.signal).finally(() => this.asking.get(page) === mine && this.asking.delete(page));
      }
    }
  }

  /** Reads the pages in sight again, and then shows them. The others are read when they come into sight. */
  async refresh(): Promise<void> {
    this.end();
    const mine = (this.refreshing = new AbortController());
    const fresh = new EntryPages(this.ask, () => undefined, this.failed);
    const [from, to] = (fresh.sight = this.sight);
    // The first page has the count, and perhaps the cursor of the next.
    for (const page of new Set([0, ...Array.from({ length: to - from + 1 }, (_, nth) => from + nth)])) {
      if ((page === 0 || page * PAGE < fresh.total) && !(await fresh.load(page, mine.signal))) {
        return;
      }
    }
    this.end();
    [this.pages, this.cursors] = [fresh.pages, fresh.cursors];
    [this.total, this.isExact, this.isStopped, this.isThere] = [fresh.total, fresh.isExact, fresh.isStopped, true];
    this.changed();
    this.see(this.sight[0] * PAGE, this.sight[1] * PAGE);
    if (!this.isExact && !this.isStopped) {
      await this.countAll();
    }
  }

  /** Ends all requests. */
  end(): void {
    this.refreshing?.abort();
    this.asking.forEach((asking) => asking.abort());
    this.asking.clear();
  }

  private touch(page: number): void {
    const held = this.pages.get(page);
    if (held) {
      this.pages.delete(page);
      this.pages.set(page, held);
    }
  }

  /** Loads a page. Returns false if that failed, or nobody wants it now. */
  private async load(page: number, signal: AbortSignal): Promise<boolean> {
    const after = this.cursors.get(page);
    try {
      const found = await this.ask({ skip: page * PAGE, ...(after === undefined ? {} : { after }), count: page === 0 ? FEW : 0 }, signal);
      if (signal.aborted) {
        return false;
      }
      this.take(page, found);
      this.changed();
      return true;
    } catch (problem) {
      if (!signal.aborted) {
        this.failed(problem);
      }
      return false;
    }
  }

  private take(page: number, { hits, next, count, stopped }: SearchPage): void {
    this.isThere = true;
    this.pages.set(page, hits);
    const known = page * PAGE + hits.length;
    if (page === 0) {
      this.isStopped = Boolean(stopped);
      this.isExact = !next || (count !== undefined && count !== null && "exactly" in count);
      this.total = !next ? known : count ? ("exactly" in count ? count.exactly : count.atleast) : known;
    } else if (!next) {
      // The end: an entry was deleted, or the number was an estimate.
      [this.total, this.isExact] = [known, true];
    }
    this.total = Math.max(this.total, known + (next && !this.isExact ? 1 : 0));
    if (next && this.cursors.size < CURSORS) {
      this.cursors.set(page + 1, next);
    }
    for (const old of this.pages.keys()) {
      if (this.pages.size <= MOST) {
        break;
      }
      if (old < this.sight[0] || old > this.sight[1]) {
        this.pages.delete(old);
      }
    }
  }

  /** Counts on while the first entries are shown. */
  private async countAll(): Promise<void> {
    const mine = (this.refreshing = new AbortController());
    try {
      const { count } = await this.ask({ skip: 0, count: MANY }, mine.signal);
      if (!mine.signal.aborted && count && !this.isExact) {
        this.isExact = "exactly" in count;
        this.total = "exactly" in count ? count.exactly : Math.max(this.total, count.atleast);
        this.changed();
      }
    } catch {
      // The list grows as somebody scrolls.
    }
  }
}
