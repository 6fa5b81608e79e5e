"""Output of the bridge's Python process: one JSON object per line on stdout, in order and bounded."""

import collections
import json
import os
import threading

# Limits in bytes for lines that wait for the reader of stdout, and for pushes that wait for Tango.
OUTPUT_BOUND = INPUT_BOUND = 64 << 20
# Time in seconds for the waiting lines after stdin has ended.
LAST_WORDS_S = 2

# Tango may write to stdout. Its text goes to stderr, and the lines go to a descriptor of their own.
OUT = os.dup(1)
os.dup2(2, 1)
# Functions to call before the process ends.
AT_END = []


def failure(reason, description, origin="tango_bridge.py"):
    """Returns an error in the form of the protocol."""
    return {"reason": reason, "description": str(description), "origin": origin, "severity": "error"}


class Refused(Exception):
    """A request that cannot be done."""

    def __init__(self, reason, description):
        super().__init__(description)
        self.failure = failure(reason, description)


class Bounded:
    """A queue between two threads, bounded by bytes. Entries beyond the bound are dropped and counted by name."""

    def __init__(self, bound):
        self.bound, self.bytes, self.items, self.idle = bound, 0, collections.deque(), False
        self.dropped = collections.Counter()
        self.changed = threading.Condition()

    def put(self, item, size, name=None, before=()):
        """Adds an entry, and `before` in front of it. Without room a named entry is dropped. Returns whether it was added."""
        with self.changed:
            if name is not None and self.bytes and self.bytes + size > self.bound:
                self.dropped[name] += 1
                return False
            self.items.extend((one, 0) for one in before)
            self.items.append((item, size))
            self.bytes += size
            self.changed.notify_all()
        return True

    def take(self):
        """Waits for the next entry and returns it, with the counts of dropped entries."""
        with self.changed:
            # A request for the next entry means that the last one is done.
            self.idle = True
            self.changed.notify_all()
            while not self.items:
                self.changed.wait()
            self.idle = False
            item, size = self.items.popleft()
            self.bytes -= size
            dropped, self.dropped = self.dropped, collections.Counter()
        return item, dropped

    def drain(self, seconds):
        """Waits until all entries are done, or until the timeout."""
        with self.changed:
            self.changed.wait_for(lambda: self.idle and not self.items, seconds)


class Output:
    """The lines for stdout, in order, and their counters."""

    def __init__(self):
        self.queue, self.counts, self.lock = Bounded(OUTPUT_BOUND), collections.Counter(), threading.Lock()
        self.unconvertible = {}
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    def say(self, line, droppable=None, request=None):
        """Queues a line. `droppable` is the attribute of an event, which may be dropped."""
        if request is not None:
            line = {"id": request, **line}
        data = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        if not self.queue.put(data, len(data), droppable):
            self.count("dropped_in")

    def error(self, what, request=None, **about):
        """Reports an error. Without the id of a request it may be dropped, so that bad requests cannot fill the memory."""
        self.say({"error": {"failure": what, **about}}, about.get("attribute", "") if request is None else None, request)

    def count(self, what, by=1):
        """Raises a counter."""
        with self.lock:
            self.counts[what] += by

    def could_not_convert(self, attribute, direction, why):
        """Counts an unconvertible value, and reports the first, second, fourth, eighth one and so on."""
        with self.lock:
            key = f"{direction} {attribute}"
            count = self.unconvertible[key] = self.unconvertible.get(key, 0) + 1
        if count & (count - 1) == 0:
            what = why.failure if isinstance(why, Refused) else failure("Tampu_NotConvertible", f"{type(why).__name__}: {why}")
            self.say({"unconvertible": {"attribute": attribute, "direction": direction, "count": count, "failure": what}})

    def tell_counts(self, request):
        """Returns all counters since the start."""
        with self.lock:
            counts = {name: self.counts[name] for name in ("events", "pushed", "written", "dropped_in", "dropped_out")}
            counts["unconvertible"] = dict(self.unconvertible)
        self.say({"counts": counts}, request=request)

    def _run(self):
        while True:
            line, dropped = self.queue.take()
            for attribute, count in dropped.items():
                told = {"dropped": {"attribute": attribute, "direction": "in", "count": count}}
                line = json.dumps(told).encode() + b"\n" + line
            view = memoryview(line)
            while view:
                try:
                    view = view[os.write(OUT, view) :]
                except OSError:
                    for tidy in AT_END:
                        tidy()
                    os._exit(0)  # the reader has ended

    def finish(self):
        """Writes the waiting lines while the reader is there."""
        self.queue.drain(LAST_WORDS_S)


OUTPUT = Output()
