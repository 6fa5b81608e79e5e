#!/usr/bin/env python3
"""Three hosts without a collector, each in a network namespace: a program logs on `a`, somebody follows it on `c`.

The spool of each host keeps the records of its own host alone, so `b`, which follows nothing, is sent next to nothing. A collector that
comes later on `b` gets each record once.
"""

import os

from cable_cut import certify, key_file
from hub import Load, Place, check, isolated, once_each, until
from wire import Wire, address

KEY = "a key of the site"
# Bytes of the records' texts that `b` may be sent for each byte that `c` gets, which follows them.
MOST = 0.2


def main():
    isolated()
    print("spool_own_host", flush=True)
    wire = Wire(seed=1, hosts="abc")
    places = {host: Place("spools", netns=host) for host in "abc"}
    a, b, c = places.values()
    tail = os.path.join(c.directory, "tail.log")
    try:
        certify(*((place, address(host)) for host, place in places.items()))
        a.up("--roles", "node", "--lan", f"{address('a')}:7447", "--key-file", key_file(a, KEY))
        for place in (b, c):
            place.up("--roles", "node", "--peer", f"{address('a')}:7447", "--key-file", key_file(place, KEY))
        until("all hosts see one another", lambda: len(b.run("site", "hosts", check=False).stdout.splitlines()) > 3, 60)
        for place in places.values():
            # Nobody else confirms these.
            Load(place, "begin", per_second=20, seconds=1).finish()

        def followed():
            with open(tail, encoding="utf-8") as file:
                return sum("record " in line for line in file)

        with open(tail, "w", encoding="utf-8") as file:
            c.start("log", "tail", stdout=file)
        Load(a, "first", per_second=20, seconds=1).finish()
        until("the first records are followed on c", lambda: followed() > 0, 60)
        seen, before = followed(), dict(wire.received)
        load = Load(a, "instrument", per_second=10_000, seconds=4)
        load.finish()
        until("all records are followed on c", lambda: followed() >= seen + len(load.expected), 60)
        to_b, to_c = (wire.received[host] - before[host] for host in "bc")
        print(f"  {to_b} bytes to b, {to_c} bytes to c, which follows", flush=True)
        check("a host that follows nothing is sent next to nothing", to_b < MOST * to_c)

        b.up("--roles", "collector")
        until("the records are in the archive", lambda: len(b.messages("instrument")) >= len(load.expected), 60)
        check("each record is there once", once_each(b.messages("instrument"), load.expected))
    finally:
        for place in places.values():
            place.close()


if __name__ == "__main__":
    main()
