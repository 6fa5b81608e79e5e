/** The pictures of the lanes: paths and boxes in pixels, of a range that is shown. */
import type { LevelName } from "../log/filter";
import type { Bar, Counts, Entry, History, Mark, Value } from "./data";
import { place, type Range } from "./range";
import type { Nanos } from "../lib/time";

export interface Size {
  width: number;
  height: number;
}

const round = (pixels: number) => Math.round(pixels * 10) / 10;
/** Places far outside of the picture are of no use, and numbers that large are drawn wrongly. */
const near = (pixels: number, width: number) => round(Math.max(-width, Math.min(2 * width, pixels)));

/** Bars of records by time and level, the gravest at the foot. Each level that occurs can be seen. */
export function logPaths(log: Counts, range: Range, { width, height }: Size): { level: LevelName; d: string }[] {
  const unit = width * (Number(log.every) / Number(range.to - range.from));
  const begin = place(range, log.start) * width;
  const first = Math.max(0, Math.floor(-begin / unit));
  const last = Math.min(log.bins, Math.ceil((width - begin) / unit));
  const totals: number[] = [];
  for (let bin = first; bin < last; bin++) {
    totals.push(log.levels.reduce((sum, { counts }) => sum + (counts[bin] ?? 0), 0));
  }
  const highest = Math.max(1, ...totals);
  const feet = totals.map(() => 0);
  return log.levels.map(({ level, counts }) => {
    let d = "";
    for (let bin = first; bin < last; bin++) {
      const count = counts[bin] ?? 0;
      if (count > 0) {
        const tall = Math.max(1.5, (count / highest) * (height - 2));
        const foot = feet[bin - first] as number;
        feet[bin - first] = foot + tall;
        const x = near(begin + bin * unit, width);
        d += `M${x} ${round(height - foot)}v${-round(tall)}h${round(Math.max(1, unit * 0.86))}v${round(tall)}z`;
      }
    }
    return { level, d };
  });
}

/** The bin of a time, if the counts have it. */
export function binOf(log: Counts, at: Nanos): number | undefined {
  const bin = at < log.start ? -1 : Number((at - log.start) / log.every);
  return bin >= 0 && bin < log.bins ? bin : undefined;
}

export type Kind = "numbers" | "states" | "marks";

/** The picture that fits an attribute: a plot, states with their names, or marks of events that are neither. */
export function kindOf(history: History): Kind {
  const values = history.before ? [history.before, ...history.values] : history.values;
  if (history.points.some(({ mean }) => mean !== undefined) || values.some(({ number }) => number !== undefined)) {
    return "numbers";
  }
  return values.length === 0 || values.some(({ text }) => text.startsWith("[")) ? "marks" : "states";
}

export interface Plot {
  /** From the least to the largest value of each interval. */
  band: string;
  /** Values, each until the next one; or means of intervals. */
  line: string;
  /** Single events, if they are not too close. */
  dots: string;
  low: number;
  high: number;
}

/** The values of a range with a little room, so that a constant is not at an edge. */
function heights(history: History, range: Range): { low: number; high: number } | undefined {
  let [low, high] = [Infinity, -Infinity];
  const take = (value: number | undefined) => {
    if (value !== undefined && Number.isFinite(value)) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  };
  const points = history.points.filter(({ at }) => at + history.every > range.from && at < range.to);
  points.forEach((point) => [point.low, point.high].forEach(take));
  const values = history.values.filter(({ at }) => at >= range.from && at < range.to);
  values.forEach(({ number }) => take(number));
  const held = valueAt(history, range.from);
  if (points.length === 0) {
    take(held?.number);
  }
  if (low > high) {
    return undefined;
  }
  const room = (high - low) * 0.06 || Math.abs(high) * 0.02 || 1;
  return { low: low - room, high: high + room };
}

/** Places at which a line may not go on: gaps, and ends of sources. */
function breaks(marks: readonly Mark[], from: Nanos, to: Nanos): Nanos | undefined {
  return marks.find(({ at }) => at > from && at <= to)?.at;
}

/** The plot of numbers; `end` is the present, beyond which nothing is known. */
export function plotOf(history: History, range: Range, { width, height }: Size, end: Nanos): Plot | undefined {
  const scale = heights(history, range);
  if (!scale) {
    return undefined;
  }
  const { low, high } = scale;
  const x = (at: Nanos) => near(place(range, at) * width, width);
  const y = (value: number) => round(height - ((Math.max(low, Math.min(high, value)) - low) / (high - low)) * height);
  let [band, line, dots] = ["", "", ""];
  /** Ends a line at a time, or at a break before it. */
  const hold = (since: Nanos, until: Nanos) => {
    const stop = breaks(history.marks, since, until);
    line += `H${x(stop ?? until)}`;
    return stop === undefined;
  };
  let before: Nanos | undefined;
  if (history.points.length > 0) {
    for (const { at, low: least, high: most, mean, last } of history.points) {
      if (least === undefined || most === undefined || mean === undefined || last === undefined) {
        continue;
      }
      const [left, right] = [x(at), x(at + history.every)];
      band += `M${left} ${y(most)}H${right}V${round(Math.max(y(least), y(most) + 1))}H${left}z`;
      const goesOn = before !== undefined && hold(before, at);
      line += `${goesOn ? "L" : "M"}${round((left + right) / 2)} ${y(mean)}`;
      before = at + history.every;
    }
  } else {
    const values = (history.before ? [history.before, ...history.values] : history.values).filter(({ number }) => number !== undefined);
    const shows = values.length * 6 < width;
    for (const { at, number = 0 } of values) {
      if (!Number.isFinite(number)) {
        before = undefined;
        continue;
      }
      const goesOn = before !== undefined && hold(before, at);
      line += goesOn ? `V${y(number)}` : `M${x(at)} ${y(number)}`;
      before = at;
      if (shows && at >= range.from && at < range.to) {
        dots += `M${x(at)} ${y(number)}h0`;
      }
    }
  }
  if (before !== undefined && before < end) {
    hold(before, end < range.to ? end : range.to);
  }
  return { band, line, dots, low, high };
}

