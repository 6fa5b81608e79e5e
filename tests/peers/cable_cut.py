#!/usr/bin/env python3
"""Two hosts, each in a network namespace; the cable between them is cut for 5 s. And two domains share the network."""

import os
import shutil
import time

from hub import Load, Place, check, isolated, once_each, sh, until


def network():
    """Two hosts, `a` and `b`, joined by a cable."""
    # `ip netns` keeps its names below /run, which is not ours everywhere.
    sh("mount -t tmpfs tampu /run && mkdir -p /run/netns")
    sh("ip netns add a && ip netns add b")
    sh("ip link add cable-a netns a type veth peer name cable-b netns b")
    for host, address in (("a", "10.87.0.1/24"), ("b", "10.87.0.2/24")):
        sh(f"ip -n {host} address add {address} dev cable-{host}")
        sh(f"ip -n {host} link set cable-{host} up && ip -n {host} link set lo up")


def key_file(place, text):
    """A file with a domain's key, readable by its owner alone."""
    path = os.path.join(place.directory, "domain.key")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    return path


def certify(first, *others):
    """Certificates of one authority for hosts, each given with its address; the first has the authority."""
    place, address = first
    place.run("cert", "init", "--data", place.data, "--name", address)
    for number, (other, address) in enumerate(others):
        name = f"host{number}"
        place.run("cert", "host", name, "--data", place.data, "--name", address)
        domain = place.environment["TAMPU_DOMAIN"]
        made = os.path.join(place.data, domain, "authority", "hosts", name)
        shutil.copytree(made, os.path.join(other.data, domain, "cert"))


def lines(file):
    """The texts of the records a tail has shown."""
    file.seek(0)
    return ["record " + line.rsplit("record ", 1)[1] for line in file.read().splitlines() if "record " in line]


def main():
    isolated()
    print("cable_cut", flush=True)
    network()
    archive, antenna, stranger = Place("cut", netns="a"), Place("cut", netns="b"), Place("other", netns="a")
    try:
        certify((archive, "10.87.0.1"), (antenna, "10.87.0.2"))
        certify((stranger, "10.87.0.1"))
        archive.up("--lan", "10.87.0.1:7447", "--key-file", key_file(archive, "a key of the site"))
        stranger.up("--lan", "10.87.0.1:7448", "--key-file", key_file(stranger, "a key of the others"))
        antenna.up(
            "--roles", "node", "--peer", "10.87.0.1:7447", "--peer", "10.87.0.1:7448",
            "--key-file", key_file(antenna, "a key of the site"),
        )
        until("the antenna's host sees the archive", lambda: antenna.run("log", "stat", check=False).returncode == 0)
        # Files, not pipes: a tail whose output nobody takes stops, and this is no test of that.
        shown, told = (os.path.join(archive.directory, name) for name in ("tail.out", "tail.err"))
        with open(shown, "w", encoding="utf-8") as out, open(told, "w", encoding="utf-8") as err:
            tail = archive.start("log", "tail", "--held", "--process", "instrument", stdout=out, stderr=err)
        load = Load(antenna, "instrument", per_second=500, seconds=14)
        time.sleep(3)
        sh("ip -n a link set cable-a down")
        time.sleep(5)  # the cut itself
        sh("ip -n a link set cable-a up")
        load.finish()
        check("each record is there once, cut or not", once_each(archive.messages("instrument"), load.expected))
        with open(shown, encoding="utf-8") as out, open(told, encoding="utf-8") as err:
            seen = until("the tail shows the last record", lambda: lines(out) if load.expected[-1] in lines(out)[-1:] else None)
            tail.terminate()
            print(f"  the tail showed {len(seen)}, {len(set(seen))} of them different")
            check("the live tail showed each once", len(seen) == len(load.expected) == len(set(seen)))
            print("  the tail was told:", *err.read().splitlines(), sep="\n    ", flush=True)
        check("nothing of one domain is in the other", stranger.messages("instrument") == [])
    finally:
        for place in (archive, antenna, stranger):
            place.close()


if __name__ == "__main__":
    main()
