/** Causes of missing events, found in the facts of servers as `tampu event doctor` does. */
import { timeText, type Zone } from "../lib/time";
import type { Criteria } from "./directory";

export interface Subscriber {
  source: string;
  state: string;
  behind: number;
  lost: number;
  at: number | null;
}

export interface Facts {
  name: string;
  source: string;
  incarnation: string;
  polled_ms: number | null;
  change_by_value: boolean;
  archive_by_value: boolean;
  criteria: Criteria;
  pushes: number;
  pushed_at: number;
  held_back: number;
  number: number;
  failing: string | null;
  taken_by: string | null;
  redundant: boolean;
  subscribers: Subscriber[];
  clock: string;
  now: number;
}

/** Clocks that differ by more make times useless, ms. */
const SKEW_MS = 1000;

const timeOf = (ns: number, zone: Zone) => timeText(BigInt(Math.round(ns)), zone, 3);

/** The causes that the facts of one server show. The question was asked and answered at these times of this browser, ms. */
export function causesOf(facts: Facts, zone: Zone, asked: number, answered: number): string[] {
  const causes: string[] = [];
  if (facts.taken_by !== null) {
    causes.push(`Another process has an attribute of this name: ${facts.taken_by}. The one of ${facts.source} is silent.`);
  }
  if (facts.pushes === 0) {
    causes.push(
      facts.polled_ms === null
        ? "It is not polled, and its server has never pushed it."
        : `It is polled every ${facts.polled_ms} ms, but its server has not read it yet: a poll before it may hang.`,
    );
  } else if (facts.polled_ms !== null && (facts.now - facts.pushed_at) / 1e6 > facts.polled_ms * 3 + 1000) {
    causes.push(`The poll is late: the last reading is of ${timeOf(facts.pushed_at, zone)}.`);
  }
  if (facts.failing !== null) {
    causes.push(`It cannot be read: ${facts.failing}. The same error again is not sent.`);
  }
  if (!facts.change_by_value && (facts.held_back > 0 || facts.pushes === 0)) {
    causes.push(`No threshold is set, so no change of its value is sent: tampu event conf ${facts.name} --abs X`);
  }
  for (const { source, state, behind, lost } of facts.subscribers) {
    if (state === "lagging" || lost > 0) {
      causes.push(`The subscriber ${source} is behind by ${behind} samples, and has lost ${lost}.`);
    }
  }
  const skew = Math.max(facts.now / 1e6 - answered, asked - facts.now / 1e6);
  if (skew > SKEW_MS) {
    causes.push(`The clocks of the server and of this browser differ by ${(skew / 1000).toFixed(1)} s.`);
  }
  return causes;
}

/** A cause that only all answers together show: several processes have the attribute, and do not declare it. */
export function rivals(all: readonly Facts[]): string | undefined {
  return all.length > 1 && !all.every(({ redundant }) => redundant) ? `${all.length} processes have it: ${all.map(({ source }) => source).join(", ")}.` : undefined;
}

/** The subscribers that have samples to read, and have read none since an earlier answer. */
export function standing(earlier: readonly Facts[], later: readonly Facts[]): string[] {
  const name = (facts: Facts, one: Subscriber) => `${facts.incarnation} ${one.source} ${one.at}`;
  const waits = (facts: Facts) => facts.subscribers.filter((one) => one.behind > 0 && one.lost === 0 && one.at !== null && ["live", "catching up"].includes(one.state));
  const before = new Set(earlier.flatMap((facts) => waits(facts).map((one) => name(facts, one))));
  return later.flatMap((facts) =>
    waits(facts)
      .filter((one) => before.has(name(facts, one)))
      .map((one) => `The subscriber ${one.source} is behind by ${one.behind} samples, and has taken none for 2 s: it hangs or is stopped.`),
  );
}
