/** Shows a text that the hub has rendered. What could run is removed again here: by the browser if it can do that. */
import { htmlTree, type Piece } from "./html-tree";
import type { Attachment } from "./types";

type Sanitize = { sanitizer: object };
type Safe = HTMLElement & { setHTML?: (html: string, options: Sanitize) => void };
type Parser = typeof Document & { parseHTML?: (html: string, options: Sanitize) => Document };

/** Addresses of files of an entry in its text: as a person writes them, and as the hub stores them. */
const WRITTEN = /^attachment:([^?#]+)$/;
const STORED = /^(?:\.\/)?(\d{6}_\d{6})[/_]([^?#/]+)$/;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the place of the file that an address names, -1 without one. */
export function fileOf(address: string, files: readonly Pick<Attachment, "name" | "elog" | "added">[]): number {
  const written = WRITTEN.exec(address)?.[1];
  if (written !== undefined) {
    return files.findLastIndex(({ name }) => name === decoded(written));
  }
  const [, stamp, name = ""] = STORED.exec(address) ?? [];
  if (stamp === undefined) {
    return -1;
  }
  const stored = `${stamp}_${decoded(name)}`;
  const stampOf = (added = ""): string => added.slice(2, 19).replace(/\D/g, "").replace(/^(.{6})/, "$1_");
  const nameOf = ({ name, elog, added }: (typeof files)[number]): string =>
    elog && /^\d{6}_\d{6}_./.test(elog) ? elog : `${stampOf(added)}_${name.replace(/[ ,;+=:]/g, "_")}`;
  return files.findIndex((file) => nameOf(file) === stored);
}

/** Gives pictures and links to files of the entry the addresses at which the hub has them. */
function place(root: ParentNode, files: readonly Attachment[], at: (nth: number) => string | undefined): void {
  for (const [selector, name] of [["img[src]", "src"], ["a[href]", "href"]] as const) {
    for (const element of root.querySelectorAll(selector)) {
      const address = element.getAttribute(name) ?? "";
      const nth = fileOf(address, files);
      const found = nth < 0 ? undefined : at(nth);
      if (found !== undefined) {
        element.setAttribute(name, found);
      } else if (WRITTEN.test(address)) {
        // The file is not there yet; its name stands for it.
        element.removeAttribute(name);
      }
    }
  }
}

/** Makes the nodes of a tree. */
function nodesOf(pieces: readonly Piece[], made: Document): Node[] {
  return pieces.map((piece) => {
    if (typeof piece === "string") {
      return made.createTextNode(piece);
    }
    const element = made.createElement(piece.tag);
    piece.attributes.forEach(([name, value]) => element.setAttribute(name, value));
    element.append(...nodesOf(piece.children, made));
    return element;
  });
}

/** Shows a rendered text; `at` gives the address of a file by its place. A text that was not rendered is shown as it was written. */
export function rendered(html: string | null | undefined, source: string, files: readonly Attachment[], at: (nth: number) => string | undefined): (node: HTMLElement) => void {
  return (node) => {
    const to = node as Safe;
    const parse = (Document as Parser).parseHTML;
    if (html && to.setHTML && parse) {
      // In a document of its own, nothing is loaded before the addresses are right. Everything that is safe stays.
      const made = parse.call(Document, html, { sanitizer: {} });
      place(made, files, at);
      node.replaceChildren(...[...made.body.childNodes].map((child) => document.importNode(child, true)));
    } else if (html && to.setHTML) {
      to.setHTML(html, { sanitizer: {} });
      place(node, files, at);
    } else if (html) {
      const made = document.implementation.createHTMLDocument("");
      made.body.append(...nodesOf(htmlTree(html), made));
      place(made, files, at);
      node.replaceChildren(...[...made.body.childNodes].map((child) => document.importNode(child, true)));
    } else {
      const text = document.createElement("pre");
      text.textContent = source;
      to.replaceChildren(text);
    }
  };
}
