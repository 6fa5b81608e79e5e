#!/usr/bin/env python3
"""A host with a cable of 10 Mbit/s among others, each in a network namespace with a boot id of its own.

A source publishes 15 Mbit/s of events. Subscribers are on its host, on a fast host and on the slow one. The others miss
nothing: they get each event, and the collector each record of the fast host. What the slow one does not get, it is told by its
number. On a machine that is too busy for its own processes, others may be told that the source is not heard; only then may they
miss events too, which they are told.
"""

import subprocess
import threading
import time

from cable_cut import certify, key_file
from event_cable_cut import told_numbers
from far_life import Subscriber
from hub import Load, Place, check, isolated, once_each, until
from wire import Wire, address

NAME = "lab/far/1/count"
KEY = "a key of the site"
ELEMENTS = 950
PER_SECOND = 250
SECONDS = 10
SLOW = 10e6 / 8


class Spectra:
    """A source of spectra whose elements are all the number of the event."""

    def __init__(self, place):
        self.number, self.latest = 0, 0.0
        self.process = place.start(
            "event", "pub", NAME, "--spectrum", "--user", "--process", "spectra", "--stay", "10m", stdin=subprocess.PIPE
        )

    def say(self):
        """Publishes the next one."""
        self.number += 1
        self.process.stdin.write(",".join([str(self.number)] * ELEMENTS) + "\n")
        self.process.stdin.flush()

    def run(self):
        """Publishes at the rate; keeps how far it was behind its time at worst."""
        begun = time.monotonic()
        for number in range(PER_SECOND * SECONDS):
            pause = begun + number / PER_SECOND - time.monotonic()
            self.latest = max(self.latest, -pause)
            time.sleep(max(0.0, pause))
            self.say()


def account(seen, source):
    """Prints what came; returns the numbers that were told as missed, those that nobody told, and whether the source was unheard."""
    lines = list(seen.lines)
    numbers = {line["number"] for line in lines if "value" in line and line["number"] > 0}
    told = {number for line in lines for number in told_numbers(line)} - numbers
    missing = set(range(min(numbers), max(numbers))) - numbers - told
    wrong = [line["number"] for line in lines if "value" in line and set(line["value"]) != {float(line["number"])}]
    unheard = any(line["reason"] in ("source_hung", "source_died") for line in lines)
    print(f"  {len(numbers)} events of {source.number} came, {len(told)} were told as missed, {len(missing)} unaccounted for", flush=True)
    if missing:
        print(f"  unaccounted for: {sorted(missing)}\n  words, with the last number before each:")
        before = 0
        for line in lines:
            if line["reason"] != "update":
                print(f"    {before}: {line['reason']} {line['number']}, missed {line.get('missed')}", flush=True)
            before = max(before, line["number"])
    check("no value is wrong", not wrong)
    return told, missing, unheard


def main():
    isolated()
    print("slow_host", flush=True)
    wire = Wire(3, "abc")
    near, fast, slow = (Place("slow", netns=host) for host in "abc")
    places = (near, fast, slow)
    try:
        certify(*((place, address(host)) for place, host in zip(places, "abc")))
        near.up("--lan", f"{address('a')}:7447", "--key-file", key_file(near, KEY))
        for place in (fast, slow):
            place.up("--roles", "node", "--peer", f"{address('a')}:7447", "--key-file", key_file(place, KEY))
        source = Spectra(near)
        source.say()
        seen = {}
        for name, place in (("the source's host", near), ("the fast host", fast), ("the slow host", slow)):
            until("the attribute is listed", lambda place=place: place.run("event", "list", NAME, check=False).stdout)
            seen[name] = Subscriber(place)
            until("the first value comes", lambda name=name: any("value" in line for line in seen[name].lines))

        print(f"{PER_SECOND * ELEMENTS * 8 * 8 / 1e6:.0f} Mbit/s of events, and one host has 10", flush=True)
        wire.rate["c"] = SLOW
        load = Load(fast, "fast", per_second=200, seconds=SECONDS)
        publishing = threading.Thread(target=source.run)
        publishing.start()
        publishing.join()
        load.finish()
        last, ended = source.number, time.monotonic()
        for name, of in seen.items():
            until(f"the last value comes at {name}", lambda of=of: any(line["number"] == last and "value" in line for line in of.lines), 120)
            at = next(at for line, at in zip(of.lines, of.at) if line["number"] == last and "value" in line)
            print(f"{name}: the last value {1000 * (at - ended):.0f} ms after the source's end of work", flush=True)
            told, missing, unheard = account(of, source)
            check("each event came or was told", not missing)
            if name != "the slow host":
                check("nothing was missed there while the source was heard", unheard or not told)
        print(f"  the source was {1000 * source.latest:.0f} ms behind its time at worst; {wire.lost} packets were lost", flush=True)
        check("packets were lost at the slow cable", wire.lost > 0)
        check("the records of the fast host are in the archive once", once_each(near.messages("fast"), load.expected))
    finally:
        for place in places:
            place.close()


if __name__ == "__main__":
    main()
