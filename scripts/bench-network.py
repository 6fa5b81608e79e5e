#!/usr/bin/env python3
"""The paper's table of events between hosts: Tampu beside Tango, over links of 100 Mbit/s, 1 Gbit/s and 10 Gbit/s.

    bench-network.py [--links 100,1000,10000] [--elements 1,1024,262144] [--cells 1x1,2x2,5x5,10x5] [--seconds 3] [--no-tango] [--json]
    bench-network.py --multicast --cells 1x1,2x2,6x6,10x10 --elements 1024,262144 --links 100
    bench-network.py --members 1000 --on 10 [--quiet]
    bench-network.py --logs --cells 0x0,1x1,2x2,5x5,10x5 --links 1000
    bench-network.py --qos --links 1000

Each host is a network namespace with a boot id, a hub with the role node, and a certificate of its own. All hosts are joined by a bridge;
each link is held to its rate at both ends by `tc tbf`. One server pushes one attribute of 1, 1024 or 262144 DevLong; a cell NxH has N clients
on H other hosts. Both systems run in turn, in the same cell. Tango's server and clients have its defaults, without a database.

A row has the events a second at the slowest client, the payload as a share of the server's link (one copy a host), the bytes that each
receiving host got a second per byte of payload, processor time in s per s of each kind of process (the server, the hub of its host,
the busiest client and the busiest hub of a client's host), and what was lost. With `--multicast` the cells are measured without and with a multicast group (`tampu`, `group`), each attribute with a stream of
its own; a row also has the rate as a share of that of the first cell of its size, without the group. `--members` measures many idle processes instead: the time until each knows all others, memory and processor time. Each
has a logger and has logged one record; with `--quiet` none has.
`--logs` measures the paper's test of logs instead, with `--multicast` also with a group: network_logs.py.
`--qos` measures what settings of topics do: network_qos.py.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target"))
os.environ.setdefault("TAMPU_BIN", os.path.join(TARGET, "release", "tampu"))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "tests", "peers"), os.path.join(HERE, "..", "benches", "peers")]

# pylint: disable=wrong-import-position
from cable_cut import certify, key_file
from hub import Place, isolated, sh, until
import network_logs
import network_qos
import tango_table

PORT = 7447
GROUP = "239.255.88.48"
# A site whose attributes have streams of their own, without and with the group.
OFF, ON = "off", "on"
# The paper's figures for remote clients stand in benches/RESULTS.md; this run prints its own only.
TITLES = "link      DevLong   clients@hosts  system      events/s   payload   wire/payload   CPU server   hub  client   hub     lost"


def address(host):
    """Returns the address of a host, by its number from 0."""
    return f"10.88.0.{host + 1}"


class Network:
    """Hosts joined by a bridge."""

    def __init__(self, hosts):
        self.hosts = hosts
        # `ip netns` keeps its names below /run, which is not ours everywhere.
        sh("mount -t tmpfs tampu /run && mkdir -p /run/netns && ip link set lo up")
        sh("ip link add bridge type bridge && ip link set bridge up")
        for host in range(hosts):
            sh(f"ip netns add h{host} && ip link add wire netns h{host} type veth peer name port{host}")
            sh(f"ip link set port{host} master bridge up && ip -n h{host} address add {address(host)}/24 dev wire")
            sh(f"ip -n h{host} link set wire up && ip -n h{host} link set lo up")

    def hold(self, megabits):
        """Holds each link to a rate in both directions."""
        # The bucket lasts for 4 ms, at least for one long packet of the kernel.
        burst = max(megabits * 1_000_000 // 8 // 250, 131_072)
        shape = f"root tbf rate {megabits}mbit burst {burst} limit {max(4 * burst, 1 << 20)}"
        for host in range(self.hosts):
            sh(f"tc qdisc replace dev port{host} {shape} && ip netns exec h{host} tc qdisc replace dev wire {shape}")

    def received(self, host):
        """Returns the bytes that a host has received so far."""
        said = subprocess.run(["ip", "-n", f"h{host}", "-j", "-s", "link", "show", "wire"], check=True, capture_output=True, text=True)
        return json.loads(said.stdout)[0]["stats64"]["rx"]["bytes"]


def cpu(pid):
    """Returns the processor time of a process so far, s."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def inner(process):
    """Returns the process itself, below the shells that started it."""
    pid = process.pid
    while True:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
            below = children.read().split()
        if not below:
            return pid
        pid = int(below[0])


