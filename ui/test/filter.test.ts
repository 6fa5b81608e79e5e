import assert from "node:assert/strict";
import { test } from "node:test";

import { BadFilter, commandOf, conditionsOf, filterText, fixed, forAll, including, parametersOf, parseFilter, queryOf, spanOf, toggled } from "../src/log/filter";
import { timeOf } from "../src/lib/time";
import { quoted, wordsOf } from "../src/lib/words";

test("a filter is read as the command line reads it", () => {
  const filter = parseFilter("-l warn --source 'CONTROL/*,FrontEnd' --not level=Debug --exclude=noise --field antenna=DV0? -- -x lock");
  assert.deepEqual(queryOf(filter), {
    min_level: "Warning",
    fields: { antenna: ["DV0?"] },
    sources: ["CONTROL/*", "FrontEnd"],
    words: ["-x", "lock"],
    without: [{ levels: ["Debug"] }, { text: "noise" }],
  });
});

test("a filter is asked of the REST API", () => {
  const filter = parseFilter("-l warn --not level=Debug --exclude-regex '^a' -p x,y --field antenna=DV0? --since 1h lock two");
  assert.equal(
    new URLSearchParams(parametersOf(filter)).toString(),
    "min_level=Warning&process=x%2Cy&field=antenna%3DDV0%3F&not=level%3DDebug&exclude_regex=%5Ea&word=lock&word=two",
  );
});

test("the text of a filter is read back as the same filter", () => {
  for (const line of [
    "",
    "--min-level Error",
    "--level Info,Error --mode operator --audience Operator,SciLog",
    "-p 'a b' --host=h1,h2 --logger x --stack 12 --field thread=main",
    `--contains "it's" --regex 'a|b\\d' --exclude "x y" --exclude-regex '^$'`,
    "--where 'scan = 7 or (elevation > 60 and not mode = stow)'",
    "--not source=CONTROL/DV01 --not audience=Developer --not file=a.cpp",
    "--since 10m --until 2026-11-21T08:15 -- -word two",
    "--contains=--strange 'with \"both\"' \\$dollar",
    "$'a\\u0007\\u001bb'",
  ]) {
    const filter = parseFilter(line);
    assert.deepEqual(parseFilter(filterText(filter)), filter, line);
  }
});

test("a filter that cannot be read says why", () => {
  for (const [line, why] of [
    ["--min-level Loud", "'Loud' is not a level"],
    ["--min-level", "needs LEVEL"],
    ["--min-level Info -l Error", "stands twice"],
    ["--nothing x", "there is no option --nothing"],
    ["-z", "there is no option -z"],
    ["'open", "has no end"],
    ["--field colour=red", "names are"],
    ["--mode chief", "is not a mode"],
    ["--constructor x", "there is no option"],
  ] as const) {
    assert.throws(() => parseFilter(line), (error: unknown) => error instanceof BadFilter && error.message.includes(why), line);
  }
  assert.throws(() => spanOf(parseFilter("--since soon"), 0n, "utc"), BadFilter);
  assert.throws(() => spanOf(parseFilter("--since 5m --until 10m"), 10n ** 18n, "utc"), BadFilter);
});

test("each condition can be taken away", () => {
  const conditions = conditionsOf(parseFilter("--min-level Info --not level=Debug one two --since 1h"));
  assert.deepEqual(conditions.map(({ text }) => text), ["min-level Info", "not level=Debug", "since 1h", "one", "two"]);
  assert.equal(conditions[3]?.without, "--min-level Info --not level=Debug --since 1h two");
  const dashed = conditionsOf(parseFilter("--exclude a --exclude a -- -a -b -b"));
  assert.deepEqual(dashed.map(({ text }) => text), ["exclude a", "exclude a", "-a", "-b", "-b"]);
  assert.deepEqual(dashed.map(({ without }) => without), ["--exclude a -- -a -b -b", "--exclude a -- -a -b -b", "--exclude a --exclude a -- -b -b", "--exclude a --exclude a -- -a -b", "--exclude a --exclude a -- -a -b"]);
  dashed.forEach(({ without }) => assert.equal(filterText(parseFilter(without)), without));
});

const NOW = timeOf("2026-11-21T10:00:00.25Z", 0n, "utc") as bigint;
const lineOf = (filter: ReturnType<typeof forAll>) => filter && filterText(filter);

test("times that mean another time tomorrow become whole ones, others stay", () => {
  assert.equal(lineOf(forAll(parseFilter("--since 02:00 --until yesterday lock"), NOW, "utc")), "--since 2026-11-21T02:00:00Z --until 2026-11-20T00:00:00Z lock");
  assert.equal(lineOf(forAll(parseFilter("--since '2026-11-21 08:15:30.5'"), NOW, "utc")), "--since 2026-11-21T08:15:30.500Z");
  for (const line of ["lock", "--since 1h", "--since '2h ago' --until now", "--since 2026-11-21T02:00:00Z", "--since 2026-11-21T02:00:00.5+01:00"]) {
    assert.equal(forAll(parseFilter(line), NOW, "utc"), undefined, line);
  }
});

test("a link has the times as they are meant now", () => {
  assert.equal(filterText(fixed(parseFilter("--since 1h --until 5m lock"), NOW, "utc")), "--since 2026-11-21T09:00:00Z --until 2026-11-21T09:55:00Z lock");
  assert.equal(filterText(fixed(parseFilter("lock"), NOW, "utc")), "lock");
});

test("a range that lacks the time of a link becomes longer", () => {
  const at = (text: string) => timeOf(text, NOW, "utc") as bigint;
  assert.equal(lineOf(including(parseFilter("--since 1h"), at("2026-11-21T00:00:00Z"), NOW, "utc")), "--since 2026-11-20T23:00:00Z");
  assert.equal(lineOf(including(parseFilter("--since 1d --until 23h"), at("2026-11-21T00:00:00Z"), NOW, "utc")), "--since 1d --until 2026-11-21T01:00:00Z");
  assert.equal(including(parseFilter("--since 1h"), at("2026-11-21T09:30:00Z"), NOW, "utc"), undefined);
  assert.equal(including(parseFilter("lock"), at("2005-01-01"), NOW, "utc"), undefined);
});

test("a click adds a condition, and the same click removes it", () => {
  const filter = parseFilter("lock");
  const only = toggled(filter, "source", "CONTROL/DV*", true);
  assert.equal(filterText(only), "--source 'CONTROL/DV?' lock");
  assert.equal(filterText(toggled(only, "source", "CONTROL/DV*", true)), "lock");
  const without = toggled(filter, "level", "Info", false);
  assert.equal(filterText(without), "--not level=Info lock");
  assert.equal(filterText(toggled(without, "level", "Info", false)), "lock");
  assert.equal(filterText(toggled(filter, "process", "a,b", true)), "--process 'a?b' lock");
});

test("a command shows the same records, and a shell gets no more from it", () => {
  assert.equal(commandOf(parseFilter("--min-level Error --since 1h"), "utc", false), "tampu log query --utc --min-level Error --since 1h");
  assert.equal(commandOf(parseFilter("lock"), "local", true), "tampu log tail --since 0s lock");
  const hostile = "a'; rm -rf /; echo '$(id)`id`\u001b]0;x\u0007\n";
  assert.deepEqual(wordsOf(quoted(hostile)), [hostile]);
  assert.ok(!/[\u0000-\u001f]/.test(quoted(hostile)));
});
