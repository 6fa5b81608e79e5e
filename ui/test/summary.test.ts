import assert from "node:assert/strict";
import { test } from "node:test";

import { summaryText } from "../src/book/summary";

test("a summary counts all services, and texts of others are no markup", () => {
  const text = summaryText({
    since: "2026-11-21T06:00:00.000000000Z",
    until: "2026-11-21T14:00:00.000000000Z",
    log: { levels: { Info: [1, 2], Error: [0, 4], Alert: [0] } },
    transfers: [{ stream: "s", flow: "f", outcome: "ended", bytes: 3 }, { stream: "s", flow: "f", outcome: "ended", bytes: 4 }],
    entries: [{ book: "Shift", id: 1, by: "zoe", title: "# big <b>[x](y)\n- z" }],
    cut: ["transfers"],
    missing: [{ lane: "events", why: "no right" }],
  });
  for (const line of ["2026-11-21 06:00 to 2026-11-21 14:00 UTC", "- Info: 3", "- Error: 4", "- s\\#f: ended, 2, 7 bytes", "There were more than 2; the oldest are not in this list.", "- events: no right"]) {
    assert.ok(text.split("\n").includes(line), `${line} in ${text}`);
  }
  assert.ok(!text.includes("Alert"));
  assert.ok(text.includes("\\# big \\<b\\>\\[x\\]\\(y\\)⏎\\- z"));
});