/** The reading that holds at a time. */
export function valueAt(history: History, at: Nanos): Value | undefined {
  const { values } = history;
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as Value).at <= at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const found = values[low - 1] ?? history.before;
  return found && found.at <= at && breaks(history.marks, found.at, at) === undefined ? found : undefined;
}

export interface Segment {
  left: number;
  width: number;
  text: string;
  /** For colours: the quality, or the name of the state. */
  state: string;
  quality: string;
  at: Nanos;
}

/** The states of an attribute, each until the next one. Equal neighbours are one. */
export function segmentsOf(history: History, range: Range, width: number, end: Nanos): Segment[] {
  const values = history.before ? [history.before, ...history.values] : history.values;
  const segments: Segment[] = [];
  values.forEach((value, nth) => {
    const next = values[nth + 1]?.at ?? end;
    const until = breaks(history.marks, value.at, next) ?? next;
    const [left, right] = [Math.max(0, place(range, value.at) * width), Math.min(width, place(range, until) * width)];
    const last = segments.at(-1);
    if (right <= 0 || left >= width || until <= value.at) {
      return;
    }
    if (last && last.text === value.text && last.quality === value.quality && left - (last.left + last.width) < 0.5) {
      last.width = right - last.left;
    } else {
      segments.push({ left, width: right - left, text: value.text, state: value.text, quality: value.quality, at: value.at });
    }
  });
  return segments;
}

/** Times at which an attribute was not valid, and its gaps. */
export function alarmsOf(history: History, range: Range, width: number, end: Nanos): Segment[] {
  if (history.points.length > 0) {
    const every = (Number(history.every) / Number(range.to - range.from)) * width;
    const bad = history.points.filter(({ quality }) => isBad(quality));
    const segments: Segment[] = [];
    for (const { at, quality } of bad) {
      const left = place(range, at) * width;
      const last = segments.at(-1);
      if (last && last.quality === quality && left - (last.left + last.width) < 0.5) {
        last.width = left + every - last.left;
      } else if (left + every > 0 && left < width) {
        segments.push({ left, width: every, text: quality, state: quality, quality, at });
      }
    }
    return [...segments, ...marksOf(history, range, width)];
  }
  const plain = { ...history, values: history.values.map((value) => ({ ...value, text: value.quality })), ...(history.before ? { before: { ...history.before, text: history.before.quality } } : {}) };
  return [...segmentsOf(plain, range, width, end).filter(({ quality }) => isBad(quality)), ...marksOf(history, range, width)];
}

function marksOf(history: History, range: Range, width: number): Segment[] {
  const within = history.marks.filter(({ at }) => at >= range.from && at < range.to);
  return within.map(({ at, text }) => ({ left: place(range, at) * width, width: 2, text, state: "mark", quality: "mark", at }));
}

export function isBad(quality: string): boolean {
  return quality === "alarm" || quality === "warning" || quality === "invalid";
}

export interface Box {
  bar: Bar;
  left: number;
  width: number;
  row: number;
}

/** Transfers in rows in which they do not overlap, at most so many; the rest share the last one. */
export function boxesOf(bars: readonly Bar[], range: Range, width: number, end: Nanos, rows: number): Box[] {
  const ends: number[] = [];
  const sorted = bars.toSorted((one, other) => (one.from < other.from ? -1 : 1));
  return sorted.flatMap((bar) => {
    const [from, to] = [place(range, bar.from) * width, place(range, bar.to ?? end) * width];
    if (to < 0 || from > width) {
      return [];
    }
    const left = Math.max(0, from);
    const long = Math.max(3, Math.min(width, to) - left);
    const free = ends.findIndex((end) => end <= left);
    const row = free >= 0 ? free : Math.min(ends.length, rows - 1);
    ends[row] = Math.max(ends[row] ?? 0, left + long + 1);
    return [{ bar, left, width: long, row }];
  });
}

export interface Cluster {
  left: number;
  entries: Entry[];
}

/** Entries whose signs would overlap stand together. */
export function clustersOf(entries: readonly Entry[], range: Range, width: number, sign: number): Cluster[] {
  const clusters: Cluster[] = [];
  for (const entry of entries) {
    const left = place(range, entry.at) * width;
    if (left < 0 || left > width) {
      continue;
    }
    const last = clusters.at(-1);
    if (last && left - last.left < sign) {
      last.entries.push(entry);
    } else {
      clusters.push({ left, entries: [entry] });
    }
  }
  return clusters;
}
