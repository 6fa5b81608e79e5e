"""What the bridge's Python process says: one JSON object a line on stdout, in order, within a bound."""

import collections
import json
import os
import threading

# Bytes of lines that wait for whoever reads our stdout, and of pushes that wait for Tango.
OUTPUT_BOUND = INPUT_BOUND = 64 << 20
# How long the lines that wait may take when stdin has ended, in seconds.
LAST_WORDS_S = 2

# Tango writes to stdout when it likes to; what it says goes to stderr, and our lines to a descriptor that only we know.
OUT = os.dup(1)
os.dup2(2, 1)
# What is called before the process ends.
AT_END = []


def failure(reason, description, origin="tango_bridge.py"):
    """An error as both sides write it."""
    return {"reason": reason, "description": str(description), "origin": origin, "severity": "error"}


class Refused(Exception):
    """What was asked cannot be done."""

    def __init__(self, reason, description):
        super().__init__(description)
        self.failure = failure(reason, description)


class Bounded:
    """A queue between two threads, bounded by bytes. What is too much is dropped and counted by name."""

    def __init__(self, bound):
        self.bound, self.bytes, self.items, self.idle = bound, 0, collections.deque(), False
        self.dropped = collections.Counter()
        self.changed = threading.Condition()

    def put(self, item, size, name=None, before=()):
        """Adds it, and `before` in front of it; what has a name is dropped when there is no room. Says whether it is there."""
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
        """The next one, as soon as there is one, and what was dropped before."""
        with self.changed:
            # Who asks for the next one is done with the last.
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
        """Until all is done, or the time is over."""
        with self.changed:
            self.changed.wait_for(lambda: self.idle and not self.items, seconds)


class Output:
    """Our lines, in order, and what became of them."""

    def __init__(self):
        self.queue, self.counts, self.lock = Bounded(OUTPUT_BOUND), collections.Counter(), threading.Lock()
        self.unconvertible = {}
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    def say(self, line, droppable=None, request=None):
        """A line; `droppable` is the attribute of an event."""
        if request is not None:
            line = {"id": request, **line}
        data = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        if not self.queue.put(data, len(data), droppable):
            self.count("dropped_in")

    def error(self, what, request=None, **about):
        """Says that something did not work. What nobody waits for by its id may be dropped, so that bad requests cannot fill the memory."""
        self.say({"error": {"failure": what, **about}}, about.get("attribute", "") if request is None else None, request)

    def count(self, what, by=1):
        """Counts."""
        with self.lock:
            self.counts[what] += by

    def could_not_convert(self, attribute, direction, why):
        """Counts it, and tells it the first, second, fourth... time."""
        with self.lock:
            key = f"{direction} {attribute}"
            count = self.unconvertible[key] = self.unconvertible.get(key, 0) + 1
        if count & (count - 1) == 0:
            what = why.failure if isinstance(why, Refused) else failure("Tampu_NotConvertible", f"{type(why).__name__}: {why}")
            self.say({"unconvertible": {"attribute": attribute, "direction": direction, "count": count, "failure": what}})

    def tell_counts(self, request):
        """All counts since the beginning."""
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
                    os._exit(0)  # nobody reads any more

    def finish(self):
        """Writes what waits, if somebody reads it."""
        self.queue.drain(LAST_WORDS_S)


OUTPUT = Output()
