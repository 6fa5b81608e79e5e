#!/usr/bin/env python3
"""Runs each bench for a moment and checks that it measures: every cell ran, nothing of ours was wrong or lost without a word.

The figures of so short a run mean nothing and are not looked at; `make bench` is for those.
"""

import json
import os
import subprocess
import sys

TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target"))
BENCHES = [
    ["bench-bus", "--seconds", "0.3", "--readers", "2", "--sizes", "92,4K", "--only", "tampu,raw-unix,zmq-ipc,zenoh-router", "--json"],
    ["bench-bulk", "--seconds", "0.3", "--samples", "2", "--receivers", "2", "--sizes", "4K,1M", "--only", "tcp,tcp-handshake,shm,udp,raw,relay,bus-ask", "--json"],
    ["bench-bulk", "--alma", "--seconds", "1", "--json"],
    ["bench-book", "--entries", "1,464", "--samples", "5", "--seconds", "0.3", "--json"],
    ["bench-paper.py", "--entries", "1,464", "--samples", "5", "--instances", "1,2", "--hosts", "2", "--json"],
    ["bench-http", "--clients", "1,4", "--seconds", "0.3", "--large", "10", "--json"],
    ["bench-log", "--short", "--json"],
    ["bench-log", "--short", "--sustained", "--json"],
    ["bench-event", "--smoke", "--only", "tampu,zmq,zenoh-router,tango-c++", "--elements", "1,1024", "--json"],
    ["bench-network.py", "--links", "1000", "--elements", "1024", "--cells", "1x1,2x2", "--seconds", "0.5", "--json"],
    ["bench-network.py", "--logs", "--links", "1000", "--cells", "0x0,1x1", "--seconds", "0.5", "--json"],
    ["bench-network.py", "--qos", "--links", "1000", "--seconds", "0.2", "--json"],
    ["bench-qos.py", "--seconds", "1", "--only", "cache", "--json"],
    ["bench-gateway", "--seconds", "0.5", "--sessions", "50", "--json"],
    # The peers' tests have built the library without optimisation.
    ["bench-clients.py", "--seconds", "0.5", "--rounds", "1", "--elements", "23", "--only", "rust,c++,java,jeromq", "--library", os.path.join(TARGET, "debug"), "--json"],
    ["bench-call", "--calls", "500", "--rounds", "1", "--records", "5000", "--seconds", "0.3", "--json"],
]


def run(command):
    """The objects a bench prints, one a line."""
    program = os.path.join("scripts" if command[0].endswith(".py") else os.path.join(TARGET, "release"), command[0])
    done = subprocess.run([program, *command[1:]], stdout=subprocess.PIPE, text=True, timeout=600, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    cells = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not cells:
        sys.exit(f"{' '.join(command)}: nothing was measured")
    return cells


def wrong(cell):
    """What is wrong with a cell, or nothing. Loss on a busy machine is no mistake, as long as it is told."""
    if "failed" in cell:
        return f"failed: {cell['failed']}"
    if cell.get("lost_untold"):
        return f"{cell['lost_untold']} events were lost without a word"
    if cell.get("dropped", 0) < cell.get("lost", 0) and "row" in cell:
        return f"{cell['lost']} records were lost, only {cell['dropped']} of them told"
    if cell.get("logger", "").startswith("tampu") and (cell["lost"] > cell["account"]["dropped"] or not cell["account"]["confirmed"]):
        return f"{cell['lost']} records were lost or not confirmed, only {cell['account']['dropped']} of them told"
    if cell.get("ours") and (cell["lost"] or cell["wrong"]):
        return f"{cell['lost']} bytes were lost, {cell['wrong']} wrong"
    if cell.get("system", "").startswith("tampu"):
        if cell.get("wrong") or cell.get("twice"):
            return f"{cell['wrong']} samples were wrong, {cell.get('twice', 0)} came twice"
        # Those are counted as replaced by newer ones, and what is lost last is told by nobody.
        if cell["system"] == "tampu-latest":
            return None
        if cell.get("lost", 0) > cell.get("told", cell.get("lost", 0)):
            return f"{cell['lost']} samples were lost, only {cell['told']} of them told"
    return None


def main():
    subprocess.run(["scripts/build-optimised.sh"], check=True)
    subprocess.run(["make", "bench-spdlog", "bench-tango"], check=True)
    failures = 0
    for command in BENCHES:
        cells = run(command)
        bad = [(cell, why) for cell in cells if (why := wrong(cell))]
        for cell, why in bad:
            print(f"{command[0]}: {why}: {json.dumps(cell)}")
        print(f"{command[0]}: {len(cells)} cells ran, {len(bad)} of them wrong")
        failures += len(bad)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
