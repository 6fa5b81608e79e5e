import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { paced } from "../src/lib/paced";

test("a long question is asked more rarely, and an ended one never again", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let [time, took, asked, goesOn] = [0, 10, 0, true];
  const ask = async () => {
    asked++;
    time += took;
    return Promise.resolve(goesOn);
  };
  const after = async (ms: number) => {
    // The answer comes before the time goes on.
    await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(ms);
    await new Promise((resolve) => setImmediate(resolve));
    return asked;
  };
  const end = paced(ask, 2000, () => time);
  assert.deepEqual([await after(1999), await after(1)], [1, 2]);
  took = 5000;
  assert.equal(await after(2000), 3);
  assert.deepEqual([await after(49_999), await after(1)], [3, 4]);
  end();
  assert.equal(await after(100_000), 4);
  goesOn = false;
  paced(ask, 2000, () => time);
  assert.equal(await after(100_000), 5);
  mock.timers.reset();
});
