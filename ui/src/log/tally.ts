/**
 * Counts of live records by second and level. With them a histogram stays fresh without a count of the archive every
 * few seconds, which would cost the collector more than the log itself as soon as many people look.
 */
import type { Nanos } from "../lib/time";
import type { LevelName } from "./filter";

export const SECOND = 1_000_000_000n;

export interface Bar {
  from: Nanos;
  counts: Partial<Record<LevelName, number>>;
  total: number;
}

export interface Histogram {
  from: Nanos;
  to: Nanos;
  every: Nanos;
  bars: Bar[];
  total: number;
  /** Most records of a bar. */
  highest: number;
  complete: boolean;
}

export class Tally {
  /** The second from which on every live record is counted; undefined while none is taken. */
  from: number | undefined;
  /** The earliest second before `from` of which a record came. */
  late: number | undefined;
  private readonly seconds = new Map<number, Partial<Record<LevelName, number>>>();

  /** Counts from this second on, also what was counted before. */
  begin(from: number): void {
    [...this.seconds.keys()].filter((second) => second >= from).forEach((second) => this.seconds.delete(second));
    this.from = this.seconds.size > 0 && this.from !== undefined ? Math.min(this.from, from) : from;
  }

  end(): void {
    this.seconds.clear();
    this.from = this.late = undefined;
  }

  add(time: Nanos, level: LevelName): void {
    const second = Number(time / SECOND);
    if (this.from !== undefined && second < this.from) {
      this.late = Math.min(this.late ?? second, second);
    } else if (this.from !== undefined) {
      const counts = this.seconds.get(second) ?? {};
      counts[level] = (counts[level] ?? 0) + 1;
      this.seconds.set(second, counts);
    }
  }

  /** Forgets seconds that a count of the archive has. */
  forget(before: number): void {
    [...this.seconds.keys()].filter((second) => second < before).forEach((second) => this.seconds.delete(second));
    if (this.from !== undefined) {
      this.from = Math.max(this.from, before);
    }
  }

  /** Counts of the seconds from this one on. */
  since(second: number): [number, Partial<Record<LevelName, number>>][] {
    return [...this.seconds].filter(([at]) => at >= second);
  }
}

/** The histogram with the live records from `cut` on, until `now`; without the bars before `since`. */
export function withLive(base: Histogram, tally: Tally, cut: number, now: Nanos, since: Nanos | undefined): Histogram {
  const bars = base.bars.map((bar) => ({ ...bar, counts: { ...bar.counts } }));
  const ends = (): Nanos => base.from + BigInt(bars.length) * base.every;
  while (ends() < now) {
    bars.push({ from: ends(), counts: {}, total: 0 });
  }
  let fresh = 0;
  for (const [second, counts] of tally.since(cut)) {
    const bar = bars[Number((BigInt(second) * SECOND - base.from) / base.every)];
    for (const [level, count] of Object.entries(counts) as [LevelName, number][]) {
      if (bar) {
        bar.counts[level] = (bar.counts[level] ?? 0) + count;
        bar.total += count;
        fresh += count;
      }
    }
  }
  const over = since === undefined ? 0 : bars.filter((bar) => bar.from + base.every <= since).length;
  const gone = bars.slice(0, over).reduce((sum, { total }) => sum + total, 0);
  const shown = bars.slice(over);
  const from = base.from + BigInt(over) * base.every;
  return { ...base, from, to: ends(), bars: shown, total: base.total + fresh - gone, highest: shown.reduce((most, { total }) => Math.max(most, total), 0) };
}
