/**
 * The address of the page: its view and the whole state of the view, so that it can be sent to somebody else. All views
 * have the same depth below the console's own address, which may have any prefix.
 */

/** The directory of the console: everything of the hub is addressed from it. */
export const BASE = new URL("./", location.href);

export const VIEWS = ["log", "attributes", "timeline", "bulk", "book", "site", "settings"] as const;
export type View = (typeof VIEWS)[number];

function viewOf(): View {
  const name = location.pathname.split("/").at(-1);
  return VIEWS.find((view) => view === name) ?? VIEWS[0];
}

/** A state of a view. */
type State = Record<string, string | undefined>;
/** A state that is about to be shown. */
export interface Target {
  view: View;
  parameters: URLSearchParams;
}
/** Asked before another state is shown, or without one before the page ends; false keeps the present one. */
type Guard = (to: Target | undefined) => boolean | Promise<boolean>;

class Address {
  view = $state<View>(viewOf());
  parameters = $state.raw(new URLSearchParams(location.search));
  private guard: Guard | undefined;
  private shown = location.href;
  /** Counts movements: one that waits for its guard is dropped when another begins. */
  private moves = 0;

  constructor() {
    addEventListener("popstate", () => {
      const { href } = location;
      this.passed({ view: viewOf(), parameters: new URLSearchParams(location.search) }, (may) => {
        if (may && location.href === href) {
          this.show();
        } else if (!may) {
          history.pushState(null, "", this.shown);
        }
      });
    });
  }

  /** Has a part of a view asked before the page shows another state. For an effect of the part. */
  ask(guard: Guard): () => void {
    this.guard = guard;
    return () => {
      if (this.guard === guard) {
        this.guard = undefined;
      }
    };
  }

  /** True if nothing is lost when the page ends, or the person lets it go. */
  async mayEnd(): Promise<boolean> {
    return (await this.guard?.(undefined)) ?? true;
  }

  /** The whole address of a state of a view. */
  of(view: View, parameters: State): string {
    const url = new URL(view, BASE);
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined && value !== "") {
        url.searchParams.set(name, value);
      }
    }
    return url.href;
  }

  /** Goes to a state. A small step, as another selected row, replaces the present one in the browser's history. */
  go(view: View, parameters: State, step: "step" | "small step" = "step"): void {
    const to = this.of(view, parameters);
    this.passed({ view, parameters: new URL(to).searchParams }, (may) => {
      if (may) {
        if (to !== location.href) {
          history[step === "step" ? "pushState" : "replaceState"](null, "", to);
        }
        this.show();
      }
    });
  }

  /** Takes over the address of the browser. */
  private show(): void {
    this.shown = location.href;
    this.view = viewOf();
    this.parameters = new URLSearchParams(location.search);
  }

  /** Asks the guard, which is mostly not there: the movement is then made at once. */
  private passed(target: Target, then: (may: boolean) => void): void {
    const mine = ++this.moves;
    const may = this.guard?.(target) ?? true;
    if (typeof may === "boolean") {
      then(may);
    } else {
      void may.then((passes) => mine === this.moves && then(passes));
    }
  }
}

export const address = new Address();
