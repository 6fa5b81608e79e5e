#!/usr/bin/env python3
"""The clock of one host steps by an hour in both directions while events and records flow to another one.

A step of UTC must not change what anybody gets: no process counts as dead, no event is lost or told as missed, a new subscription
begins with the current value, an older one gets each event of a new source. At the end the host starts anew with an earlier clock, and
its source is heard at once.
"""

import glob
import json
import os
import subprocess

from cable_cut import certify, key_file
from event_cable_cut import told_numbers
from far_life import NAME, Publisher, Subscriber, kill, reboot
from hub import Place, check, isolated, once_each, until
from wire import Wire, address

# Seconds by which the clock is wrong, one after the other: it steps forward and back.
OFFSETS = (0, 3600, -3600, 2)
# Less than the time for which an absent source is waited for (180 s), and many times what it takes.
SOON = 60


class Clock:
    """The UTC of a place's programs."""

    def __init__(self, place):
        self.file = os.path.join(place.directory, "clock")
        self.set(0)
        (faketime,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        place.environment.update(
            LD_PRELOAD=faketime, FAKETIME_TIMESTAMP_FILE=self.file, FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1"
        )

    def set(self, offset):
        """Steps it; the programs read the file whenever they ask for the time."""
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write(f"{offset:+d}s\n")
        os.rename(self.file + ".new", self.file)


def account(what, lines):
    """Holds that a subscriber got each number from its first one on, and no word of a loss or a death. On a busy machine a source may be
    silent for a moment; then the current value is told once more."""
    readings = [line for line in lines if "value" in line and line["number"] > 0]
    numbers = {line["number"] for line in readings}
    updates = [line["number"] for line in readings if line["reason"] == "update"]
    whole = numbers == set(range(min(numbers), max(numbers) + 1)) and len(updates) == len(set(updates))
    told = {number for line in lines for number in told_numbers(line)}
    allowed = ("first", "update", "resumed", "source_hung", "source_returned")
    others = [line["reason"] for line in lines if line["reason"] not in allowed]
    if not whole or told or others:
        print("  words:", [(line["reason"], line["number"], line.get("missed")) for line in lines if line["reason"] != "update"], flush=True)
    check(f"{what}: each number from {min(numbers)} to {max(numbers)} came", whole)
    check(f"{what}: nothing was told as missed, and no source as dead", not told and not others)


def young(place):
    """The lines of a subscription that begins now and ends after a hundred values."""
    process = place.start("event", "sub", NAME, "--kind", "user,change", "--json", stdout=subprocess.PIPE, bufsize=1)
    lines = [json.loads(process.stdout.readline()) for _ in range(100)]
    kill(place, process)
    return lines


def main():
    isolated()
    print("clock_steps", flush=True)
    wire = Wire(1, "ab")
    near, far = Place("steps", netns="a"), Place("steps", netns="b")
    certify((near, address("a")), (far, address("b")))
    near.up("--lan", f"{address('a')}:7447", "--key-file", key_file(near, "a key of the site"))
    key = key_file(far, "a key of the site")
    clock = Clock(far)

    def start_far():
        return far.up("--roles", "node", "--peer", f"{address('a')}:7447", "--key-file", key)

    hub = start_far()
    source = Publisher(far, "counter")
    until("the other host's attribute is listed", lambda: near.run("event", "list", NAME, check=False).stdout)
    seen, here, waits = Subscriber(near), Subscriber(far), Subscriber(near, "lab/young/*/count")
    for subscriber in (seen, here):
        until("values come", lambda: len(subscriber.numbers()) > 50)
    sent = []
    for step, offset in enumerate(OFFSETS):
        print(f"the clock is {offset} s ahead", flush=True)
        clock.set(offset)
        for subscriber in (seen, here):
            count = len(subscriber.lines)
            until("values come on", lambda: len(subscriber.lines) > count + 300)
        account("a new subscription on the other host", young(near))
        account("a new subscription on this host", young(far))
        # A source that is younger than a subscription on the other host, whatever the clocks say.
        attribute = f"lab/young/{step}/count"

        def given():
            return [line for line in list(waits.lines) if line["name"] == attribute]

        publish = ("event", "pub", attribute, "--type", "DevLong64", "--user", "--process", f"young-{step}", "--stay", "10m")
        new = far.start(*publish, "1", "2", "3", "4", "5")
        until("its five values come", lambda: len([line for line in given() if "value" in line]) == 5, SOON)
        account("an older subscription to a new source", given())
        check("from its first one on", given()[0]["number"] == 1)
        kill(far, new)
        far.run("log", "send", "--process", "far", "--timeout", "20s", f"at {offset}")
        sent.append(f"at {offset}")
    source.end()
    last = source.number
    for what, subscriber in (("the other host", seen), ("this host", here)):
        until("the last value comes", lambda: any(line.get("value") == last for line in list(subscriber.lines)))
        account(f"through all steps, on {what}", subscriber.lines)
    until("the records are in the archive", lambda: len(near.messages("far")) >= len(sent))
    check("each record is in the archive once", once_each(near.messages("far"), sent))

    print("the host starts anew with an earlier clock", flush=True)
    wire.up = False
    for process in (source.process, hub):
        kill(far, process)
    until("the silence is told", lambda: seen.lines[-1]["reason"] in ("source_hung", "source_died"))
    reboot(far)
    clock.set(-7200)
    wire.up = True
    count = len(seen.lines)
    start_far()
    Publisher(far, "counter")
    until("its values come", lambda: [line for line in seen.lines[count:] if "value" in line], SOON)
    until("they come on", lambda: len(seen.lines) > count + 100, SOON)
    check("nobody refuses the new source", seen.lines[-1].get("value") is not None)
    near.close()
    far.close()


if __name__ == "__main__":
    main()
