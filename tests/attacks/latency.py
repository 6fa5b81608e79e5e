#!/usr/bin/env python3
"""Prints how long other clients wait, quiet and under each load: for `whoami`, for a post, and for a record until it is on the disk.

`--seconds N` measures each load for that long (1; by hand 20 with a release binary in TAMPU_BIN), `--only WORDS` some loads.
The figures are for people. What fails the test is a client who is not answered.
"""

import argparse
import threading
import time

import loads
from attacked import Pulse, Site, check, seeded

CONFIG = '[syslog]\nenabled = true\nudp = "127.0.0.1:0"\ntcp = "127.0.0.1:0"'


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--entries", type=int, default=2000, help="entries of the logbook")
    parser.add_argument("--only", help="loads whose names contain these words")
    return parser.parse_args()


def text(times):
    """Returns p50 and p99 of times in seconds as text in ms."""
    times = sorted(times)
    if not times:
        return "-"
    return f"{times[len(times) // 2] * 1000:.1f} / {times[min(len(times) - 1, int(len(times) * 0.99))] * 1000:.1f} ({len(times)})"


def posting(site, token):
    """Returns an act that posts an entry and checks the answer."""
    def act():
        answer = site.ask("/books/B/entries", {"text": "x" * 1000, "attributes": {"Author": "zoe"}}, token=token, source="127.0.0.8", timeout=120)
        return None if answer.status == 201 else answer.status

    return act


def committing(site, sent):
    """Returns an act that sends a record and waits for its acknowledgement, which comes after the disk has it."""
    def act():
        sent.append(f"record {len(sent)}")
        done = site.run("log", "send", "--process", "latency", "--timeout", "60s", sent[-1], check=False)
        return None if done.returncode == 0 else done.stderr

    return act


class Measured:
    """A client that repeats an act in a thread of its own and keeps the times."""

    def __init__(self, act, pause):
        self.act, self.pause, self.times, self.refused, self.ended = act, pause, [], [], threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self.ended.wait(self.pause):
            begun = time.monotonic()
            try:
                refused = self.act()
            except OSError as error:
                refused = str(error)
            self.times.append(time.monotonic() - begun)
            if refused:
                self.refused.append(refused)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def main():
    given = arguments()
    chance = seeded("latency")
    site = Site("latency", config=CONFIG)
    try:
        site.begin()
        site.find_inputs()
        site.make_book()
        token = site.make_user("zoe")
        loads.fill(site, given.entries, chance)
        refused, sent = {}, []
        print("| load | whoami, p50 / p99 ms (n) | post | record on the disk |\n|-|-|-|-|", flush=True)
        chosen = {"quiet": None} | {name: load for name, load in loads.LOADS.items() if not given.only or given.only in name}
        for name, load in chosen.items():
            load = load or (lambda site, ended, chance: ended.wait())
            with loads.under(load, site, chance):
                time.sleep(min(1, given.seconds))  # the load gets going
                with Pulse(site) as pulse, Measured(posting(site, token), 0.1) as posts, Measured(committing(site, sent), 0.1) as commits:
                    end = time.monotonic() + given.seconds
                    while time.monotonic() < end or not (pulse.times and posts.times and commits.times):
                        time.sleep(0.05)
            late = f", {len(commits.refused)} acknowledged late" if commits.refused else ""
            print(f"| {name} | {text(pulse.times)} | {text(posts.times)} | {text(commits.times)}{late} |", flush=True)
            wrong = pulse.refused + posts.refused
            if wrong:
                refused[name] = wrong[:3]
        check(f"everybody is answered under each load: {refused}", not refused)
        # A sender that was killed or gave up leaves its record to the node, so the last ones may come a little later.
        end = time.monotonic() + 20
        while time.monotonic() < end and len(site.messages("latency")) < len(sent):
            time.sleep(0.5)
        missing = sorted(set(sent) - set(site.messages("latency")))
        print(f"  records: {len(sent)} sent, {len(missing)} not in the archive {missing[:5]}", flush=True)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
