import assert from "node:assert/strict";
import { test } from "node:test";

import { jsonText } from "../src/lib/json";
import { durationOf, durationText, timeOf, timeText } from "../src/lib/time";

const NOW = timeOf("2026-11-21T10:00:00Z", 0n, "utc") as bigint;

test("times are read as the command line reads them", () => {
  for (const [text, meant] of [
    ["10m", "2026-11-21T09:50:00.000000000Z"],
    ["2h30m", "2026-11-21T07:30:00.000000000Z"],
    ["1d ago", "2026-11-20T10:00:00.000000000Z"],
    ["-90s", "2026-11-21T09:58:30.000000000Z"],
    ["now", "2026-11-21T10:00:00.000000000Z"],
    ["today", "2026-11-21T00:00:00.000000000Z"],
    ["yesterday", "2026-11-20T00:00:00.000000000Z"],
    ["08:15", "2026-11-21T08:15:00.000000000Z"],
    ["08:15:30.25", "2026-11-21T08:15:30.250000000Z"],
    ["2005-02-01", "2005-02-01T00:00:00.000000000Z"],
    ["2005-02-01T15:33:09.592123456Z", "2005-02-01T15:33:09.592123456Z"],
    ["2005-02-01T15:33:09.592+01:00", "2005-02-01T14:33:09.592000000Z"],
    ["2005-02-01 15:33:09-0330", "2005-02-01T19:03:09.000000000Z"],
  ] as const) {
    const at = timeOf(text, NOW, "utc");
    assert.equal(at === undefined ? at : timeText(at, "utc"), meant, text);
  }
  for (const text of ["", "soon", "10", "10 parsecs", "25:00", "2005-02-30", "2005-13-01"]) {
    assert.equal(timeOf(text, NOW, "utc"), undefined, text);
  }
});

test("a local time is read back as the same time", () => {
  const at = NOW + 123_456_789n;
  assert.equal(timeOf(timeText(at, "local"), NOW, "utc"), at);
});

test("nanoseconds are kept", () => {
  const at = 1_795_000_000_123_456_789n;
  assert.equal(timeOf(timeText(at, "utc"), 0n, "utc"), at);
  assert.equal(jsonText({ since: at, after: { id: { number: 2n ** 63n } }, none: undefined, list: [1, "a", null] }), `{"since":${at},"after":{"id":{"number":9223372036854775808}},"list":[1,"a",null]}`);
});

test("durations", () => {
  assert.equal(durationText(durationOf("90m") as bigint), "1h30m");
  assert.equal(durationOf("1.5s"), 1_500_000_000n);
  assert.equal(durationOf("m"), undefined);
});
