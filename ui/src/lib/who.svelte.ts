/** The person before this page: one login for all views, the header and the connection. */
import { capabilities, onUnauthenticated, whoami, type Caller, type Capabilities } from "./api";
import { connection } from "./connection.svelte";

class Who {
  caller = $state.raw<Caller>();
  rights = $state.raw<Capabilities>();
  /** True while somebody who may do a little as a guest asks for the form of a login. */
  wantsLogin = $state(false);
  /** True from the end of a session until the next login. */
  isOver = $state(false);
  /** Counts logins: views read again what another person may see. */
  logins = $state(0);
  private asking: Promise<void> | undefined;

  constructor() {
    onUnauthenticated(() => void this.look());
  }

  /** Asks who the caller is, and connects. Without an answer the connection is tried all the same; it tries again by itself. */
  async enter(): Promise<void> {
    await this.ask();
    connection.open();
  }

  /** Goes on as the person who has logged in: the connection of a guest or of an ended session has other rights. */
  async entered(): Promise<void> {
    await this.ask();
    this.wantsLogin = this.isOver = false;
    connection.open();
    this.logins++;
  }

  /** Looks whether the session is over. */
  look(): Promise<void> {
    this.asking ??= (async () => {
      const before = this.caller;
      await this.ask();
      this.isOver ||= before !== undefined && before.by !== "guest" && this.caller?.by === "guest";
    })().finally(() => (this.asking = undefined));
    return this.asking;
  }

  private async ask(): Promise<void> {
    this.caller = await whoami().catch(() => this.caller);
    this.rights = await capabilities().catch(() => this.rights);
  }
}

export const who = new Who();
