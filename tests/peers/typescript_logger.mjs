// Logs COUNT records in a few seconds and waits until the hub's readers have them: node typescript_logger.mjs GATEWAY_SOCK COUNT
const { Session } = await import(process.env.TAMPU_TS + "/src/index.js");
const { unixSocket } = await import(process.env.TAMPU_TS + "/src/node.js");
const [socket, count] = process.argv.slice(2);
const session = await Session.connect("ws://hub", { source: "ts/killed", socket: unixSocket(socket) });
const logger = session.logger({ minLevel: "Debug" });
for (let number = 0; number < Number(count); number += 1) {
  logger.log(number % 2 === 0 ? "Info" : "Notice", `record ${number}`);
  if (number % 100 === 0) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  if (number === 1000) {
    console.log("begun");
  }
}
await logger.close();
console.log(`lost ${logger.lost}`);
session.close();
