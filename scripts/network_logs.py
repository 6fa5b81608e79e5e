"""The paper's test of logs, between hosts: a program logs as fast as it can, clients on other hosts follow and check every record.

The paper is Avarias et al., "Introducing high performance distributed logging service for ACS", 2010: records of 250 bytes, in sequences of
100. `live` has no collector; in `kept` one on the second host, where ACS has its central logger, commits every record to its disk, also
while nobody follows; `group` is that with a multicast group of all hosts; `nats-100` is a server of core NATS there, which keeps nothing, with 100 records a message.
"""

import json
import os
import subprocess

from hub import until

SIZE = 250
# The paper's best rates without and with one client, one by one over DDS in a network of 1 Gbit/s.
PAPER = {0: 31_000, 1: 25_000}
NATS_PORT = 4222
TITLES = "link      clients@hosts  system      records/s   the paper's best x   wire/record B   CPU program   hub  service  client   lost"
BENCH = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target")), "release", "bench-log")


def line(row):
    """Returns a row of the table."""
    best = PAPER.get(row["clients"])
    hub = f"{row['cpu_hub']:.2f}" if "cpu_hub" in row else "-"
    times = f"{row['records_per_s'] / best:.1f}" if best else "-"
    return (
        f"{row['link_mbit']:>6} Mb {row['clients']:>7}@{row['hosts']:<5}  {row['system']:<8} {row['records_per_s']:>12.0f} {times:>20}"
        f" {row['wire_per_record']:>15.1f} {row['cpu_program']:>13.2f} {hub:>5} {row['cpu_service']:>8.2f} {row['cpu_client']:>7.2f} {row['lost']:>6}"
    )


def tampu(site, network, places, seconds, cpu, inner, report):
    """Measures one cell with Tampu. `places` has the host of each client."""
    collects = site.collector is not None
    clients = [site.part(host, "client", f"client-{at}", str(SIZE)) for at, host in enumerate(places)]
    readers = len(places) + collects
    producer = site.part(0, "producer", str(seconds), str(SIZE), str(readers), *(["--kept"] if collects else []))
    try:
        report(producer)
        far = sorted({*places, *([site.collector] if collects else [])})
        wire = [network.received(host) for host in far]
        hubs = [cpu(inner(hub)) for hub in site.hubs]
        produced = report(producer)
        for client in clients:
            client.stdin.close()
        got = [report(client) for client in clients]
        wire = [network.received(host) - since for host, since in zip(far, wire)]
        hubs = [cpu(inner(hub)) - since for hub, since in zip(site.hubs, hubs)]
    finally:
        for process in (*clients, producer):
            if not process.stdin.closed:
                process.stdin.close()
            process.wait()
    records = produced["produced"] - produced["dropped"]
    elapsed = max([produced["elapsed_s"]] + [client["elapsed_s"] for client in got])
    lost = produced["dropped"] + sum(max(records - client["received"], 0) for client in got)
    if collects and not produced["confirmed"]:
        # The collector has not said that it has committed all of them.
        lost += records
    service = hubs[site.collector] if collects else 0.0
    return {
        "records_per_s": min([client["received"] for client in got] + [records]) / elapsed,
        "wire_per_record": max(wire) / max(records, 1),
        "cpu_program": produced["cpu_s"] / elapsed,
        "cpu_hub": hubs[0] / elapsed,
        "cpu_service": service / elapsed,
        "cpu_client": max([client["cpu_s"] for client in got], default=0.0) / elapsed,
        "lost": lost,
        "wrong": sum(client["wrong"] for client in got),
    }


class Actor:
    """A process of NATS's measurement, controlled by lines of JSON."""

    def __init__(self, host, *arguments):
        inside = ["ip", "netns", "exec", f"h{host}"]
        self.process = subprocess.Popen([*inside, BENCH, "role", "nats-100", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self, name):
        """Returns the content of the next message of this name."""
        for said in self.process.stdout:
            message = json.loads(said)
            if message == name:
                return None
            if name in message:
                return message[name]
            if "Failed" in message:
                raise RuntimeError(message["Failed"])
        raise RuntimeError(f"NATS: a process ended before '{name}'")

    def order(self, what):
        """Gives a command."""
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def close(self):
        """Ends it."""
        self.process.kill()
        self.process.wait()


def nats(network, server_at, places, seconds, cpu, inner, directory):
    """Measures one cell with a server of NATS on the second host."""
    at = f"{server_at}:{NATS_PORT}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(["ip", "netns", "exec", "h1", "nats-server", "--addr", server_at, "--port", str(NATS_PORT)], **quiet)
    common = ["--dir", directory, "--size", str(SIZE), "--readers", str(len(places)), "--at", at]
    actors = []
    try:
        listens = ["ip", "netns", "exec", "h1", "ss", "-Hltn", f"sport = :{NATS_PORT}"]
        until("NATS listens", lambda: subprocess.run(listens, check=True, capture_output=True).stdout)
        actors.append(writer := Actor(0, "writer", *common))
        writer.hear("At")
        readers = [Actor(host, "reader", *common, "--number", str(number)) for number, host in enumerate(places)]
        actors += readers
        for reader in readers:
            reader.hear("Connected")
        far = sorted({*places, 1})
        wire = [network.received(host) for host in far]
        used = [cpu(inner(actor.process)) for actor in actors]
        service = cpu(inner(server))
        writer.order({"Go": {"nanoseconds": int(seconds * 1e9)}})
        wrote = writer.hear("Wrote")
        for reader in readers:
            reader.order("WriterDone")
        got = [reader.hear("Got") for reader in readers]
        wire = [network.received(host) - since for host, since in zip(far, wire)]
        used = [cpu(inner(actor.process)) - since for actor, since in zip(actors, used)]
        service = cpu(inner(server)) - service
    finally:
        for actor in actors:
            actor.close()
        server.kill()
        server.wait()
    records = wrote["count"]
    elapsed = (max([wrote["ended"]] + [reader["last"] for reader in got]) - wrote["begun"]) / 1e9
    return {
        "records_per_s": min([reader["received"] for reader in got] + [records]) / elapsed,
        "wire_per_record": max(wire) / max(records, 1),
        "cpu_program": used[0] / elapsed,
        "cpu_service": service / elapsed,
        "cpu_client": max(used[1:], default=0.0) / elapsed,
        "lost": sum(max(records - reader["received"], 0) for reader in got),
        "wrong": sum(reader["corrupt"] + reader["repeated"] for reader in got),
    }
