/** The merge of two changes of one entry, part by part. Nothing is chosen in silence where both changed the same. */
import type { Content, EntryAttribute, Link } from "./types";
import { merged } from "./merge";

/** The parts of an entry that a person writes. */
export type Parts = Required<Pick<Content, "text" | "encoding">> & Pick<Content, "attributes" | "attachments" | "links">;
export type Side = "mine" | "theirs" | "both";

/** A part that the two texts do not have in common. */
export interface Part {
  /** `text`, `encoding`, `links`, `files`, or `attribute` and the name. */
  key: string;
  name: string;
  base: string[];
  mine: string[];
  theirs: string[];
  /** The result of both changes, if there is one. */
  both?: string[];
  /** Conflicts that the text of both has, between marks. */
  conflicts: number;
  /** The side that is proposed; none if a person has to choose. */
  side?: Side;
}

const same = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((one, nth) => one === b[nth]);

/** Returns what stays of theirs, and what I added. */
function union(base: readonly string[], mine: readonly string[], theirs: readonly string[]): string[] {
  const kept = theirs.filter((one) => mine.includes(one) || !base.includes(one));
  return [...kept, ...mine.filter((one) => !base.includes(one) && !kept.includes(one))];
}

function part(key: string, name: string, isList: boolean, base: string[], mine: string[], theirs: string[]): Part | undefined {
  if (same(mine, theirs)) {
    return undefined;
  }
  const side = same(base, mine) ? "theirs" : same(base, theirs) ? "mine" : isList ? "both" : undefined;
  return { key, name, base, mine, theirs, conflicts: 0, ...(isList ? { both: union(base, mine, theirs) } : {}), ...(side ? { side } : {}) };
}

const valuesOf = (list: readonly EntryAttribute[], name: string): string[] => list.find((one) => one.name.toLowerCase() === name.toLowerCase())?.values ?? [];
export const linkText = ({ kind, target }: { kind: string; target: string }): string => `${kind}:${target}`;
const linksOf = (content: Parts): string[] => (content.links ?? []).map(linkText);
/** Two files may have one name: the digest tells them apart. */
const fileKey = ({ name, sha }: { name: string; sha?: string | null }): string => `${name}\u0000${sha ?? ""}`;
const filesOf = (content: Parts): string[] => (content.attachments ?? []).map(fileKey);
/** A value of a part as text: of a file, its name. */
export const shownValue = (value: string): string => value.split("\u0000")[0] ?? value;

/** Returns the parts in which mine and theirs differ. `takesSeveral` says which attributes have several values. */
export function parts(base: Parts, mine: Parts, theirs: Parts, takesSeveral: (name: string) => boolean): Part[] {
  const found: (Part | undefined)[] = [];
  if (mine.text !== theirs.text) {
    const both = merged(base.text, mine.text, theirs.text);
    const side = base.text === mine.text ? "theirs" : base.text === theirs.text ? "mine" : "both";
    found.push({ key: "text", name: "", base: [base.text], mine: [mine.text], theirs: [theirs.text], both: [both.text], conflicts: both.conflicts, side });
  }
  const names = new Map<string, string>();
  for (const { name } of [...theirs.attributes, ...mine.attributes, ...base.attributes]) {
    names.set(name.toLowerCase(), names.get(name.toLowerCase()) ?? name);
  }
  for (const name of names.values()) {
    found.push(part(`attribute ${name}`, name, takesSeveral(name), valuesOf(base.attributes, name), valuesOf(mine.attributes, name), valuesOf(theirs.attributes, name)));
  }
  found.push(part("encoding", "", false, [base.encoding], [mine.encoding], [theirs.encoding]));
  found.push(part("links", "", true, linksOf(base), linksOf(mine), linksOf(theirs)));
  const [before, after] = [filesOf(base), filesOf(theirs)];
  // The hub has a file that they removed no longer for me.
  found.push(part("files", "", true, before, filesOf(mine).filter((file) => after.includes(file) || !before.includes(file)), after));
  return found.filter((one) => one !== undefined);
}

/** Returns the entry of the chosen sides. */
export function chosen(mine: Parts, theirs: Parts, all: readonly Part[], sides: Readonly<Record<string, Side | undefined>>): Parts {
  const of = (key: string): string[] | undefined => {
    const one = all.find((part) => part.key === key);
    const side = one && (sides[key] ?? "mine");
    return one && (side === "both" ? (one.both ?? one.mine) : side ? one[side] : one.mine);
  };
  const attributes = theirs.attributes.map(({ name, values }) => ({ name, values: of(`attribute ${name}`) ?? values }));
  for (const { key, name } of all) {
    if (key === `attribute ${name}` && !attributes.some((one) => one.name === name)) {
      attributes.push({ name, values: of(key) ?? [] });
    }
  }
  const files = of("files");
  const known = [...(theirs.attachments ?? []), ...(mine.attachments ?? [])];
  const links = of("links");
  return {
    text: of("text")?.[0] ?? theirs.text,
    encoding: (of("encoding")?.[0] as Parts["encoding"] | undefined) ?? theirs.encoding,
    attributes: attributes.filter(({ values }) => values.length > 0),
    attachments: files ? files.map((name) => known.find((file) => fileKey(file) === name)).filter((file) => file !== undefined) : (theirs.attachments ?? []),
    links: links ? links.map((link) => ({ kind: link.slice(0, link.indexOf(":")) as Link["kind"], target: link.slice(link.indexOf(":") + 1) })) : (theirs.links ?? []),
  };
}
