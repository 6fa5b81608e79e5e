/** Settings of the hub as texts: values for people, and lines as they stand in its configuration. */
import type { Replace, Schemas } from "../lib/schemas";
import { oneLine } from "../log/display";
import { SETTINGS_TEXT } from "./text";

const TEXT = SETTINGS_TEXT.hub;

/** A setting of the hub with its source. */
export type Setting = Schemas["ShownSetting"];

/** A table of the hub's configuration. */
export type SettingTable = Replace<Schemas["ShownTable"], { value: Record<string, unknown> }>;

export type HubSettings = Replace<Schemas["ShownSettings"], Record<"sources" | "routes" | "targets", SettingTable[]>>;

/** The person who changed a setting while the hub ran, and the time, UTC. */
export type SettingChange = Schemas["ShownChange"];

/** The change of a setting or of the list that a table belongs to. */
export function changeOf({ changes }: Pick<HubSettings, "changes">, name: string): SettingChange | undefined {
  const list = name.startsWith("target.") ? "target" : name;
  return Object.hasOwn(changes, list) ? changes[list] : undefined;
}

/** Units by the end of a setting's name. */
const UNITS: readonly (readonly [string, string])[] = [
  ["_days", "days"], ["_gb", "GB"], ["_mb", "MiB"], ["_kb", "KiB"], ["bytes_per_s", "bytes/s"], ["records_per_s", "records/s"], ["_per_minute", "1/min"],
];
/** The collector counts in GiB, the logbook in 10^9 bytes. */
const UNITS_OF: Record<string, string> = { "collector.keep_gb": "GiB", "collector.min_free_gb": "GiB" };
/** Settings whose 0 is no limit. */
const UNLIMITED = /^(collector\.keep_(days|gb)|quota\..*|book\.(site|book|user)_gb|book\.changes_per_minute)$/;

/** A value for people. */
export function valueText(name: string, value: unknown): string {
  if (typeof value === "boolean") {
    return value ? TEXT.yes : TEXT.no;
  }
  if (Array.isArray(value)) {
    return value.length === 0 ? TEXT.nothing : oneLine(value.map(String).join(", "), 300);
  }
  if (value === 0 && UNLIMITED.test(name)) {
    return TEXT.unlimited;
  }
  const unit = UNITS_OF[name] ?? UNITS.find(([end]) => name.endsWith(end))?.[1];
  return [oneLine(String(value), 100), unit ?? ""].join(" ").trim();
}

/** Names of a list, as somebody writes them. */
export const namesOf = (text: string): string[] => text.split(",").map((one) => one.trim()).filter((one) => one !== "");

/** The data that a change removes at once, for the button that confirms it. */
export function removalText(removes: readonly Schemas["RemovedData"][] | undefined): string {
  if (!removes) {
    return TEXT.removesUnknown;
  }
  const any = removes.filter((one) => one.records > 0).map((one) => `${one.records} ${oneLine(one.what, 40)}`);
  return any.length > 0 ? TEXT.removesThese(any.join(", ")) : TEXT.removesNone;
}

/** True if the configuration sets it. */
export const isSet = ({ line }: Setting) => line !== null && line !== undefined;

/** A value in TOML. Values of the hub's own settings are plain ones. */
function toml(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(toml).join(", ")}]`;
  }
  // Control characters, also those of the second row, have to be escaped; JSON's escapes are TOML's.
  return typeof value === "string" ? JSON.stringify(value).replace(/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`) : String(value);
}

/** The lines of the configuration that set it. */
export function settingText({ name, value }: Setting): string {
  const at = name.lastIndexOf(".");
  return `[${name.slice(0, at)}]\n${name.slice(at + 1)} = ${toml(value)}`;
}

/** A table as it stands in the configuration. */
export function tableText({ name, value }: SettingTable): string {
  const [section, ...rest] = name.split(".");
  const own = rest.join(".");
  const head = section === "target" ? `[target.${/^[\w-]+$/.test(own) ? own : toml(own)}]` : `[[${name}]]`;
  return [head, ...Object.entries(value).map(([key, one]) => `${key} = ${toml(one)}`)].join("\n");
}