class Site:
    """A hub with the role node on each host, and with the collector on one of them; the first host is the server's."""

    def __init__(self, hosts, group=None, collector=None):
        self.places = [Place("group" if group else "site", netns=f"h{host}") for host in range(hosts)]
        for place in self.places:
            place.environment["TAMPU_DATA_DIR"] = place.data
        certify(*((place, address(host)) for host, place in enumerate(self.places)))
        self.hubs, self.collector = [], collector
        for host, place in enumerate(self.places):
            roles = "node,collector" if host == collector else "node"
            way = ["--lan", f"{address(0)}:{PORT}"] if host == 0 else ["--peer", f"{address(0)}:{PORT}"]
            more = ["--config", self.configured(place, group)] if group else []
            self.hubs.append(place.up(*more, "--roles", roles, *way, "--key-file", key_file(place, "a key of the site")))

        def joined():
            said = self.places[0].run("site", "hosts", "--json", check=False)
            return said.returncode == 0 and len(said.stdout.splitlines()) == hosts

        until("all hosts see one another", joined, 60)
        if group == ON:
            until("the group reaches all hosts", lambda: self.reached() == hosts - 1, 60)

    @staticmethod
    def configured(place, group):
        """Returns the configuration of a hub whose attributes have streams of their own, with or without the group."""
        path = os.path.join(place.directory, "tampu.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write('[[topic]]\nattributes = "**"\n')
            file.write(f'[[network.multicast]]\ngroup = "{GROUP}"\ninterface = "wire"\n' if group == ON else "")
        return path

    def reached(self):
        """Returns the number of hosts that the group of the first host reaches."""
        found = glob.glob(os.path.join(self.places[0].directory, "run", "**", "groups.json"), recursive=True)
        if not found:
            return 0
        with open(found[0], encoding="utf-8") as file:
            return len(json.load(file)["groups"]["0"]["boots"])

    def part(self, host, *arguments):
        """Starts a part of a measurement on a host."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return self.places[host].start("perf", "part", *arguments, **pipes)

    def cpu(self, host):
        """Returns the processor time of the hub of a host, s."""
        return cpu(inner(self.hubs[host]))

    def close(self):
        """Ends all."""
        for place in self.places:
            place.close()


def report(process):
    """Returns the next report of a part."""
    line = process.stdout.readline()
    if not line:
        sys.exit(f"FAILED: a part of the measurement ended: {' '.join(process.args[-6:])}")
    return json.loads(line)


def where(clients, hosts):
    """Returns the host of each client."""
    return [1 + client % hosts for client in range(clients)]


def tampu(site, network, size, clients, hosts, seconds, rate=0):
    """Measures one cell with Tampu; without a rate the server pushes as fast as it can."""
    places = where(clients, hosts)
    subscribers = [site.part(host, "subscriber", f"client-{at}", "1", "streamed") for at, host in enumerate(places)]
    server = site.part(0, "publisher", str(seconds), str(size), str(clients), str(rate), "1", "streamed")
    try:
        for subscriber in subscribers:
            report(subscriber)
        far = sorted(set(places))
        before = [network.received(host) for host in far]
        hubs = {host: site.cpu(host) for host in (0, *far)}
        server.stdin.write("begin\n")
        server.stdin.flush()
        pushed = report(server)
        for subscriber in subscribers:
            subscriber.stdin.close()
        got = [report(subscriber) for subscriber in subscribers]
        wire = [network.received(host) - since for host, since in zip(far, before)]
        hubs = {host: site.cpu(host) - since for host, since in hubs.items()}
    finally:
        for process in (*subscribers, server):
            if not process.stdin.closed:
                process.stdin.close()
            process.wait()
    elapsed = max([pushed["elapsed_s"]] + [client["elapsed_s"] for client in got])
    payload = pushed["pushed"] * size
    return {
        "events_per_s": min(client["received"] for client in got) / elapsed,
        "wire_per_payload": max(wire) / max(payload, 1),
        "cpu_server": pushed["cpu_s"] / elapsed,
        "cpu_server_hub": hubs[0] / elapsed,
        "cpu_client": max(client["cpu_s"] for client in got) / elapsed,
        "cpu_client_hub": max(hubs[host] for host in far) / elapsed,
        "lost": sum(max(pushed["pushed"] - client["received"], 0) for client in got),
        "wrong": sum(client["wrong"] for client in got),
        "latency_us_p50": max(client["latency_us_p50"] for client in got),
    }


def tango(network, elements, clients, hosts, seconds):
    """Measures one cell with Tango's C++ library."""
    os.environ["BENCH_TANGO_HOST"] = address(0)
    places = where(clients, hosts)
    inside = [["ip", "netns", "exec", f"h{host}"] for host in [0, *places]]
    with tango_table.Bench(tango_table.commands(["tango"])["tango"], elements, clients, places=inside) as bench:
        far = sorted(set(places))
        before = [network.received(host) for host in far]
        sent, reports = bench.run("start 0", seconds)
        wire = [network.received(host) - since for host, since in zip(far, before)]
        cell = tango_table.figures(sent, reports)
    lasted = max((sent["last_ns"] - sent["first_ns"]) / 1e9, 1e-9)
    payload = max(report["received"] for report in reports) * elements * 4
    if not payload:
        raise RuntimeError(f"no client got an event within {seconds} s")
    return {
        "events_per_s": cell["events_per_s"],
        "wire_per_payload": max(wire) / max(payload, 1),
        "cpu_server": cell["server_cpu_s"] / lasted,
        "cpu_client": max(report["cpu_us"] for report in reports) / 1e6 / lasted,
        "lost": cell["lost"],
        "wrong": cell["wrong"],
    }


def show(row, as_json):
    """Prints a row."""
    if as_json:
        print(json.dumps(row), flush=True)
        return
    hubs = [f"{row[name]:.2f}" if name in row else "-" for name in ("cpu_server_hub", "cpu_client_hub")]
    share = f"{100 * row['payload_share']:.1f} %"
    print(
        f"{row['link_mbit']:>6} Mb {row['elements']:>8}   {row['clients']:>7}@{row['hosts']:<5}  {row['system']:<8} {row['events_per_s']:>11.1f}"
        f" {share:>9} {row['wire_per_payload']:>12.3f} {row['cpu_server']:>12.2f} {hubs[0]:>5} {row['cpu_client']:>7.2f} {hubs[1]:>5} {row['lost']:>8}",
        flush=True,
    )
    if "of_first" in row:
        print(f"          {row['of_first']:.2f} of the rate to one host", flush=True)
    if row["wrong"]:
        print(f"WRONG {row['wrong']}", flush=True)


def show_failed(row, as_json):
    """Prints the row of a system that could not be measured."""
    if as_json:
        print(json.dumps(row), flush=True)
        return
    print(f"{row['link_mbit']:>6} Mb {row['elements']:>8}   {row['clients']:>7}@{row['hosts']:<5}  {row['system']:<8} {row['failed']}", flush=True)


def events(asked):
    """Measures the table of events."""
    cells = [tuple(int(number) for number in cell.split("x")) for cell in asked.cells.split(",")]
    network = Network(1 + max(hosts for _, hosts in cells))
    sites = {"tampu": OFF, "group": ON} if asked.multicast else {"tampu": None}
    wrong, first = 0, {}
    for name, group in sites.items():
        site = Site(network.hosts, group)
        wrong += table(asked, cells, network, site, name, first)
    if wrong:
        sys.exit("FAILED: Tampu lost events, or some were wrong")


def table(asked, cells, network, site, name, first):
    """Measures all cells at a site. Returns the number of events that were lost or wrong."""
    wrong = 0
    try:
        if not asked.json:
            print(TITLES, flush=True)
        for megabits in (int(link) for link in asked.links.split(",")):
            network.hold(megabits)
            for elements in (int(count) for count in asked.elements.split(",")):
                for clients, hosts in cells:
                    systems = {name: lambda: tampu(site, network, 4 * elements, clients, hosts, asked.seconds)}
                    if not asked.no_tango and not asked.multicast:
                        systems["tango"] = lambda: tango(network, elements, clients, hosts, asked.seconds)
                    for system, measure in systems.items():
                        row = {"link_mbit": megabits, "elements": elements, "clients": clients, "hosts": hosts, "system": system}
                        try:
                            row.update(measure())
                        except RuntimeError as error:
                            # A crash of the peer is a finding about the peer, and ends its cell only.
                            if system != "tango":
                                raise
                            show_failed({**row, "failed": str(error)}, asked.json)
                            continue
                        # A group takes a value over the source's link once, for all hosts.
                        copies = 1 if system == "group" else hosts
                        row["payload_share"] = row["events_per_s"] * 4 * elements * copies * 8 / (megabits * 1e6)
                        wrong += row["wrong"]
                        if system == name:
                            wrong += row["lost"]
                        if asked.multicast:
                            row["of_first"] = row["events_per_s"] / first.setdefault((megabits, elements), row["events_per_s"])
                        show(row, asked.json)
    finally:
        site.close()
    return wrong


def logs(asked):
    """Measures the table of logs: live, kept by a collector on the second host, and through a server of NATS there."""
    cells = [tuple(int(number) for number in cell.split("x")) for cell in asked.cells.split(",")]
    network = Network(1 + max(1, *(hosts for _, hosts in cells)))
    bad = False
    if not asked.json:
        print(network_logs.TITLES, flush=True)
    systems = [("live", None, None), ("kept", 1, None), *([("group", 1, ON)] if asked.multicast else []), ("nats-100", None, None)]
    for name, collector, group in systems:
        site = None if name == "nats-100" else Site(network.hosts, group, collector)
        for megabits in (int(link) for link in asked.links.split(",")):
            network.hold(megabits)
            for clients, hosts in cells:
                if clients == 0 and name == "live":
                    continue
                places = where(clients, hosts)
                if site:
                    row = network_logs.tampu(site, network, places, asked.seconds, cpu, inner, report)
                else:
                    row = network_logs.nats(network, address(1), places, asked.seconds, cpu, inner, tempfile.gettempdir())
                row = {"link_mbit": megabits, "clients": clients, "hosts": hosts, "system": name, **row}
                bad = bad or (site is not None and row["lost"] + row["wrong"] > 0)
                print(json.dumps(row) if asked.json else network_logs.line(row), flush=True)
        if site:
            site.close()
    if bad:
        sys.exit("FAILED: records were lost or wrong")


def qos(asked):
    """Measures what settings of topics do between hosts."""
    network = Network(3)
    network.hold(int(asked.links.split(",")[0]))
    site = Site(network.hosts)
    bad = False
    try:
        if not asked.json:
            print(network_qos.TITLES + "\n" + "|-" * (network_qos.TITLES.count("|") - 1) + "|", flush=True)
        with tempfile.TemporaryDirectory(prefix="tampu-qos-") as directory:
            for name, value in network_qos.rows():
                file = network_qos.settings(directory, name, value)
                for place in site.places:
                    place.environment["TAMPU_QOS"] = file
                row = {"setting": f"{name} = {value}" if name else "defaults", **tampu(site, network, 92, 2, 2, asked.seconds)}
                row["latency_us_p50"] = tampu(site, network, 92, 2, 2, asked.seconds, 1000)["latency_us_p50"]
                bad = bad or row["lost"] + row["wrong"] > 0
                print(json.dumps(row) if asked.json else network_qos.line(row), flush=True)
    finally:
        site.close()
    if bad:
        sys.exit("FAILED: events were lost or wrong")


def usage(pid):
    """Returns the resident and the proportional memory of a process, bytes."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as rollup:
        fields = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in rollup if line.split()[-1] == "kB"}
    return fields["Rss"], fields["Pss"]


def members(asked):
    """Measures many idle processes on several hosts."""
    network = Network(asked.on)
    network.hold(1000)
    site = Site(network.hosts)
    try:
        began = time.monotonic()
        logs = [] if asked.quiet else ["--logs"]
        processes = [site.part(at % asked.on, "member", f"member-{at}", str(asked.members), *logs) for at in range(asked.members)]
        started = time.monotonic() - began
        knew = [report(process) for process in processes]
        slowest = max(said["knew_all_s"] for said in knew)
        knew_all = time.monotonic() - began
        pids, hubs = [inner(process) for process in processes], [inner(hub) for hub in site.hubs]
        spent = sum(map(cpu, pids)), sum(map(cpu, hubs))
        wire = sum(network.received(host) for host in range(asked.on))
        time.sleep(asked.idle)
        idle = sum(map(cpu, pids)) - spent[0], sum(map(cpu, hubs)) - spent[1]
        wire = sum(network.received(host) for host in range(asked.on)) - wire
        memory = [usage(pid) for pid in pids]
        row = {
            "processes": asked.members, "hosts": asked.on, "log": not asked.quiet, "starting_s": round(started, 2), "all_know_all_s": round(knew_all, 2),
            "slowest_process_s": round(slowest, 2), "changes_each": round(sum(said["changes"] for said in knew) / len(knew), 1),
            "rss_mb_each": round(sum(rss for rss, _ in memory) / len(memory) / 1e6, 2),
            "pss_mb_each": round(sum(pss for _, pss in memory) / len(memory) / 1e6, 2),
            "hub_rss_mb": [round(usage(pid)[0] / 1e6, 1) for pid in hubs],
            "idle_percent_of_a_core": {"processes": round(100 * idle[0] / asked.idle, 1), "hubs": round(100 * idle[1] / asked.idle, 1)},
            "idle_bytes_a_second_and_host": round(wire / asked.idle / asked.on),
        }
        print(json.dumps(row), flush=True)
        for process in processes:
            process.stdin.close()
    finally:
        site.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", default="100,1000,10000", help="rates of the links, Mbit/s")
    parser.add_argument("--elements", default="1,1024,262144", help="DevLong of a value")
    parser.add_argument("--cells", default="1x1,2x1,2x2,5x1,5x5,10x1,10x2,10x5", help="clients x hosts")
    parser.add_argument("--seconds", type=float, default=3.0, help="time of each measurement")
    parser.add_argument("--no-tango", action="store_true", help="Tampu alone")
    parser.add_argument("--multicast", action="store_true", help="without and with a multicast group")
    parser.add_argument("--members", type=int, help="measure so many idle processes instead")
    parser.add_argument("--on", type=int, default=10, help="with --members: the number of hosts")
    parser.add_argument("--quiet", action="store_true", help="with --members: processes without loggers")
    parser.add_argument("--idle", type=float, default=10.0, help="with --members: the idle time that is measured, s")
    parser.add_argument("--logs", action="store_true", help="records of a program that logs, beside NATS, instead of events")
    parser.add_argument("--qos", action="store_true", help="what settings of topics do, instead of the table")
    parser.add_argument("--json", action="store_true", help="JSON objects, one a line")
    asked = parser.parse_args()
    isolated()
    if asked.members:
        members(asked)
    elif asked.logs:
        logs(asked)
    elif asked.qos:
        qos(asked)
    else:
        events(asked)


if __name__ == "__main__":
    main()
