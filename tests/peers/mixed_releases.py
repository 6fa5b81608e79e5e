#!/usr/bin/env python3
"""Hosts with different releases, each in a network namespace; then the hub of one is upgraded while programs of both log and publish.

The other release is the same program with another number: it shows that releases find one another, are told apart, and take over from
one another. What a later release may add to the formats is in the tests of the formats.
"""

import json
import os
import signal
import subprocess
import tempfile
import time

import hub
from cable_cut import certify, key_file
from event_cable_cut import told_numbers
from far_life import Publisher, Subscriber
from hub import Load, Place, check, isolated, once_each, until
from wire import Wire, address

KEY = "a key of the site"
LATER = "0.2.7"


def release(program):
    """The number that a program tells."""
    return subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1]


def other_release(directory):
    """Writes the program with another number; its path."""
    with open(hub.TAMPU, "rb") as file:
        data = file.read()
    now = release(hub.TAMPU)
    check(f"{now} has as many characters as {LATER}", len(now) == len(LATER) and now != LATER)
    path = os.path.join(directory, "tampu")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755), "wb") as file:
        file.write(data.replace(now.encode(), LATER.encode()))
    check("the other program tells another number", release(path) == LATER)
    return path


def releases(place):
    """The release of each host with a hub, as a host sees them."""
    said = place.run("site", "hosts", "--json", check=False).stdout.splitlines()
    return sorted(json.loads(line)["version"] for line in said)


def health(place):
    """What the doctor of the site says of releases."""
    said = place.run("doctor", "--site", "--json", check=False).stdout.splitlines()
    return [line for line in map(json.loads, said) if LATER in json.dumps(line)]


def main():
    isolated()
    print("mixed_releases", flush=True)
    _wire = Wire(2, "ab")  # it carries packets as long as it is held
    archive, antenna = Place("mixed", netns="a"), Place("mixed", netns="b")
    with tempfile.TemporaryDirectory(prefix="tampu-release-") as directory:
        now, later = release(hub.TAMPU), other_release(directory)
        try:
            certify(*((place, address(host)) for host, place in zip("ab", (archive, antenna))))
            antenna.program = later
            ways = {"--lan": f"{address('a')}:7447", "--key-file": key_file(archive, KEY)}
            first = archive.up(*(word for way in ways.items() for word in way))
            antenna.up("--roles", "node", "--peer", f"{address('a')}:7447", "--key-file", key_file(antenna, KEY))
            for place in (archive, antenna):
                until("each host sees both releases", lambda place=place: releases(place) == [now, LATER])
            told = health(archive)
            check(f"the doctor names the other release: {json.dumps(told)[:300]}", any("update" in json.dumps(line) for line in told))

            source = Publisher(archive, "counter")
            until("the attribute is listed at the other release", lambda: antenna.run("event", "list", "lab/far/1/count", check=False).stdout)
            seen = Subscriber(antenna)
            until("values come", lambda: len(seen.numbers()) > 50)
            loads = {"old": Load(archive, "old", per_second=200, seconds=12), "new": Load(antenna, "new", per_second=200, seconds=12)}
            until("records of both come", lambda: archive.messages("old") and archive.messages("new"))
            print(f"  the hub with the archive is upgraded from {now} to {LATER}", flush=True)
            first.send_signal(signal.SIGTERM)
            check("it ends in order", first.wait(60) == 0)
            archive.program = later
            archive.up(*(word for way in ways.items() for word in way))
            until("both hosts have one release", lambda: releases(archive) == [LATER, LATER] and releases(antenna) == [LATER, LATER])
            for load in loads.values():
                load.finish()
            time.sleep(1)  # numbers after the upgrade
            source.end()
            until("the last value comes", lambda: any(line.get("value") == source.number for line in list(seen.lines)), 60)
            for name, load in loads.items():
                until(f"the last record of {name} is there", lambda name=name, load=load: load.expected[-1] in archive.messages(name), 60)
                check(f"the records of {name} are in the archive once", once_each(archive.messages(name), load.expected))
            lines = list(seen.lines)
            numbers = {line["number"] for line in lines if "value" in line and line["number"] > 0}
            missed = {number for line in lines for number in told_numbers(line)} - numbers
            missing = set(range(min(numbers), max(numbers))) - numbers - missed
            print(f"  {len(numbers)} events came, {len(missed)} were told as missed, {len(missing)} are unaccounted for", flush=True)
            check("each event came or was told", not missing)
        finally:
            for place in (archive, antenna):
                place.close()


if __name__ == "__main__":
    main()
