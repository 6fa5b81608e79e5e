/** The plot of traces: settings of uPlot, its axes, and what is drawn over the lines. */
import uPlot from "uplot";

import { rowTime, timeText, type Zone } from "../lib/time";
import { nanosOf } from "./kept";
import type { Column, Draw, Range, Span } from "./grid";
import type { QualityName } from "./trace";
import { numberText } from "./values";

/** Colours of traces; with more traces the lines become dashed. */
export const COLOURS = 8;
const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 2], [12, 6], [1, 4], [14, 3, 4, 3]];
/** Axes that have room. Further scales have none, and the table shows their values. */
const MOST_AXES = 4;

export interface Line {
  label: string;
  /** Name of the scale, which is the words of its axis. */
  scale: string;
  /** Draws steps whatever the choice: states and truths have nothing between. */
  isDiscrete: boolean;
  /** Words of a value, if it has some. */
  words?: (value: number) => string | undefined;
  /** Limits of the values, as the attribute is configured. */
  limits?: readonly Limit[];
}

/** A limit of the values of an attribute. */
export interface Limit {
  grade: "alarm" | "warning" | "range";
  words: string;
  value: number;
}

export interface Look {
  zone: Zone;
  draw: Draw;
  logarithmic: ReadonlySet<string>;
}

/** Marks that are drawn over the lines. */
export interface Over {
  columns: readonly Column[];
  spans: readonly (readonly Span[])[];
}

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function colourOf(nth: number): string {
  return colour(`--trace-${(nth % COLOURS) + 1}`);
}

export function dashOf(nth: number): number[] {
  return [...(DASHES[Math.floor(nth / COLOURS) % DASHES.length] ?? [])];
}

const FLAWS: Partial<Record<QualityName, { colour: string; draw: (context: CanvasRenderingContext2D, x: number, y: number, size: number) => void }>> = {
  alarm: { colour: "--error", draw: (context, x, y, size) => triangle(context, x, y, size, -1) },
  warning: { colour: "--warning", draw: (context, x, y, size) => triangle(context, x, y, size, 1) },
  changing: { colour: "--notice", draw: (context, x, y, size) => context.rect(x - size * 0.7, y - size * 0.7, size * 1.4, size * 1.4) },
  invalid: {
    colour: "--grave",
    draw: (context, x, y, size) => {
      context.moveTo(x - size, y - size);
      context.lineTo(x + size, y + size);
      context.moveTo(x + size, y - size);
      context.lineTo(x - size, y + size);
    },
  },
};

function triangle(context: CanvasRenderingContext2D, x: number, y: number, size: number, up: number): void {
  context.moveTo(x, y + up * size);
  context.lineTo(x - size, y - up * size);
  context.lineTo(x + size, y - up * size);
  context.closePath();
}

/** Colours and dashes of limits. */
const LIMITS: Record<Limit["grade"], { colour: string; dash: readonly number[] }> = {
  alarm: { colour: "--error", dash: [] },
  warning: { colour: "--warning", dash: [6, 4] },
  range: { colour: "--dim", dash: [2, 4] },
};

/** Room of the words of a limit, in pixels. */
const LIMIT_WORDS = 11;

/** The scale of these values: it also has the limits that are not farther from them than they are from each other. */
export function scaleWith(least: number, largest: number, limits: readonly number[]): [number, number] {
  const span = largest - least || Math.abs(largest) / 10 || 1;
  const near = limits.filter((limit) => limit >= least - span && limit <= largest + span);
  return [Math.min(least, ...near), Math.max(largest, ...near)];
}

