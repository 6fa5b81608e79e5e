/** Offers of senders and receivers under a name, which other programs control (`spec/bulk-control.md`). */
import type { BulkOffer, OpenSettings } from "./bulk.js";
import { Failure } from "./failure.js";
import type { Question, Service } from "./service.js";
import type { Session } from "./session.js";

const SERVICE = "bulk/control";
const RATES = { slowest: 1e3, fastest: 1e12 };
/** Longest wait of a stop until the started work has ended, in ms. */
const STOP_MS = 3000;
const MEMBERS: Record<string, readonly string[]> = {
  state: [], close: [], start: ["flow", "parameter", "file"], pace: ["flow", "bytes_per_s"], pause: ["flow"], resume: ["flow"], stop: ["flow"],
  open: ["flows", "protocol", "checksum", "protection"],
};

interface Command {
  verb: string;
  flow?: string;
  parameter?: string;
  file?: string;
  bytes_per_s?: number;
  settings: OpenSettings;
}

type Side = Pick<BulkOffer, "kind" | "stream" | "active" | "starts" | "failure" | "report">;

const quoted = (names: readonly string[]) => names.map((name) => `'${name}'`).join(", ");
const same = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
const noFlow = (name: string, all: readonly string[]) => new Error(`there is no flow '${name}'; name one of ${quoted(all)}`);
const reason = (why: unknown) => (why instanceof Error && why.message !== "" ? why.message : String(why));

function parse(asked: Record<string, unknown>): Command {
  const command = asked["do"] ?? "state";
  const [verb = "", members = {}] = typeof command === "string" ? [command] : (Object.entries(command as object)[0] ?? []);
  const known = MEMBERS[verb];
  const strange = Object.keys(asked).find((member) => !["name", "process", "do"].includes(member)) ?? Object.keys(members as object).find((member) => !known?.includes(member));
  if (!known || (typeof command === "string") !== (known.length === 0) || strange !== undefined) {
    throw new Error(`the question cannot be read: ${strange === undefined ? "`do` has no command" : `unknown member '${strange}'`}; spec/bulk-control.md has the commands`);
  }
  return { ...(members as object), verb, settings: members as OpenSettings };
}

/** Answers the questions to an offer. */
function offered(session: Session, name: string, state: (withReport: boolean) => Side, obey: (command: Command) => void | Promise<void>): Promise<Service> {
  const whole = (question: Question, withReport: boolean) => ({ name, process: question.process, source: session.source, ...state(withReport) });
  return session.serve(SERVICE, async (question) => {
    const asked = question.json<Record<string, unknown>>();
    const command = parse(asked);
    if (asked["name"] === undefined || asked["name"] === null) {
      if (command.verb !== "state") {
        throw new Error("a command needs the `name` of an offer");
      }
      return whole(question, false);
    }
    try {
      await obey(command);
    } catch (why) {
      throw new Error(`'${name}': ${reason(why)}`);
    }
    return whole(question, true);
  }, { name });
}

/** A flow that the program sends, under control. Its calls fail with the code `cancelled` after a stop. */
export class OfferedFlow {
  transfer = 0;
  bytes = 0;
  /** Limit of the rate in bytes a second. */
  throttle: number | null = null;
  paused = false;
  private runs = false;
  private cancelled = false;
  private halted = false;
  private due = 0;
  private wake: (() => void)[] = [];

  constructor(readonly name: string) {}

  /** Notes the begin of a transfer. */
  begin(): void {
    this.check();
    if (this.runs) {
      throw new Failure("bad", `flow '${this.name}': a transfer is running`);
    }
    this.runs = true;
    this.transfer += 1;
    this.bytes = 0;
  }

  /** Waits until so many bytes may be sent: to the end of a pause, and as the rate demands. Call it before each piece. */
  async ready(bytes: number): Promise<void> {
    this.check();
    while (this.paused) {
      await this.changed();
      this.check();
    }
    // The rate may change while this waits for it.
    for (let left = this.due - Date.now(); this.throttle !== null && left > 0; left = this.due - Date.now()) {
      await this.changed(left);
      this.check();
    }
    this.bytes += bytes;
    this.due = this.throttle === null ? 0 : Math.max(this.due, Date.now() - 50) + (bytes / this.throttle) * 1000;
  }

  /** Notes the end of the transfer. */
  end(): void {
    this.runs = false;
    this.cancelled = false;
  }

  get running(): boolean {
    return this.runs;
  }

  /** True after a stop, until the transfer and the work have ended. */
  get stopped(): boolean {
    return this.cancelled || this.halted;
  }

  /** Ends the calls of the running transfer; false without one. */
  cancel(): boolean {
    this.cancelled ||= this.runs;
    this.signal();
    return this.runs;
  }

