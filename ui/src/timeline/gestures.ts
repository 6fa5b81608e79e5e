/** Gestures of a pointer over the lanes: a drag chooses a range or moves it, two fingers zoom, a click is a click. */

/** Pixels after which a press is a drag. */
const SLOP = 4;

export interface Effects {
  /** A drag that chooses a range, in pixels; and its end. */
  brush(from: number, to: number): void;
  brushed(from: number, to: number): void;
  /** A drag that moves the picture by so many pixels. */
  pan(by: number): void;
  /** Two fingers: the picture around a place grows by a factor. */
  pinch(x: number, factor: number): void;
  click(x: number, target: Element): void;
  cancelled(): void;
}

export interface Pointer {
  id: number;
  x: number;
  /** Fingers and the axis move; a mouse chooses, unless Shift or its middle button is held. */
  moves: boolean;
}

export class Gestures {
  private readonly down = new Map<number, number>();
  private start: Pointer | undefined;
  private mode: "none" | "press" | "brush" | "pan" | "pinch" = "none";
  private last = 0;

  constructor(private readonly effects: Effects) {}

  /** True while a drag is under way: what is below the pointer is of no interest. */
  get drags(): boolean {
    return this.mode !== "none" && this.mode !== "press";
  }

  press(pointer: Pointer): void {
    this.down.set(pointer.id, pointer.x);
    if (this.down.size === 2) {
      if (this.mode === "brush") {
        this.effects.cancelled();
      }
      this.mode = "pinch";
      this.last = this.distance();
    } else if (this.down.size === 1) {
      this.mode = "press";
      this.start = pointer;
      this.last = pointer.x;
    }
  }

  /** Notes a move. True if a drag has begun with it. */
  move(id: number, x: number): boolean {
    if (!this.down.has(id)) {
      return false;
    }
    this.down.set(id, x);
    const { start } = this;
    if (this.mode === "pinch") {
      const now = this.distance();
      if (now > 0 && this.last > 0) {
        const [one = 0, other = 0] = this.down.values();
        this.effects.pinch((one + other) / 2, this.last / now);
      }
      this.last = now;
      return false;
    }
    if (!start) {
      return false;
    }
    const begins = this.mode === "press" && Math.abs(x - start.x) > SLOP;
    if (begins) {
      this.mode = start.moves ? "pan" : "brush";
    }
    if (this.mode === "brush") {
      this.effects.brush(start.x, x);
    } else if (this.mode === "pan") {
      this.effects.pan(x - this.last);
      this.last = x;
    }
    return begins;
  }

  release(id: number, x: number, target: Element): void {
    if (!this.down.delete(id)) {
      return;
    }
    const { mode, start } = this;
    if (this.down.size > 0) {
      // The finger that is left begins anew.
      this.mode = "none";
      return;
    }
    this.mode = "none";
    if (mode === "brush" && start) {
      this.effects.brushed(start.x, x);
    } else if (mode === "press") {
      this.effects.click(x, target);
    }
  }

  cancel(id: number): void {
    this.down.delete(id);
    if (this.mode === "brush") {
      this.effects.cancelled();
    }
    this.mode = "none";
  }

  private distance(): number {
    const [one = 0, other = 0] = this.down.values();
    return Math.abs(one - other);
  }
}
