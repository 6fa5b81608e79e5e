/** Tables of the hub's configuration as forms: quotas of some sources, routes, targets. */
import { SHAPES } from "../log/levels";
import { wordsOf } from "./fields";
import type { SettingTable } from "./hub";

/** Kinds of fields. A list has commas or spaces between its words. */
export type FieldKind = "text" | "list" | "number" | "flag" | "choice";

export interface TableField {
  name: string;
  kind: FieldKind;
  /** Value of a choice or flag that is not written. */
  usual?: string | boolean;
  choices?: readonly string[];
  required?: boolean;
}

export type TableName = "quota.source" | "route" | "target";

const number = (name: string): TableField => ({ name, kind: "number" });
const list = (name: string): TableField => ({ name, kind: "list" });
const text = (name: string, required = false): TableField => ({ name, kind: "text", required });

/** The fields of each table, in the order of the form. */
export const TABLE_FIELDS: Record<TableName, readonly TableField[]> = {
  "quota.source": [text("names", true), number("bytes_per_s"), number("records_per_s"), number("streams")],
  route: [
    { name: "min_level", kind: "choice", usual: "", choices: ["", ...Object.keys(SHAPES)] }, list("levels"), list("source"), list("process"), list("logger"), list("host"), list("audiences"),
    text("contains"), text("regex"), list("to"), { name: "archive", kind: "flag", usual: true }, { name: "stop", kind: "flag", usual: false },
  ],
  target: [text("name", true), { name: "format", kind: "choice", usual: "plain", choices: ["plain", "json", "acs"] }, number("size_mb"), number("files"), text("file"), text("syslog"), text("facility")],
};

/** A table in its form: texts, and flags. */
export type FormRow = Record<string, string | boolean>;

/** A form without values. */
export function emptyRow(of: TableName): FormRow {
  return Object.fromEntries(TABLE_FIELDS[of].map(({ name, kind, usual }) => [name, usual ?? (kind === "flag" ? false : "")]));
}

/** A table of the hub as a form. */
export function rowOf(of: TableName, table: SettingTable): FormRow {
  const value: Record<string, unknown> = of === "target" ? { ...table.value, name: table.name.replace(/^target\./, "") } : table.value;
  const shown = (one: unknown) => (typeof one === "boolean" ? one : Array.isArray(one) ? one.join(", ") : String(one));
  return { ...emptyRow(of), ...Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shown(one)])) };
}

/** A form as the hub takes it; fields without a value are left out. */
function tableOf(of: TableName, row: FormRow): Record<string, unknown> {
  const member = ({ name, kind, usual }: TableField): [string, unknown] | undefined => {
    const value = row[name];
    if (typeof value === "boolean") {
      return value === usual ? undefined : [name, value];
    }
    const trimmed = (value ?? "").trim();
    if (trimmed === "" || trimmed === usual) {
      return undefined;
    }
    // A text that is no number is sent as it is, and the hub names the setting.
    const counted = Number(trimmed);
    return [name, kind === "list" ? wordsOf(trimmed) : kind === "number" && Number.isFinite(counted) ? counted : trimmed];
  };
  return Object.fromEntries(TABLE_FIELDS[of].map(member).filter((one) => one !== undefined));
}

/** All forms as the value of the setting: a list, or for targets a table by their names. */
export function valueOf(of: TableName, rows: readonly FormRow[]): unknown {
  const tables = rows.map((row) => tableOf(of, row));
  return of === "target" ? Object.fromEntries(tables.map(({ name, ...rest }) => [String(name ?? ""), rest])) : tables;
}
