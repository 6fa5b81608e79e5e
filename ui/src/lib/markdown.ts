/** Texts of others in Markdown. */
import { oneLine } from "../log/display";

/** One line in which no sign is markup. */
export function plain(text: string, most = 200): string {
  return oneLine(text, most).replace(/[\\`*_{}[\]<>()#+!|~&$-]/g, "\\$&");
}
