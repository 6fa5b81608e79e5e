import assert from "node:assert/strict";
import { test } from "node:test";

import { htmlTree, type Piece } from "../src/book/html-tree";
import { isUnread, MOST, withAllRead, withRead, type Marks } from "../src/book/seen-marks";

/** A tree as HTML again, for comparison. */
const shown = (pieces: readonly Piece[]): string =>
  pieces.map((piece) => (typeof piece === "string" ? piece.replace(/</g, "&lt;") : `<${piece.tag}${piece.attributes.map(([name, value]) => ` ${name}=${value}`).join("")}>${shown(piece.children)}</${piece.tag}>`)).join("");

test("HTML of the hub is read as a browser reads it", () => {
  for (const [html, expected] of [
    ["<p><strong>HV</strong> a &amp; b &lt;c&gt; &#x41;&#66;&nbsp;</p>\n", "<p><strong>HV</strong> a & b &lt;c> AB\u00a0</p>\n"],
    ['<img src="attachment:a%20b.png" alt="a &quot;b&quot;">after', '<img src=attachment:a%20b.png alt=a "b"></img>after'],
    ['<a href="https://a.b/?c=1&amp;d=2#e" rel="noopener">x</a><br>y', "<a href=https://a.b/?c=1&d=2#e rel=noopener>x</a><br></br>y"],
    ['<input disabled="" type="checkbox" checked=""> done', "<input disabled= type=checkbox checked=></input> done"],
    ["<!-- a --><ul>\n<li>1</li></ul>", "<ul>\n<li>1</li></ul>"],
    ["1 < 2", "1 &lt; 2"],
  ] as const) {
    assert.equal(shown(htmlTree(html)), expected);
  }
});

test("what could run does not get into the page", () => {
  for (const [html, expected] of [
    ["<script>alert(1)</script>", "alert(1)"],
    ['<img src="x" onerror="alert(1)">', "<img src=x></img>"],
    ['<a href="javascript:alert(1)">x</a><a href="java\tscript:1">y</a><a href=" JaVaScript:1">z</a><a href="data:text/html,1">d</a>', "<a>x</a><a>y</a><a>z</a><a>d</a>"],
    ['<a href="&#106;avascript:1">x</a>', "<a>x</a>"],
    ['<p style="position:fixed" id="x" class="a"><iframe src="y">z</iframe></p>', "<p class=a>z</p>"],
    ['<svg><a href="x">y</a></svg>', "<a href=x>y</a>"],
    ['<input type="text" value="x">', "<input disabled=></input>"],
    ['<a href="../12">x</a><a href="?cmd=x">y</a><a href="#a:b">z</a>', "<a href=../12>x</a><a href=?cmd=x>y</a><a href=#a:b>z</a>"],
  ] as const) {
    assert.equal(shown(htmlTree(html)), expected);
  }
});

test("entries that somebody has read stay read", () => {
  const entry = (id: number, book = "Shift", revision = 0) => ({ book, id, revision, changed: "2026-11-30T10:00:00Z" });
  const begin: Marks = { since: "2026-01-01T00:00:00Z", read: {} };
  assert.ok(isUnread(begin, entry(1)) && !isUnread(begin, { ...entry(1), changed: "2025-12-31T00:00:00Z" }));
  let marks = withRead(begin, [entry(1)]);
  assert.ok(!isUnread(marks, entry(1)) && isUnread(marks, entry(1, "Shift", 1)), "a change is unread again");

  // More entries than single marks: one mark stands for all.
  const many = Array.from({ length: MOST + 5000 }, (_, nth) => entry(nth + 1));
  marks = withRead(withAllRead(withRead(marks, many), "Shift", "2026-11-30T11:00:00Z"), many.slice(-50));
  assert.ok(many.every((one) => !isUnread(marks, one)) && Object.keys(marks.read).length === 50);
  assert.ok(isUnread(marks, entry(1, "Other")) && isUnread(marks, { ...entry(1), revision: 1, changed: "2026-11-30T12:00:00Z" }));
  marks = withAllRead(withRead(marks, [entry(3, "Other/Shift")]), "Shift", "2026-11-01T00:00:00Z");
  assert.ok(!isUnread(marks, entry(7)) && !isUnread(marks, entry(3, "Other/Shift")), "an earlier time takes nothing back");
  marks = withAllRead(marks, "", "2026-11-30T11:00:00Z");
  assert.deepEqual(marks, { since: "2026-11-30T11:00:00Z", read: {} });
});
