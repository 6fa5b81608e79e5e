#!/usr/bin/env python3
"""Datagrams of bulk data beside the kernel's TCP on one narrow wire: 100 Mbit/s with a queue of 20 ms, between network namespaces.

Alone, the datagrams use the wire. Beside a TCP connection their rate falls, and the connection gets its part. When the connection has
ended, the rate rises again. Nothing is lost in the end. The same for a group. The link is a veth pair with tbf, which needs root.
"""

import json
import os
import subprocess
import sys
import threading
import time

from cable_cut import certify, key_file
from hub import Place, check, isolated, sh, until

WIRE = 100e6 / 8
ADDRESS = {"a": "10.88.0.1", "b": "10.88.0.2"}
SIZE = 480 << 20
# Sink and source of a TCP connection, each in its namespace. The source prints the bytes that the sink has counted.
SINK = """
import socket
server = socket.create_server(("10.88.0.1", 0))
print(server.getsockname()[1], flush=True)
end, count = server.accept()[0], 0
while piece := end.recv(1 << 20):
    count += len(piece)
print(count, flush=True)
"""
SOURCE = """
import socket, sys, time
end, until = socket.create_connection(("10.88.0.1", int(sys.argv[1]))), time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    end.sendall(bytes(1 << 16))
"""


def narrow():
    sh("mount -t tmpfs tampu /run && mkdir -p /run/netns")
    sh("ip netns add a && ip netns add b && ip link add name wa type veth peer name wb")
    for host, address in ADDRESS.items():
        sh(f"ip link set w{host} netns {host} && ip -n {host} address add {address}/24 dev w{host}")
        sh(f"ip -n {host} link set w{host} up && ip -n {host} link set lo up && ip -n {host} route add 239.0.0.0/8 dev w{host}")
        sh(f"ip netns exec {host} tc qdisc add dev w{host} root tbf rate 100mbit burst 32k latency 20ms")


def written(out):
    files = (os.path.join(at, name) for at, _, names in os.walk(out) for name in names)
    return sum(os.path.getsize(file) for file in files)


def rate(out, seconds):
    """Bytes a second that reach the receiver's disk, as a part of the wire."""
    before, began = written(out), time.monotonic()
    time.sleep(seconds)  # what is measured
    return (written(out) - before) / (time.monotonic() - began) / WIRE


def beside(seconds):
    """Starts a TCP connection, which returns its part of the wire when it is called."""
    python = ["ip", "netns", "exec"]
    sink = subprocess.Popen([*python, "a", sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True)
    port = sink.stdout.readline().strip()
    source = subprocess.Popen([*python, "b", sys.executable, "-c", SOURCE, port, str(seconds)])

    def part():
        source.wait(timeout=seconds + 60)
        return int(sink.communicate(timeout=60)[0]) / seconds / WIRE

    return part


def over(stream, archive, correlator, path, *how):
    out = os.path.join(archive.directory, f"out-{stream}")
    os.makedirs(out)
    receiver = archive.start(
        "bulk", "recv", "--stream", stream, "--output", out, "--json", "--listen", f"{ADDRESS['a']}:0", "--protection", "none",
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    until("the receiver is up", lambda: "listening" in receiver.stdout.readline())
    sender = correlator.start(
        "bulk", "send", path, "--stream", stream, "--json", "--protection", "none", *how, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said = []
    threading.Thread(target=lambda: said.extend(sender.communicate()), daemon=True).start()
    until("data flows", lambda: written(out) > 1 << 20)
    time.sleep(3)  # the rate rises
    alone = rate(out, 5)
    part = beside(15)
    time.sleep(3)  # both find their rates
    shared = rate(out, 11)
    part = part()
    time.sleep(3)  # the rate rises again
    again = rate(out, 5)
    print(f"    {stream}: {alone:.2f} of the wire alone, {shared:.2f} beside TCP with {part:.2f}, {again:.2f} after it", flush=True)
    check(f"{stream}: alone the datagrams use the wire", alone > 0.5)
    check(f"{stream}: TCP gets its part", part > 0.2)
    check(f"{stream}: the datagrams keep a part", shared > 0.1)
    check(f"{stream}: their rate fell", shared < 0.9 * alone)
    check(f"{stream}: and recovers", again > 0.5)
    until("the sender has ended", lambda: said, 120)
    ended = [event for event in map(json.loads, said[0].splitlines()) if event["event"] == "ended"][0]
    check(f"{stream}: everything arrived", sender.returncode == 0 and ended["complete"] and written(out) >= SIZE)


def main():
    isolated()
    print("bulk_congestion", flush=True)
    narrow()
    archive, correlator = (Place("bulknarrow", netns=host) for host in "ab")
    try:
        key = "a key of the site"
        certify((archive, ADDRESS["a"]), (correlator, ADDRESS["b"]))
        archive.up("--roles", "node", "--lan", f"{ADDRESS['a']}:7447", "--key-file", key_file(archive, key))
        correlator.up("--roles", "node", "--peer", f"{ADDRESS['a']}:7447", "--key-file", key_file(correlator, key))
        path = os.path.join(correlator.directory, "spectra")
        with open(path, "wb") as file:
            file.truncate(SIZE)
        over("udp", archive, correlator, path, "--protocol", "udp")
        over("group", archive, correlator, path, "--multicast", "239.255.88.1", "--interface", ADDRESS["b"])
    finally:
        for place in (archive, correlator):
            place.close()


if __name__ == "__main__":
    main()
