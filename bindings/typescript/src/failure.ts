/** A failure of the gateway or of this library, with the code of `spec/wire/gateway.md`. */
export class Failure extends Error {
  override name = "Failure";

  constructor(
    /** `denied`, `limit`, `bad`, `unanswered`, ...; `closed` after the end of the session; `full` while too much waits for the hub. */
    readonly code: string,
    message: string,
    /** Words of the access hook, with code `denied`. */
    readonly denied?: unknown,
  ) {
    super(message);
  }
}

/** Bytes that are not what their type says. */
export class BadBytes extends Error {
  override name = "BadBytes";

  constructor(at: number, what: string) {
    super(`byte ${at}: ${what}`);
  }
}
