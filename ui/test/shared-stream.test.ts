import assert from "node:assert/strict";
import { test } from "node:test";

import { SharedStream, TIMES, type Channel, type Said } from "../src/book/shared-stream";

const FAST = { ...TIMES, answer: 20, beat: 10, silent: 60, refused: 40 };

/** The tabs of a browser, and the streams that they hold open at a hub. */
class Browser {
  channels: Channel[] = [];
  streams: { after: string | undefined; said: (said: Said<string>) => void }[] = [];
  opened = 0;

  tab(got: Said<string>[] = []): { shared: SharedStream<string>; got: Said<string>[]; channel: Channel } {
    const channel: Channel = {
      onmessage: null,
      postMessage: (data) => this.channels.filter((one) => one !== channel).forEach((one) => setTimeout(() => one.onmessage?.({ data: structuredClone(data) } as MessageEvent))),
    };
    this.channels.push(channel);
    const open = (after: string | undefined, said: (said: Said<string>) => void) => {
      const stream = { after, said };
      this.streams.push(stream);
      this.opened++;
      return { close: () => void (this.streams = this.streams.filter((one) => one !== stream)) };
    };
    return { shared: new SharedStream(channel, open, (said) => got.push(said), FAST), got, channel };
  }

  /** A tab that has crashed: nothing comes from it, and its connection ends. */
  crash(channel: Channel): void {
    this.channels = this.channels.filter((one) => one !== channel);
    channel.postMessage = () => undefined;
    this.streams = [];
  }
}

async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!condition()) {
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

test("many tabs hold one stream, and all get its news", async (t) => {
  const browser = new Browser();
  const tabs = Array.from({ length: 12 }, () => browser.tab());
  t.after(() => tabs.forEach(({ shared }) => shared.end()));
  tabs.forEach(({ shared }) => shared.begin());
  await until("one holds it", () => browser.streams.length === 1 && tabs.filter(({ shared }) => shared.holds).length === 1);
  browser.streams[0]?.said({ news: "an entry", number: "7" });
  await until("all have it", () => tabs.every(({ got }) => got.length === 1));

  // The tab that holds it goes out of sight: another one goes on behind the last news.
  tabs.find(({ shared }) => shared.holds)?.shared.end();
  await until("another holds it", () => browser.streams.length === 1);
  assert.equal(browser.streams[0]?.after, "7");

  // A tab that ends without a word.
  const holder = tabs.find(({ shared }) => shared.holds);
  assert.ok(holder);
  browser.crash(holder.channel);
  await until("another holds it after a crash", () => browser.streams.length === 1 && tabs.some((tab) => tab !== holder && tab.shared.holds));
  holder.shared.end();
  tabs.forEach(({ shared }) => shared.end());
  assert.deepEqual(browser.streams, []);
});

test("a stream that the hub refuses is tried again, and a login opens another one", async (t) => {
  const browser = new Browser();
  const [one, other] = [browser.tab(), browser.tab()];
  t.after(() => [one, other].forEach(({ shared }) => shared.end()));
  one.shared.begin();
  await until("it is open", () => browser.streams.length === 1);
  other.shared.begin();
  browser.streams[0]?.said("refused");
  await until("it is open again", () => browser.opened === 2 && browser.streams.length === 1);
  await until("both know that news may be missing", () => one.got.includes("refused") && other.got.includes("refused"));
  // The tab in which somebody logs in may be one without the stream.
  other.shared.again();
  await until("it has the rights of the login", () => browser.opened === 3 && browser.streams.length === 1);
});
