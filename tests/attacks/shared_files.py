#!/usr/bin/env python3
"""Files that processes share with the hub are cut, filled with garbage or made huge: the hub lives, and goes on for everybody else."""

import os
import signal
import subprocess
import sys
import time

from attacked import Site, check, memory, seeded, until

ROUNDS = int(os.environ.get("ROUNDS", "8"))


def shared(run, known):
    """Returns the files of the run-time directory that came with a process: rings, clocks, dictionaries, batches, progress."""
    found = []
    for folder, _, names in os.walk(run):
        found += [os.path.join(folder, name) for name in names if os.path.join(folder, name) not in known]
    return [path for path in found if os.path.basename(path) not in ("book.json", "node.lock", "node.sock", "node.sock.lock")]


def damage(path, chance):
    """Damages a file in one of several ways."""
    size = os.path.getsize(path)
    way = chance.choice(["cut", "empty", "garbage", "some", "huge", "zeros"])
    if way == "cut":
        os.truncate(path, chance.randrange(size + 1))
    elif way == "empty":
        os.truncate(path, 0)
    elif way == "huge":
        os.truncate(path, 1 << 40)
    with open(path, "r+b") as file:
        if way == "garbage":
            file.write(chance.randbytes(size))
        elif way == "zeros":
            file.write(b"\0" * size)
        elif way in ("some", "huge"):
            for _ in range(20):
                file.seek(chance.randrange(max(1, min(size, 4096))))
                file.write(chance.choice([b"\xff" * 8, (1 << 40).to_bytes(8, "little"), chance.randbytes(8)]))
    return way


def main():
    chance = seeded("shared_files")
    site = Site("shared")
    try:
        site.begin()
        site.make_user("zoe")
        run = os.path.join(site.directory, "run")
        own = set(shared(run, set()))
        ways = {}
        for _ in range(ROUNDS):
            known = set(shared(run, set())) | own
            producer = site.start("demo", "--speed", "20", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until("the producer has its files", lambda known=known: len([path for path in shared(run, known) if "ring" in path]) > 1)
            time.sleep(0.3)  # some records and events
            os.kill(producer.pid, signal.SIGSTOP)
            for path in chance.sample(found := shared(run, known), min(len(found), chance.randrange(1, 6))):
                try:
                    way = damage(path, chance)
                except FileNotFoundError:
                    continue
                name = os.path.basename(path).split(".")[-1].rstrip("0123456789-")
                ways[f"{way} {name}"] = ways.get(f"{way} {name}", 0) + 1
            os.kill(producer.pid, signal.SIGCONT)
            time.sleep(0.2)
            # What the dead process leaves is drained by the node.
            producer.kill()
            producer.wait()
            if site.hub.poll() is not None:
                sys.exit(f"FAILED: the hub ended with {site.hub.returncode} after {ways}: {site.said()[-600:]}")
        check(f"the hub lives after {ROUNDS} damaged producers: {ways}", site.hub.poll() is None)
        check("no thread of it panicked", "panicked" not in site.said())
        site.run("log", "send", "--process", "afterwards", "goes on")
        until("others go on", lambda: site.messages("afterwards") == ["goes on"])
        check(f"memory stays bounded ({memory(site.hub.pid)} MiB)", memory(site.hub.pid) < 500)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
