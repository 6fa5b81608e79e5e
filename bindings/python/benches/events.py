#!/usr/bin/env python3
"""Events of one process of Python at another: to a callback, in batches, and images of 1 MB.

The server is a process of its own, and pushes as fast as it can. Each figure is counted at the subscriber, over the
second half of the run. `tampu perf event` gives the rate of images between programs in Rust, in the same run. There, the
server writes each image once into shared memory, and the client reads every element once, in place. So do Python's
images; `copies` are those of a subscription that keeps them. A server waits for its client as long as it takes, as Rust's.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "peers"))

from hub import Place

# Least rates at the subscriber: events a second, and the part of the rate of images that programs in Rust have.
GOALS = {"callback": 200_000, "batches": 2_000_000}
IMAGES = 0.6
QOS = '[[topic]]\ntopics = "event-own/**"\nmax_wait_ms = 10000\nwait_period_ms = 10000\n'

SERVER = """
import sys, time
import tampu.event
kind = sys.argv[1]
server = tampu.event.Server("bench/" + kind)
if kind in ("image", "copies"):
    import numpy
    attribute = server.declare("bench/py/" + kind + "/value", "uint16", "image", change_abs=0)
    images = [numpy.full((512, 1024), number, dtype="uint16") for number in range(2)]
    while True:
        for image in images:
            attribute.push(image, kinds="user")
else:
    attribute = server.declare("bench/py/" + kind + "/value", float, change_abs=0)
    attribute.push(0.0)
    values = [float(number) for number in range(1, 10_001)]
    while True:
        attribute.push_all(values)
"""


def is_right(event):
    """True if all elements of an image are those that its server pushed; None for other events."""
    with event.view() as view:
        if view.array is None:
            return None
        greatest = view.array.max()
    if not view.valid or event.reason != "first" and greatest != (event.number - 1) % 2:
        sys.exit(f"event {event.number} is wrong: {greatest}, valid: {view.valid}")
    return True


def follow(client, kind, seconds):
    """Events each second at the subscriber, and the number of events that it missed or dropped."""
    import tampu.event

    name = f"bench/py/{kind}/value"
    server = subprocess.Popen([sys.executable, "-c", SERVER, kind])
    try:
        if kind == "batches":
            events = client.batches(name)
            events.take(30)
            # The first half is taken as well, so that no backlog counts in the second.
            half = time.monotonic() + seconds / 2
            while time.monotonic() < half:
                events.take(30)
            count, begun = 0, time.monotonic()
            while time.monotonic() < begun + seconds / 2:
                count += len(events.take(30).value)
            rate = count / (time.monotonic() - begun)
        else:
            is_image = kind in ("image", "copies")
            events = client.subscribe(name, kinds="user" if is_image else "change", in_place=kind == "image")
            state = {"count": 0, "reports": 0, "from": None, "until": time.monotonic() + seconds, "half": time.monotonic() + seconds / 2}

            def note(event):
                if "end" in state:
                    return
                value = is_right(event) if is_image else event.value
                now = time.monotonic()
                if now > state["half"]:
                    state["from"] = state["from"] or now
                    # A report, as of a gap, is no event of the server.
                    state["count" if value is not None else "reports"] += 1
                if now > state["until"]:
                    state["end"] = now
                    events.close()

            events.run(note, 30)
            # A slow subscriber may have been called once in the second half.
            rate = state["count"] / max(state["end"] - state["from"], seconds / 2)
            if state["reports"]:
                print(f"{kind}: {state['reports']} reports of gaps among the events")
        return rate, events.stats()["dropped"]
    finally:
        server.kill()
        server.wait()


def main():
    place = Place("bench")
    qos = os.path.join(place.directory, "qos.toml")
    pathlib.Path(qos).write_text(QOS, encoding="utf-8")
    place.environment["TAMPU_QOS"] = qos
    os.environ.update({name: value for name, value in place.environment.items() if name.startswith("TAMPU_")})
    import tampu.event

    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    missed = []
    for kind in ("callback", "batches", "copies", "image"):
        with tampu.event.Client("bench/client") as client:
            rate, dropped = follow(client, kind, 4)
        goal = GOALS.get(kind)
        if kind == "image":
            rust = json.loads(place.run("perf", "event", "--size", "1MiB", "--for", "4s", "--json").stdout)["events_per_s"]
            print(f"{'Rust':10} {rust:12,.0f} images/s")
            goal = IMAGES * rust
        wanted = f"; goal {goal:,.0f}" if goal else ""
        print(f"{kind:10} {rate:12,.0f} events/s at the subscriber, {dropped:,} dropped by its full queue{wanted}")
        if goal and rate < goal:
            missed.append(kind)
    place.close()
    print(f"NOT within the goals: {', '.join(missed)}" if missed else "within the goals")
    return 1 if missed else 0


sys.exit(main())
