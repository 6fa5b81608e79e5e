/** The traces of the chosen attributes: the history of the time in sight, joined with live readings. */
import type { AttributeInfo, EventReading } from "tampu";

import { Problem } from "../lib/api";
import { oneLine } from "../log/display";
import { inTurn, loadHistory } from "./ask";
import { keyOf, labelOf, type Choice } from "./choice";
import type { Range } from "./grid";
import type { Listener } from "./live.svelte";
import { ATTRIBUTE_TEXT as TEXT } from "./text";
import { Trace, type MarkKind } from "./trace";
import { numberOf } from "./values";

/** Points of a history: as many as a wide plot has pixels. */
const POINTS = 1200;

interface Kept {
  choice: Choice;
  /** The trace in sight: a history with live readings. */
  shown: Trace;
  /** Live readings since the attribute was chosen. */
  live: Trace;
}

export class Trends implements Listener {
  loading = $state(false);
  /** Words about histories that are missing, or not whole. */
  notes = $state.raw<string[]>([]);
  /** Counts other sets of traces: the same object draws with the present ones. */
  set = $state(0);
  private kept = new Map<string, Kept>();
  private byName = new Map<string, Kept[]>();
  private task: AbortController | undefined;

  /** Chooses the attributes. Traces of those that stay go on. */
  choose(choices: readonly Choice[]): void {
    const next = new Map<string, Kept>();
    for (const choice of choices) {
      next.set(keyOf(choice), this.kept.get(keyOf(choice)) ?? { choice, shown: new Trace(), live: new Trace() });
    }
    this.kept = next;
    this.byName = new Map();
    for (const kept of next.values()) {
      const name = kept.choice.name.toLowerCase();
      this.byName.set(name, [...(this.byName.get(name) ?? []), kept]);
    }
    this.set++;
  }

  trace(choice: Choice): Trace | undefined {
    return this.kept.get(keyOf(choice))?.shown;
  }

  /** Loads the history of a range for all traces. An earlier load ends. */
  async load(range: Range): Promise<void> {
    this.stop();
    const task = new AbortController();
    this.task = task;
    const notes: string[] = [];
    this.loading = this.kept.size > 0;
    let isRefused = false;
    await inTurn([...this.kept.values()], async (kept) => {
      if (isRefused || task.signal.aborted) {
        return;
      }
      const label = oneLine(labelOf(kept.choice), 200);
      try {
        const history = await loadHistory(kept.choice, range.from, range.to, POINTS, task.signal);
        if (task.signal.aborted) {
          return;
        }
        const fresh = new Trace();
        fresh.points = [...kept.live.points];
        fresh.intervals = [...kept.live.intervals];
        fresh.marks = [...kept.live.marks];
        fresh.join(history);
        fresh.version = kept.shown.version + 1;
        kept.shown = fresh;
        this.set++;
        if (history.tooMany) {
          notes.push(TEXT.tooMany(label));
        } else if (!history.complete) {
          notes.push(TEXT.incomplete(label));
        }
      } catch (why) {
        if (task.signal.aborted) {
          return;
        }
        if (why instanceof Problem && (why.status === 403 || why.status === 401)) {
          isRefused = true;
          notes.push(TEXT.historyRefused);
        } else {
          notes.push(TEXT.historyFailed(label, oneLine(why instanceof Error ? why.message : String(why), 300)));
        }
      }
    });
    if (!task.signal.aborted) {
      this.loading = false;
      this.notes = [...new Set(notes)];
    }
  }

  stop(): void {
    this.task?.abort();
  }

  event(name: string, info: AttributeInfo, reading: EventReading): void {
    for (const { choice, shown, live } of this.byName.get(name.toLowerCase()) ?? []) {
      const { value, time, quality, number } = reading;
      const point = { time: Number(time / 1_000_000n) + Number(time % 1_000_000n) / 1e6, value: value ? numberOf(value.elements, choice.element ?? 0) : NaN, quality, life: info.incarnation, number };
      live.add(point);
      shown.add(point);
    }
  }

  mark(name: string, kind: MarkKind, note: string): void {
    for (const { shown, live } of this.byName.get(name.toLowerCase()) ?? []) {
      // A gap stands behind the reading before it; a message about a source came now.
      const time = kind === "gap" ? live.points.at(-1)?.time : Date.now();
      if (time === undefined) {
        continue;
      }
      live.mark({ time, kind, note });
      shown.mark({ time, kind, note });
    }
  }
}
