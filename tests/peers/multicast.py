#!/usr/bin/env python3
"""Live topics from one host to three others through a multicast group, each host in a network namespace.

The bytes on the wire of the source's host are counted: a sample crosses it once. Then 1 % of the packets are lost, the hub of a host is
stopped, and the network carries no groups, or no long packets of groups: each reader has every sample, in order and as it was, and the
source's hub says what does not work. Nobody on the wire can read the records, and no host gets by the group what it may not read.
"""

import json
import os
import signal
import subprocess
import time

from cable_cut import certify, key_file
from far_life import tampu_of
from hub import Place, check, isolated, sh, until
from wire import Wire, address

GROUP = "239.255.87.48"
GROUP_6 = "ff15::8748"
OTHERS = "bcd"
SECRET = "nobody else reads this"


class Site:
    """Four hosts; the first is the source's."""

    def __init__(self, wire, group=GROUP):
        self.wire = wire
        self.places = {host: Place("multicast", netns=host) for host in "a" + OTHERS}
        certify(*((place, address(host)) for host, place in self.places.items()))
        self.hubs = {}
        for host, place in self.places.items():
            config = os.path.join(place.directory, "tampu.toml")
            with open(config, "w", encoding="utf-8") as file:
                interface = self.interface(host) if group == GROUP else f"wire-{host}"
                file.write(f'[[network.multicast]]\ngroup = "{group}"\ninterface = "{interface}"\n')
            way = ["--lan", f"{address('a')}:7447"] if host == "a" else ["--peer", f"{address('a')}:7447"]
            key = key_file(place, "a key of the site")
            self.hubs[host] = place.up("--config", config, "--roles", "node", *way, "--key-file", key)
        self.await_reached(OTHERS)

    @staticmethod
    def interface(host):
        """By name, by address and by index."""
        return {"a": f"wire-{host}", "b": f"wire-{host}", "c": address(host)}.get(host) or index_of(host)

    def reached(self):
        """Returns how many hosts the group of the source's host reaches."""
        found = []
        for directory, _, files in os.walk(os.path.join(self.places["a"].directory, "run")):
            if "groups.json" in files:
                with open(os.path.join(directory, "groups.json"), encoding="utf-8") as file:
                    found = json.load(file)["groups"]["0"]["boots"]
        return len(found)

    def await_reached(self, hosts):
        """Waits until the group reaches these other hosts, and the programs know it."""
        until(f"the group reaches {len(hosts)} hosts", lambda: self.reached() == len(hosts))
        time.sleep(1)  # programs look twice a second

    def close(self):
        """Ends all."""
        for place in self.places.values():
            place.close()

    def await_group(self):
        """Waits until the source's host sends samples to the group."""
        before = self.wire.to_groups["a"]
        until("samples go to the group", lambda: self.wire.to_groups["a"] > before + 20 * 4096)

    def part(self, host, *arguments):
        """Starts a part of a measurement on a host."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return self.places[host].start("perf", "part", *arguments, **pipes)


def published(place):
    """Returns the rules that a hub has published for the programs of its host."""
    for directory, _, files in os.walk(os.path.join(place.directory, "run")):
        if "policy.json" in files:
            with open(os.path.join(directory, "policy.json"), encoding="utf-8") as file:
                return file.read()
    return ""


def index_of(host):
    """Returns the index of a host's interface."""
    said = subprocess.run(["ip", "-n", host, "-j", "link", "show"], check=True, capture_output=True, text=True).stdout
    return str(next(link["ifindex"] for link in json.loads(said) if link["ifname"] == f"wire-{host}"))


def report(process):
    """Returns the next report of a part."""
    return json.loads(process.stdout.readline())


def samples(site, name, size, seconds=3, meanwhile=lambda: None, hosts=OTHERS):
    """Writes samples for readers on other hosts. Returns the bytes on the source's wire per byte of samples."""
    readers = [site.part(host, "reader", f"{name}-{host}", str(size), "false") for host in hosts]
    writer = site.part("a", "writer", str(seconds), str(size), str(len(hosts)), "false", "false")
    before = site.wire.sent["a"]
    meanwhile()
    wrote = report(writer)
    for reader in readers:
        reader.stdin.close()
    got = [report(reader) for reader in readers]
    sent = site.wire.sent["a"] - before
    for process in (*readers, writer):
        process.stdin.close()
        process.wait()
    share = sent / (wrote["written"] * size)
    print(f"  {name}: {wrote['written'] / wrote['elapsed_s']:.0f} samples of {size} bytes a second, {share:.2f} of them on the wire", flush=True)
    # A busy machine writes few large ones in this time, and nothing depends on how many.
    check(f"{name}: samples were written", wrote["written"] >= 3)
    for host, one in zip(hosts, got):
        check(f"{name}: {host} has each, as it was", (one["received"], one["lost"], one["wrong"]) == (wrote["written"], 0, 0))
    return share


