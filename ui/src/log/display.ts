/** Texts of records as a page may show them: nothing in a text can hide, reorder or imitate anything. */

/** Control characters, line ends, and signs that reorder or hide text. */
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Signs of a message that a row shows. Longer ones are cut there, and whole in the details. */
const ROW_SIGNS = 1000;

function shown(sign: string): string {
  if (sign === "\n") {
    return "⏎";
  }
  if (sign === "\t") {
    return " ";
  }
  return `\\u{${sign.charCodeAt(0).toString(16)}}`;
}

/** One line without hidden signs. */
export function oneLine(text: string, most = ROW_SIGNS): string {
  const cut = text.length > most;
  const line = (cut ? text.slice(0, most) : text).replace(HIDDEN, shown);
  return cut ? `${line}…` : line;
}

/** The whole text with its lines, without hidden signs. */
export function wholeText(text: string): string {
  return text.replace(HIDDEN, (sign) => (sign === "\n" || sign === "\t" ? sign : shown(sign)));
}

/** Cuts a text into parts with and without the words that are looked for. */
export function marked(text: string, words: readonly string[]): { text: string; hit: boolean }[] {
  const wanted = words.filter((word) => word !== "");
  if (wanted.length === 0) {
    return [{ text, hit: false }];
  }
  const escaped = wanted.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`, "gi")).map((part, nth) => ({ text: part, hit: nth % 2 === 1 })).filter((part) => part.text !== "");
}
