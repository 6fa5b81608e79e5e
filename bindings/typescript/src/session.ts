/** A session with a hub: subscriptions, publishers and questions over one connection. */
import { incarnationOf } from "./batch.js";
import type { Reading } from "./event.js";
import { Failure } from "./failure.js";
import { askBody, jsonBody, jsonOf, Kind, numberBody, samplesBody, samplesIn, type Frame } from "./frame.js";
import { Link, type ConnectOptions, type LinkUser, type Welcome } from "./link.js";
import { Logger, type LoggerOptions } from "./logger.js";
import { Publisher, type AttributeDeclaration, type TopicDeclaration } from "./publisher.js";
import { AsyncQueue } from "./queue.js";
import { requireServe, Service, type ReadOptions, type ServiceHandler, type ServiceOptions } from "./service.js";
import {
  BUFFER, EventSubscription, LogSubscription, TopicSubscription, type EventOptions, type Opener, type Subscribed, type TopicItem, type TopicOptions,
} from "./subscription.js";

/** A part of an answer: from one process. */
export interface Part {
  from: string;
  content: Uint8Array;
}

type Ended = { code: string; error?: string; denied?: unknown };

type User =
  | { kind: "subscription"; subscription: Subscribed }
  | { kind: "publisher"; publisher: Publisher; opened?: { resolve: () => void; reject: (why: Failure) => void } }
  | { kind: "question"; parts: AsyncQueue<Part> }
  | { kind: "service"; service: Service; opened?: { resolve: () => void; reject: (why: Failure) => void } };

/** The address of a hub's gateway: `http://host:port` is enough. */
function gatewayAt(address: string): string {
  const url = new URL(address);
  url.protocol = { "http:": "ws:", "https:": "wss:" }[url.protocol] ?? url.protocol;
  if (url.pathname === "/") {
    url.pathname = "/api/v1/gateway";
  }
  return url.toString();
}

export class Session {
  private readonly users = new Map<number, User>();
  private nextId = 1;

  private readonly connection: Link;

  private constructor(
    link: (user: LinkUser) => Link,
    /** The name under which the session publishes and answers. */
    readonly source: string,
  ) {
    this.connection = link({
      frame: (frame) => this.frame(frame),
      renewed: (left) => this.renewed(left),
      ended: (why) => this.ended(why),
    });
  }

  /** Connects to a hub, and fails if it cannot be reached or refuses. Later breaks of the connection are mended. */
  static async connect(address: string, options: ConnectOptions = {}): Promise<Session> {
    const session = new Session((user) => new Link(gatewayAt(address), options, user), options.source ?? "gateway");
    await session.connection.begin();
    return session;
  }

  /** The hub's words about itself and the session. */
  get welcome(): Welcome {
    if (!this.connection.welcome) {
      throw new Failure("closed", "there is no session");
    }
    return this.connection.welcome;
  }

  /** Subscribes to log records; `since` begins with the archive and goes on live without hole or double. */
  logs(options: Partial<TopicOptions> = {}, buffer = BUFFER): LogSubscription {
    return this.opened(new LogSubscription(this.opener, { topics: ["log/*"], ...options }, buffer));
  }

  /** A logger whose records have these members. Records have the process {@link source} without another one. */
  logger(options: LoggerOptions = {}): Logger {
    return new Logger(this, options);
  }

  /** Subscribes to topics. */
  topics(options: TopicOptions, buffer = BUFFER): TopicSubscription<TopicItem> {
    return this.opened(new TopicSubscription(this.opener, options, buffer, (item: TopicItem) => [item]));
  }

  /** Subscribes to attributes by names and patterns. */
  events(attributes: string[] | EventOptions, buffer = BUFFER): EventSubscription {
    const options = Array.isArray(attributes) ? { attributes } : attributes;
    return this.opened(new EventSubscription(this.opener, options, buffer));
  }

