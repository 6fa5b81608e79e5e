#!/usr/bin/env python3
"""Events of programs in C++ and Java beside those in Rust, and JeroMQ beside Java, on one host in the same run.

    bench-clients.py [--seconds 3] [--rounds 3] [--elements 23,1024] [--blocks 65536,1048576] [--only c++,java] [--json]

A server pushes spectra of DevLong as fast as its client takes them, and the client checks every element. The ways take turns; each row has
the median of its rounds. Rust and C++ are on the bus, Java uses the gateway. Blocks of bulk data go from Java to Java, and as messages
of JeroMQ.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "peers"))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.expanduser("~/.cache/tampu/target")
os.environ.setdefault("TAMPU_BIN", os.path.join(TARGET, "release", "tampu"))
import javas  # noqa: E402
from hub import TAMPU, Place  # noqa: E402

# As the measurement in Rust has it: a server waits for its client as long as it takes.
WAITS = "max_wait_ms = 10000\nwait_period_ms = 10000\n"
QOS = "".join(f'[[topic]]\ntopics = "{topics}"\n{WAITS}' for topics in ("event/*", "event-own/**"))
WAYS = {"rust": "rust", "c++": "rust", "java": "jeromq", "jeromq": None}


def finished(process, what):
    """The last line of JSON that a process said, once it has ended well."""
    said = process.stdout.read()
    if process.wait() != 0:
        sys.exit(f"bench-clients: {what} failed: {said}")
    return json.loads(said.splitlines()[-1])


def through(place, server, client):
    """Runs a server and its client; returns the events a second that the client took, and the share of those that it was told it missed.
    Each other must have come once and whole."""
    pipes = {"env": place.environment, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    serving = subprocess.Popen(server, **pipes)
    try:
        port = [serving.stdout.readline().split()[1]] if "jeromq" in server else []
        taking = subprocess.Popen([*client, *port], **pipes)
        if taking.stdout.readline().strip() != "connected":
            sys.exit(f"bench-clients: {client} did not connect")
        serving.stdin.write("\n")
        serving.stdin.flush()
        pushed = json.loads(serving.stdout.readline())["pushed"]
        took = finished(taking, "the client")
        # The server ends in order: what it published would else stay until its session is given up.
        serving.stdin.close()
        serving.wait(10)
    finally:
        serving.kill()
        serving.wait()
    if took["wrong"] or took["received"] + took["missed"] < pushed:
        sys.exit(f"bench-clients: {pushed} pushed, {took}")
    return took["received"] / (took["last_ns"] - took["first_ns"]) * 1e9, (pushed - took["received"]) / pushed


class Bench:
    """The programs, built."""

    def __init__(self, place, seconds, ways, library):
        self.place, self.seconds = place, seconds
        if "c++" in ways:
            flags = ["-O3", "-std=c++17", "-Wall", "-Wextra", f"-I{ROOT}/bindings/c/include", f"-L{library}", f"-Wl,-rpath,{library}"]
            self.cxx = os.path.join(TARGET, "release", "bench-cxx")
            subprocess.run(["g++", *flags, "-o", self.cxx, str(ROOT / "benches/peers/cxx_event.cpp"), "-ltampu_log", "-pthread"], check=True)
        if {"java", "jeromq"} & set(ways):
            javas.need()
            javas.maven("-Pbench", "-DskipTests", "package")
            path = javas.ours("tampu", "tampu-bench") + javas.jars(("org/zeromq/jeromq", "jeromq"))
            self.java = ["java", "-cp", ":".join(path), "org.tampu.bench.BenchEvents"]
            self.bulk = [*self.java[:-1], "org.tampu.bench.BenchBulk"]

    def blocks(self, way, size):
        """Blocks a second of a way, and the share that was missed."""
        kind, size = "tampu" if way == "java" else "jeromq", str(size)
        server = [*self.bulk, "server", kind, size, str(self.seconds)]
        return through(self.place, server, [*self.bulk, "client", kind, size])

    def rate(self, way, elements):
        """Events a second of a way, and the share that was missed."""
        count, seconds = str(elements), str(self.seconds)
        if way == "rust":
            command = [TAMPU, "perf", "event", "--json", "--size", str(4 * elements), "--for", f"{self.seconds}s"]
            done = subprocess.run(command, env=self.place.environment, stdout=subprocess.PIPE, text=True, check=True)
            said = json.loads(done.stdout.splitlines()[-1])
            if said["lost"] or said["wrong"]:
                sys.exit(f"bench-clients: {said}")
            return said["events_per_s"], 0.0
        if way == "c++":
            return through(self.place, [self.cxx, "server", count, seconds], [self.cxx, "client"])
        kind = "tampu" if way == "java" else "jeromq"
        return through(self.place, [*self.java, "server", kind, count, seconds], [*self.java, "client", kind])


def numbers(text):
    """The numbers of a list with commas."""
    return [int(number) for number in text.split(",") if number]


def table(kind, size, ways, measure, options):
    """Measures the ways by turns, and prints a row for each."""
    rates, missed = {way: [] for way in ways}, {way: [] for way in ways}
    for _ in range(options.rounds):
        for way in ways:
            rate, share = measure(way, size)
            rates[way].append(rate)
            missed[way].append(share)
    for way in ways:
        rate = statistics.median(rates[way])
        peer = WAYS[way]
        ratio = rate / statistics.median(rates[peer]) if peer in ways and peer != way else None
        if options.json:
            print(json.dumps({"way": way + kind, "bytes": size, "rates": rates[way], "rate": rate, "missed": missed[way], "peer": peer, "ratio": ratio}))
        else:
            part = f"{ratio:.2f} of {peer}" if ratio else ""
            span = f"{min(rates[way]):,.0f}, {max(rates[way]):,.0f}"
            print(f"| {way}{kind} | {size} | {rate:,.0f} | {span} | {max(missed[way]):.1%} | {part} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--elements", default="23,1024", help="DevLong of a value")
    parser.add_argument("--blocks", default="65536,1048576", help="bytes of a block of bulk data; empty for none")
    parser.add_argument("--only", default=",".join(WAYS))
    parser.add_argument("--library", default=os.path.join(TARGET, "release"), help="the directory of libtampu_log.so")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    options = parser.parse_args()
    ways = options.only.split(",")
    if unknown := [way for way in ways if way not in WAYS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(WAYS)}")
    place = Place("benchclients")
    try:
        qos = os.path.join(place.directory, "qos.toml")
        pathlib.Path(qos).write_text(QOS, encoding="utf-8")
        # For the hub too: it writes what the gateway's clients publish.
        place.environment["TAMPU_QOS"] = qos
        # As that of `tampu perf event`: the history of events would be a second reader on the same cores. The gateway belongs to this role.
        place.up("--roles", "node")
        bench = Bench(place, options.seconds, ways, options.library)
        if not options.json:
            print("| way | bytes | items/s, median | lowest, highest | missed, most | of its peer |\n|-|-|-|-|-|-|")
        events = [("", 4 * elements, ways, lambda way, size: bench.rate(way, size // 4)) for elements in numbers(options.elements)]
        java = [way for way in ways if way in ("java", "jeromq")]
        blocks = [(" bulk", size, java, bench.blocks) for size in numbers(options.blocks)]
        for kind, size, those, measure in [*events, *blocks]:
            table(kind, size, those, measure, options)
        print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    finally:
        place.close()


if __name__ == "__main__":
    main()
