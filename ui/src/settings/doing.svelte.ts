/** A change that is under way: what it said last, and its fault. */
import { Problem } from "../lib/api";

export class Doing {
  busy = $state(false);
  said = $state("");
  fault = $state("");

  /** Does a thing, and then says so; a fault is kept to be shown. Returns whether it was done. */
  async run(act: () => Promise<unknown>, done = ""): Promise<boolean> {
    if (this.busy) {
      return false;
    }
    this.busy = true;
    this.said = this.fault = "";
    try {
      await act();
      this.said = done;
      return true;
    } catch (problem) {
      this.fault = problem instanceof Problem ? [problem.message, problem.wayOut].filter(Boolean).join(": ") : problem instanceof Error ? problem.message : String(problem);
      return false;
    } finally {
      this.busy = false;
    }
  }
}
