#!/usr/bin/env python3
"""The paper's table for real Tango: 1, 2, 5 and 10 clients x 1, 1024 and 262144 DevLong, by its C++ library and by PyTango.

    tango_table.py [--seconds 2] [--clients 1,2,5,10] [--elements 1,1024,262144] [--peers tango,pytango] [--lossless] [--latency] [--no-rates] [--json]

Server and clients are processes of their own on this host, without a database. Whoever wants to drive them from elsewhere says the
same lines. A peer is started as `... server PORT ELEMENTS` or `... client PORT [latency]` with a free port; it says a line of
JSON when it is ready, `{"ready": ..., "tango": VERSION}`, does what the lines on its stdin say, and ends when that is closed.

    to the server     its answer
    mark K            none; it pushes a value whose first element is -1-K
    start RATE        none; it pushes change events singly, RATE a second or, with 0, as fast as it goes; the first element counts from 0
    clock RATE        none; the same with the lower 31 bits of CLOCK_MONOTONIC (ns) as first element
    stop              {"sent", "first_ns", "last_ns", "cpu_us"} since `start` or `clock`
    to a client
    report            {"received", "lost", "first_ns", "last_ns", "wrong", "twice", "errors", "cpu_us"} since the last report;
                      with `latency` also {"p50_us", "p99_us", "longest_us"}
    without being asked, a client says {"mark": K} when that value has come

`first_ns` and `last_ns` are CLOCK_MONOTONIC; `cpu_us` is the processor time of the whole process (a server's: since `start`). Every element
after the first follows from it and its index, modulo 2^32: first * 0x9E3779B1 + index * 0x85EBCA77. `wrong` counts values of which one does not,
`twice` events that came again or too late, and `errors` error events. Reads answer -2^31, which is no event.

A cell: marks until every client has one (they are subscribed), `start`, `stop`, marks until every client has one (nothing is under way any
more), reports. events/s is what came at the slowest client, by the time from the first push to its last arrival. Lost is added over the clients, those at
the end included.
"""

import argparse
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target"))
# Time limit for every step outside the measurement itself.
PATIENCE = 60


class Peer:
    """A process that carries out lines and answers in JSON."""

    def __init__(self, command):
        self.command = command
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            # A line that is not an object comes from a library.
            if line.startswith("{"):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def tell(self, line):
        """Sends a line to the process."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self, key, patience=PATIENCE):
        """Returns its next line with `key`; None after the timeout."""
        until = time.monotonic() + patience
        while True:
            try:
                line = self.lines.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                return None
            if line is None:
                raise RuntimeError(f"{' '.join(self.command)} ended with {self.process.wait(5)}")
            if key in line:
                return line

    def must(self, key):
        """Returns the same, or fails the measurement."""
        line = self.hear(key)
        if line is None:
            raise RuntimeError(f"{' '.join(self.command)} did not say '{key}' within {PATIENCE} s")
        return line

    def close(self):
        """Ends the process."""
        try:
            self.process.stdin.close()
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def free_port():
    """Returns a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Bench:
    """A running server and its clients."""

    def __init__(self, command, elements, clients, latency=False, places=None):
        # `places` has what each process is started by, in a namespace for instance: the server's first.
        port, self.marks, self.peers = free_port(), 0, []
        places = places or [[]] * (clients + 1)
        try:
            self.server = self._start(places[0] + command + ["server", str(port), str(elements)])
            self.version = self.server.must("ready")["tango"]
            more = ["latency"] if latency else []
            self.clients = [self._start(places[1 + at] + command + ["client", str(port)] + more) for at in range(clients)]
            for client in self.clients:
                client.must("ready")
            self.settle()
            self.reports()
        except BaseException:
            self.close()
            raise

    def _start(self, command):
        self.peers.append(Peer(command))
        return self.peers[-1]

    def settle(self):
        """Waits until every client has a mark: all earlier events have come or are lost."""
        waiting, until = set(self.clients), time.monotonic() + PATIENCE
        first = self.marks + 1
        while waiting:
            if time.monotonic() > until:
                raise RuntimeError(f"{len(waiting)} clients got no mark within {PATIENCE} s")
            self.marks += 1
            self.server.tell(f"mark {self.marks}")
            for client in list(waiting):
                line = client.hear("mark", 0.2 / len(waiting))
                while line is not None and line["mark"] < first:
                    line = client.hear("mark", 0.2 / len(waiting))
                if line is not None:
                    waiting.discard(client)

    def reports(self):
        """Returns the report of each client."""
        for client in self.clients:
            client.tell("report")
        return [client.must("received") for client in self.clients]

    def run(self, order, seconds):
        """Runs one measurement; returns the reports of the server and of each client."""
        before = [report["cpu_us"] for report in self.reports()]
        self.server.tell(order)
        time.sleep(seconds)
        self.server.tell("stop")
        sent = self.server.must("sent")
        self.settle()
        reports = self.reports()
        for report, cpu in zip(reports, before):
            report["cpu_us"] -= cpu
        return sent, reports

    def close(self):
        """Ends all processes."""
        for peer in reversed(self.peers):
            peer.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def figures(sent, reports):
    """Returns the figures of a cell."""
    rates = [0 if not r["received"] else r["received"] * 1e9 / max(r["last_ns"] - sent["first_ns"], 1) for r in reports]
    return {
        "sent": sent["sent"],
        "sent_per_s": round(sent["sent"] * 1e9 / max(sent["last_ns"] - sent["first_ns"], 1), 1),
        "events_per_s": round(min(rates), 1),
        "lost": sum(sent["sent"] - r["received"] for r in reports),
        "wrong": sum(r["wrong"] for r in reports),
        "twice": sum(r["twice"] for r in reports),
        "errors": sum(r["errors"] for r in reports),
        "server_cpu_s": round(sent["cpu_us"] / 1e6, 3),
        "clients_cpu_s": round(sum(r["cpu_us"] for r in reports) / 1e6, 3),
    }