  /** Begins to publish samples of a topic, or readings of an attribute. */
  declare(declaration: TopicDeclaration | AttributeDeclaration): Promise<Publisher> {
    const publisher = new Publisher(
      (of, samples, atOnce) => this.connection.offer(Kind.publish, of.id, samplesBody(samples), atOnce ? 1 : 0),
      (of) => this.connection.send(Kind.close, of.id, new Uint8Array()),
      declaration,
    );
    publisher.id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.users.set(publisher.id, { kind: "publisher", publisher, opened: { resolve: () => resolve(publisher), reject } });
      this.connection.send(Kind.declare, publisher.id, jsonBody(declaration));
    });
  }

  /**
   * Asks a service; the parts of the answer come one by one. Leaving the loop cancels the question. Fails with the code
   * `full` while as many bytes as the session keeps wait for the hub.
   */
  ask(service: string, question: unknown, { timeoutMs = 10_000, all = false } = {}): AsyncIterableIterator<Part> {
    const id = this.nextId++;
    const parts = new AsyncQueue<Part>(undefined, () => this.users.has(id) && this.connection.send(Kind.close, id, new Uint8Array()));
    const octets = question instanceof Uint8Array ? question : jsonBody(question);
    this.connection.offer(Kind.ask, id, askBody(service, octets, timeoutMs, all));
    this.users.set(id, { kind: "question", parts });
    return parts;
  }

  /** Asks a service whose answers are JSON, and returns all of them. */
  async askJson<T>(service: string, question: unknown, options: { timeoutMs?: number; all?: boolean } = {}): Promise<{ from: string; answer: T }[]> {
    const answers: { from: string; answer: T }[] = [];
    for await (const { from, content } of this.ask(service, question, options)) {
      answers.push({ from, answer: jsonOf<T>(content) });
    }
    return answers;
  }

  /**
   * Answers a service of the bus until the returned one is closed. It goes on after a broken connection, and beside a restarted hub.
   * Fails with the code `version` if the hub passes no questions on.
   */
  serve(service: string, handler: ServiceHandler, options: ServiceOptions = {}): Promise<Service> {
    return this.answering(service, { service, name: options.name, time_ms: options.timeoutMs }, handler);
  }

  /**
   * Has `read` called when somebody asks for the current value of an attribute and the last reading is older than `freshMs`, or every
   * `pollMs`; pushes the reading that it returns. Those who ask get the message of an error. A failed poll is a failed reading.
   */
  reads(publisher: Publisher, read: () => Reading | undefined | Promise<Reading | undefined>, options: ReadOptions): Promise<Service> {
    const body = { read: publisher.id, fresh_ms: options.freshMs, poll_ms: options.pollMs };
    const name = "attribute" in publisher.declaration ? publisher.declaration.attribute.name : publisher.declaration.topic;
    return this.answering(name, body, async () => {
      const reading = await read();
      if (reading) {
        publisher.push(reading);
      }
      return undefined;
    });
  }

  private answering(label: string, body: object, handler: ServiceHandler): Promise<Service> {
    return new Promise((resolve, reject) => {
      requireServe(this.welcome);
      const user = { send: this.connection.send.bind(this.connection) };
      const served = new Service(user, label, body, handler, (own) => this.users.delete(own.id) && this.connection.send(Kind.close, own.id, new Uint8Array()));
      served.id = this.nextId++;
      this.users.set(served.id, { kind: "service", service: served, opened: { resolve: () => resolve(served), reject } });
      this.connection.send(Kind.serve, served.id, served.opening());
    });
  }

  /** Bytes of publications and questions that the hub has not acknowledged. */
  get waiting(): number {
    return this.connection.waiting;
  }

  /**
   * Waits until the hub has acknowledged all publications and questions, so that there is room for others. Fails when
   * the session ends before.
   */
  drained(): Promise<void> {
    return this.connection.drained();
  }

  /** Ends the session in order. */
  close(): void {
    this.connection.close();
  }

  private readonly opener: Opener = {
    credit: (subscription, total) => this.users.has(subscription.id) && this.connection.send(Kind.credit, subscription.id, numberBody(total)),
    close: (subscription) => this.users.has(subscription.id) && this.connection.send(Kind.close, subscription.id, new Uint8Array()),
  };

  private opened<S extends Subscribed>(subscription: S): S {
    subscription.id = this.nextId++;
    this.users.set(subscription.id, { kind: "subscription", subscription });
    this.open(subscription);
    return subscription;
  }

  private open(subscription: Subscribed): void {
    this.connection.send(Kind.open, subscription.id, jsonBody(subscription.begun()));
  }

  private frame(frame: Frame): void {
    const user = this.users.get(frame.id);
    if (!user) {
      return;
    }
    if (frame.kind === Kind.ended) {
      this.users.delete(frame.id);
      const { code, error = code, denied } = jsonOf<Ended>(frame.body);
      return finish(user, code === "done" ? undefined : new Failure(code, error, denied));
    }
    switch (user.kind) {
      case "subscription":
        return user.subscription.take(frame);
      case "publisher":
        if (frame.kind === Kind.opened) {
          user.opened?.resolve();
          delete user.opened;
        } else if (frame.kind === Kind.receipt) {
          user.publisher.told(jsonOf(frame.body));
        }
        return;
      case "service":
        user.service.take(frame);
        if (frame.kind === Kind.opened) {
          user.opened?.resolve();
          delete user.opened;
        }
        return;
      case "question":
        if (frame.kind === Kind.part) {
          user.parts.put({ from: incarnationOf(frame.body, 0), content: frame.body.subarray(16) });
        }
    }
  }

  /**
   * Another session: subscriptions go on where they were, questions are lost. Publishers are declared anew, and publish
   * again what the hub has not acknowledged: it may come twice then, and would be lost untold otherwise.
   */
  private renewed(left: Frame[]): void {
    for (const [id, user] of this.users) {
      switch (user.kind) {
        case "subscription":
          this.open(user.subscription);
          break;
        case "publisher": {
          this.connection.send(Kind.declare, id, jsonBody(user.publisher.declaration));
          const again = left.filter((frame) => frame.id === id && (frame.kind === Kind.publish || frame.kind === Kind.close));
          const samples = again.reduce((sum, frame) => sum + (frame.kind === Kind.publish ? samplesIn(frame.body) : 0), 0);
          user.publisher.beganAnew(samples, new Failure("uncertain", "the hub began anew; whether these samples were published is unknown"));
          again.forEach((frame) => this.connection.send(frame.kind, id, frame.body, frame.flags));
          break;
        }
        case "service":
          user.service.renewed();
          try {
            requireServe(this.welcome);
            this.connection.send(Kind.serve, id, user.service.opening());
          } catch (why) {
            this.users.delete(id);
            finish(user, why as Failure);
          }
          break;
        case "question":
          this.users.delete(id);
          finish(user, new Failure("closed", "the hub began anew before it answered"));
      }
    }
  }

  private ended(why: Failure): void {
    const users = [...this.users.values()];
    this.users.clear();
    const isOrderly = why.code === "closed" && why.message === "the session was closed";
    users.forEach((user) => finish(user, isOrderly && user.kind === "subscription" ? undefined : why));
  }
}

function finish(user: User, why: Failure | undefined): void {
  switch (user.kind) {
    case "subscription":
      return user.subscription.end(why);
    case "question":
      return user.parts.end(why);
    case "service":
      user.opened?.reject(why ?? new Failure("closed", "the service was closed"));
      return user.service.end();
    case "publisher": {
      const failure = why ?? new Failure("closed", "the publisher was closed");
      user.opened?.reject(failure);
      user.publisher.end(failure);
    }
  }
}
