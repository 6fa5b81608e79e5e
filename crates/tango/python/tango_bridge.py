#!/usr/bin/env python3
"""The Python side of Tampu's bridge to Tango: JSON lines on stdin and stdout, PyTango (9.5 to 10) behind them.

What each line says is written in spec/wire/tango-bridge.md. A process of its own, because PyTango brings a whole Tango with it and
a library that blocks or crashes shall not do so in a hub.

Threads: one reads stdin and does nothing else, so that it is never blocked; one writes stdout; a few do what may block in Tango (to
find a device takes seconds when it is not there); one pushes; Tango's own threads call back with events. The main thread is
that of the device server, once there is one. Between any two is a queue with a bound in bytes; what does not fit is dropped,
counted and told.

bridge_lines.py is what it says, bridge_values.py what a value looks like on either side, bridge_from_tango.py and bridge_to_tango.py
are the two ways; here are its requests, and its beginning and end.
"""

import json
import os
import sys
import threading

# The other files lie beside this one, whatever Python's search path is.
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# pylint: disable=wrong-import-position
from bridge_lines import OUTPUT, failure  # noqa: E402

try:
    import numpy  # noqa: E402, F401  pylint: disable=unused-import
    import tango  # noqa: E402
    import tango.server  # noqa: E402
except ImportError as missing:
    OUTPUT.error(failure("Tampu_NoPyTango", f"{missing}; install it with: python3 -m pip install 'pytango>=9.5,<11'"))
    OUTPUT.finish()
    os._exit(3)

from bridge_from_tango import SUBSCRIPTIONS  # noqa: E402
from bridge_to_tango import SERVER  # noqa: E402
from bridge_values import answered  # noqa: E402

PROTOCOL = 1
# Longest line that is read, bytes.
LINE_BOUND = 1 << 30


def understand(line):
    """Handles one line of stdin."""
    request = None
    try:
        wish = json.loads(line)
        request = wish.pop("id", None)
        ((verb, what),) = wish.items()
    except (ValueError, AttributeError, TypeError):
        why = "a line is an object with one request, and an id if an answer is to have one"
        OUTPUT.error(failure("Tampu_BadRequest", why), line=line[:200].decode("utf-8", "replace"))
        return
    here = {
        "subscribe": SUBSCRIPTIONS.subscribe,
        "unsubscribe": SUBSCRIPTIONS.unsubscribe,
        "list": SUBSCRIPTIONS.list,
        "serve": SERVER.serve,
        "counts": lambda request, _: OUTPUT.tell_counts(request),
    }
    if verb in here:
        answered(lambda: here[verb](request, what), request)
    elif verb in ("push", "add", "remove", "configure"):
        if SERVER.wish is None:
            OUTPUT.error(failure("Tampu_NotServed", "nothing is served yet"), request=request)
            return
        # Only pushes may be dropped; the others are few.
        if verb == "push":
            SERVER.offer(request, what, len(line))
        else:
            SERVER.pushes.put((verb, request, what), len(line))
    else:
        OUTPUT.error(failure("Tampu_BadRequest", f"unknown request '{verb}'"), request=request)


def read_lines():
    """Handles stdin until it ends, then ends the process."""
    lines = sys.stdin.buffer
    while line := lines.readline(LINE_BOUND):
        if len(line) == LINE_BOUND and not line.endswith(b"\n"):
            OUTPUT.error(failure("Tampu_LongLine", f"a line has more than {LINE_BOUND} bytes"))
            break
        if line.strip():
            understand(line)
    OUTPUT.finish()
    SERVER.clear()
    # Tango's own shutdown takes seconds, and longer with a subscription to a missing device.
    os._exit(0)


def main():
    database = os.environ.get("TANGO_HOST")
    OUTPUT.say({"hello": {"protocol": PROTOCOL, "pytango": tango.__version__, "tango": tango.constants.TgLibVers, "database": database}})
    threading.Thread(target=read_lines, name="stdin", daemon=True).start()
    threading.Thread(target=SERVER.run_pushes, name="pushes", daemon=True).start()
    SERVER.asked.wait()
    SERVER.run()
    # The server could not start, or a client ended it. The end of this process reports it.
    OUTPUT.finish()
    os._exit(1)


if __name__ == "__main__":
    main()
