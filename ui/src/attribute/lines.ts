/** The lines of a plot: which of the chosen attributes have a trend, and on which axis. */
import { oneLine } from "../log/display";
import { labelOf, type Choice } from "./choice";
import type { Attribute } from "./directory";
import type { Limit, Line } from "./plot";
import { ATTRIBUTE_TEXT as TEXT } from "./text";
import { hasNumbers, numberText, wordsOf } from "./values";

export const AXES = ["unit", "each", "one"] as const;
export type Axes = (typeof AXES)[number];

export interface Plotted {
  choice: Choice;
  line: Line & { unit: string };
}

/** Names of scales separate the logarithmic ones in the address, so they have no `*`. */
const scaleText = (text: string) => oneLine(text, 40).replaceAll("*", "·");

/** The limits of an attribute, by their names in its configuration. */
export function limitsOf(limits: Record<string, number | null>): Limit[] {
  return Object.entries(TEXT.limits).flatMap(([name, words]): Limit[] => {
    const value = limits[name];
    const grade = name.startsWith("alarm") ? "alarm" : name.startsWith("warning") ? "warning" : "range";
    return typeof value === "number" && Number.isFinite(value) ? [{ grade, words: words(numberText(value)), value }] : [];
  });
}

/** An attribute that no server has is taken for a number: its history may have some. */
export function linesOf(choices: readonly Choice[], of: (name: string) => Attribute | undefined, axes: Axes, hasLimits = true): Plotted[] {
  return choices.flatMap((choice): Plotted[] => {
    const attribute = of(choice.name);
    if ((attribute && !hasNumbers(attribute.type)) || (attribute && attribute.format !== "scalar" && choice.element === undefined)) {
      return [];
    }
    const words = attribute && wordsOf(attribute.type, attribute.config.labels);
    const label = oneLine(labelOf(choice), 200);
    const unit = attribute?.unit ?? "";
    const kind = attribute?.type === "DevEnum" ? attribute.config.labels.join(" ") : (attribute?.type ?? "");
    const scale = axes === "each" ? label : words ? kind : axes === "one" ? TEXT.values : unit || TEXT.noUnit;
    const limits = hasLimits && attribute && !words ? limitsOf(attribute.config.limits) : [];
    return [{ choice, line: { label, scale: scaleText(scale), unit, isDiscrete: words !== undefined, ...(words ? { words } : {}), ...(limits.length > 0 ? { limits } : {}) } }];
  });
}
