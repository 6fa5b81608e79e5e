/** The one WebSocket of a tab: a session of the gateway, which is made anew when it ends. */
import { Failure, Session } from "tampu";

import { BASE } from "./address.svelte";
import { jsonBytes } from "./json";

/** Pauses between attempts to connect, ms. */
const PAUSES = { first: 500, longest: 10_000 };

export type ConnectionState = "connecting" | "open" | "broken" | "refused";

class Connection {
  state = $state<ConnectionState>("connecting");
  /** The reason of a state that is not open. */
  why = $state("");
  domain = $state("");
  release = $state("");
  /** Counts sessions: views whose session is of the past begin again. */
  life = $state(0);
  session: Session | undefined;
  private pause = PAUSES.first;
  private wanted = false;
  /** Counts attempts: words of an earlier session say nothing about the present one. */
  private attempt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Connects anew, and stays connected until the hub refuses the caller. */
  open(): void {
    this.close();
    this.wanted = true;
    void this.connect();
  }

  close(): void {
    this.wanted = false;
    this.attempt++;
    clearTimeout(this.timer);
    this.session?.close();
    this.session = undefined;
  }

  private async connect(): Promise<void> {
    const mine = ++this.attempt;
    this.state = "connecting";
    const url = new URL("api/v1/gateway", BASE).href;
    try {
      const session = await Session.connect(url, {
        source: "console",
        onConnection: (state, why) => mine === this.attempt && this.changed(state, why),
        onEnd: (end) => mine === this.attempt && this.ended(end),
      });
      if (mine !== this.attempt) {
        session.close();
        return;
      }
      this.session = session;
      this.pause = PAUSES.first;
      ({ domain: this.domain, hub: this.release } = session.welcome);
      this.state = "open";
      this.life++;
    } catch {
      // The callback has been told why.
    }
  }

  private changed(state: "connected" | "broken" | "resumed" | "new session", why = ""): void {
    if (state === "broken") {
      this.state = "broken";
      this.why = why;
    } else if (state !== "connected") {
      this.state = "open";
      if (state === "new session") {
        this.life++;
      }
    }
  }

  private ended(end: Failure): void {
    this.session = undefined;
    this.why = end.message;
    if (end.code === "unauthenticated" || end.code === "denied") {
      this.state = "refused";
      return;
    }
    if (!this.wanted) {
      return;
    }
    this.state = "broken";
    this.timer = setTimeout(() => void this.connect(), this.pause);
    this.pause = Math.min(2 * this.pause, PAUSES.longest);
  }

  /** Asks a service of one process, and gives the parts of the answer. The signal ends it. */
  async *ask(service: string, question: unknown, signal?: AbortSignal, timeoutMs = 60_000): AsyncGenerator<Uint8Array> {
    if (!this.session) {
      throw new Failure("closed", "there is no connection with the hub");
    }
    const parts = this.session.ask(service, jsonBytes(question), { timeoutMs });
    const stop = () => void parts.return?.();
    signal?.addEventListener("abort", stop);
    try {
      for await (const { content } of parts) {
        yield content;
      }
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Asks a service whose answer is one JSON document, cut where a part is full. */
  async askJson<T>(service: string, question: unknown, signal?: AbortSignal): Promise<T> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const part of this.ask(service, question, signal)) {
      text += decoder.decode(part, { stream: true });
    }
    if (signal?.aborted) {
      throw new DOMException("ended", "AbortError");
    }
    return JSON.parse(text) as T;
  }
}

export const connection = new Connection();
