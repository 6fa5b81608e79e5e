/** The attributes of a site: the list of the API, as a tree whose rows are made only where they are open. */
import type { Replace, Schemas } from "../lib/schemas";

/** Thresholds of events; null is none, a pair is a negative and a positive one. */
export interface Threshold {
  abs: string | null;
  rel: string | null;
}

export interface Criteria {
  change: Threshold;
  archive: Threshold;
  archive_period_ms: number | null;
  period_ms: number;
}

export interface Config {
  name: string;
  data_type: string;
  format: string;
  unit: string;
  label: string;
  description: string;
  labels: string[];
  criteria: Criteria;
  limits: Record<string, number | null>;
  max_x: number;
  max_y: number;
  polled_ms: number | null;
  writable: string;
}

export type Attribute = Replace<Schemas["ShownAttribute"], { format: "scalar" | "spectrum" | "image"; config: Config }>;

/** A part of names, or an attribute, in the tree. */
export interface Node {
  name: string;
  /** The path in lower case, which identifies it. */
  path: string;
  level: number;
  children: Node[];
  attribute?: Attribute;
  /** Attributes at it and below it. */
  count: number;
}

/** Makes a tree of attributes that are in the order of their names. Servers of one name are one node. */
export function treeOf(attributes: readonly Attribute[]): Node {
  const root: Node = { name: "", path: "", level: 0, children: [], count: 0 };
  for (const attribute of attributes) {
    const parts = attribute.name.split("/");
    let node = root;
    let path = "";
    const way = [root];
    parts.forEach((part, nth) => {
      path += `${nth > 0 ? "/" : ""}${part.toLowerCase()}`;
      let child = node.children.at(-1);
      if (child?.path !== path) {
        // The order of names compares `/` with other signs, so parts of one path may be apart.
        child = node.children.find((one) => one.path === path);
      }
      if (!child) {
        child = { name: part, path, level: nth + 1, children: [], count: 0 };
        node.children.push(child);
      }
      way.push(child);
      node = child;
    });
    if (!node.attribute) {
      node.attribute = attribute;
      way.forEach((one) => one.count++);
    }
  }
  return root;
}

/** The names of all attributes at a node and below it. */
export function namesOf({ attribute, children }: Node): string[] {
  return [...(attribute ? [attribute.name] : []), ...children.flatMap(namesOf)];
}

/** A row of the tree. Parts that are alone on their level stand in one row. */
export interface TreeRow {
  node: Node;
  label: string;
  depth: number;
  position: number;
  size: number;
}

/** The rows of a tree where these paths are open. */
export function rowsOf(root: Node, isOpen: (path: string) => boolean): TreeRow[] {
  const rows: TreeRow[] = [];
  function add(children: readonly Node[], depth: number): void {
    children.forEach((child, nth) => {
      let node = child;
      let label = child.name;
      while (node.children.length === 1 && !node.attribute) {
        node = node.children[0] as Node;
        label += `/${node.name}`;
      }
      rows.push({ node, label, depth, position: nth + 1, size: children.length });
      if (node.children.length > 0 && isOpen(node.path)) {
        add(node.children, depth + 1);
      }
    });
  }
  add(root.children, 1);
  return rows;
}

/** Makes a test of attributes by words, which all have to occur in name, label or description; `*` and `?` are wildcards. */
export function matcherOf(text: string): (attribute: Attribute) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const tests = words.map((word) => {
    if (!/[*?]/.test(word)) {
      return (value: string) => value.includes(word);
    }
    const pattern = new RegExp(word.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", "."));
    return (value: string) => pattern.test(value);
  });
  return ({ name, label, description }) => tests.every((test) => test(name.toLowerCase()) || test(label.toLowerCase()) || test(description.toLowerCase()));
}
