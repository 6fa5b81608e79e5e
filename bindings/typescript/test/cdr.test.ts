/** Texts of CDR samples. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { CdrReader, CdrWriter } from "../src/cdr.js";

/** Writes a text and reads it again. */
function passed(text: string): string {
  const writer = new CdrWriter();
  writer.string(text);
  return CdrReader.sample(writer.done()).string();
}

test("texts of every length and script are read as they were written", () => {
  for (const sign of ["a", "\u0000", "\u007f", "\u0080", "ß", "\ufeff", "望", "\u{1f52d}"]) {
    for (const count of [0, 1, 2, 63, 64, 127, 128, 255, 256, 257, 5000]) {
      const text = sign.repeat(count);
      assert.equal(passed(text), text);
      assert.equal(passed(`ends with ${text}`), `ends with ${text}`);
      assert.equal(passed(`${text} begins`), `${text} begins`);
    }
  }
});

test("bytes that are no UTF-8 become replacement signs", () => {
  const writer = new CdrWriter();
  writer.u32(4);
  writer.octets([0x61, 0xff, 0x62, 0]);
  assert.equal(CdrReader.sample(writer.done()).string(), "a\ufffdb");
});

test("a short ASCII text needs no decoder, whose strings a browser keeps outside of its heap", (context) => {
  const decode = context.mock.method(TextDecoder.prototype, "decode");
  assert.equal(passed("record 7 of the bench"), "record 7 of the bench");
  assert.equal(decode.mock.callCount(), 0);
  assert.equal(passed("Größe"), "Größe");
  assert.equal(decode.mock.callCount(), 1);
});
