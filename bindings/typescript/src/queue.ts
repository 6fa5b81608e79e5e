/** Items that wait for `for await`, with an end. */
export class AsyncQueue<T> implements AsyncIterableIterator<T> {
  private readonly waiting: T[] = [];
  private readonly takers: { resolve: (result: IteratorResult<T>) => void; reject: (why: unknown) => void }[] = [];
  private ended: { why?: unknown } | undefined;

  constructor(
    private readonly taken: (item: T) => void = () => undefined,
    private readonly left: () => void = () => undefined,
  ) {}

  put(item: T): void {
    const taker = this.takers.shift();
    if (taker) {
      this.taken(item);
      taker.resolve({ value: item, done: false });
    } else if (!this.ended) {
      this.waiting.push(item);
    }
  }

  /** Ends the queue behind its items, with an error or in order. */
  end(why?: unknown): void {
    this.ended ??= why === undefined ? {} : { why };
    for (const taker of this.takers.splice(0)) {
      void this.next().then(taker.resolve, taker.reject);
    }
  }

  next(): Promise<IteratorResult<T>> {
    if (this.waiting.length > 0) {
      const item = this.waiting.shift() as T;
      this.taken(item);
      return Promise.resolve({ value: item, done: false });
    }
    if (this.ended) {
      const { why } = this.ended;
      this.ended = {};
      return why === undefined ? Promise.resolve({ value: undefined, done: true }) : Promise.reject(why as Error);
    }
    return new Promise((resolve, reject) => this.takers.push({ resolve, reject }));
  }

  /** The loop was left. */
  return(): Promise<IteratorResult<T>> {
    this.waiting.length = 0;
    this.end();
    this.left();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