def records(site, name, count):
    """Logs records on the source's host, which tails on all other hosts must show. Returns the bytes on its wire per byte."""
    tails = [
        site.places[host].start("log", "tail", "--process", name, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for host in OTHERS
    ]
    time.sleep(2)  # until they read
    texts = [f"{name} {number} {SECRET} " + 900 * "x" for number in range(count)]
    before = site.wire.sent["a"]
    sender = site.places["a"].start("log", "send", "--process", name, "--timeout", "60s", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    sender.communicate("\n".join(texts) + "\n", timeout=120)
    for host, tail in zip(OTHERS, tails):
        got = []
        while len(got) < count:
            got.append(json.loads(tail.stdout.readline())["message"])
        check(f"{name}: {host} shows each record once, in order", got == texts)
        tail.kill()
    return (site.wire.sent["a"] - before) / sum(map(len, texts))


def main():
    isolated()
    print("multicast", flush=True)
    seed = int(os.environ.get("TAMPU_SEED") or time.time())
    print(f"  TAMPU_SEED={seed}", flush=True)
    wire = Wire(seed, "a" + OTHERS)
    wire.secrets = [SECRET.encode()]
    site = Site(wire)

    for size in (4096, 1 << 20):
        check("once on the wire", samples(site, f"plain-{size}", size) < 1.5)
    check("once on the wire", records(site, "plain", 3000) < 1.8)

    print("1 % of the packets are lost", flush=True)
    wire.loss, lost = 0.01, wire.lost
    for size in (4096, 1 << 20):
        check("about once on the wire", samples(site, f"loss-{size}", size) < 1.7)
    records(site, "loss", 3000)
    check("packets were lost", wire.lost > lost + 10)
    wire.loss = 0.0

    print("the hub of a host is stopped for a second", flush=True)
    hub = tampu_of(site.places["d"], site.hubs["d"].pid)[0]

    def stop():
        site.await_group()
        os.kill(hub, signal.SIGSTOP)
        time.sleep(1)  # the stop itself
        os.kill(hub, signal.SIGCONT)

    samples(site, "stopped", 4096, 5, stop)

    print("the network carries no groups", flush=True)

    def cut():
        site.await_group()
        wire.groups = False

    samples(site, "cut", 4096, 5, cut)
    until("the group reaches nobody", lambda: site.reached() == 0)
    time.sleep(1)  # programs look twice a second
    check("each host gets its own copies", samples(site, "singly", 4096) > 2.5)
    until("the source's hub says so", lambda: "does not reach the host" in site.places["a"].said())

    print("the network carries groups again", flush=True)
    wire.groups = True
    site.await_reached(OTHERS)
    check("once on the wire", samples(site, "again", 4096) < 1.5)

    print("long packets to the group do not reach a host", flush=True)

    def shorten():
        site.await_group()
        wire.longest["d"] = 1400

    samples(site, "shortened", 4096, 6, shorten)
    until("the group reaches two hosts", lambda: site.reached() == 2)
    time.sleep(1)  # programs look twice a second
    check("each host gets its own copies", samples(site, "short", 4096) > 2.5)
    until("the source's hub says why", lambda: "a smaller MTU" in site.places["a"].said())
    wire.longest.clear()
    site.await_reached(OTHERS)
    check("once on the wire", samples(site, "long", 4096) < 1.5)

    print("the source's interface sends no long packets", flush=True)
    sh("ip -n a link set wire-a mtu 1300")
    samples(site, "lowered", 4096)
    site.await_reached(OTHERS)
    check("once on the wire", samples(site, "lower", 4096) < 1.6)
    check("nobody on the wire read a record", wire.readable == 0)
    site.close()
    sh("ip -n a link set wire-a mtu 1500")

    print("a group of IPv6", flush=True)
    for number, host in enumerate("a" + OTHERS, 1):
        sh(f"ip -n {host} address add fd87::{number}/64 dev wire-{host} nodad")
    site = Site(wire, GROUP_6)
    check("once on the wire", samples(site, "IPv6", 4096) < 1.5)

    print("a host that has the key may not read the topic", flush=True)
    source = site.places["a"]
    policy = os.path.join(source.data, "multicast", "access", "policy.toml")
    os.makedirs(os.path.dirname(policy), exist_ok=True)
    with open(policy, "w", encoding="utf-8") as file:
        file.write('[[deny]]\nwho = "host:host2"\nmay = ["read"]\nwhat = "perf/**"\n')
    until("the rule is in force", lambda: "perf/**" in published(source))
    time.sleep(5)  # the hubs open their connections anew
    site.await_reached(OTHERS)
    check("the others get their own copies", samples(site, "denied", 4096, hosts="bc") > 1.8)
    site.close()


if __name__ == "__main__":
    main()
