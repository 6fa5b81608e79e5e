/**
 * HTML as a tree, for browsers that clean none themselves and take none as a text. The hub writes it cleaned and in one form: each
 * attribute in double quotes, each element closed. Only what is listed here gets into the page, whatever the text has.
 */

/** A text, or an element with its attributes. */
export type Piece = string | { tag: string; attributes: [name: string, value: string][]; children: Piece[] };

const TAGS = new Set(
  ("a abbr b bdi bdo blockquote br caption center cite code col colgroup dd del dfn div dl dt em figcaption figure font h1 h2 h3 h4 h5 h6 hr i img input ins " +
    "kbd li mark ol p pre q s samp small span strike strong sub sup table tbody td tfoot th thead tr tt u ul var wbr").split(" "),
);
const VOID = new Set(["br", "col", "hr", "img", "input", "wbr"]);
const ATTRIBUTES = new Set(["align", "alt", "border", "checked", "class", "color", "colspan", "disabled", "height", "href", "rel", "rowspan", "size", "src", "start", "title", "type", "width"]);
const SCHEMES = /^(?:https?|mailto|elog|attachment):/i;
const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

const decoded = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{1,8}));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) {
      return NAMED[name] ?? whole;
    }
    const code = Number.parseInt(decimal ?? hex ?? "", decimal === undefined ? 16 : 10);
    return code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
  });

/** True for an address that runs nothing: one below the page's own, or one of the known schemes. */
function isSafe(address: string): boolean {
  // Browsers leave out such signs before they look for the scheme.
  const plain = address.replace(/[\u0000-\u0020]/g, "");
  return SCHEMES.test(plain) || !/^[^/?#]*:/.test(plain);
}

function attributesOf(tag: string, text: string): [string, string][] {
  const found: [string, string][] = [];
  for (const [, name = "", value = ""] of text.matchAll(/([^\s=>"']+)(?:="([^"]*)")?/g)) {
    const [lower, plain] = [name.toLowerCase(), decoded(value)];
    const isAddress = lower === "href" || lower === "src";
    // A field of a form is the box of a task, which nobody can tick.
    const fits = lower !== "type" || (tag === "input" && plain === "checkbox") || tag === "ol" || tag === "ul";
    if (ATTRIBUTES.has(lower) && fits && (!isAddress || isSafe(plain))) {
      found.push([lower, plain]);
    }
  }
  if (tag === "input" && !found.some(([name]) => name === "disabled")) {
    found.push(["disabled", ""]);
  }
  return found;
}

/** Reads HTML. Of an element that is not listed, its content stays. */
export function htmlTree(html: string): Piece[] {
  const top: Piece[] = [];
  const open: { tag: string; children: Piece[] }[] = [];
  const here = (): Piece[] => open.at(-1)?.children ?? top;
  for (const [whole, end, name, rest = ""] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)((?:\s+[^\s=>"'/]+(?:="[^"]*")?)*)\s*\/?>|<!--[^]*?-->|[^<]+|</gi)) {
    const tag = name?.toLowerCase();
    if (tag === undefined) {
      if (!whole.startsWith("<!--")) {
        here().push(decoded(whole));
      }
    } else if (!TAGS.has(tag)) {
      continue;
    } else if (end === "/") {
      const nth = open.findLastIndex((one) => one.tag === tag);
      if (nth >= 0) {
        open.length = nth;
      }
    } else {
      const made = { tag, attributes: attributesOf(tag, rest), children: [] };
      here().push(made);
      if (!VOID.has(tag)) {
        open.push(made);
      }
    }
  }
  return top;
}
