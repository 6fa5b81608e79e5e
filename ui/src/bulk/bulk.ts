/** States of senders and receivers of bulk data (`spec/bulk.md`), and who waits for whom in them. */
import type { Transfer } from "../timeline/data";

export interface Peer {
  source: string;
  incarnation: string;
  address: string;
}

export interface LinkState {
  receiver: Peer;
  status: string;
  since: number;
  transport: string;
  protection: string;
  behind: number;
  acknowledged: number;
  lost_bytes: number;
  reconnects: number;
  gave_up: string | null;
  refusal: unknown;
  cut: string | null;
  why: string;
}

export interface SentFlow {
  flow: string;
  phase: string;
  transfer: number;
  bytes: number;
  rate: number;
  throttle: number | null;
  paused: boolean;
  window: number;
  window_limit: number;
  waits: number | null;
  waits_for: string[];
  receivers: LinkState[];
}

export interface ReceivedFlow {
  flow: string;
  sender: Peer | null;
  connected: boolean;
  transport: string | null;
  protection: string | null;
  connected_for: number | null;
  waits_for_sender: number | null;
  in_callback: number | null;
  bytes: number;
  frames: number;
  lost_bytes: number;
  transfers: number;
  refused: number;
}

interface Party<F> {
  stream: string;
  source: string;
  incarnation: string;
  flows: F[];
}

export interface Running {
  processes: { sender?: Party<SentFlow>; receiver?: Party<ReceivedFlow> & { address: string; refused: number } }[];
  unreadable: number;
}

/** A sender's flow with all that is known of it. */
export interface Sending extends SentFlow {
  key: string;
  stream: string;
  source: string;
  incarnation: string;
  /** Length of the file that is sent, if it is one. */
  size?: number;
  name?: string;
}

/** A receiver's flow. */
export interface Receiving extends ReceivedFlow {
  key: string;
  stream: string;
  source: string;
  incarnation: string;
}

const byName = (one: { key: string }, other: { key: string }) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0);

/** The flows of all senders, by name; with the files of the transfers under way. */
export function sendingOf(running: Running, past: readonly Transfer[]): Sending[] {
  const sending = running.processes.flatMap(({ sender }) =>
    (sender?.flows ?? []).map((flow) => {
      const known = past.find((one) => one.incarnation === sender?.incarnation && one.stream === sender.stream && one.flow === flow.flow && one.transfer === String(flow.transfer));
      const { stream = "", source = "", incarnation = "" } = sender ?? {};
      return { ...flow, key: `${stream}#${flow.flow} ${incarnation}`, stream, source, incarnation, ...(typeof known?.file === "string" ? { name: known.file } : {}), ...(typeof known?.size === "number" ? { size: known.size } : {}) };
    }),
  );
  return distinct(sending);
}

export function receivingOf(running: Running): Receiving[] {
  return distinct(
    running.processes.flatMap(({ receiver }) =>
      (receiver?.flows ?? []).map((flow) => {
        const { stream = "", source = "", incarnation = "", address = "" } = receiver ?? {};
        return { ...flow, key: `${stream}#${flow.flow} ${incarnation} ${address}`, stream, source, incarnation };
      }),
    ),
  );
}

/** Parties that answer twice stand there once. */
function distinct<T extends { key: string }>(all: T[]): T[] {
  return [...new Map(all.map((one) => [one.key, one])).values()].toSorted(byName);
}

/** A wait, or a fault: who waits for whom, since when. */
export interface Finding {
  grade: "fail" | "warn" | "note";
  key: string;
  /** Sender and receivers, with the stream. */
  who: string;
  what: "waits" | "callback" | "gone" | "paused" | "broken" | "cut" | "refused" | "lagging" | "lost" | "alone" | "no sender";
  forWhom: string;
  seconds: number;
  why: string;
}

/** Waits shorter than this are the usual pace of a receiver, seconds. */
const USUAL_WAIT = 0.5;

