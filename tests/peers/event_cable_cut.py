#!/usr/bin/env python3
"""Events between two hosts, each in a network namespace; the cable between them is cut for 5 s while a source publishes.

Every event must come once, or be told by its number; that the source is not heard any more must be told, and its return.
"""

import json
import os
import subprocess
import threading
import time

from cable_cut import certify, key_file, network
from hub import Place, check, isolated, sh, until

NAME = "lab/cut/1/count"
PER_SECOND = 500
SECONDS = 14
CUT = 5


def publish(source):
    """Says numbers to the source, a line each, at a steady pace."""
    begun = time.monotonic()
    for number in range(1, PER_SECOND * SECONDS + 1):
        time.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
        source.stdin.write(f"{number}\n")
        source.stdin.flush()


def events(path):
    """What the subscriber has been given; a line that is being written does not count yet."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def told_numbers(event):
    """The numbers an event says are missing."""
    missed = event.get("missed")
    return range(*missed["exactly"]) if isinstance(missed, dict) else range(0)


def main():
    isolated()
    print("event_cable_cut", flush=True)
    network()
    near, far = Place("cut", netns="a"), Place("cut", netns="b")
    try:
        certify((near, "10.87.0.1"), (far, "10.87.0.2"))
        near.up("--roles", "node", "--lan", "10.87.0.1:7447", "--key-file", key_file(near, "a key of the site"))
        far.up("--roles", "node", "--peer", "10.87.0.1:7447", "--key-file", key_file(far, "a key of the site"))
        source = far.start(
            "event", "pub", NAME, "--type", "DevLong64", "--user", "--process", "counter", "--stay", "60s", stdin=subprocess.PIPE
        )
        until("the other host's attribute is listed", lambda: near.run("event", "list", NAME, check=False).stdout)
        shown = os.path.join(near.directory, "sub.out")
        with open(shown, "w", encoding="utf-8") as out:
            near.start("event", "sub", NAME, "--kind", "user,change", "--json", stdout=out)
        until("the subscriber has a first value", lambda: events(shown))
        load = threading.Thread(target=publish, args=(source,))
        load.start()
        time.sleep(3)
        sh("ip -n a link set cable-a down")
        time.sleep(CUT)  # the cut itself
        sh("ip -n a link set cable-a up")
        load.join()
        produced = PER_SECOND * SECONDS
        last = until("the last event comes", lambda: [event for event in events(shown) if event["number"] >= produced], 60)
        check("the last event has the last value", last[-1]["value"] == produced)

        got = events(shown)
        readings = [event for event in got if event["reason"] in ("first", "update", "resumed") and event["number"] > 0]
        numbers = [event["number"] for event in readings]
        told = {number for event in got for number in told_numbers(event)} - set(numbers)
        missing = set(range(1, produced + 1)) - set(numbers) - told
        # The current value is told once more after a silence, as resumed; any other number twice is one too many.
        updates = [event["number"] for event in readings if event["reason"] == "update"]
        doubled = len(updates) - len(set(updates))
        words = [(event["reason"], event.get("missed")) for event in got if event["reason"] != "update"]
        received = len(set(numbers))
        print(f"  cut for {CUT} s: produced={produced} received={received} told={len(told)} missing={len(missing)} doubled={doubled}")
        print("  words:", *words, sep="\n    ", flush=True)
        check("no event is missing without a word, none comes twice", not missing and not doubled)
        check("each value is that of its number", all(event["value"] == event["number"] for event in readings))
        reasons = [reason for reason, _ in words]
        lost = [reason for reason in reasons if reason in ("source_hung", "source_died")]
        check("that the source is not heard is told, then its return", lost and "source_returned" in reasons[reasons.index(lost[0]):])
    finally:
        for place in (near, far):
            place.close()


if __name__ == "__main__":
    main()