def lossless(bench, start, seconds):
    """Returns the highest rate without losses: halved until nothing is lost, then searched between the last two, to an eighth."""
    good, bad, rate, best = 0, None, max(start, 16), None
    while bad is None or good == 0 or bad / good > 1.125:
        cell = figures(*bench.run(f"start {int(rate)}", seconds))
        # A server that does not reach the requested rate is at its limit.
        reached = cell["sent_per_s"] >= 0.95 * rate
        if cell["lost"] == 0 and cell["wrong"] == 0:
            good, best = rate, cell
            if not reached:
                return best
        else:
            bad = rate
        if good == 0 and rate < 16:
            return None
        rate = rate / 2 if good == 0 else (rate * 1.5 if bad is None else (good * bad) ** 0.5)
    return best


def commands(peers):
    """Returns the start command of each peer."""
    known = {
        "tango": [os.environ.get("BENCH_TANGO", os.path.join(TARGET, "release", "bench-tango"))],
        "pytango": [sys.executable, os.path.join(HERE, "pytango_event.py")],
    }
    unknown = [peer for peer in peers if peer not in known]
    if unknown:
        sys.exit(f"unknown peer '{unknown[0]}' (known: {', '.join(known)})")
    return {peer: known[peer] for peer in peers}


def numbers(text):
    """Returns the numbers of `1,2,5`."""
    return [int(part) for part in text.split(",")]


def shown(cell):
    """Returns the text of a cell."""
    if "failed" in cell:
        return f"FAILED: {cell['failed']}"
    if "p50_us" in cell:
        return f"p50 {cell['p50_us']:.0f} us, p99 {cell['p99_us']:.0f} us, longest {cell['longest_us']:.0f} us"
    text = f"{cell['events_per_s']:>10.0f} events/s, pushed {cell['sent_per_s']:.0f}/s"
    if cell["lost"]:
        text += f", LOST {cell['lost']} ({100 * cell['lost'] / max(cell['sent'] * cell['clients'], 1):.0f} %)"
    if cell["wrong"]:
        text += f", WRONG {cell['wrong']}"
    if cell["twice"]:
        text += f", TWICE {cell['twice']}"
    if "lossless_per_s" in cell:
        text += f"; without loss {cell['lossless_per_s']:.0f}/s"
    return text


def measure(command, args, elements, clients):
    """Returns the objects of one cell."""
    if not args.no_rates:
        with Bench(command, elements, clients) as bench:
            cell = {"tango": bench.version, **figures(*bench.run("start 0", args.seconds))}
            if args.lossless:
                best = cell if cell["lost"] == 0 else lossless(bench, cell["events_per_s"], args.seconds)
                cell["lossless_per_s"] = best["events_per_s"] if best else 0
        yield cell
    if args.latency and clients == 1:
        with Bench(command, elements, clients, latency=True) as bench:
            bench.run("clock 1000", 0.2)  # warm-up, not counted
            sent, reports = bench.run("clock 1000", args.seconds)
            yield {
                "tango": bench.version,
                "latency_rate": 1000,
                **figures(sent, reports),
                **{key: max(r[key] for r in reports) for key in ("p50_us", "p99_us", "longest_us")},
            }


def main():
    parser = argparse.ArgumentParser(description="The paper's table for real Tango.")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--clients", type=numbers, default=[1, 2, 5, 10])
    parser.add_argument("--elements", type=numbers, default=[1, 1024, 262144])
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["tango", "pytango"])
    parser.add_argument("--lossless", action="store_true", help="search the highest rate at which nothing is lost")
    parser.add_argument("--latency", action="store_true", help="one client at 1 kHz as well")
    parser.add_argument("--no-rates", action="store_true", help="leave the rates out: with --latency, only that")
    parser.add_argument("--json", action="store_true", help="an object a cell")
    args = parser.parse_args()
    failed = 0
    for peer, command in commands(args.peers).items():
        for elements in args.elements:
            for clients in args.clients:
                try:
                    cells = list(measure(command, args, elements, clients))
                except (RuntimeError, OSError) as reason:
                    cells, failed = [{"failed": str(reason)}], failed + 1
                for cell in cells:
                    cell = {"peer": peer, "elements": elements, "clients": clients, **cell}
                    line = json.dumps(cell) if args.json else f"{peer:8} {elements:7} DevLong, {clients:2} clients: {shown(cell)}"
                    print(line, flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