/** Everything that keeps data from flowing, or has lost some; faults first, then the longest waits. */
export function findingsOf(sending: readonly Sending[], receiving: readonly Receiving[]): Finding[] {
  const found: Finding[] = [];
  const add = (grade: Finding["grade"], what: Finding["what"], flow: { key: string; source: string; stream: string; flow: string }, forWhom: string, seconds: number, why = "") =>
    found.push({ grade, what, key: `${flow.key} ${what} ${forWhom}`, who: `${flow.source} (${flow.stream}/${flow.flow})`, forWhom, seconds, why });
  for (const flow of sending) {
    if (flow.paused) {
      add("note", "paused", flow, "", 0);
    } else if (flow.waits !== null && flow.waits >= USUAL_WAIT) {
      add("warn", flow.receivers.length === 0 ? "alone" : "waits", flow, flow.waits_for.join(", "), flow.waits);
    }
    for (const link of flow.receivers) {
      const { status, since, why, receiver } = link;
      if (status === "cut" || status === "refused" || status === "broken" || status === "lagging") {
        add(status === "cut" || status === "refused" ? "fail" : "warn", status, flow, receiver.source, since, why);
      }
      if (link.lost_bytes > 0) {
        add("fail", "lost", flow, receiver.source, 0, String(link.lost_bytes));
      }
    }
  }
  for (const flow of receiving) {
    if (flow.in_callback !== null && flow.in_callback >= USUAL_WAIT) {
      add("warn", "callback", flow, flow.sender?.source ?? "", flow.in_callback);
    }
    if (flow.waits_for_sender !== null) {
      add("warn", "gone", flow, flow.sender?.source ?? "", flow.waits_for_sender);
    }
  }
  const grades = ["fail", "warn", "note"];
  return found.toSorted((one, other) => grades.indexOf(one.grade) - grades.indexOf(other.grade) || other.seconds - one.seconds);
}

/** A page of transfers, as the API has it. */
export interface Page {
  transfers: Transfer[];
  next: string | null;
  complete: boolean;
  left_out: number;
}

/** Transfers of the past: the newest page, which is asked for again and again, and older pages behind it. */
export interface Past {
  transfers: Transfer[];
  /** Place of the next older page; null at the end. */
  next: string | null;
  leftOut: number;
  /** False if a search ran out of time; it goes on with the next page. */
  complete: boolean;
}

/**
 * Joins the newest page with what is loaded already. Transfers that newer ones have pushed out of the page stay. If
 * the page no longer touches them, some are missing between, and the list begins anew.
 */
export function joined(before: Past | undefined, page: Page): Past {
  const { transfers, next, left_out: leftOut, complete } = page;
  const fresh = new Set(transfers.map(({ id }) => id));
  const rest = before?.transfers.filter((one) => !fresh.has(one.id) && one.ended !== null) ?? [];
  const touches = before !== undefined && next !== null && before.transfers.some((one) => one.ended !== null && fresh.has(one.id));
  return touches ? { transfers: [...transfers, ...rest], next: before.next, leftOut, complete: before.complete } : { transfers, next, leftOut, complete };
}

/** Adds an older page. */
export function withOlder(before: Past, page: Page): Past {
  const have = new Set(before.transfers.map(({ id }) => id));
  return { ...before, transfers: [...before.transfers, ...page.transfers.filter(({ id }) => !have.has(id))], next: page.next, complete: page.complete };
}

/** Progress of a flow, 0 to 1, if the length is known. */
export function progressOf({ size, bytes, phase }: Sending): number | undefined {
  return size === undefined || phase !== "data" ? undefined : size === 0 ? 1 : Math.min(1, bytes / size);
}

/** Rates of the last answers, for a small plot. */
export class Rates {
  private readonly rates = new Map<string, number[]>();

  constructor(private readonly most = 60) {}

  /** Notes the rates of one answer. Flows that are gone are forgotten. */
  note(flows: readonly { key: string; rate: number }[]): void {
    const keys = new Set(flows.map(({ key }) => key));
    [...this.rates.keys()].filter((key) => !keys.has(key)).forEach((key) => this.rates.delete(key));
    for (const { key, rate } of flows) {
      this.rates.set(key, [...(this.rates.get(key) ?? []), rate].slice(-this.most));
    }
  }

  of(key: string): readonly number[] {
    return this.rates.get(key) ?? [];
  }

  /** The path of a plot, newest at the right. */
  path(key: string, width: number, height: number): string {
    const rates = this.of(key);
    const highest = Math.max(1, ...rates);
    const step = width / (this.most - 1);
    return rates.map((rate, nth) => `${nth === 0 ? "M" : "L"}${Math.round((width - (rates.length - 1 - nth) * step) * 10) / 10} ${Math.round((height - 1 - (rate / highest) * (height - 2)) * 10) / 10}`).join("");
  }
}

/** The command that gives a control's command in a terminal. */
export function commandOf(name: string, command: "pause" | "resume" | "stop", flow: string, quote: (word: string) => string): string {
  return `tampu bulk control ${command} ${quote(name)} --flow ${quote(flow)}`;
}
