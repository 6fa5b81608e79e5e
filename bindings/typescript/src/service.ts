/** Services of the bus that this program answers (`spec/wire/gateway.md`). */
import { Failure } from "./failure.js";
import { jsonBody, jsonOf, Kind, numberOf, type Frame } from "./frame.js";
import type { Welcome } from "./link.js";

/** The feature of HELLO and WELCOME. */
export const SERVE = "serve";
const LAST = 1;
const REFUSED = 2;
/** Longest content of a part of JSON, in bytes. */
const PART = 1_000_000;
const UTF8 = new TextDecoder();

/** A question of the bus. The hub has checked the rights of the asking principal. */
export interface Question {
  /** The question as sent. */
  readonly octets: Uint8Array;
  /** The asking principal as a rule names it: `local`, `key`, `host:NAME`. */
  readonly asker: string;
  /** Time for the answer, from the moment at which the hub sent the question. */
  readonly timeoutMs: number;
  /** Incarnation of the session, which the answer has as its process. */
  readonly process: string;
  /** Aborted once nobody reads the answer. */
  readonly signal: AbortSignal;
  /** Reads the question as JSON; an empty one is `{}`. */
  json<T>(): T;
  /** Sends a part of the answer. Returns false if nobody reads it. */
  part(content: Uint8Array): boolean;
}

/**
 * Answers a question. A value that is returned is the last part, as JSON or as bytes; `undefined` is none. An error refuses the
 * question with its message as the reason.
 */
export type ServiceHandler = (question: Question) => unknown;

export interface ServiceOptions {
  /** Name of the offer, for a service whose questions name one. */
  name?: string;
  /** Time for an answer; 10 s if absent. */
  timeoutMs?: number;
}

/** Rule by which a program is asked for readings of an attribute: give one of the two. */
export interface ReadOptions {
  /** Age of the last reading up to which a question for the current value needs no new one. */
  freshMs?: number;
  /** Period at which a reading is asked for. It can be changed from outside while the program runs. */
  pollMs?: number;
}

/** The way of a service to the hub. */
export interface ServiceUser {
  send(kind: number, id: number, body: Uint8Array, flags?: number): void;
}

/** Fails unless the hub passes questions on. */
export function requireServe(welcome: Welcome): void {
  if (!welcome.features?.includes(SERVE)) {
    throw new Failure("version", `the hub of release ${welcome.hub} passes no questions on to programs: update the hub`);
  }
}

/** A service, or the reads of an attribute, that the program answers, until it is closed. */
export class Service {
  id = 0;
  /** Incarnation of the session; it changes when the hub was restarted. */
  incarnation = "";
  private running = new Map<bigint, AbortController>();
  private isOver = false;

  constructor(
    private readonly user: ServiceUser,
    /** Name of the service, or of the attribute that is read. */
    readonly service: string,
    private readonly body: object,
    private readonly handler: ServiceHandler,
    private readonly onClose: (service: Service) => void,
  ) {}

  /** Ends the service. Questions that wait for their answers are refused. */
  close(): void {
    this.onClose(this);
    this.end();
  }

  /** The body of SERVE. */
  opening(): Uint8Array {
    return jsonBody(this.body);
  }

  /** A new session knows nothing of the questions of the old one. */
  renewed(): void {
    this.running.forEach((one) => one.abort());
    this.running.clear();
  }

  end(): void {
    this.isOver = true;
    this.renewed();
  }

  take(frame: Frame): void {
    if (frame.kind === Kind.opened) {
      this.incarnation = jsonOf<{ incarnation?: string }>(frame.body).incarnation ?? "";
    } else if (frame.kind === Kind.cancel) {
      const number = numberOf(frame.body);
      this.running.get(number)?.abort();
      this.running.delete(number);
    } else if (frame.kind === Kind.question) {
      this.question(frame.body);
    }
  }

  private question(body: Uint8Array): void {
    const view = new DataView(body.buffer, body.byteOffset, body.length);
    const length = body.length < 16 ? 0 : view.getUint16(12, true);
    if (body.length < 16 + length) {
      return;
    }
    const number = view.getBigUint64(0, true);
    const running = new AbortController();
    this.running.set(number, running);
    const send = (flags: number, content: Uint8Array): boolean => {
      // In a new session another question may have the number.
      if (this.isOver || running.signal.aborted) {
        return false;
      }
      const answer = new Uint8Array(8 + content.length);
      new DataView(answer.buffer).setBigUint64(0, number, true);
      answer.set(content, 8);
      this.user.send(Kind.answer, this.id, answer, flags);
      return true;
    };
    const octets = body.subarray(16 + length);
    const question: Question = {
      octets,
      asker: UTF8.decode(body.subarray(16, 16 + length)),
      timeoutMs: view.getUint32(8, true),
      process: this.incarnation,
      signal: running.signal,
      json: <T>() => (octets.length === 0 ? ({} as T) : jsonOf<T>(octets)),
      part: (content) => send(0, content),
    };
    void this.answer(question, send).finally(() => this.running.get(number) === running && this.running.delete(number));
  }

  private async answer(question: Question, send: (flags: number, content: Uint8Array) => boolean): Promise<void> {
    let content: Uint8Array;
    try {
      const value = await this.handler(question);
      content = value === undefined ? new Uint8Array() : value instanceof Uint8Array ? value : jsonBody(value);
    } catch (why) {
      const error = why instanceof Error && why.message !== "" ? why.message : String(why);
      send(LAST | REFUSED, jsonBody({ error }));
      return;
    }
    let at = 0;
    while (content.length - at > PART) {
      send(0, content.subarray(at, at + PART));
      at += PART;
    }
    send(LAST, content.subarray(at));
  }
}
