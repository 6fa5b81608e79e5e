/** Users, groups, tokens, rights and rules: the types of the logbook's API that the settings show (`spec/book-api.md`). */
import type { Schemas } from "../lib/schemas";
import { ABSENT, read, readRevision, send } from "../lib/api";
import type { AttributeDef, Right } from "../book/api";
import { cleaned } from "./fields";
import type { HubSettings } from "./hub";

export const RIGHTS: readonly Right[] = ["read", "write", "edit-own", "edit-any", "admin"];
export const KINDS: readonly AttributeDef["kind"][] = ["text", "options", "multiple", "radio", "boolean", "numeric", "date", "datetime", "userlist", "userlists", "tags"];

export type User = Schemas["User"];

export type Group = Schemas["Group"];

export type Registration = Schemas["Registration"];

export type Token = Schemas["ApiToken"];

export interface BookDef {
  name: string;
  comment?: string;
  group?: string | null;
  attributes: AttributeDef[];
  elog?: [string, string][];
  entries: number;
  may: Right[];
}

export type Grant = Schemas["Grant"];

/** Rights of a logbook. What this view does not change goes back as it came. */
export interface Access extends Record<string, unknown> {
  grants: Grant[];
}

export type Rule = Schemas["RuleView"];

export type Rules = Schemas["PolicyView"];

export type Usage = Schemas["Usage"];

/** A part of an address. */
const part = encodeURIComponent;

export const api = {
  users: () => read<User[]>("users"),
  addUser: (user: { login: string; full_name: string; email: string; admin: boolean; password: string | null }) => send<User>("POST", "users", { ...user, groups: [] }),
  changeUser: (login: string, change: Partial<Pick<User, "admin" | "inactive" | "full_name" | "email">>) => send<User>("PATCH", `users/${part(login)}`, change),
  setPassword: (login: string, password: string) => send<void>("PUT", `users/${part(login)}/password`, { password }),
  dropUser: (login: string) => send<void>("DELETE", `users/${part(login)}`),
  endSessions: (login: string) => send<void>("DELETE", `sessions?login=${part(login)}`),
  registrations: () => read<Registration[]>("registrations"),
  approve: (id: string) => send<User>("POST", `registrations/${part(id)}/approve`),
  refuse: (id: string) => send<void>("DELETE", `registrations/${part(id)}`),
  groups: () => read<Group[]>("groups"),
  setGroup: (name: string, members: string[]) => send<Group>("PUT", `groups/${part(name)}`, { members }),
  tokens: (login: string) => read<Token[]>("tokens", { login }),
  makeToken: (token: { comment: string; may: Right[]; books: string[]; expires: string | null; password: string | null }) => send<Token & { secret: string }>("POST", "tokens", token),
  dropToken: (token: Token) => send<void>("DELETE", `tokens/${part(token.id)}?login=${part(token.login)}`),
  changePassword: (old: string, fresh: string) => send<void>("PUT", "password", { old, new: fresh }),
  books: () => read<BookDef[]>("books"),
  book: (name: string) => read<BookDef>(`books/${part(name)}`),
  /** The revision of a logbook's configuration. Read it before the logbook, so that no change between the two is overwritten. */
  bookRevision: async (name: string) => (await readRevision(`books/${part(name)}/config`)).revision,
  addBook: (name: string) => send<BookDef>("PUT", `books/${part(name)}`, { name, attributes: [{ name: "Author", kind: "text", required: true }] }, ABSENT),
  changeBook: ({ name, comment, group, elog, attributes }: BookDef, revision: string) =>
    send<BookDef>("PUT", `books/${part(name)}`, { name, comment, group, elog, attributes: cleaned(attributes) }, revision),
  access: (book: string) => readRevision<Access>(`books/${part(book)}/access`),
  setAccess: (book: string, access: Access, revision: string) => send<Access>("PUT", `books/${part(book)}/access`, access, revision),
  rules: () => read<Rules>("access"),
  addRule: (rule: { effect: string; who: string; may: string[]; what: string; why: string | null }) => send<Rule>("POST", "access/rules", rule),
  dropRule: (line: number) => send<void>("DELETE", `access/rules/${line}`),
  hubSettings: () => read<HubSettings>("settings"),
  changeSetting: (name: string, value: unknown, confirm: boolean, version: string) => send<HubSettings>("PUT", `settings/${part(name)}?confirm=${confirm}`, { value }, `"${version}"`),
  resetSetting: (name: string, confirm: boolean, version: string) => send<HubSettings>("DELETE", `settings/${part(name)}?confirm=${confirm}`, undefined, `"${version}"`),
  usage: () => read<Usage>("usage"),
};
