import assert from "node:assert/strict";
import { test } from "node:test";

import { jsonText, readJson } from "../src/lib/json";
import { keyed } from "../src/lib/keyed";

test("whole numbers of 64 bits are read and written with all digits", () => {
  const text = '{"time":1764489600123456789,"number":-9223372036854775808,"few":12,"part":1.1234567890123456789,"text":"1764489600123456789 \\" 1764489600123456789"}';
  const read = readJson<Record<string, unknown>>(text);
  assert.deepEqual([read["time"], read["number"], read["few"], typeof read["part"]], [1764489600123456789n, -9223372036854775808n, 12, "number"]);
  assert.equal(read["text"], '1764489600123456789 " 1764489600123456789');
  assert.deepEqual(readJson(jsonText({ time: 1764489600123456789n })), { time: 1764489600123456789n });
});

test("items of one name have keys of their own", () => {
  const keys = keyed(["a", "b", "a", "1 a", "0 a"], (name) => name).map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length);
  // An item that stays in a list keeps its key.
  assert.deepEqual(keyed(["b", "a"], (name) => name).map(({ key }) => key), [keys[1], keys[0]]);
});
