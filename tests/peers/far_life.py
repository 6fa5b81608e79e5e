#!/usr/bin/env python3
"""Life and death between hosts, each in a network namespace with a boot id of its own.

Who is told what, and when: a process that is killed on another host, a host that loses its power, a host that starts anew, a cable
that is cut for a minute (`--cut`). Then: nothing is missing in the archive, and the subscriber gets each event of the minute, from the
source's cache.

The times are printed for people, who know how busy the machine is. The test holds what arrived, and that nothing is told as late as it
would be without its mechanism: a death before the lease of a connection is over, a return before its next period.
"""

import argparse
import json
import os
import signal
import subprocess
import threading
import time
import uuid

from cable_cut import certify, key_file
from event_cable_cut import events, told_numbers
from hub import Place, check, isolated, once_each, until
from wire import Wire, address

NAME = "lab/far/1/count"
PER_SECOND = 100
# Seconds: many times what each takes on a quiet machine (0.1, 2 and 2), and less than the lease of a connection (10).
DEATH, SILENCE, RETURN = 5, 9, 20


class Publisher:
    """A source of numbers, counted from 1."""

    def __init__(self, place, process):
        self.place, self.number, self.over = place, 0, False
        self.process = place.start(
            "event", "pub", NAME, "--type", "DevLong64", "--user", "--process", process, "--stay", "10m", stdin=subprocess.PIPE
        )
        self.thread = threading.Thread(target=self._publish, daemon=True)
        self.thread.start()

    def _publish(self):
        begun = time.monotonic()
        try:
            while not self.over:
                self.number += 1
                self.process.stdin.write(f"{self.number}\n")
                self.process.stdin.flush()
                time.sleep(max(0.0, begun + self.number / PER_SECOND - time.monotonic()))
        except (BrokenPipeError, OSError):
            pass

    def end(self):
        """Ends the numbers; the source stays."""
        self.over = True
        self.thread.join()


class Subscriber:
    """What a subscription is told, with the time at which each line came."""

    def __init__(self, place, name=NAME):
        self.lines, self.at = [], []
        process = place.start("event", "sub", name, "--kind", "user,change", "--json", stdout=subprocess.PIPE, bufsize=1)
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def _read(self, out):
        for line in out:
            self.lines.append(json.loads(line))
            self.at.append(time.monotonic())

    def told(self, since, satisfied):
        """Returns the time of the first line after `since` that satisfies."""
        found = [at for line, at in zip(list(self.lines), list(self.at)) if at >= since and satisfied(line)]
        return found[0] if found else None

    def await_told(self, what, since, satisfied, within):
        """Waits for it and prints how long it took."""
        at = until(what, lambda: self.told(since, satisfied), within)
        print(f"  {what}: after {1000 * (at - since):.0f} ms", flush=True)

    def numbers(self):
        """Returns the numbers of the values that came."""
        return {line["number"] for line in self.lines if line["reason"] in ("first", "update", "resumed") and line["number"] > 0}


def reason(*words):
    """A condition: the line has one of these reasons."""
    return lambda line: line["reason"] in words


def reading(line):
    """A condition: the line has a value."""
    return line["reason"] in ("update", "resumed")


def tampu_of(place, pid):
    """Returns the processes below a shell of a place, the shell's own last."""
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    below = [one for child in children for one in tampu_of(place, int(child))]
    return [*below, pid]


def kill(place, process):
    """Kills a process of a place at once."""
    for pid in tampu_of(place, process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def reboot(place):
    """Gives a host another boot id, as a new start of its system does. Its processes must be dead."""
    with open(os.path.join(place.directory, "boot_id"), "w", encoding="utf-8") as file:
        file.write(str(uuid.uuid4()) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cut", type=float, default=60.0, help="time for which the cable is cut, s")
    asked = parser.parse_args()
    isolated()
    print("far_life", flush=True)
    wire = Wire(1, "ab")
    near, far = Place("life", netns="a"), Place("life", netns="b")
    certify((near, address("a")), (far, address("b")))
    near.up("--lan", f"{address('a')}:7447", "--key-file", key_file(near, "a key of the site"))
    key = key_file(far, "a key of the site")

    def start_far():
        return far.up("--roles", "node", "--peer", f"{address('a')}:7447", "--key-file", key)

    hub = start_far()
    source = Publisher(far, "counter")
    until("the other host's attribute is listed", lambda: near.run("event", "list", NAME, check=False).stdout)
    seen = Subscriber(near)
    until("values come", lambda: len(seen.numbers()) > 50)

    print("a process on the other host is killed", flush=True)
    since = time.monotonic()
    kill(far, source.process)
    seen.await_told("its death is told", since, reason("source_died"), DEATH)

    print("its successor", flush=True)
    since = time.monotonic()
    source = Publisher(far, "counter")
    seen.await_told("its first value comes", since, lambda line: "value" in line, RETURN)

    print("the other host loses its power", flush=True)
    since = time.monotonic()
    wire.up = False
    for process in (source.process, hub):
        kill(far, process)
    seen.await_told("that nothing is heard of it is told", since, lambda line: line["reason"] not in ("update", "first"), SILENCE)
    reboot(far)
    wire.up = True
    since = time.monotonic()
    hub = start_far()
    source = Publisher(far, "counter")
    seen.await_told("values of the host with its new boot come", since, lambda line: "value" in line, 2 * RETURN)

    print(f"the cable is cut for {asked.cut:.0f} s", flush=True)
    until("values come", lambda: source.number > 100)
    wire.up = False
    since = time.monotonic()
    seen.await_told("the silence is told", since, lambda line: line["reason"] not in ("update", "first"), SILENCE)
    crowd = far.start("log", "send", "--process", "far", "--timeout", "1s", "in the dark", stderr=subprocess.PIPE)
    crowd.wait(timeout=60)
    time.sleep(max(0.0, since + asked.cut - time.monotonic()))  # the cut itself
    wire.up = True
    since = time.monotonic()
    seen.await_told("values come again", since, reading, RETURN)
    until("the record of the dark is in the archive", lambda: near.messages("far"), 60)
    print(f"  its record is in the archive: after {1000 * (time.monotonic() - since):.0f} ms", flush=True)
    check("once", once_each(near.messages("far"), ["in the dark"]))
    source.end()
    last = source.number
    until("the last value comes", lambda: any(line.get("value") == last for line in list(seen.lines)))

    # Of the last life: each number came.
    life = seen.lines[-1]["incarnation"]
    of_life = [line for line in seen.lines if line["incarnation"] == life]
    numbers = {line["number"] for line in of_life if "value" in line}
    told = {number for line in of_life for number in told_numbers(line)}
    first = min(number for number in numbers if number > 0)
    missing = set(range(first, max(numbers))) - numbers - told
    print(f"  {len(numbers)} numbers came, {len(told - numbers)} were told as missed, {len(missing)} are unaccounted for", flush=True)
    check("every event came or was told", not missing)
    check("the cache had all of them", not told - numbers)
    near.close()
    far.close()


if __name__ == "__main__":
    main()
