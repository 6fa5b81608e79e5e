/** Questions about attributes to the API (`spec/book-api.md`). */
import type { Replace, Schemas } from "../lib/schemas";
import { Problem, read } from "../lib/api";
import { timeText } from "../lib/time";
import type { Choice } from "./choice";
import type { Attribute } from "./directory";
import type { Facts } from "./doctor";
import { intervalOf, markOf, nanosOf, pointOf, type AttributeHistory, type Joined, type KeptEvent, type KeptPage } from "./kept";
import type { Interval, Mark } from "./trace";

/** Attributes of a page of the API. */
const PAGE = 5000;

type AttributeList = Replace<Schemas["AttributeList"], { attributes: Attribute[] }>;

/** Loads all attributes, by name; each page is given as soon as it is there. */
export async function loadDirectory(onPage: (all: Attribute[], total: number) => void, signal: AbortSignal): Promise<void> {
  let all: Attribute[] = [];
  let after: string | undefined;
  do {
    const page: AttributeList = await read<AttributeList>("event/attributes", { limit: `${PAGE}`, after }, signal);
    all = all.concat(page.attributes);
    onPage(all, page.total);
    after = page.next ?? undefined;
  } while (after !== undefined);
}

/** Facts of servers about an attribute, which explain present or missing events. */
export function factsOf(name: string, signal: AbortSignal): Promise<Facts[]> {
  return read<Facts[]>("event/doctor", { pattern: name }, signal);
}

/** Pages of single events behind the intervals of a history. */
const MOST_PAGES = 10;

/** Tries of a question to a hub that has no room for it, and the pause before the next, ms. */
const TRIES = 4;
const PAUSE_MS = 400;

async function patient<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (why) {
      if (!(why instanceof Problem) || why.status !== 503 || tries === TRIES || signal.aborted) {
        throw why;
      }
      await new Promise((done) => setTimeout(done, PAUSE_MS * tries));
    }
  }
}

const text = (ms: number) => timeText(nanosOf(ms), "utc");

/**
 * Loads the history of an attribute for a plot: intervals where there are many events, single events at its end, so that
 * live ones join it by their numbers, and the event before the range, whose value holds at its begin.
 */
export async function loadHistory(choice: Choice, from: number, to: number, points: number, signal: AbortSignal): Promise<Joined> {
  const { name, element } = choice;
  const [earlier, history] = await Promise.all([
    patient(() => read<KeptPage>("event/rows", { name, until: text(from), order: "newest", limit: "1" }, signal), signal),
    patient(() => read<AttributeHistory>("event/history", { name, since: text(from), until: text(to), points: `${points}` }, signal), signal),
  ]);
  const rows = [...earlier.rows, ...history.values];
  const marks = history.marks;
  let intervals: Interval[] = [];
  let { complete } = history;
  if (history.decimated) {
    const width = Number(history.every_ns) / 1e6;
    intervals = history.points.map((point) => intervalOf(point, width));
    const last = intervals.pop();
    let after: string | undefined;
    for (let page = 0; last && page < MOST_PAGES; page++) {
      const question = { name, since: text(last.time), until: text(to), order: "oldest", limit: "1000", after };
      const more: KeptPage = await patient(() => read<KeptPage>("event/rows", question, signal), signal);
      rows.push(...more.rows);
      after = more.next ?? undefined;
      if (after === undefined) {
        break;
      }
    }
    complete &&= after === undefined;
  }
  const isReading = (row: KeptEvent) => markOf(row) === undefined;
  return {
    intervals,
    points: rows.filter(isReading).map((row) => pointOf(row, element)),
    marks: [...marks, ...rows.filter((row) => !isReading(row))].map((row) => markOf(row) as Mark),
    complete,
    tooMany: intervals.length > 0 && intervals.every(({ numbers }) => numbers === 0),
  };
}

/** Runs tasks, a few at a time: a browser has few connections with a host, and a hub answers few searches at once. */
export async function inTurn<T>(items: readonly T[], task: (item: T) => Promise<void>, width = 2): Promise<void> {
  const rest = [...items];
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let item = rest.shift(); item !== undefined; item = rest.shift()) {
        await task(item);
      }
    }),
  );
}
