// A session of the TypeScript package beside a real hub: prints a line for each thing that held, and fails at the first that does not.
//   node typescript_session.mjs GATEWAY_SOCK|URL TAMPU   (over WebSocket with the token in TAMPU_TOKEN)
import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";

const { BulkControl, BulkReceiverOffer, BulkSenderOffer, Session, bulkOffers, scalar, spectrum, timeText } = await import(process.env.TAMPU_TS + "/src/index.js");
const { unixSocket } = await import(process.env.TAMPU_TS + "/src/node.js");
const { WebSocket } = await import(process.env.TAMPU_TS + "/../node_modules/ws/wrapper.mjs");
const [place, tampu] = process.argv.slice(2);
const isWeb = place.startsWith("http");
const sockets = [];
const webSocket = (url, protocol) => sockets[sockets.push(new WebSocket(url, protocol)) - 1];
const run = promisify(execFile);

function check(what, good) {
  if (!good) {
    console.log(`FAILED: ${what}`);
    process.exit(1);
  }
  console.log(`ok: ${what}`);
}

async function until(what, condition) {
  for (let turn = 0; turn < 3000 && !condition(); turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  check(what, condition());
}

const over = isWeb ? { socket: webSocket, token: process.env.TAMPU_TOKEN } : { socket: unixSocket(place) };
const address = isWeb ? place : "ws://hub";
const states = [];
const options = { ...over, source: "TS/CLIENT", onConnection: (state) => states.push(state) };
const session = await Session.connect(address, options);
const reader = await Session.connect(address, { ...options, source: "TS/READER" });
check("two sessions of the hub's user", session.welcome.session !== reader.welcome.session && session.welcome.principal.startsWith("user "));

// Questions.
const stat = await session.askJson("log/stat", {});
check("an answer of the collector", stat.length === 1 && stat[0].answer.total >= 0);
const all = await session.askJson("log/levels", {}, { all: true, timeoutMs: 3000 });
check("answers of all processes that log", all.length >= 1);
const refused = await session.askJson("no/such/service", {}, { timeoutMs: 500 }).then(() => "answered", (why) => why.code);
check(`nobody answers: ${refused}`, refused === "unanswered");

// Control of a receiver of bulk data.
const missing = await new BulkControl(session, "archive").state().then(() => "answered", (why) => why.code);
check(`no program offers the control: ${missing}`, missing === "unanswered" && (await bulkOffers(session)).length === 0);
const receiver = spawn(tampu, ["bulk", "recv", "--stream", "ts", "--output", process.env.TAMPU_TS + "/../build/received", "--control", "archive"], { stdio: "ignore" });
process.on("exit", () => receiver.kill());
for (let turn = 0; turn < 300 && (await bulkOffers(session)).length === 0; turn += 1) {
  await new Promise((resolve) => setTimeout(resolve, 100));
}
const archive = new BulkControl(session, "archive", 60_000);
check("an open receiver", (await archive.state()).active);
check("it is closed", !(await archive.close()).active);
const again = await archive.close().then(() => "closed", (why) => `${why.code} ${why.message}`);
check(`once: ${again}`, again.startsWith("failed") && again.includes("it is closed already; open it first"));
const opened = await archive.open({ protocol: "tcp", checksum: true });
check("it is open again", opened.active && opened.starts === 2);
const wrong = await archive.stop().then(() => "stopped", (why) => why.message);
check(`it is no sender: ${wrong}`, wrong.includes("it is a receiver, which obeys open and close"));
receiver.kill();

// A service of this program.
const echo = await session.serve("ts/echo", (question) => {
  if (question.octets.length === 2) {
    throw new Error("nothing to say");
  }
  question.part(question.octets);
  return { asker: question.asker };
});
const answered = async (question) => {
  const found = [];
  for await (const { content } of reader.ask("ts/echo", question, { timeoutMs: 60_000 })) {
    found.push(JSON.parse(new TextDecoder().decode(content)));
  }
  return found;
};
let echoed = [];
for (let turn = 0; turn < 300 && echoed.length === 0; turn += 1) {
  echoed = await answered({ hello: "hub" }).catch((why) => (why.code === "unanswered" ? [] : Promise.reject(why)));
}
check(`a service answers in parts: ${JSON.stringify(echoed)}`, echoed.length === 2 && echoed[0].hello === "hub" && echoed[1].asker === "local");
const nothing = await answered({}).then(() => "answered", (why) => `${why.code} ${why.message}`);
check(`and refuses: ${nothing}`, nothing.startsWith("failed") && nothing.includes("nothing to say"));
const own = await session.serve("log/query", () => ({})).then(() => "served", (why) => why.code);
check("the hub's own names are refused", own === "bad");
echo.close();

// Offers, which the command line controls.
const control = (...words) => run(tampu, ["bulk", "control", ...words, "--json"]).then(({ stdout }) => JSON.parse(stdout.split("\n")[0]), (why) => why.stderr);
const sent = [];
const offer = await BulkSenderOffer.open(session, "corr", {
  stream: "ts",
  flows: ["data"],
  onStart: async ({ flow, parameter }) => {
    flow.begin();
    try {
      for (let piece = 0; piece < 40; piece += 1) {
        await flow.ready(10_000);
      }
      sent.push(parameter);
    } catch (why) {
      sent.push(why.code);
      throw why;
    }
  },
});
let isOpen = false;
const arch = await BulkReceiverOffer.open(session, "keep", { stream: "ts", flows: ["data"], onOpen: () => ((isOpen = true), { close: () => (isOpen = false) }) });
const offers = async () => (await bulkOffers(reader)).map(({ name }) => name).filter((name) => name !== "archive").sort().join();
for (let turn = 0; turn < 300 && (await offers()) !== "corr,keep"; turn += 1) {
  await new Promise((resolve) => setTimeout(resolve, 100));
}
check("both offers are listed", (await offers()) === "corr,keep");
check("nothing runs: a stop is refused", (await control("stop", "corr")).includes("'corr': no flow is sending; start it first"));
const first = await control("start", "corr", "--parameter", "uid://A002/X1");
check(`a start: ${JSON.stringify(first)}`, first.starts === 1 && first.kind === "sender" && first.source === "TS/CLIENT");
await until("its work has ended", () => sent.length === 1);
check("with its parameter", sent[0] === "uid://A002/X1");
check("a wrong flow", (await control("pace", "corr", "1KB", "--flow", "no")).includes("'corr': there is no flow 'no'; name one of 'data'"));
const rate = await new BulkControl(reader, "corr", 60_000).pace(5).then(() => "paced", (why) => why.message);
check(`a wrong rate: ${rate}`, rate.includes("'corr': invalid rate of 5 bytes/s: use 1000 to 1000000000000, or 0 for no limit"));
check("paced", (await control("pace", "corr", "20KB")).report.sender.flows[0].throttle === 20_000);
await control("start", "corr");
check("a second start is refused", (await control("start", "corr")).includes("is sending what an earlier start began"));
check("paused", (await control("pause", "corr")).report.sender.flows[0].paused);
const before = (await control("state", "corr")).report.sender.flows[0].bytes;
await control("pace", "corr", "none");
check("nothing is sent meanwhile", (await control("state", "corr")).report.sender.flows[0].bytes <= before + 10_000);
const ended = await control("stop", "corr");
check(`a stop reaches a paused call: ${ended.failure}`, !ended.active && sent[1] === "cancelled" && ended.failure.includes("stopped by a command"));
const endOfWork = offer.beginWork(offer.flows[0]);
check("a stop between two transfers", (await control("stop", "corr")).active && offer.flows[0].stopped);
endOfWork();
check("which ends with the work", !offer.flows[0].stopped);
check("a receiver is opened", (await control("open", "keep")).active && isOpen);
check("once", (await control("open", "keep")).includes("it is open already; close it first"));
check("a flow that is not there", (await control("close", "keep")).active === false && !isOpen && (await control("open", "keep", "--flow", "no")).includes("there is no flow 'no'; name one of 'data'"));
await offer.close();
await arch.close();
for (let turn = 0; turn < 300 && (await offers()) !== ""; turn += 1) {
  await new Promise((resolve) => setTimeout(resolve, 100));
}
check("the offers are gone", (await offers()) === "");

// Samples of a topic, in order, each once.
const samples = reader.topics({ topics: ["ts/numbers"], from: "held" });
const numbers = await session.declare({ topic: "ts/numbers" });
const TOTAL = 20_000;
const bytes = (number) => {
  const sample = new Uint8Array(8);
  new DataView(sample.buffer).setBigUint64(0, BigInt(number));
  return sample;
};
for (let first = 0; first < TOTAL; first += 100) {
  numbers.publish(Array.from({ length: 100 }, (_, nth) => bytes(first + nth)));
}
// Connections that break, also while the samples are under way.
sockets.forEach((one) => one.terminate());
let next = 0;
for await (const item of samples) {
  if (item.kind === "batch") {
    for (const sample of item.batch.samples) {
      if (new DataView(sample.buffer, sample.byteOffset).getBigUint64(0) !== BigInt(next)) {
        check(`sample ${next} in its place`, false);
      }
      next += 1;
    }
  } else if (item.kind === "gap") {
    check(`no gap: ${JSON.stringify(item.gap)}`, false);
  }
  if (next === TOTAL) {
    // The end of the loop ends the subscription: a reader that has gone confirms nothing.
    await numbers.reached(BigInt(TOTAL), "delivered");
    break;
  }
}
check(`${TOTAL} samples, each once and in order`, next === TOTAL);
check(`sessions that went on after a broken connection: ${states.filter((state) => state === "resumed").length}`, !isWeb || states.filter((state) => state === "resumed").length === 2);
check("a receipt for all of them", numbers.receipts.written === BigInt(TOTAL));

// Attributes: readings, kinds, first values, errors.
const events = reader.events({ attributes: ["test/ts/*/*"], kinds: ["change", "user"] });
const temperature = await session.declare({ attribute: { name: "test/ts/cryo/temperature", data_type: "DevDouble", format: "scalar", unit: "K", criteria: { change: { abs: "0.1" } } } });
const row = await session.declare({ attribute: { name: "test/ts/corr/spectrum", data_type: "DevFloat", format: "spectrum" } });
temperature.push({ value: scalar("DevDouble", 4.2) });
row.push({ value: spectrum("DevFloat", Float32Array.of(1, 2, 3)), kinds: ["user"] });
const seen = { temperature: false, spectrum: false };
for await (const item of events) {
  if (item.kind !== "event" || !item.reading.value) {
    continue;
  }
  const { name, unit } = item.attribute.config;
  const elements = [...item.reading.value.elements].join();
  seen.temperature ||= name === "test/ts/cryo/temperature" && unit === "K" && elements === "4.2";
  seen.spectrum ||= name === "test/ts/corr/spectrum" && elements === "1,2,3";
  if (seen.temperature && seen.spectrum) {
    break;
  }
}
check("a scalar with its unit and a spectrum", seen.temperature && seen.spectrum);
temperature.push({ value: scalar("DevLong", 4) });
let told = [];
await until("a reading of another type is refused", () => (told = [...told, ...temperature.takeRefused()]).length > 0);
check(`and the reason names attribute and type: ${told[0].why}`, /test\/ts\/cryo\/temperature.*DevDouble.*DevLong/.test(told[0].why));
const second = await reader.declare({ attribute: { name: "test/ts/cryo/temperature", data_type: "DevDouble", format: "scalar" } }).catch((why) => why);
told = second instanceof Error ? [{ why: second.message }] : [];
await until("an attribute has one owner", () => {
  if (told.length === 0) {
    second.push({ value: scalar("DevDouble", 5) });
    told = second.takeRefused();
  }
  return told.length > 0;
});
check(`which is named: ${told[0].why}`, told[0].why.includes("TS/CLIENT"));

// Log records: from the archive on into the present, without hole or double.
const began = timeText(BigInt(Date.now()) * 1_000_000n - 1_000_000_000n);
const texts = Array.from({ length: 40 }, (_, nth) => `text ${nth} of the test`);
const say = (some) => Promise.all(some.map(async (text) => run(tampu, ["log", "send", "--acknowledged", "kept", "--level", "warning", text])));
for (const text of texts.slice(0, 20)) {
  await say([text]);
}
const logs = reader.logs({ since: began, query: { text: "of the test" } });
const found = new Map();
const live = (async () => {
  for await (const item of logs) {
    if (item.kind === "record") {
      found.set(item.record.message, (found.get(item.record.message) ?? 0) + 1);
    }
    if (texts.every((text) => found.has(text))) {
      break;
    }
  }
})();
for (const text of texts.slice(20)) {
  await say([text]);
}
await live;
check("40 records of the archive and live, each once", texts.every((text) => found.get(text) === 1) && found.size === 40);

// Records of this program: with their data, each in the archive once, also when connections break.
const logger = session.logger({ process: "ts/logs", logger: "dome", audiences: ["Operator"] });
const RECORDS = 5000;
for (let number = 0; number < RECORDS; number += 1) {
  if (!logger.info(`record ${number}`, { number })) {
    check(`room for record ${number}`, false);
  }
  if (number % 1000 === 0) {
    sockets.forEach((one) => one.terminate());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
logger.log("Error", "with a trace", {}, { trace_id: "0af7651916cd43dd8448eb211c80319c", file: "dome.ts", line: 7 });
await logger.close();
check(`nothing was lost: ${logger.lost}`, logger.lost === 0n && logger.waiting === 0);
const kept = new Map();
for await (const item of reader.logs({ since: began, query: { fields: { process: ["ts/logs"] } } })) {
  if (item.kind === "record") {
    kept.set(item.record.message, [...(kept.get(item.record.message) ?? []), item.record]);
  }
  if (kept.size > RECORDS) {
    break;
  }
}
check(`${RECORDS} records and one more, each once`, kept.size === RECORDS + 1 && [...kept.values()].every((found) => found.length === 1));
const [traced] = kept.get("with a trace");
check("with all that it was given", traced.trace_id?.startsWith("0af7651916cd43dd") && traced.line === 7 && traced.audiences?.join() === "Operator" && traced.logger === "dome");
check("and its data", kept.get("record 77")[0].data?.[0].value === "77");

session.close();
reader.close();
console.log("done");