function drawLimits(plot: uPlot, lines: readonly Line[]): void {
  const { ctx: context, bbox } = plot;
  const ratio = devicePixelRatio;
  const several = lines.filter(({ limits }) => limits && limits.length > 0).length > 1;
  context.font = `${LIMIT_WORDS * ratio}px sans-serif`;
  context.textAlign = "right";
  context.textBaseline = "bottom";
  context.lineWidth = ratio;
  lines.forEach((line) => {
    for (const { grade, words, value } of line.limits ?? []) {
      // In the middle of a pixel, so that the line is sharp.
      const y = Math.floor(plot.valToPos(value, line.scale, true)) + 0.5;
      if (y >= bbox.top && y <= bbox.top + bbox.height) {
        const look = LIMITS[grade];
        context.strokeStyle = context.fillStyle = colour(look.colour);
        context.setLineDash(look.dash.map((length) => length * ratio));
        context.beginPath();
        context.moveTo(bbox.left, y);
        context.lineTo(bbox.left + bbox.width, y);
        context.stroke();
        const room = y - bbox.top < LIMIT_WORDS * ratio * 1.5 ? LIMIT_WORDS * ratio * 1.2 : 0;
        context.fillText(several ? `${line.label}: ${words}` : words, bbox.left + bbox.width - 4 * ratio, y + room - ratio, bbox.width);
      }
    }
  });
  context.setLineDash([]);
}

function drawOver(plot: uPlot, over: Over, lines: readonly Line[]): void {
  const { ctx: context, bbox } = plot;
  const ratio = devicePixelRatio;
  context.save();
  context.beginPath();
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  context.clip();
  drawLimits(plot, lines);
  over.spans.forEach((spans, nth) => {
    context.strokeStyle = colourOf(nth);
    for (const { from, to, mark } of spans) {
      const left = Math.max(bbox.left, plot.valToPos(from / 1000, "x", true));
      const right = Math.min(bbox.left + bbox.width, Math.max(left + ratio, plot.valToPos(to / 1000, "x", true)));
      context.globalAlpha = 0.35;
      context.lineWidth = ratio;
      context.beginPath();
      // Hatching: lines of 45 degrees, at places that do not move with the time.
      const step = 9 * ratio;
      for (let at = Math.floor((left - bbox.height) / step) * step; at < right; at += step) {
        const [x0, x1] = [Math.max(left, at), Math.min(right, at + bbox.height)];
        if (x1 > x0) {
          context.moveTo(x0, bbox.top + (x0 - at));
          context.lineTo(x1, bbox.top + (x1 - at));
        }
      }
      context.stroke();
      if (mark.kind !== "gap") {
        context.globalAlpha = 1;
        context.setLineDash([4 * ratio, 3 * ratio]);
        context.beginPath();
        context.moveTo(left, bbox.top);
        context.lineTo(left, bbox.top + bbox.height);
        context.stroke();
        context.setLineDash([]);
      }
    }
  });
  context.globalAlpha = 1;
  context.lineWidth = 1.5 * ratio;
  over.columns.forEach((column, nth) => {
    const { scale } = lines[nth] as Line;
    const times = plot.data[0];
    for (const { at, quality } of column.flaws) {
      const flaw = FLAWS[quality];
      if (flaw) {
        const value = column.values[at] ?? column.values[at + 1];
        const y = value === undefined || value === null ? bbox.top + bbox.height - 6 * ratio : plot.valToPos(value, scale, true);
        context.strokeStyle = colour(flaw.colour);
        context.beginPath();
        flaw.draw(context, plot.valToPos(times[at] as number, "x", true), y, 4 * ratio);
        context.stroke();
      }
    }
  });
  context.restore();
}

/** The words of the axis of time: the day where it changes. */
function timeWords(zone: Zone): uPlot.Axis.DynamicValues {
  return (_plot, splits, _axis, _space, step) => {
    let day = "";
    return splits.map((split) => {
      const nanos = nanosOf(split * 1000);
      const text = timeText(nanos, zone, step < 1 ? 3 : 0);
      const clock = step < 1 ? rowTime(nanos, zone).clock : text.slice(11, step < 60 ? 19 : 16);
      const isOther = text.slice(0, 10) !== day;
      day = text.slice(0, 10);
      return isOther ? `${step >= 86_400 ? "" : clock}\n${day}` : step >= 86_400 ? `\n${day}` : clock;
    });
  };
}

