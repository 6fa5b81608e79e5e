/**
 * One stream for all tabs of a browser. HTTP/1.1 gives six connections to all tabs together, and a stream holds one for
 * as long as it lives. The tabs in sight choose one that holds it and passes on what it gets.
 *
 * The choice: a holder says so every two seconds. A tab that hears of none holds the stream itself. Of two that do, the one with
 * the larger name lets go. Web locks would choose, too, but pages without https have none.
 */

/** The part of a BroadcastChannel that is used. */
export interface Channel {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
}

/** An open stream of a hub. */
export interface Stream {
  close(): void;
}

/** The words of a stream: a piece of news with its number; news that were missed; a stream that the hub has refused. */
export type Said<News> = { news: News; number: string } | "missed" | "refused";

/** Opens the stream after a number, or from now on: something may have been missed before that. */
export type Open<News> = (after: string | undefined, said: (said: Said<News>) => void) => Stream;

type Message<News> =
  | { kind: "who" }
  | { kind: "holds"; name: number }
  | { kind: "free" }
  | { kind: "again" }
  | { kind: "said"; said: Said<News> };

/** Times, ms. */
export const TIMES = { answer: 150, beat: 2000, silent: 6500, refused: 30_000 };

export class SharedStream<News> {
  private readonly name = Math.random();
  private wanted = false;
  private stream: Stream | undefined;
  private last: string | undefined;
  private claim: ReturnType<typeof setTimeout> | undefined;
  private beat: ReturnType<typeof setInterval> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly channel: Channel,
    private readonly open: Open<News>,
    /** Gets all news, whichever tab holds the stream. */
    private readonly got: (said: Said<News>) => void,
    private readonly times: typeof TIMES = TIMES,
  ) {
    channel.onmessage = ({ data }: MessageEvent<Message<News>>) => this.heard(data);
  }

  /** True if this tab holds the stream. */
  get holds(): boolean {
    return this.stream !== undefined;
  }

  /** Wants news: a tab in sight that shows entries. */
  begin(): void {
    if (!this.wanted) {
      this.wanted = true;
      this.send({ kind: "who" });
      this.claimAfter(this.times.answer);
    }
  }

  /** Wants none. Another tab holds the stream then. */
  end(): void {
    if (this.wanted) {
      this.wanted = false;
      clearTimeout(this.claim);
      // What comes until the next beginning is not known.
      this.last = undefined;
      if (this.stream) {
        this.release();
        this.send({ kind: "free" });
      }
    }
  }

  /** Opens the stream anew, as after a login: it has other rights. */
  again(): void {
    this.send({ kind: "again" });
    this.reopen();
  }

  private send(message: Message<News>): void {
    this.channel.postMessage(message);
  }

  private heard(message: Message<News>): void {
    if (!this.wanted) {
      return;
    }
    switch (message.kind) {
      case "who":
        this.tell();
        break;
      case "holds":
        if (!this.stream) {
          this.claimAfter(this.times.silent);
        } else if (message.name < this.name) {
          this.release();
          this.claimAfter(this.times.silent);
        } else {
          this.tell();
        }
        break;
      case "free":
        this.claimAfter(Math.random() * this.times.answer);
        break;
      case "again":
        this.reopen();
        break;
      case "said":
        this.take(message.said);
    }
  }

  private tell(): void {
    if (this.stream) {
      this.send({ kind: "holds", name: this.name });
    }
  }

  private claimAfter(time: number): void {
    clearTimeout(this.claim);
    this.claim = setTimeout(() => this.hold(), time);
  }

  private hold(): void {
    if (!this.wanted || this.stream) {
      return;
    }
    const stream: Stream = (this.stream = this.open(this.last, (said) => {
      if (this.stream === stream) {
        this.take(said);
        this.send({ kind: "said", said });
        if (said === "refused") {
          clearTimeout(this.retry);
          this.retry = setTimeout(() => this.reopen(), this.times.refused);
        }
      }
    }));
    this.tell();
    this.beat = setInterval(() => this.tell(), this.times.beat);
  }

  private release(): void {
    clearInterval(this.beat);
    clearTimeout(this.retry);
    this.stream?.close();
    this.stream = undefined;
  }

  private reopen(): void {
    if (this.stream) {
      this.release();
      this.hold();
    }
  }

  private take(said: Said<News>): void {
    if (typeof said === "object") {
      this.last = said.number;
    }
    this.got(said);
  }
}
