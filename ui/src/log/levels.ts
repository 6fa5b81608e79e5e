import type { LevelName } from "./filter";

/** A shape for each level, so that colour is never the only difference. */
export const SHAPES: Record<LevelName, string> = {
  Trace: "·", Delouse: "∘", Debug: "○", Info: "●", Notice: "◆", Warning: "▲", Error: "■", Critical: "✖", Alert: "★", Emergency: "✚",
};
