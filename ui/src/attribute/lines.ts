/** The lines of a plot: which of the chosen attributes have a trend, and on which axis. */
import { oneLine } from "../log/display";
import { labelOf, type Choice } from "./choice";
import type { Attribute } from "./directory";
import type { Line } from "./plot";
import { ATTRIBUTE_TEXT as TEXT } from "./text";
import { hasNumbers, wordsOf } from "./values";

export const AXES = ["unit", "each", "one"] as const;
export type Axes = (typeof AXES)[number];

export interface Plotted {
  choice: Choice;
  line: Line & { unit: string };
}

/** Names of scales separate the logarithmic ones in the address, so they have no `*`. */
const scaleText = (text: string) => oneLine(text, 40).replaceAll("*", "·");

/** An attribute that no server has is taken for a number: its history may have some. */
export function linesOf(choices: readonly Choice[], of: (name: string) => Attribute | undefined, axes: Axes): Plotted[] {
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
    return [{ choice, line: { label, scale: scaleText(scale), unit, isDiscrete: words !== undefined, ...(words ? { words } : {}) } }];
  });
}
