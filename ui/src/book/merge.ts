/** Differences of texts by line, and the merge of two changes of one text. */

export interface Piece {
  kind: "same" | "gone" | "new";
  lines: string[];
}

/** Comparisons that a difference may take; beyond it the middle of the texts counts as replaced. */
const MOST = 4_000_000;

/** Returns the pieces that lead from one text to another. */
export function difference(from: string, to: string): Piece[] {
  const [one, other] = [from.split("\n"), to.split("\n")];
  let head = 0;
  while (head < one.length && head < other.length && one[head] === other[head]) {
    head++;
  }
  let tail = 0;
  while (tail < one.length - head && tail < other.length - head && one.at(-1 - tail) === other.at(-1 - tail)) {
    tail++;
  }
  const pieces: Piece[] = [];
  const add = (kind: Piece["kind"], lines: string[]): void => {
    const last = pieces.at(-1);
    if (last?.kind === kind) {
      last.lines.push(...lines);
    } else if (lines.length > 0) {
      pieces.push({ kind, lines: [...lines] });
    }
  };
  add("same", one.slice(0, head));
  const [a, b] = [one.slice(head, one.length - tail), other.slice(head, other.length - tail)];
  if (a.length * b.length > MOST) {
    add("gone", a);
    add("new", b);
  } else {
    // The length of the longest common sequence of the rests of both, from each pair of places.
    const width = b.length + 1;
    const longest = new Uint32Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        longest[i * width + j] = a[i] === b[j] ? (longest[(i + 1) * width + j + 1] as number) + 1 : Math.max(longest[(i + 1) * width + j] as number, longest[i * width + j + 1] as number);
      }
    }
    let [i, j] = [0, 0];
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) {
        add("same", [a[i] as string]);
        i++;
        j++;
      } else if (i < a.length && (j === b.length || (longest[(i + 1) * width + j] as number) >= (longest[i * width + j + 1] as number))) {
        add("gone", [a[i++] as string]);
      } else {
        add("new", [b[j++] as string]);
      }
    }
  }
  add("same", one.slice(one.length - tail));
  return pieces;
}

/** A change of lines `from` to `to` of the base. */
interface Hunk {
  from: number;
  to: number;
  lines: string[];
}

function hunks(base: string, text: string): Hunk[] {
  const found: Hunk[] = [];
  let place = 0;
  let open: Hunk | undefined;
  for (const { kind, lines } of difference(base, text)) {
    if (kind === "same") {
      open = undefined;
      place += lines.length;
      continue;
    }
    if (!open) {
      open = { from: place, to: place, lines: [] };
      found.push(open);
    }
    if (kind === "gone") {
      place += lines.length;
      open.to = place;
    } else {
      open.lines.push(...lines);
    }
  }
  return found;
}

/** Merges two changes of a text. Where both changed the same lines, both stand between marks, and count as conflicts. */
export function merged(base: string, mine: string, theirs: string): { text: string; conflicts: number } {
  const lines = base.split("\n");
  const [ours, others] = [hunks(base, mine), hunks(base, theirs)];
  const out: string[] = [];
  let [place, conflicts] = [0, 0];
  while (ours.length > 0 || others.length > 0) {
    const from = Math.min(ours[0]?.from ?? Infinity, others[0]?.from ?? Infinity);
    let to = from;
    const [a, b]: [Hunk[], Hunk[]] = [[], []];
    // Changes that touch belong together.
    for (let grew = true; grew; ) {
      grew = false;
      for (const [list, taken] of [[ours, a], [others, b]] as const) {
        while (list[0] && list[0].from <= to) {
          const hunk = list.shift() as Hunk;
          to = Math.max(to, hunk.to);
          taken.push(hunk);
          grew = true;
        }
      }
    }
    out.push(...lines.slice(place, from));
    const side = (taken: Hunk[]): string[] => {
      const all: string[] = [];
      let at = from;
      for (const hunk of taken) {
        all.push(...lines.slice(at, hunk.from), ...hunk.lines);
        at = hunk.to;
      }
      return [...all, ...lines.slice(at, to)];
    };
    const [left, right] = [side(a), side(b)];
    if (a.length === 0 || b.length === 0 || left.join("\n") === right.join("\n")) {
      out.push(...(a.length === 0 ? right : left));
    } else {
      conflicts++;
      out.push("<<<<<<< mine", ...left, "=======", ...right, ">>>>>>> theirs");
    }
    place = to;
  }
  out.push(...lines.slice(place));
  return { text: out.join("\n"), conflicts };
}
