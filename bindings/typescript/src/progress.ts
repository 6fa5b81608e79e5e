/**
 * Numbers of the events that a subscription got. A hub that began anew does not know them. By them the first event after
 * that says which events are missing (`spec/wire/gateway.md`).
 */

/** Missing events: none, an unknown number, or the numbers from the first up to the one behind the last. */
export type Missed = null | "unknown" | [string, string];

/** Progress of an attribute in one life of its source. */
export class LifeProgress {
  /** Number of the last event; undefined before the first one. */
  last: bigint | undefined;
  /** True from the hub's new beginning to the next event. */
  isBefore = false;
  hasEnded = false;

  constructor(private readonly lives: Map<string, LifeProgress>) {}

  /** Notes an event. If it is the first one after the hub began anew, returns the events missing before it. */
  event(number: bigint): { missed: Missed } | undefined {
    const { last, isBefore } = this;
    this.last = last === undefined || number > last ? number : last;
    if (last === undefined) {
      const all = [...this.lives];
      const follows = all.some(([, life]) => life.isBefore);
      all.filter(([, life]) => life.hasEnded).forEach(([incarnation]) => this.lives.delete(incarnation));
      return follows ? { missed: "unknown" } : undefined;
    }
    if (!isBefore) {
      return undefined;
    }
    this.isBefore = false;
    return { missed: number > last + 1n ? [(last + 1n).toString(), number.toString()] : null };
  }

  /** Notes that the hub has told of a gap, which ends before this number. */
  gap(end: bigint): void {
    if (this.last !== undefined && end > this.last + 1n) {
      this.last = end - 1n;
    }
  }
}

/** Progress of all attributes of a subscription. */
export class Progress {
  private readonly attributes = new Map<string, Map<string, LifeProgress>>();

  /** Returns the progress in a life of an attribute. */
  of(attribute: string, incarnation: string): LifeProgress {
    const name = attribute.toLowerCase();
    const lives = this.attributes.get(name) ?? new Map<string, LifeProgress>();
    this.attributes.set(name, lives);
    const life = lives.get(incarnation) ?? new LifeProgress(lives);
    life.hasEnded = false;
    lives.set(incarnation, life);
    return life;
  }

  /** The hub began anew. */
  renewed(): void {
    for (const lives of this.attributes.values()) {
      const has_gone_on = [...lives.values()].some((life) => life.last !== undefined && !life.isBefore);
      for (const [incarnation, life] of lives) {
        if (life.last === undefined || (has_gone_on && life.isBefore)) {
          lives.delete(incarnation);
        }
        life.isBefore = true;
      }
    }
  }
}
