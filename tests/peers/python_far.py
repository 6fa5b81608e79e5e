#!/usr/bin/env python3
"""A Python program on a host without a node: it joins the bus through the hub of another host (`TAMPU_HUB`).

Two hosts in network namespaces, with certificates. The program logs, pushes and follows an attribute, and asks the archives.
Another one is killed while it logs; a node that is started on its host later brings what it left.
"""

import os
import pathlib
import subprocess
import sys

from cable_cut import certify, key_file, network
from hub import Place, check, isolated, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS = 20_000
ALL = r'''
import logging, sys, time
import tampu.event, tampu.log, tampu.logging

def until(done):
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)

logger = logging.getLogger("far")
logger.addHandler(tampu.logging.Handler(source="FAR/Program"))
logger.setLevel("INFO")
for number in range(1000):
    logger.info("record %d", number, extra={"number": number})

with tampu.event.Server("FAR/Server") as server, tampu.event.Client("FAR/Client") as client:
    attribute = server.declare("far/psu/1/current", float, change_abs=0.5, archive_abs=0.5)
    attribute.push(1.5)
    for event in client.subscribe("far/psu/1/current"):
        if event.reason == "first":
            assert event.value == 1.5, event
            attribute.push(2.5)
        else:
            assert event.value == 2.5, event
            break
    until(lambda: len(list(tampu.event.history("far/psu/1/current").rows())) >= 2)
until(lambda: len(list(tampu.log.query(sources=["FAR/Program"]).rows())) == 1000)
logging.shutdown()
print("done", flush=True)
'''
KILLED = r'''
import logging, os, sys
import tampu.logging

logger = logging.getLogger("killed")
logger.addHandler(tampu.logging.Handler(source="FAR/Killed"))
logger.setLevel("INFO")
for number in range(int(sys.argv[1])):
    logger.info("record %d", number)
os.kill(os.getpid(), 9)
'''


def main():
    isolated()
    package = subprocess.run([ROOT / "scripts/python-package.sh"], check=True, capture_output=True, text=True).stdout.strip()
    print("python_far", flush=True)
    network()
    archive, far = Place("far", netns="a"), Place("far", netns="b")
    try:
        certify((archive, "10.87.0.1"), (far, "10.87.0.2"))
        archive.up("--lan", "10.87.0.1:7447", "--key-file", key_file(archive, "a key of the site"))
        key = key_file(far, "a key of the site")
        environment = {
            **far.environment,
            "TAMPU_HUB": "10.87.0.1:7447",
            "TAMPU_KEY_FILE": key,
            "TAMPU_CERTIFICATES": os.path.join(far.data, "far", "cert"),
            "PYTHONPATH": package,
        }

        def python(program, *arguments):
            return subprocess.run(
                [*far.prefix, sys.executable, "-c", program, *arguments], env=environment, text=True, capture_output=True, timeout=120, check=False
            )

        done = python(ALL)
        check(f"logs, events: {done.stderr[-2000:]}", done.returncode == 0 and done.stdout == "done\n")
        check("all its records are in the archive", archive.messages("FAR/Program") == [f"record {number}" for number in range(1000)])
        killed = python(KILLED, str(RECORDS))
        check(f"a program kills itself: {killed.stderr[-2000:]}", killed.returncode == -9)
        expected = [f"record {number}" for number in range(RECORDS)]

        def kept():
            # The node adds a record of its own about the death.
            return [message for message in archive.messages("FAR/Killed") if message.startswith("record ")]

        before = len(kept())
        far.up("--roles", "node", "--peer", "10.87.0.1:7447", "--key-file", key)
        until("a node brings the rest", lambda: len(kept()) >= RECORDS)
        check(f"{before} of {RECORDS} records came before its end, the others from its rings, once each", kept() == expected)
    finally:
        archive.close()
        far.close()
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
