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

class Address {
  view = $state<View>(viewOf());
  parameters = $state.raw(new URLSearchParams(location.search));

  constructor() {
    addEventListener("popstate", () => {
      this.view = viewOf();
      this.parameters = new URLSearchParams(location.search);
    });
  }

  /** The whole address of a state of a view. */
  of(view: View, parameters: Record<string, string | undefined>): string {
    const url = new URL(view, BASE);
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined && value !== "") {
        url.searchParams.set(name, value);
      }
    }
    return url.href;
  }

  /** Goes to a state. A small step, as another selected row, replaces the present one in the browser's history. */
  go(view: View, parameters: Record<string, string | undefined>, step: "step" | "small step" = "step"): void {
    const to = this.of(view, parameters);
    if (to !== location.href) {
      history[step === "step" ? "pushState" : "replaceState"](null, "", to);
    }
    this.view = view;
    this.parameters = new URLSearchParams(location.search);
  }
}

export const address = new Address();
