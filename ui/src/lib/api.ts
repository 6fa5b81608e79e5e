/** Requests to the hub's REST API (`spec/book-api.md`). */
import { BASE } from "./address.svelte";

/** A refusal of the API, as RFC 9457 has it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    detail: string,
    readonly wayOut: string,
  ) {
    super(detail);
  }
}

/** The caller, as the hub knows them. */
export interface Caller {
  login: string;
  full_name: string;
  admin: boolean;
  /** The way in which the caller is known: `guest`, `session`, `owner`, ... */
  by: string;
  /** The token of forms, which a change by a session's cookie needs. */
  form?: string;
}

let form: string | undefined;

async function request(method: string, path: string, body?: unknown): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
  }
  if (method !== "GET" && form !== undefined) {
    headers["X-Tampu-Form"] = form;
  }
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const response = await fetch(new URL(`api/v1/${path}`, BASE), init);
  if (!response.ok) {
    const said = (await response.json().catch(() => ({}))) as { type?: string; detail?: string; way_out?: string };
    throw new Problem(response.status, said.type ?? "", said.detail ?? `${response.status} ${response.statusText}`, said.way_out ?? "");
  }
  return response;
}

export async function whoami(): Promise<Caller> {
  const caller = (await (await request("GET", "whoami")).json()) as Caller;
  form = caller.form;
  return caller;
}

export async function logIn(login: string, password: string): Promise<void> {
  await request("POST", "login", { login, password });
}

export async function logOut(): Promise<void> {
  await request("POST", "logout");
}
