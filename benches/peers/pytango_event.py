#!/usr/bin/env python3
"""Measures PyTango's events: tango_event.cpp in Python. The lines are those of tango_table.py.

    pytango_event.py server PORT ELEMENTS
    pytango_event.py client PORT [latency]
"""

import json
import os
import resource
import sys
import threading
import time

import numpy
import tango
from tango.server import Device, attribute, run

DEVICE = "bench/event/1"
# The answer to a read, which is not an event.
NO_EVENT = -(2**31)
CLOCK_MASK = 2**31 - 1


# Output for our lines. Tango may write to stdout; its text goes to stderr.
OUT = os.dup(1)
os.dup2(2, 1)


def say(**line):
    """Writes a whole line to the parent process."""
    os.write(OUT, (json.dumps(line) + "\n").encode())


def cpu_us():
    """The processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return int((used.ru_utime + used.ru_stime) * 1e6)


class Pattern:
    """Every element follows from the first one and its own index."""

    def __init__(self, size):
        self.offsets = numpy.arange(size, dtype=numpy.uint32) * numpy.uint32(0x85EBCA77)
        self.scratch = numpy.empty(size, dtype=numpy.uint32)

    def fill(self, values, first):
        """Writes all elements of `values`."""
        words = values.view(numpy.uint32)
        numpy.add(self.offsets, numpy.uint32(first * 0x9E3779B1 & 0xFFFFFFFF), out=words)
        words[0] = first & 0xFFFFFFFF

    def right(self, values):
        """Returns whether all elements have the written values."""
        self.fill(self.scratch, int(values[0]))
        return numpy.array_equal(self.scratch, values.view(numpy.uint32))


class Bench(Device):
    """The device: one attribute, which its code pushes."""

    elements = 1
    made = None
    done = threading.Event()

    def init_device(self):
        super().init_device()
        self.answer = numpy.full(Bench.elements, NO_EVENT, dtype=numpy.int32)
        self.set_change_event("value", True, False)
        Bench.made = self

    @attribute(dtype=("DevLong",), max_dim_x=2**20)
    def value(self):
        """Answers a read, which is not an event."""
        return self.answer


def push(device, stop, rate, clock):
    """Pushes until `stop`, at full speed or at a rate, with the clock or a number in the value."""
    pattern = Pattern(Bench.elements)
    values = numpy.empty(Bench.elements, dtype=numpy.int32), numpy.empty(Bench.elements, dtype=numpy.int32)
    begun, cpu, sent = time.monotonic_ns(), cpu_us(), 0
    with tango.EnsureOmniThread():
        while not stop.is_set():
            if rate:
                wait = begun + sent * 1_000_000_000 // rate - time.monotonic_ns()
                if wait > 0:
                    time.sleep((wait if rate <= 10_000 else max(wait, 100_000)) / 1e9)
            value = values[sent % 2]
            pattern.fill(value, time.monotonic_ns() & CLOCK_MASK if clock else sent)
            device.push_change_event("value", value)
            sent += 1
    say(sent=sent, first_ns=begun, last_ns=time.monotonic_ns(), cpu_us=cpu_us() - cpu)


def serve_lines(port):
    """Carries out the lines on stdin."""
    device, pattern, marker = Bench.made, Pattern(Bench.elements), numpy.empty(Bench.elements, dtype=numpy.int32)
    say(ready=f"tango://127.0.0.1:{port}/{DEVICE}/value#dbase=no", tango=f"PyTango {tango.__version__}, {tango.constants.TgLibVers}")
    stop, pusher = threading.Event(), None

    def stopped():
        stop.set()
        if pusher:
            pusher.join()
        stop.clear()

    with tango.EnsureOmniThread():
        for line in sys.stdin:
            word, *rest = line.split()
            if word in ("start", "clock"):
                stopped()
                pusher = threading.Thread(target=push, args=(device, stop, int(rest[0]), word == "clock"), daemon=True)
                pusher.start()
            elif word == "stop":
                stopped()
            elif word == "mark":
                pattern.fill(marker, -1 - int(rest[0]))
                device.push_change_event("value", marker)
            else:
                print(f"unknown line {line!r}", file=sys.stderr)
        stopped()
    # Tango's own shutdown takes seconds.
    os._exit(0)


def server(port, elements):
    """The device server; lines are read when it is up."""
    Bench.elements = elements

    def started():
        threading.Thread(target=serve_lines, args=(port,), daemon=True).start()

    run(
        (Bench,),
        args=["Bench", "bench", "-nodb", "-dlist", DEVICE, "-ORBendPoint", f"giop:tcp:127.0.0.1:{port}"],
        post_init_callback=started,
    )


class Reader:
    """Counts and checks events."""

    def __init__(self, latency):
        self.lock, self.latency, self.marked, self.pattern = threading.Lock(), latency, None, None
        self.begin()

    def begin(self):
        """Starts the counters at zero."""
        self.received = self.lost = self.wrong = self.twice = self.errors = self.first_ns = self.last_ns = self.next = 0
        self.times = []

    def __call__(self, event):
        arrived = time.monotonic_ns()
        with self.lock:
            if event.err:
                self.errors += 1
                print(f"error event: {event.errors[0].reason}: {event.errors[0].desc}", file=sys.stderr)
            elif event.attr_value.value is None or not len(event.attr_value.value):
                self.wrong += 1
            elif event.attr_value.value[0] != NO_EVENT:
                self.take(event.attr_value.value, arrived)

    def take(self, values, arrived):
        """Handles an event: a marker, or one that counts."""
        if self.pattern is None:
            self.pattern = Pattern(len(values))
        self.wrong += not self.pattern.right(values)
        first = int(values[0])
        if first < 0:
            # Tango repeats the last value after a reconnection; a marker is reported once.
            if -1 - first != self.marked:
                self.marked = -1 - first
                say(mark=self.marked)
            return
        self.last_ns = time.monotonic_ns()
        if not self.latency and first < self.next:
            self.twice += 1
            return
        self.first_ns = self.first_ns or arrived
        self.received += 1
        if self.latency:
            self.times.append(((self.last_ns & CLOCK_MASK) - first) & CLOCK_MASK)
        else:
            self.lost += first - self.next
            self.next = first + 1

    def report(self):
        """Reports the events since the last report."""
        with self.lock:
            told = {key: getattr(self, key) for key in ("received", "lost", "first_ns", "last_ns", "wrong", "twice", "errors")}
            told["cpu_us"] = cpu_us()
            if self.latency:
                times = sorted(self.times) or [0]
                for name, share in (("p50_us", 0.5), ("p99_us", 0.99), ("longest_us", 1)):
                    told[name] = round(times[min(len(times) - 1, int(share * len(times)))] / 1000, 1)
            say(**told)
            self.begin()


def client(port, latency):
    """Subscribes, and reports when a line asks for it."""
    reader = Reader(latency)
    proxy = tango.DeviceProxy(f"tango://127.0.0.1:{port}/{DEVICE}#dbase=no")
    proxy.subscribe_event("value", tango.EventType.CHANGE_EVENT, reader)
    say(ready="client", tango=f"PyTango {tango.__version__}, {tango.constants.TgLibVers}")
    for line in sys.stdin:
        if line.strip() == "report":
            reader.report()
        else:
            print(f"unknown line {line!r}", file=sys.stderr)
    os._exit(0)


def main():
    role, *rest = sys.argv[1:] or [""]
    if role == "server" and len(rest) == 2:
        server(int(rest[0]), int(rest[1]))
    elif role == "client" and (len(rest) == 1 or rest[1:] == ["latency"]):
        client(int(rest[0]), len(rest) == 2)
    else:
        sys.exit("usage: pytango_event.py server PORT ELEMENTS | client PORT [latency]")


if __name__ == "__main__":
    main()
