/** Requests to the hub's REST API (`spec/book-api.md`). */
import { BASE } from "./address.svelte";
import type { Schemas } from "./schemas";

export type RemovedData = Schemas["RemovedData"];

/** A refusal of the API, as RFC 9457 has it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    detail: string,
    readonly wayOut: string,
    /** The part of the request, as `body attributes Author`. */
    readonly place = "",
    /** The data that the change would remove at once, if the hub knows them. */
    readonly removes?: readonly RemovedData[],
  ) {
    super(detail);
  }
}

/** The caller, as the hub knows them. */
export type Caller = Schemas["Whoami"];

/** The rights of the caller beside logbooks. */
export type Capabilities = Schemas["Capabilities"];

let form: string | undefined;
let unauthenticated: () => void = () => undefined;

/** Has a function called when the hub no longer knows the caller, as after the end of a session. */
export function onUnauthenticated(act: () => void): void {
  unauthenticated = act;
}

async function request(method: string, path: string, body?: unknown, signal?: AbortSignal, more: Record<string, string> = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...more };
  const isFile = body instanceof Blob;
  if (body !== undefined) {
    headers["Content-Type"] = isFile ? "application/octet-stream" : "application/json";
  }
  if (method !== "GET" && form !== undefined) {
    headers["X-Tampu-Form"] = form;
  }
  const init = { method, headers, ...(body === undefined ? {} : { body: isFile ? body : JSON.stringify(body) }), ...(signal ? { signal } : {}) };
  const response = await fetch(new URL(`api/v1/${path}`, BASE), init);
  if (!response.ok) {
    // A wrong password is no end of a session.
    if (response.status === 401 && path !== "login") {
      unauthenticated();
    }
    const said = (await response.json().catch(() => ({}))) as { type?: string; detail?: string; way_out?: string; place?: string; removes?: RemovedData[] };
    throw new Problem(response.status, said.type ?? "", said.detail ?? `${response.status} ${response.statusText}`, said.way_out ?? "", said.place, said.removes);
  }
  return response;
}

/** Reads a JSON answer. Parameters without a value are left out; a list repeats its parameter. */
export async function read<T>(path: string, parameters: Record<string, string | readonly string[] | undefined> = {}, signal?: AbortSignal): Promise<T> {
  return (await (await readAnswer(path, parameters, signal)).json()) as T;
}

/** Reads a JSON answer with its revision, for the change of it. */
export async function readRevision<T>(path: string): Promise<{ value: T; revision: string }> {
  const answer = await readAnswer(path);
  return { value: (await answer.json()) as T, revision: answer.headers.get("ETag") ?? "*" };
}

function readAnswer(path: string, parameters: Record<string, string | readonly string[] | undefined> = {}, signal?: AbortSignal): Promise<Response> {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of typeof value === "string" ? [value] : (value ?? [])) {
      asked.append(name, one);
    }
  }
  const query = asked.toString();
  return request("GET", query === "" ? path : `${path}?${query}`, undefined, signal);
}

/** As a revision: the thing must not be there yet. */
export const ABSENT = "absent";

/** Sends a change, or a file. `revision` is that of the thing which was read: without it any is changed. */
export async function send<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, revision?: string, signal?: AbortSignal): Promise<T> {
  const response = await request(method, path, body, signal, revision === undefined ? {} : revision === ABSENT ? { "If-None-Match": "*" } : { "If-Match": revision });
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export function capabilities(): Promise<Capabilities> {
  return read("capabilities");
}

export async function whoami(): Promise<Caller> {
  const caller = (await (await request("GET", "whoami")).json()) as Caller;
  form = caller.form ?? undefined;
  return caller;
}

export async function logIn(login: string, password: string): Promise<void> {
  await request("POST", "login", { login, password });
}

export async function logOut(): Promise<void> {
  await request("POST", "logout");
}
