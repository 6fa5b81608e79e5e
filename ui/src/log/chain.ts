/** The records of an error chain as a tree. */
import type { Row } from "./rows";

export type ChainRecord = Row & { kind: "record" };

/** A record with those that led to it. */
export interface Branch {
  row: ChainRecord;
  causes: Branch[];
}

const levelOf = (row: ChainRecord) => row.record.stack_level ?? 0;

/** Places each record below the last one before it that stands further out. */
function placed(rows: readonly ChainRecord[]): Branch[] {
  const roots: Branch[] = [];
  const way: Branch[] = [];
  for (const row of rows) {
    const branch: Branch = { row, causes: [] };
    while (way.length > 0 && levelOf((way.at(-1) as Branch).row) >= levelOf(row)) {
      way.pop();
    }
    (way.at(-1)?.causes ?? roots).push(branch);
    way.push(branch);
  }
  return roots;
}

function reversed(branches: Branch[]): Branch[] {
  return branches.toReversed().map(({ row, causes }) => ({ row, causes: reversed(causes) }));
}

/**
 * The tree of a chain. Records tell their level alone, 0 the outermost, so their order of time says which belong together:
 * programs log a chain from the outermost record on, or the cause first and each caller after it.
 */
export function chainOf(rows: readonly ChainRecord[]): Branch[] {
  const least = Math.min(...rows.map(levelOf));
  const [first, last] = [rows[0], rows.at(-1)];
  const causesFirst = first !== undefined && last !== undefined && levelOf(first) > least && levelOf(last) === least;
  return causesFirst ? reversed(placed(rows.toReversed())) : placed(rows);
}