  halt(halted: boolean): void {
    this.halted = halted;
    this.cancelled &&= halted;
    this.signal();
  }

  pace(bytesPerSecond: number): void {
    this.throttle = bytesPerSecond === 0 ? null : bytesPerSecond;
    this.due = 0;
    this.signal();
  }

  pause(paused: boolean): void {
    this.paused = paused;
    this.signal();
  }

  private check(): void {
    if (this.stopped) {
      throw new Failure("cancelled", `flow '${this.name}' was stopped by a command`);
    }
  }

  private signal(): void {
    this.wake.splice(0).forEach((one) => one());
  }

  private changed(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
      this.wake.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/** A start that the program is to carry out. */
export interface BulkOrder {
  readonly flow: OfferedFlow;
  /** Text for the receivers. */
  readonly parameter: string;
  /** Name of a file that the program offers; without it the program decides. */
  readonly file: string | undefined;
}

export interface SenderOptions {
  stream: string;
  /** Names of the flows. */
  flows: string[];
  /**
   * Carries starts out, one at a time. A transfer that is open when it returns is ended. Its error stands in the state. Without it the program
   * begins all transfers itself, which others may pace, pause and stop.
   */
  onStart?: (order: BulkOrder) => Promise<void>;
}

/** A sender that other programs start, pace, pause and stop. The program moves the data itself, as its flows allow. */
export class BulkSenderOffer {
  readonly flows: readonly OfferedFlow[];
  private service: Service | undefined;
  private running: OfferedFlow | undefined;
  private work: Promise<void> = Promise.resolve();
  private own: OfferedFlow[] = [];
  private starts = 0;
  private failure: string | null = null;
  private isOver = false;

  private constructor(private readonly options: SenderOptions) {
    this.flows = options.flows.map((name) => new OfferedFlow(name));
  }

  /** Offers a sender under a name. */
  static async open(session: Session, name: string, options: SenderOptions): Promise<BulkSenderOffer> {
    const offer = new BulkSenderOffer(options);
    offer.service = await offered(session, name, (withReport) => offer.state(withReport), (command) => offer.obey(command));
    return offer;
  }

  /**
   * Notes that the program works on a flow by itself, until the returned function is called. A stop then also ends what is between two
   * transfers, or before the first one.
   */
  beginWork(flow: OfferedFlow): () => void {
    this.own.push(flow);
    let isOver = false;
    return () => {
      if (!isOver) {
        isOver = true;
        this.own.splice(this.own.indexOf(flow), 1);
        this.release(flow);
      }
    };
  }

  /** Ends the offer: work of a start is stopped, and its end is awaited. */
  async close(): Promise<void> {
    this.isOver = true;
    this.service?.close();
    this.running?.halt(true);
    this.flows.forEach((flow) => flow.pause(false));
    await this.work;
  }

  private worksOn(flow: OfferedFlow): boolean {
    return this.running === flow || this.own.includes(flow);
  }

  private release(flow: OfferedFlow): void {
    if (!this.worksOn(flow)) {
      flow.halt(false);
    }
  }

  private named(name: string | undefined): readonly OfferedFlow[] {
    const found = this.flows.filter((flow) => name === undefined || same(flow.name, name));
    if (found.length === 0 && name !== undefined) {
      throw noFlow(name, this.options.flows);
    }
    return found;
  }

  private async obey({ verb, flow, bytes_per_s: rate, ...start }: Command): Promise<void> {
    switch (verb) {
      case "state":
        return;
      case "start":
        return this.start(flow, start);
      case "pace":
        if (typeof rate !== "number" || !(rate === 0 || (rate >= RATES.slowest && rate <= RATES.fastest))) {
          throw new Error(`invalid rate of ${rate} bytes/s: use ${RATES.slowest} to ${RATES.fastest}, or 0 for no limit`);
        }
        return this.named(flow).forEach((one) => one.pace(rate));
      case "pause":
      case "resume":
        return this.named(flow).forEach((one) => one.pause(verb === "pause"));
      case "stop":
        return this.stop(flow);
      default:
        throw new Error("it is a sender, which obeys start, pace, pause, resume and stop");
    }
  }

  private start(name: string | undefined, { parameter = "", file }: { parameter?: string; file?: string }): void {
    const { onStart, flows } = this.options;
    if (!onStart) {
      throw new Error("its program begins transfers itself; pace, pause, resume and stop are possible");
    }
    const [flow, ...others] = this.named(name);
    if (!flow || others.length > 0) {
      throw new Error(`it has several flows; name one of ${quoted(flows)}`);
    }
    if (this.isOver) {
      throw new Error("its program is ending");
    }
    if (this.running) {
      throw new Error(`flow '${this.running.name}' is sending what an earlier start began; stop it first, or wait for its end`);
    }
    this.release(flow);
    this.running = flow;
    this.starts += 1;
    this.failure = null;
    this.work = (async () => {
      let failure: string | null = null;
      try {
        await onStart({ flow, parameter, file });
      } catch (why) {
        failure = reason(why);
      }
      flow.end();
      this.running = undefined;
      this.release(flow);
      this.failure = failure;
    })();
  }

  private async stop(name: string | undefined): Promise<void> {
    const flows = this.named(name);
    let any = false;
    for (const flow of flows) {
      const works = this.worksOn(flow);
      if (works) {
        flow.halt(true);
      }
      if (flow.cancel() || works) {
        any = true;
        flow.pause(false);
      }
    }
    if (!any) {
      throw new Error(`${name === undefined ? "no flow is sending" : `flow '${name}' is not sending`}; start it first`);
    }
    if (this.running && flows.includes(this.running)) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      await Promise.race([this.work, new Promise((resolve) => (timer = setTimeout(resolve, STOP_MS)))]);
      clearTimeout(timer);
    }
  }

  private state(withReport: boolean): Side {
    const { stream } = this.options;
    const flows = this.flows.map(({ name, running, transfer, bytes, throttle, paused }) => ({ flow: name, phase: running ? "data" : "ready", transfer, bytes, throttle, paused, receivers: [] }));
    const active = this.running !== undefined || this.own.length > 0 || this.flows.some((flow) => flow.running);
    return { kind: "sender", stream, active, starts: this.starts, failure: this.failure, ...(withReport ? { report: { sender: { stream, flows } } } : {}) };
  }
}

/** An open receiver. */
export interface OpenedReceiver {
  close(): void | Promise<void>;
  /** Its state, as `tampu bulk stat --json` has it. */
  state?(): unknown;
}

export interface ReceiverOptions {
  stream: string;
  flows: string[];
  /** Opens the receiver with settings that are at least as strict as the program's own, or fails with the reason. */
  onOpen: (settings: OpenSettings & { flows: string[] }) => OpenedReceiver | Promise<OpenedReceiver>;
}

/** A receiver that other programs open and close. It is closed at first. */
export class BulkReceiverOffer {
  private service: Service | undefined;
  private opened: OpenedReceiver | undefined;
  private turn: Promise<unknown> = Promise.resolve();
  private starts = 0;
  private failure: string | null = null;
  private isOver = false;

