#!/usr/bin/env python3
"""A site of four hosts as docs/operate/several-hosts.md sets it up, each in a network namespace with a boot id of its own.

`tampu site` and `tampu doctor --site` see all of them. While 1 % of the packets are lost and each takes 50 ms, programs on three hosts log and
publish: each record is in the archive once, and each event came or was told. Two collectors keep the same records. A host whose clock is
an hour ahead is found.
"""

import glob
import json
import os
import shutil

from far_life import Publisher, Subscriber, kill
from event_cable_cut import told_numbers
from hub import Load, Place, check, isolated, once_each, until
from wire import Wire, address

HOSTS = ("archive", "control", "antenna", "store")


def file_of(place):
    """The file with which a host joins."""
    return os.path.join(place.directory, "host.join")


def rows(place, *arguments):
    """The JSON lines of a command."""
    said = place.run(*arguments, "--json", check=False)
    return [json.loads(line) for line in said.stdout.splitlines()]


def main():
    isolated()
    print("site_of_hosts", flush=True)
    wire = Wire(7, "abcd")
    places = {name: Place("alma", netns=netns) for name, netns in zip(HOSTS, "abcd")}
    archive, control, antenna, store = places.values()
    try:
        # Three commands a host: its file, made on the first, the copy, the hub.
        archive.run("cert", "init", "--data", archive.data, "--name", address("a"))
        for name, netns in zip(HOSTS[1:], "bcd"):
            joins = ("--join", os.path.join(archive.directory, name), "--peer", f"{address('a')}:7447")
            archive.run("cert", "host", name, "--data", archive.data, "--name", address(netns), *joins)
            shutil.copy2(os.path.join(archive.directory, name), file_of(places[name]))
        first = archive.up("--lan", f"{address('a')}:7447")
        control.up("--join", file_of(control))
        store.up("--join", file_of(store), "--roles", "node,collector")
        # A clock that is wrong, as the programs of that host see it.
        right = dict(antenna.environment)
        (faketime,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        antenna.environment.update(LD_PRELOAD=faketime, FAKETIME="+3600s", FAKETIME_DONT_FAKE_MONOTONIC="1")
        hub = antenna.up("--join", file_of(antenna))

        print("the whole site is seen from one host", flush=True)
        hosts = until("all hosts answer", lambda: (found := rows(control, "site")) and len(found) == 4 and found, 60)
        check("each by the name in its certificate", set(HOSTS[1:]) < {host["proved"] for host in hosts})
        ahead = {host["proved"]: host["offset_ns"] / 1e9 for host in hosts}
        check("the wrong clock is 3600 s ahead", abs(ahead["antenna"] - 3600) < 1 and all(abs(s) < 1 for n, s in ahead.items() if n != "antenna"))
        said = control.run("doctor", "--site", check=False)
        check("doctor names it and fails", said.returncode == 1 and "antenna is " in said.stdout)
        antenna.environment = right
        kill(antenna, hub)
        antenna.up("--join", file_of(antenna))
        until("the clock is right again", lambda: control.run("doctor", "--site", check=False).returncode == 0, 60)
        print(*("    " + line for line in control.run("site").stdout.splitlines()), sep="\n", flush=True)

        print("1 % of the packets are lost, and each takes 50 ms", flush=True)
        seen = Subscriber(archive)
        source = Publisher(antenna, "counter")
        until("values come", lambda: len(seen.numbers()) > 10)
        wire.loss, wire.delay = 0.01, 0.05
        loads = {name: Load(places[name], name, per_second=200, seconds=10) for name in ("control", "antenna", "store")}
        for load in loads.values():
            load.finish()
        source.end()
        last = source.number
        until("the last value comes", lambda: any(line.get("value") == last for line in list(seen.lines)), 60)
        wire.loss, wire.delay = 0.0, 0.0
        print(f"  {wire.lost} of {wire.carried + wire.lost} packets were lost", flush=True)
        check("packets were lost", wire.lost > 10)
        for name, load in loads.items():
            check(f"the records of {name} are in the archive once", once_each(archive.messages(name), load.expected))
        life = seen.lines[-1]["incarnation"]
        of_life = [line for line in seen.lines if line["incarnation"] == life]
        numbers = {line["number"] for line in of_life if "value" in line}
        told = {number for line in of_life for number in told_numbers(line)} - numbers
        missing = set(range(min(number for number in numbers if number > 0), max(numbers))) - numbers - told
        print(f"  {len(numbers)} events came, {len(told)} were told as missed, {len(missing)} are unaccounted for", flush=True)
        check("each event came or was told", not missing)

        print("traffic between the hosts", flush=True)
        links = rows(control, "site", "links", "--interval", "200ms")
        check("both ends of each link are listed", len(links) == 6 and all(link["sent"] and link["received"] for link in links))
        print(*("    " + line for line in control.run("site", "links").stdout.splitlines()), sep="\n", flush=True)

        print("the first host ends, and with it the first collector", flush=True)
        kill(archive, first)
        for name, load in loads.items():
            until(f"the second collector has the records of {name}", lambda: set(load.expected) <= set(store.messages(name)), 60)
            check(f"the second collector has the records of {name} once", once_each(store.messages(name), load.expected))
    finally:
        for place in places.values():
            place.close()


if __name__ == "__main__":
    main()
