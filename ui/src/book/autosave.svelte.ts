/** The draft of a form at the hub: it follows the form a moment after the last change, and survives the end of a session. */
import * as api from "./api";
import { why } from "./format";

/** Time after a key at which the draft is saved, ms. */
const REST_MS = 1500;
/** Time after which a draft that failed is saved once more, ms. */
const RETRY_MS = 5000;
/** Longest wait for the draft of a form that is left, ms. */
const LEAVE_MS = 5000;

export interface DraftUser {
  /** The form as a text, which changes with each of its parts. */
  form: () => string;
  /** The form as the hub keeps it. */
  content: () => object;
  /** Gets the names of files that the hub no longer has. */
  lost: (names: readonly string[]) => void;
  failed: (problem: unknown) => void;
  /** The present for people. */
  now: () => string;
}

export class Autosave {
  /** The draft's number; undefined while the hub has none. */
  number: string | undefined;
  /** The time at which it was saved, and the reason why it was not. */
  at = $state("");
  fault = $state("");
  /** True once the form was sent or left: then nothing is saved. */
  isOver = false;
  /** The form as it began, or as its draft has it. */
  saved: string;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private saving: Promise<void> | undefined;

  constructor(private readonly user: DraftUser) {
    this.saved = user.form();
  }

  get isSaved(): boolean {
    return this.user.form() === this.saved;
  }

  /** Changes the form without the person's doing: a form without unsaved words stays one. */
  prefill(act: () => void): void {
    const isClean = this.isSaved;
    act();
    if (isClean) {
      this.saved = this.user.form();
    }
  }

  /** Saves a changed form when no further change comes. */
  follow(form: string): void {
    if (form !== this.saved) {
      this.later(REST_MS);
    }
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.save(), ms);
  }

  async save(): Promise<void> {
    // Of several that wait for one that fails, the first begins anew: two drafts without a number would be two drafts.
    while (this.saving) {
      await this.saving;
    }
    if (this.isOver || this.isSaved) {
      return;
    }
    const { user } = this;
    const form = user.form();
    this.saving = (async () => {
      try {
        const answer = await api.saveDraft(this.number, user.content());
        this.number = answer.number;
        user.lost(answer.missing ?? []);
        this.saved = form;
        this.at = user.now();
        this.fault = "";
      } catch (problem) {
        user.failed(problem);
        this.fault = why(problem);
        if (!this.isOver) {
          this.later(RETRY_MS);
        }
      } finally {
        this.saving = undefined;
      }
    })();
    await this.saving;
  }

  /** Saves what is not saved, and waits for the hub a while. */
  async beforeLeave(): Promise<void> {
    clearTimeout(this.timer);
    if (!this.isSaved) {
      await Promise.race([this.save(), new Promise((over) => setTimeout(over, LEAVE_MS))]);
    }
  }

  /** Waits for a draft that is being saved, and begins no other. */
  async settle(): Promise<void> {
    clearTimeout(this.timer);
    await this.saving;
  }

  /** Removes the draft of a form that was sent. */
  async finish(): Promise<void> {
    this.isOver = true;
    // A draft that is just being saved has its number then.
    await this.saving;
    if (this.number !== undefined) {
      await api.dropDraft(this.number).catch(() => undefined);
    }
  }

  end(): void {
    this.isOver = true;
    clearTimeout(this.timer);
  }
}
