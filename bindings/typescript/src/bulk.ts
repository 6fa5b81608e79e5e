import { Failure } from "./failure.js";
import { joined, jsonOf } from "./frame.js";
import type { Session } from "./session.js";

/** State of a sender or receiver that a program offers (`spec/bulk-control.md`). */
export interface BulkOffer {
  readonly name: string;
  readonly kind: "sender" | "receiver";
  /** Incarnation and name of its process. */
  readonly process: string;
  readonly source: string;
  readonly stream: string;
  /** A sender sends, or a receiver is open. */
  readonly active: boolean;
  readonly starts: number;
  /** Reason for which the last start or opening failed. */
  readonly failure: string | null;
  /** The state of all flows, as `tampu bulk stat --json` has it. Lists have none, nor has a closed receiver. */
  readonly report?: unknown;
}

/** Settings with which a receiver opens: at least as strict as those of its program. */
export interface OpenSettings {
  flows?: string[];
  protocol?: "auto" | "tcp" | "shm" | "udp" | "multicast";
  checksum?: boolean;
  protection?: "auto" | "none" | "authenticated" | "encrypted";
}

const SERVICE = "bulk/control";

/** Returns all senders and receivers that programs offer. */
export async function bulkOffers(session: Session, timeoutMs = 5000): Promise<BulkOffer[]> {
  try {
    return (await session.askJson<BulkOffer>(SERVICE, {}, { all: true, timeoutMs })).map(({ answer }) => answer);
  } catch (why) {
    if (why instanceof Failure && why.code === "unanswered") {
      return [];
    }
    throw why;
  }
}

/**
 * Commands to the sender or receiver that a program offers under a name, as `tampu bulk control` gives them.
 *
 * ```ts
 * const correlator = new BulkControl(session, "correlator");
 * await correlator.start({ parameter: "uid://A002/X1" });
 * await correlator.pace(50e6);
 * await correlator.stop();
 * ```
 * Each command returns the state after it. A `Failure` has the code `unanswered` if no program offers the name or none answers in
 * time, `denied` if the rules of its host refuse, and `failed` with the reason if the program refuses. Without a flow a command is
 * for all flows, and a start for the only one.
 */
export class BulkControl {
  constructor(
    private readonly session: Session,
    readonly name: string,
    /** Longest wait for the offer, and again for the command, in ms. */
    private readonly timeoutMs = 5000,
  ) {}

  /** Returns the state and its counters. */
  state(): Promise<BulkOffer> {
    return this.ask("state");
  }

  /** Starts a sender. `file` is one of those that its program offers. */
  start(what: { parameter?: string; file?: string; flow?: string } = {}): Promise<BulkOffer> {
    return this.ask({ start: what });
  }

  /** Limits the rate, also of a running transfer, to 1000 to 10^12 bytes a second; 0 lifts the limit. */
  pace(bytesPerSecond: number, flow?: string): Promise<BulkOffer> {
    return this.ask({ pace: { flow, bytes_per_s: bytesPerSecond } });
  }

  /** Sends no data until it is resumed. */
  pause(flow?: string): Promise<BulkOffer> {
    return this.ask({ pause: { flow } });
  }

  /** Ends a pause. */
  resume(flow?: string): Promise<BulkOffer> {
    return this.ask({ resume: { flow } });
  }

  /** Ends the running transfer of a sender. */
  stop(flow?: string): Promise<BulkOffer> {
    return this.ask({ stop: { flow } });
  }

  /** Opens a receiver. */
  open(settings: OpenSettings = {}): Promise<BulkOffer> {
    return this.ask({ open: settings });
  }

  /** Closes a receiver. Its running transfers end incomplete. */
  close(): Promise<BulkOffer> {
    return this.ask("close");
  }

  /** Asks the one process that offers the name: two of them must not both obey. */
  private async ask(command: unknown): Promise<BulkOffer> {
    const own = (await bulkOffers(this.session, this.timeoutMs)).filter((offer) => offer.name === this.name);
    const [one] = own;
    if (one === undefined) {
      throw new Failure("unanswered", `no program offers the control '${this.name}'; 'tampu bulk control list' shows what is offered`);
    }
    if (own.length > 1) {
      throw new Failure("failed", `${own.map((offer) => offer.source).join(" and ")} offer the control '${this.name}'; give each another name`);
    }
    const question = { name: this.name, process: one.process, do: command };
    // A long state comes in several parts, which can end inside a letter.
    const parts: Uint8Array[] = [];
    for await (const { content } of this.session.ask(SERVICE, question, { timeoutMs: this.timeoutMs })) {
      parts.push(content);
    }
    if (parts.length === 0) {
      throw new Failure("unanswered", `the program that offers the control '${this.name}' has not answered`);
    }
    return jsonOf<BulkOffer>(joined(parts));
  }
}
