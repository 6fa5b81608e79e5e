/** Words of a line as a shell separates them, and back. */

/** A line that no shell accepts either. */
export class Unclosed extends Error {}

/** Separates a line into words: blanks, single and double quotes, and backslashes mean the same as in a shell. */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < line.length; at++) {
    const sign = line[at] as string;
    if (/\s/.test(sign)) {
      if (word !== undefined) {
        words.push(word);
        word = undefined;
      }
    } else if (sign === "$" && line[at + 1] === "'") {
      const [text, end] = escapedFrom(line, at + 2);
      word = (word ?? "") + text;
      at = end;
    } else if (sign === "'") {
      const end = line.indexOf("'", at + 1);
      if (end < 0) {
        throw new Unclosed("'");
      }
      word = (word ?? "") + line.slice(at + 1, end);
      at = end;
    } else if (sign === '"') {
      word ??= "";
      for (at++; line[at] !== '"'; at++) {
        if (at >= line.length) {
          throw new Unclosed('"');
        }
        if (line[at] === "\\" && '"\\$`'.includes(line[at + 1] ?? " ")) {
          at++;
        }
        word += line[at];
      }
    } else if (sign === "\\") {
      at++;
      if (at >= line.length) {
        throw new Unclosed("\\");
      }
      word = (word ?? "") + line[at];
    } else {
      word = (word ?? "") + sign;
    }
  }
  return word === undefined ? words : [...words, word];
}

/** Reads the rest of `$'...'`, where `\\uXXXX` stands for a sign. Returns the text and the place of its end. */
function escapedFrom(line: string, from: number): [string, number] {
  let text = "";
  for (let at = from; at < line.length; at++) {
    if (line[at] === "'") {
      return [text, at];
    }
    if (line[at] !== "\\") {
      text += line[at];
      continue;
    }
    const code = /^u([0-9a-f]{4})/i.exec(line.slice(at + 1, at + 6))?.[1];
    text += code ? String.fromCharCode(Number.parseInt(code, 16)) : (line[at + 1] ?? "");
    at += code ? 5 : 1;
  }
  throw new Unclosed("$'");
}

/** A word as a shell reads it back, in quotes only if it needs them. */
export function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) {
    return word;
  }
  // A terminal obeys control characters of a line that is pasted into it.
  if (/[\u0000-\u001f\u007f-\u009f]/.test(word)) {
    const escaped = word.replace(/[\\']/g, "\\$&").replace(/[\u0000-\u001f\u007f-\u009f]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
    return `$'${escaped}'`;
  }
  return `'${word.replaceAll("'", "'\\''")}'`;
}