/** Distances of the words of the axis of time, s. */
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600];

/** The range of an axis that has limits. Other axes have uPlot's own. */
function rangeOf(lines: readonly Line[], scale: string): uPlot.Scale {
  const limits = lines.filter((line) => line.scale === scale).flatMap((line) => (line.limits ?? []).map(({ value }) => value));
  // Without a value there is no range.
  const range = (_plot: uPlot, least: number | null, largest: number | null): uPlot.Range.MinMax =>
    least === null || largest === null ? [null, null] : uPlot.rangeNum(...scaleWith(least, largest, limits), 0.1, true);
  return limits.length > 0 ? { range: range as uPlot.Range.Function } : {};
}

/** Makes the plot of these lines. */
export function plotOf(
  target: HTMLElement,
  lines: readonly Line[],
  look: Look,
  size: { width: number; height: number },
  calls: { range: () => Range; over: () => Over; onSelect: (range: Range) => void; onCursor: (time: number | undefined) => void },
): uPlot {
  const scales = [...new Set(lines.map(({ scale }) => scale))];
  const [text, grid] = [colour("--dim"), { stroke: colour("--line"), width: 1 }];
  const axisOf = (scale: string, nth: number): uPlot.Axis => {
    const only = lines.filter((line) => line.scale === scale);
    const words = only.every((line) => line.words) ? only[0]?.words : undefined;
    return {
      scale,
      side: nth % 2 === 0 ? 3 : 1,
      label: scale,
      labelSize: 18,
      size: 62,
      stroke: only.length === 1 ? colourOf(lines.indexOf(only[0] as Line)) : text,
      grid: nth === 0 ? grid : { show: false },
      ticks: { ...grid, size: 4 },
      ...(words ? { incrs: [1, 2, 5, 10] } : {}),
      values: (_plot, splits) => splits.map((split) => (split === null ? "" : words ? (words(split) ?? "") : numberText(Number(split.toPrecision(12))))),
    };
  };
  return new uPlot(
    {
      ...size,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      scales: {
        x: {
          time: false,
          range: () => {
            const { from, to } = calls.range();
            return [from / 1000, to / 1000];
          },
        },
        ...Object.fromEntries(scales.map((scale) => [scale, look.logarithmic.has(scale) ? { distr: 3 as const, log: 10 as const } : rangeOf(lines, scale)])),
      },
      series: [
        {},
        ...lines.map((line, nth): uPlot.Series => {
          const steps = uPlot.paths.stepped?.({ align: 1 });
          return {
            label: line.label,
            scale: line.scale,
            stroke: colourOf(nth),
            dash: dashOf(nth),
            width: 1.5,
            points: { show: false },
            ...(steps && (look.draw === "steps" || line.isDiscrete) ? { paths: steps } : {}),
          };
        }),
      ],
      axes: [
        { scale: "x", stroke: text, grid, ticks: { ...grid, size: 4 }, size: 40, space: 90, incrs: STEPS, values: timeWords(look.zone) },
        ...scales.slice(0, MOST_AXES).map(axisOf),
      ],
      hooks: {
        draw: [(plot) => drawOver(plot, calls.over(), lines)],
        setSelect: [
          (plot) => {
            if (plot.select.width > 3) {
              const at = (x: number) => plot.posToVal(x, "x") * 1000;
              calls.onSelect({ from: at(plot.select.left), to: at(plot.select.left + plot.select.width) });
              plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            }
          },
        ],
        setCursor: [
          (plot) => {
            const { left } = plot.cursor;
            calls.onCursor(left === undefined || left === null || left < 0 ? undefined : plot.posToVal(left, "x") * 1000);
          },
        ],
      },
    },
    [[], ...lines.map(() => [])],
    target,
  );
}
