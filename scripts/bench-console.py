#!/usr/bin/env python3
"""All figures of the console's speed, as one table: figure, goal, measured.

    bench-console.py [--millions 10] [--data DIRECTORY] [--seconds 60] [--rate 100000] [--only PART,...] [--json]

The parts are scripts of their own, with more options and rows: pages (`bench-console-pages.py`: answers of the hub over an
archive of that size), live (`bench-console-live.py`: 50 live attributes), load (`bench-console-load.py`: the first view, a
fast log, fat records, many consoles), sizes (`sizes.py`). `TAMPU_BIN` and `ARCHIVE_SPEED` name the programs, which have to
be release builds, on a machine that does nothing else. Exit code 1 if a goal is missed or a part fails.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def lines_of(script, *arguments):
    """The JSON lines of a script. A part that fails is a row of its own."""
    done = subprocess.run([sys.executable, str(HERE / script), "--json", *arguments], stdout=subprocess.PIPE, text=True, check=False)
    found = []
    for line in done.stdout.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            print(line, file=sys.stderr)
    if not found:
        found.append(None)
    return found


def pages(arguments):
    """Rows of the answers of the hub: the 95th percentile counts."""
    more = ["--data", arguments.data] if arguments.data else []
    for row in lines_of("bench-console-pages.py", "--millions", str(arguments.millions), *more):
        if row is None:
            yield "pages", "", "failed", False
            continue
        goal, high = row["goal_ms"], row["p95_ms"]
        yield f"{row['request']}, {arguments.millions:g} M records, ms", f"<= {goal}" if goal else "", f"{high:.1f}", high <= goal if goal else None


def live(arguments):
    """Rows of live attributes."""
    for row in lines_of("bench-console-live.py", "--seconds", str(min(20, arguments.seconds))):
        if row is None:
            yield "live attributes", "", "failed", False
            continue
        part, goal = 100 * row["process_renderer"], 100 * row["goal"]
        yield f"{row['attributes']} live attributes at 10 Hz: process of the page, % of a core", f"<= {goal:.0f}", f"{part:.1f}", part <= goal
        yield "live attributes: events seen by the page, /s", f">= {0.9 * row['events_per_s']:.0f}", f"{row['seen_per_s']}", row["seen_per_s"] >= 0.9 * row["events_per_s"]


def load(arguments):
    """Rows of the console under load."""
    for row in lines_of("bench-console-load.py", "--seconds", str(arguments.seconds), "--rate", str(arguments.rate)):
        if row is None:
            yield "load", "", "failed", False
        else:
            yield row["figure"], row["goal"], row["measured"], row["met"]


def sizes(_arguments):
    """Rows of sizes. The first view is measured under `load`."""
    program = [os.environ["TAMPU_BIN"]] if "TAMPU_BIN" in os.environ else []
    for row in lines_of("sizes.py", *program):
        if row is None:
            yield "sizes", "", "failed", False
        else:
            yield f"{row['name']}, kB", "", f"{row['bytes'] / 1000:.0f}", None


PARTS = {"pages": pages, "live": live, "load": load, "sizes": sizes}


def main():
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, default=10, help="records of the archive, in millions")
    parser.add_argument("--data", help="directory that keeps the archive for later runs")
    parser.add_argument("--seconds", type=float, default=60, help="time of the fast log")
    parser.add_argument("--rate", type=int, default=100_000, help="records a second of the fast log")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas")
    parser.add_argument("--json", action="store_true", help="a JSON object a row")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    busy = os.getloadavg()[0]
    if busy > 0.5:
        print(f"the load of this machine is {busy:.1f}: other programs take part in the figures", file=sys.stderr)
    missed = 0
    if not arguments.json:
        print(f"{'figure':78} {'goal':>12} {'measured':>24}")
    for part in wanted:
        for figure, goal, measured, met in PARTS[part](arguments):
            missed += met is False
            if arguments.json:
                print(json.dumps({"part": part, "figure": figure, "goal": goal, "measured": measured, "met": met}), flush=True)
            else:
                print(f"{figure:78} {goal:>12} {measured:>24}  {'' if met is None else 'met' if met else 'missed'}", flush=True)
    if missed and not arguments.json:
        print(f"{missed} goals are missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
