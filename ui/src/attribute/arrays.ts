/** Arrays of the API's JSON as values, as the live ones are. */
import type { DataType, Value } from "tampu";

import type { KeptEvent } from "./kept";
import { jsonNumber } from "./values";

export function valueOf(row: KeptEvent): Value {
  const list = Array.isArray(row.value) ? (row.value as unknown[]) : [row.value];
  const [x, y] = row.shape ?? [list.length, 0];
  const elements = Float64Array.from(list, (_, nth) => jsonNumber(list, nth));
  return { type: "DevDouble" satisfies DataType, format: y > 0 ? "image" : "spectrum", x, y, elements };
}
