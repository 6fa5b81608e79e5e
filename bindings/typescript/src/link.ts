/**
 * The connection of a session: counted frames, acknowledgement, beats, and coming back after a broken connection
 * (`spec/wire/gateway.md`).
 */
import { Failure } from "./failure.js";
import { SERVE } from "./service.js";
import { decodeFrame, encodeFrame, HEAD, jsonBody, jsonOf, Kind, numberBody, numberOf, type Frame } from "./frame.js";

/** The part of a WebSocket that is used; browsers have it, and in Node the package `ws`. */
export interface Socket {
  binaryType: string;
  readyState: number;
  send(data: Uint8Array<ArrayBuffer>): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

export interface ConnectOptions {
  /** The name under which the session publishes. */
  source?: string;
  /** A token of the hub; not needed where a cookie proves the user. */
  token?: string;
  /** The expected domain; a hub of another one refuses. */
  domain?: string;
  /** Makes the connection; the default is the platform's `WebSocket`. */
  socket?: (url: string, protocol: string) => Socket;
  /** Connects again when the connection breaks; true if absent. */
  reconnect?: boolean;
  /**
   * Bytes of publications and questions that may wait for the hub's acknowledgement; 8 MiB if absent. While it is
   * reached, the session refuses further ones with the code `full`.
   */
  maxWaitingBytes?: number;
  /** Time within which a hub must connect and answer, ms; 10 000 if absent. Then the next attempt begins, or the first one fails. */
  answerMs?: number;
  /** Told when the connection breaks, and when it is there again. */
  onConnection?: (state: "connected" | "broken" | "resumed" | "new session", why?: string) => void;
  /** Told when the session has ended for good, after which no connection is made again. */
  onEnd?: (why: Failure) => void;
}

export interface Welcome {
  version: number;
  /** Features that the hub has; absent in hubs before them. */
  features?: string[];
  hub: string;
  domain: string;
  session: string;
  resumed: boolean;
  received: string;
  principal: string;
  beat_ms: number;
  resume_ms: number;
  window: number;
  frame: number;
}

/** Counted bytes after which an acknowledgement is sent at once. */
const ACK_BYTES = 64 << 10;
/** Default of `maxWaitingBytes`: as much as a hub keeps for a session. */
const MAX_WAITING_BYTES = 8 << 20;
/** Pauses between attempts to connect, ms: each twice the one before. */
const PAUSES = { first: 100, longest: 2000 };
/** Default of `answerMs`. */
const ANSWER_MS = 10_000;
const PROTOCOL = "tampu-gateway-1";
/** Versions of the gateway's protocol that this library speaks. */
const VERSIONS = [1];
const CLIENT = "tampu.ts 0.1.0";
const OPEN = 1;

/** Adds to a hub's words about its version that of this library, and the way out. */
function otherVersion(hub: string): string {
  return `${hub}; ${CLIENT} speaks ${VERSIONS.join(", ")}: use the library of the hub's release, or update the hub`;
}

/** Calls of a link to its session. */
export interface LinkUser {
  frame(frame: Frame): void;
  /** A session began that knows nothing of the one before, whose hub had not acknowledged these frames. */
  renewed(left: Frame[]): void;
  ended(why: Failure): void;
}

interface Kept {
  number: bigint;
  bytes: Uint8Array<ArrayBuffer>;
  /** Bytes that count for the bound. */
  counted: number;
}

/** Kinds whose frames hold as many bytes as the program likes. The frames of other kinds are few and small. */
const BOUNDED: readonly number[] = [Kind.publish, Kind.ask, Kind.answer];

export class Link {
  welcome: Welcome | undefined;
  /** Counted bytes of the frames that the hub has not acknowledged. */
  waiting = 0;
  private socket: Socket | undefined;
  /** True from WELCOME to the end of a connection. Before it the hub knows neither the session nor its numbers. */
  private isGreeted = false;
  private unanswered: ReturnType<typeof setTimeout> | undefined;
  private kept: Kept[] = [];
  private drains: { resolve: () => void; reject: (why: Failure) => void }[] = [];
  private readonly most: number;
  private lastSent = 0n;
  private received = 0n;
  private unacknowledged = 0;
  private heardAt = 0;
  private beat: ReturnType<typeof setInterval> | undefined;
  private pause: number = PAUSES.first;
  private over: Failure | undefined;
  private settle: { resolve: () => void; reject: (why: Failure) => void } | undefined;

