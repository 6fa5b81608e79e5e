#!/usr/bin/env python3
"""What a log call costs with Tampu's handler, beside logging's NullHandler and FileHandler in the same run.

The handlers take turns, in bursts that fit into a log ring; the figures are medians of the bursts. A hub runs beside it,
so the records are drained and archived meanwhile, as in use.
"""

import logging
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "peers"))

from hub import Place

BURST, ROUNDS = 2000, 60

# The call that is logged, with its arguments and extras.
CALLS = {
    "text alone": ("on source", (), None),
    "two arguments": ("antenna %s at %.1f deg", ("DV01", 269.94), None),
    "two extras": ("on source", (), {"elevation": 62.5, "scan": 7}),
}


def burst(log, text, arguments, extra):
    """Nanoseconds of processor time of a call, over one burst. Time that other programs take does not count."""
    info = log.info
    begun = time.thread_time_ns()
    if extra is None:
        for _ in range(BURST):
            info(text, *arguments)
    else:
        for _ in range(BURST):
            info(text, *arguments, extra=extra)
    return (time.thread_time_ns() - begun) / BURST


def main():
    place = Place("bench")
    os.environ.update({name: value for name, value in place.environment.items() if name.startswith("TAMPU_")})
    place.up()
    import tampu.logging

    ours = tampu.logging.Handler("bench/python")
    handlers = {
        "NullHandler": logging.NullHandler(),
        "Tampu": ours,
        "FileHandler": logging.FileHandler(os.path.join(tempfile.mkdtemp(prefix="tampu-bench-"), "log")),
    }
    handlers["FileHandler"].setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    loggers = {}
    for name, handler in handlers.items():
        loggers[name] = logging.getLogger(f"bench.{name}")
        loggers[name].propagate = False
        loggers[name].setLevel(logging.INFO)
        loggers[name].addHandler(handler)
    good = True
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}; ns of processor time a call, median of {ROUNDS} bursts of {BURST}")
    print(f"{'call':15} {'NullHandler':>12} {'Tampu':>9} {'FileHandler':>12} {'the handler':>12} {'FileHandler / Tampu':>20}")
    for what, call in CALLS.items():
        costs = {name: [] for name in handlers}
        for _ in range(ROUNDS):
            for name, log in loggers.items():
                costs[name].append(burst(log, *call))
            ours.wait(10, grade="received")
        null, tampu_, file = (statistics.median(costs[name]) for name in handlers)
        ratio = (file - null) / (tampu_ - null)
        print(f"{what:15} {null:12.0f} {tampu_:9.0f} {file:12.0f} {tampu_ - null:12.0f} {ratio:20.1f}")
        good = good and tampu_ - null <= 1000 and ratio >= 5
    print(f"dropped: {ours.stats()['dropped']}")
    print("within the goals: at most 1000 ns beside NullHandler, 5 times less than FileHandler" if good else "NOT within the goals")
    place.close()
    return 0 if good else 1


sys.exit(main())
