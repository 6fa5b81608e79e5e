#!/usr/bin/env python3
"""A site over three sub-nets: a host in each, and a router between them that forwards and passes no broadcast and no group.

The hosts find one another by the address of the first alone. Records of all are in the archive once, and events go from sub-net to sub-net
although two of the hosts name only the first. Then the router is down for 10 s: nothing is missing afterwards without a word.
"""

import time

from cable_cut import certify, key_file
from event_cable_cut import told_numbers
from far_life import Publisher, Subscriber
from hub import Load, Place, check, isolated, once_each, sh, until

HOSTS = "abc"
KEY = "a key of the site"
CUT = 10


def address(host):
    """That of a host, in the sub-net of its own."""
    return f"10.88.{HOSTS.index(host) + 1}.1"


def network():
    """A namespace for each host, and `r`, which forwards between their sub-nets."""
    # `ip netns` keeps its names below /run, which is not ours everywhere.
    sh("mount -t tmpfs tampu /run && mkdir -p /run/netns")
    sh("ip netns add r && ip -n r link set lo up && ip netns exec r sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'")
    for number, host in enumerate(HOSTS, 1):
        sh(f"ip netns add {host} && ip link add net-{host} netns {host} type veth peer name net-{host} netns r")
        for place, last in ((host, 1), ("r", 254)):
            sh(f"ip -n {place} address add 10.88.{number}.{last}/24 dev net-{host} && ip -n {place} link set net-{host} up")
        sh(f"ip -n {host} link set lo up && ip -n {host} route add default via 10.88.{number}.254")


def forward(on):
    """Lets the router forward, or not."""
    sh(f"ip netns exec r sh -c 'echo {int(on)} > /proc/sys/net/ipv4/ip_forward'")


def main():
    isolated()
    print("several_nets", flush=True)
    network()
    places = {host: Place("nets", netns=host) for host in HOSTS}
    archive, one, other = places.values()
    try:
        certify(*((place, address(host)) for host, place in places.items()))
        archive.up("--lan", f"{address('a')}:7447", "--key-file", key_file(archive, KEY))
        for place in (one, other):
            place.up("--roles", "node", "--peer", f"{address('a')}:7447", "--key-file", key_file(place, KEY))
        source = Publisher(one, "counter")
        until("the attribute is listed in another sub-net", lambda: other.run("event", "list", "lab/far/1/count", check=False).stdout)
        seen = Subscriber(other)
        until("values come", lambda: len(seen.numbers()) > 50)
        loads = {name: Load(places[name], f"host-{name}", per_second=200, seconds=CUT + 8) for name in "bc"}
        time.sleep(3)  # before the cut
        print(f"the router forwards nothing for {CUT} s", flush=True)
        forward(False)
        time.sleep(CUT)  # the cut itself
        forward(True)
        for load in loads.values():
            load.finish()
        source.end()
        last = source.number
        until("the last value comes", lambda: any(line.get("value") == last for line in list(seen.lines)), 60)
        for name, load in loads.items():
            of = f"host-{name}"
            until(f"the last record of {name} is there", lambda of=of, load=load: load.expected[-1] in archive.messages(of), 60)
            check(f"the records of {name} are in the archive once", once_each(archive.messages(of), load.expected))
        lines = list(seen.lines)
        numbers = {line["number"] for line in lines if "value" in line and line["number"] > 0}
        told = {number for line in lines for number in told_numbers(line)} - numbers
        missing = set(range(min(numbers), max(numbers))) - numbers - told
        print(f"  {len(numbers)} events came, {len(told)} were told as missed, {len(missing)} are unaccounted for", flush=True)
        check("each event came or was told", not missing)
        check("the silence was told", any(line["reason"] == "source_hung" for line in lines))
    finally:
        for place in places.values():
            place.close()


if __name__ == "__main__":
    main()