  constructor(
    private readonly url: string,
    private readonly options: ConnectOptions,
    private readonly user: LinkUser,
  ) {
    this.most = options.maxWaitingBytes ?? MAX_WAITING_BYTES;
    if (!(this.most > 0 && this.most < Infinity)) {
      throw new Failure("bad", `maxWaitingBytes is ${this.most}; a positive number of bytes is needed`);
    }
  }

  /** Connects for the first time. */
  begin(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
      this.connect();
    });
  }

  /**
   * Sends a frame of the program if the bound leaves room for it, and fails otherwise. A frame above the bound goes alone,
   * because it would find no room ever.
   */
  offer(kind: number, id: number, body: Uint8Array, flags = 0): void {
    if (!this.over && this.waiting > 0 && this.waiting + HEAD + body.length > this.most) {
      throw new Failure("full", `${this.waiting} of ${this.most} bytes wait for the hub: await \`drained()\` of the session, or raise \`maxWaitingBytes\``);
    }
    this.send(kind, id, body, flags);
  }

  /** Waits until the hub has acknowledged all publications and questions. */
  drained(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.over) {
        reject(this.over);
      } else if (this.waiting === 0) {
        resolve();
      } else {
        this.drains.push({ resolve, reject });
      }
    });
  }

  /** Sends a counted frame whatever waits; while there is no connection it is kept for the next one. */
  send(kind: number, id: number, body: Uint8Array, flags = 0): void {
    if (this.over) {
      throw this.over;
    }
    const number = ++this.lastSent;
    const bytes = encodeFrame({ kind, flags, id, number, body });
    const counted = BOUNDED.includes(kind) ? bytes.length : 0;
    this.kept.push({ number, bytes, counted });
    this.waiting += counted;
    if (this.isGreeted && this.socket?.readyState === OPEN) {
      this.socket.send(bytes);
    }
  }

  /** Ends the session in order. */
  close(): void {
    if (this.over) {
      return;
    }
    if (this.socket?.readyState === OPEN) {
      this.plain(Kind.bye, jsonBody({}));
    }
    this.end(new Failure("closed", "the session was closed"));
  }

  private connect(): void {
    const { socket: make = (url, protocol) => new WebSocket(url, protocol) as unknown as Socket } = this.options;
    let socket: Socket;
    try {
      socket = make(this.url, PROTOCOL);
    } catch (why) {
      this.end(new Failure("closed", `${this.url}: ${String(why)}`));
      return;
    }
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    const limit = this.options.answerMs ?? ANSWER_MS;
    this.unanswered = setTimeout(() => this.broken(socket, `${this.url} has not answered within ${limit} ms`), limit);
    socket.onopen = () => this.hello();
    socket.onmessage = (event: { data: unknown }) => this.message(socket, event.data);
    socket.onclose = (event: { reason?: string }) => this.broken(socket, event.reason || "the connection ended");
    socket.onerror = (event: { message?: string }) => this.broken(socket, event.message || `${this.url} cannot be reached`);
  }

  private hello(): void {
    const { source, token, domain } = this.options;
    const resumed = this.welcome ? { session: this.welcome.session, received: this.received.toString() } : {};
    this.plain(Kind.hello, jsonBody({ versions: VERSIONS, features: [SERVE], client: CLIENT, source, token, domain, ...resumed }));
  }

  private plain(kind: number, body: Uint8Array): void {
    this.socket?.send(encodeFrame({ kind, flags: 0, id: 0, number: 0n, body }));
  }

  private message(socket: Socket, data: unknown): void {
    if (socket !== this.socket) {
      return;
    }
    try {
      if (!(data instanceof ArrayBuffer)) {
        throw new Failure("protocol", "the hub sent a text, and bytes were agreed");
      }
      this.heardAt = Date.now();
      this.take(decodeFrame(new Uint8Array(data)));
    } catch (why) {
      // What cannot be understood once will not be understood when it is sent again.
      this.end(why instanceof Failure ? why : new Failure("protocol", String(why)));
    }
  }

  private take(frame: Frame): void {
    switch (frame.kind) {
      case Kind.welcome:
        return this.greeted(jsonOf<Welcome>(frame.body));
      case Kind.ack: {
        this.acknowledged(numberOf(frame.body));
        this.wakeDrained();
        return;
      }
      case Kind.bye: {
        const { code = "done", error = "the hub ended the session", denied } = jsonOf<{ code?: string; error?: string; denied?: unknown }>(frame.body);
        if (code === "stopping" && this.options.reconnect !== false && this.socket) {
          return this.broken(this.socket, error);
        }
        return this.end(new Failure(code, code === "version" ? otherVersion(error) : error, denied));
      }
      default:
        break;
    }
    if (frame.number <= this.received) {
      return;
    }
    if (frame.number !== this.received + 1n) {
      throw new Failure("protocol", `frame ${frame.number} came after ${this.received}`);
    }
    this.received = frame.number;
    this.unacknowledged += frame.body.length + 24;
    if (this.unacknowledged >= ACK_BYTES) {
      this.acknowledge();
    }
    this.user.frame(frame);
  }

  /** Forgets the frames that the hub has. */
  private acknowledged(until: bigint): void {
    this.kept = this.kept.filter((kept) => kept.number > until);
    this.waiting = this.kept.reduce((sum, kept) => sum + kept.counted, 0);
  }

  private wakeDrained(): void {
    if (this.waiting === 0) {
      this.drains.splice(0).forEach((one) => one.resolve());
    }
  }

  private acknowledge(): void {
    this.unacknowledged = 0;
    this.plain(Kind.ack, numberBody(this.received));
  }

  private greeted(welcome: Welcome): void {
    if (!VERSIONS.includes(welcome.version)) {
      return this.end(new Failure("version", otherVersion(`the hub chose version ${welcome.version} of the gateway's protocol`)));
    }
    const is_first = !this.welcome;
    this.welcome = welcome;
    this.isGreeted = true;
    clearTimeout(this.unanswered);
    this.pause = PAUSES.first;
    clearInterval(this.beat);
    this.beat = setInterval(() => this.tick(), welcome.beat_ms);
    if (welcome.resumed) {
      this.acknowledged(BigInt(welcome.received));
      this.kept.forEach((kept) => this.socket?.send(kept.bytes));
      this.options.onConnection?.("resumed");
      this.wakeDrained();
      return;
    }
    if (is_first) {
      this.kept.forEach((kept) => this.socket?.send(kept.bytes));
      this.options.onConnection?.("connected");
      this.settle?.resolve();
      this.settle = undefined;
      return;
    }
    const left = this.kept.map((kept) => decodeFrame(kept.bytes));
    this.kept = [];
    this.waiting = 0;
    this.lastSent = 0n;
    this.received = 0n;
    this.options.onConnection?.("new session");
    this.user.renewed(left);
    // The frames that were sent again wait again.
    this.wakeDrained();
  }

  private tick(): void {
    if (!this.welcome || !this.isGreeted || this.socket?.readyState !== OPEN) {
      return;
    }
    if (Date.now() - this.heardAt > 3 * this.welcome.beat_ms) {
      const socket = this.socket;
      this.broken(socket, `nothing was heard of the hub for ${3 * this.welcome.beat_ms} ms`);
      return;
    }
    this.acknowledge();
  }

  private broken(socket: Socket, why: string): void {
    if (socket !== this.socket || this.over) {
      return;
    }
    this.gone();
    socket.onclose = socket.onerror = socket.onmessage = null;
    // A connection that is being made reports its end once more in Node.
    socket.onerror = () => undefined;
    socket.close();
    if (!this.welcome || this.options.reconnect === false) {
      this.end(new Failure("closed", why));
      return;
    }
    this.options.onConnection?.("broken", why);
    setTimeout(() => this.over ?? this.connect(), this.pause);
    this.pause = Math.min(2 * this.pause, PAUSES.longest);
  }

  private gone(): void {
    this.socket = undefined;
    this.isGreeted = false;
    clearTimeout(this.unanswered);
  }

  private end(why: Failure): void {
    if (this.over) {
      return;
    }
    this.over = why;
    clearInterval(this.beat);
    const { socket } = this;
    this.gone();
    if (socket) {
      socket.onclose = socket.onmessage = null;
      socket.onerror = () => undefined;
      socket.close();
    }
    this.kept = [];
    this.waiting = 0;
    this.drains.splice(0).forEach((one) => one.reject(why));
    this.settle?.reject(why);
    this.user.ended(why);
    this.options.onEnd?.(why);
  }
}
