#!/usr/bin/env python3
"""Two hosts, each in a network namespace, with a link of 2 Mbit/s that is full of ordinary records. Errors pass them."""

import subprocess
import threading
import time

from cable_cut import certify, key_file, network
from hub import Place, check, isolated, sh, until

ROUNDS = 5
# More than the link carries: 500 records of 2 kB a second are 8 Mbit/s.
FLOOD = "x" * 2000


class Flood:
    """Ordinary records through standard input of a command, until the end."""

    def __init__(self, place):
        self.over = threading.Event()
        self.sender = place.start("log", "send", "--process", "bulk", "--level", "Info", stdin=subprocess.PIPE)
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def _write(self):
        try:
            while not self.over.wait(0.002):
                self.sender.stdin.write(FLOOD + "\n")
                self.sender.stdin.flush()
        except BrokenPipeError:
            pass


def main():
    isolated()
    print("urgent_slow_link", flush=True)
    network()
    archive, antenna = Place("slow", netns="a"), Place("slow", netns="b")
    try:
        certify((archive, "10.87.0.1"), (antenna, "10.87.0.2"))
        archive.up("--lan", "10.87.0.1:7447", "--key-file", key_file(archive, "a key of the site"))
        antenna.up("--roles", "node", "--peer", "10.87.0.1:7447", "--key-file", key_file(antenna, "a key of the site"))
        until("the antenna's host sees the archive", lambda: antenna.run("log", "stat", check=False).returncode == 0)
        sh("ip netns exec b tc qdisc add dev cable-b root tbf rate 2mbit burst 16kb latency 200ms")
        load = Flood(antenna)
        until("ordinary records arrive", lambda: archive.messages("bulk"))
        time.sleep(3)  # until the caches and queues on the way are full
        for number in range(ROUNDS):
            # The ordinary record is there first.
            ordinary = antenna.start("log", "send", "--process", "ordinary", "--level", "Info", f"ordinary {number}")
            urgent = antenna.start("log", "send", "--process", "urgent", "--level", "Error", f"urgent {number}")
            ordinary.wait()
            urgent.wait()
        load.over.set()
        found = {}
        for process in ("ordinary", "urgent"):
            until(f"all records of {process} are there", lambda: len(archive.records(process)) >= ROUNDS, seconds=120)
            found[process] = {record["message"].split()[1]: record for record in archive.records(process)}
        passed = 0
        for number in map(str, range(ROUNDS)):
            one, other = (found[process][number]["received"] for process in ("ordinary", "urgent"))
            print(f"  round {number}: ordinary received {one}, urgent {other}", flush=True)
            passed += other < one
        check(f"errors pass ordinary records: {passed} of {ROUNDS} times", passed == ROUNDS)
    finally:
        for place in (archive, antenna):
            place.close()


if __name__ == "__main__":
    main()
