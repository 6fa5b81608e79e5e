/** The state of a site, as its hubs report it (`spec/services.md`), and what needs attention in it. */
import { durationText } from "../lib/time";

export interface Host {
  host: string;
  version: string;
  pid: number;
  /** Seconds since the start of its node. */
  up: number;
  clock: string;
  clock_error_ns: number | null;
  processes: number;
  nodes: number;
  disk: { path: string; free: number; size: number } | null;
}

export interface HubRoles {
  host: string;
  pid: number;
  roles: { role: string; pid: number | null; up: boolean; restarts: number }[];
}

export interface Source {
  source: string;
  incarnation: string;
  state: string;
  received: number;
  lost_samples: number;
  lost_in_rings: number;
  lost_in_spool: number;
  rejected: number;
  refused: number;
  refusal: string | null;
  over_quota: number;
  spooled: number;
  last_seen: number;
  rate: number;
}

export interface Collector {
  collector: string;
  streams: number;
  waiting: number;
  targets: { target: string; written: number; lost: number; waiting: number; failing: string | null }[];
  sources: Source[];
}

export interface Spool {
  spool: string;
  doing: string;
  records: number;
  bytes: number;
  limit: number;
  stuck: string | null;
}

export interface Site {
  hosts: Host[];
  hubs: HubRoles[];
  collectors: Collector[];
  spools: Spool[];
}

/** A finding: how grave it is, and its words. */
export interface Finding {
  grade: "fail" | "warn";
  text: string;
}

/** Records and packets of a source that are missing. */
export function lostOf(source: Source): number {
  return source.lost_samples + source.lost_in_rings + source.lost_in_spool;
}

/** A part of the disk that is too little, and a part that is nearly too little. */
const FREE = { fail: 0.02, warn: 0.1 };

/** Everything that somebody should look at, the gravest first. Without all answers, a part that is not there may only be unknown. */
export function findings(site: Site, isWhole = true): Finding[] {
  const found: Finding[] = [];
  const add = (grade: Finding["grade"], text: string) => found.push({ grade, text });
  for (const { host, disk, clock } of site.hosts) {
    const free = disk && disk.size > 0 ? disk.free / disk.size : 1;
    if (free < FREE.warn) {
      add(free < FREE.fail ? "fail" : "warn", `${host}: ${Math.round(free * 100)} % of the data's disk is free`);
    }
    if (clock === "unknown") {
      add("warn", `${host}: the state of the clock is unknown`);
    }
  }
  const versions = [...new Set(site.hosts.map(({ version }) => version))];
  if (versions.length > 1) {
    add("warn", `hosts run different releases: ${versions.toSorted().join(", ")}`);
  }
  for (const { host, roles } of site.hubs) {
    for (const { role, up, restarts } of roles) {
      if (!up) {
        add("fail", `${host}: the role ${role} does not run`);
      } else if (restarts > 0) {
        add("warn", `${host}: the role ${role} was restarted ${restarts} times`);
      }
    }
  }
  if (isWhole && site.collectors.length === 0) {
    add("fail", "no collector answers: nothing is archived");
  }
  for (const { sources, targets } of site.collectors) {
    for (const source of sources) {
      if (lostOf(source) > 0) {
        add("warn", `${source.source}: ${lostOf(source)} packets or records were lost`);
      }
      if (source.refused > 0 || source.over_quota > 0) {
        add("warn", `${source.source}: ${source.refused + source.over_quota} records were not kept${source.refusal ? `: ${source.refusal}` : ""}`);
      }
      if (source.state === "silent") {
        add("fail", `${source.source}: silent`);
      }
    }
    for (const { target, failing, lost } of targets) {
      if (failing !== null || lost > 0) {
        add(failing === null ? "warn" : "fail", `route to ${target}: ${failing ?? `${lost} records were lost`}`);
      }
    }
  }
  for (const { spool, stuck, records, bytes, limit } of site.spools) {
    if (stuck !== null) {
      add("fail", `${spool}: ${stuck}`);
    } else if (bytes > limit * 0.8) {
      add("warn", `${spool} is nearly full: ${records} records wait`);
    }
  }
  return found.toSorted((one, other) => (one.grade === other.grade ? 0 : one.grade === "fail" ? -1 : 1));
}

/** States of a source, from the one to look at first. */
const STATES = ["silent", "died", "left", "returned", "appeared"];

/** Sources in the order in which somebody should look at them; those whose name has a text. */
export function sourcesOf(site: Site, text: string): Source[] {
  const wanted = text.trim().toLowerCase();
  const all = site.collectors.flatMap(({ sources }) => sources).filter(({ source }) => source.toLowerCase().includes(wanted));
  const rank = (source: Source) => (source.state === "silent" ? 0 : lostOf(source) + source.refused + source.over_quota > 0 ? 1 : 2 + STATES.indexOf(source.state));
  return all.toSorted((one, other) => rank(one) - rank(other) || (one.source < other.source ? -1 : one.source > other.source ? 1 : 0));
}

/** `2.1 GB`. */
export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let nth = 0;
  for (; bytes >= 1000 && nth < units.length - 1; nth++) {
    bytes /= 1000;
  }
  return `${nth === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[nth]}`;
}

/** `2d3h`, with two units. */
export function spanText(seconds: number): string {
  const text = durationText(BigInt(Math.max(0, Math.round(seconds))) * 1_000_000_000n);
  return /^(?:\d+[a-z]+){1,2}/.exec(text)?.[0] ?? text;
}
