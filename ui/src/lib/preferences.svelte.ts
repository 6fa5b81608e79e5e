/** Choices of a person for this browser. It changes how data looks, never which data is shown. */
import type { Zone } from "./time";

export const THEMES = ["light", "dark", "night"] as const;
export type Theme = (typeof THEMES)[number];

function stored(name: string): string | null {
  try {
    return localStorage.getItem(`tampu.${name}`);
  } catch {
    // A browser may keep nothing for this page.
    return null;
  }
}

function store(name: string, value: string): void {
  try {
    localStorage.setItem(`tampu.${name}`, value);
  } catch {
    // The choice then ends with the page.
  }
}

class Preferences {
  theme = $state<Theme>(THEMES.find((theme) => theme === stored("theme")) ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  zone = $state<Zone>(stored("zone") === "local" ? "local" : "utc");
  /** True if single letters are commands. */
  keys = $state(stored("keys") !== "off");

  set(theme: Theme): void {
    this.theme = theme;
    store("theme", theme);
  }

  setZone(zone: Zone): void {
    this.zone = zone;
    store("zone", zone);
  }

  setKeys(on: boolean): void {
    this.keys = on;
    store("keys", on ? "on" : "off");
  }
}

export const preferences = new Preferences();
