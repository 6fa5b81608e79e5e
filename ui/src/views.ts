/** The views that are loaded when somebody visits them, and the rights that they need. */
import type { Component } from "svelte";

import type { View } from "./lib/address.svelte";
import type { Capabilities } from "./lib/api";

/** Code of all views but the log, which most people open first. */
export const LAZY: Record<Exclude<View, "log">, () => Promise<{ default: Component }>> = {
  timeline: () => import("./timeline/TimelineView.svelte"),
  attributes: () => import("./attribute/AttributeView.svelte"),
  bulk: () => import("./bulk/BulkView.svelte"),
  book: () => import("./book/BookView.svelte"),
  site: () => import("./site/SiteView.svelte"),
  settings: () => import("./settings/SettingsView.svelte"),
};

/** Rights without which a view is not offered. A view that is not named shows itself what it cannot have. */
const NEEDS: Partial<Record<View, (rights: Capabilities) => boolean>> = {
  attributes: (rights) => rights.event || rights.gateway,
  bulk: (rights) => rights.bulk,
};

/** True if a view is offered. Without an answer about rights, all views are. */
export function mayUse(view: View, rights: Capabilities | undefined): boolean {
  return rights === undefined || (NEEDS[view]?.(rights) ?? true);
}
