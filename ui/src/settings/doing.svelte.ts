/** A change that is under way: what it said last, and its fault. */
import { Problem, type RemovedData } from "../lib/api";

/** The hub's refusal of a change that removes records, until it is confirmed. A page has a button for that. */
const REMOVES = /\bremoves-records$/;

export class Doing {
  busy = $state(false);
  said = $state("");
  fault = $state("");
  /** True if the fault is that nobody has confirmed the change. */
  unconfirmed = $state(false);
  /** The data that the unconfirmed change would remove at once, if the hub knows them. */
  removes = $state.raw<readonly RemovedData[]>();

  /** Does a thing, and then says so; a fault is kept to be shown. Returns whether it was done. */
  async run(act: () => Promise<unknown>, done = ""): Promise<boolean> {
    if (this.busy) {
      return false;
    }
    this.busy = true;
    this.said = this.fault = "";
    this.unconfirmed = false;
    try {
      await act();
      this.said = done;
      return true;
    } catch (problem) {
      this.unconfirmed = problem instanceof Problem && REMOVES.test(problem.type);
      this.removes = problem instanceof Problem ? problem.removes : undefined;
      this.fault = problem instanceof Problem ? [problem.message, this.unconfirmed ? "" : problem.wayOut].filter(Boolean).join(": ") : problem instanceof Error ? problem.message : String(problem);
      return false;
    } finally {
      this.busy = false;
    }
  }
}