  private constructor(private readonly options: ReceiverOptions) {}

  /** Offers a receiver under a name. */
  static async open(session: Session, name: string, options: ReceiverOptions): Promise<BulkReceiverOffer> {
    const offer = new BulkReceiverOffer(options);
    offer.service = await offered(session, name, (withReport) => offer.state(withReport), (command) => offer.obey(command));
    return offer;
  }

  /** Ends the offer, and closes an open receiver. */
  async close(): Promise<void> {
    this.service?.close();
    await this.inTurn(async () => {
      this.isOver = true;
      await this.shut();
    });
  }

  /** Two commands do not open it twice. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => undefined);
    return done;
  }

  private async shut(): Promise<boolean> {
    const { opened } = this;
    this.opened = undefined;
    await opened?.close();
    return opened !== undefined;
  }

  private obey({ verb, settings }: Command): Promise<void> {
    return this.inTurn(async () => {
      if (verb === "open") {
        await this.begin(settings);
      } else if (verb === "close") {
        if (!(await this.shut())) {
          throw new Error("it is closed already; open it first");
        }
      } else if (verb !== "state") {
        throw new Error("it is a receiver, which obeys open and close");
      }
    });
  }

  private async begin(settings: OpenSettings): Promise<void> {
    if (this.isOver) {
      throw new Error("its program is ending");
    }
    if (this.opened) {
      throw new Error("it is open already; close it first");
    }
    const { flows: own, onOpen } = this.options;
    const wanted = settings.flows ?? [];
    try {
      const strange = wanted.find((flow) => !own.some((one) => same(one, flow)));
      if (strange !== undefined) {
        throw noFlow(strange, own);
      }
      const flows = own.filter((flow) => wanted.length === 0 || wanted.some((one) => same(one, flow)));
      this.opened = await onOpen({ ...settings, flows });
    } catch (why) {
      this.failure = reason(why);
      throw why;
    }
    this.failure = null;
    this.starts += 1;
  }

  private state(withReport: boolean): Side {
    const report = withReport ? this.opened?.state?.() : undefined;
    const { stream } = this.options;
    return { kind: "receiver", stream, active: this.opened !== undefined, starts: this.starts, failure: this.failure, ...(report === undefined ? {} : { report: { receiver: report } }) };
  }
}
