/** Shows a text that the hub has rendered. The browser removes again what could run. */
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

/**
 * Shows a rendered text; `at` gives the address of a file by its place. For a browser that neither cleans HTML nor may
 * take it as it is, the source of the text stands in its place.
 */
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
    } else if (html && !("trustedTypes" in window)) {
      const made = new DOMParser().parseFromString(html, "text/html");
      place(made, files, at);
      node.replaceChildren(...[...made.body.childNodes].map((child) => document.importNode(child, true)));
    } else {
      const text = document.createElement("pre");
      text.textContent = source;
      to.replaceChildren(text);
    }
  };
}
