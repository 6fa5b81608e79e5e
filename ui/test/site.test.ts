import assert from "node:assert/strict";
import { test } from "node:test";

import { bytesText, findings, sourcesOf, spanText, type Site, type Source } from "../src/site/site";

const source = (name: string, more: Partial<Source> = {}): Source => ({
  source: name, incarnation: "i", state: "appeared", received: 1, lost_samples: 0, lost_in_rings: 0, lost_in_spool: 0, rejected: 0, refused: 0, refusal: null,
  over_quota: 0, spooled: 0, last_seen: 0, rate: 0, ...more,
});

function site(sources: Source[], more: Partial<Site> = {}): Site {
  return {
    hosts: [{ host: "a", version: "0.1.0", pid: 1, up: 5, clock: "good", clock_error_ns: null, processes: 1, nodes: 0, disk: { path: "/", free: 50, size: 100 } }],
    hubs: [{ host: "a", pid: 1, roles: [{ role: "node", pid: 1, up: true, restarts: 0 }] }],
    collectors: [{ collector: "c", streams: 1, waiting: 0, targets: [], sources }],
    spools: [{ spool: "s", doing: "watching", records: 0, bytes: 0, limit: 100, stuck: null }],
    ...more,
  };
}

test("a healthy site needs no attention", () => {
  assert.deepEqual(findings(site([source("A"), source("B", { state: "left" })])), []);
});

test("each fault of a site is named, the gravest first", () => {
  const healthy = site([source("quiet", { state: "silent" }), source("loser", { lost_in_rings: 3 }), source("refused", { refused: 2, refusal: "no right" })]);
  const ill = {
    ...healthy,
    hosts: [{ ...healthy.hosts[0]!, disk: { path: "/", free: 1, size: 100 } }, { ...healthy.hosts[0]!, host: "b", version: "0.2.0" }],
    hubs: [{ host: "a", pid: 1, roles: [{ role: "book", pid: null, up: false, restarts: 3 }] }],
    spools: [{ ...healthy.spools[0]!, stuck: "disk full" }],
  };
  const texts = findings(ill).map(({ grade, text }) => `${grade} ${text}`);
  assert.equal(texts.length, 7);
  assert.ok(texts.slice(0, 4).every((text) => text.startsWith("fail ")) && texts.slice(4).every((text) => text.startsWith("warn ")), texts.join("\n"));
  for (const part of ["a: 1 %", "quiet: silent", "loser: 3", "no right", "0.1.0, 0.2.0", "role book does not run", "s: disk full"]) {
    assert.ok(texts.some((text) => text.includes(part)), part);
  }
  assert.ok(findings({ ...healthy, collectors: [] }).some(({ text }) => text.includes("no collector")));
  assert.deepEqual(findings({ ...healthy, collectors: [] }, false), []);
});

test("sources to look at come first", () => {
  const all = site([source("C"), source("B", { state: "died" }), source("A", { lost_samples: 1 }), source("Z", { state: "silent" })]);
  assert.deepEqual(sourcesOf(all, "").map((one) => one.source), ["Z", "A", "B", "C"]);
  assert.deepEqual(sourcesOf(all, " z").map((one) => one.source), ["Z"]);
});

test("sizes and spans are short", () => {
  assert.deepEqual([0, 999, 1500, 34_867_802_112].map(bytesText), ["0 B", "999 B", "1.5 kB", "34.9 GB"]);
  assert.deepEqual([5, 3661, 200_000].map(spanText), ["5s", "1h1m", "2d7h"]);
});
