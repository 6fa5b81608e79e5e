#!/usr/bin/env python3
"""Tampu's bridge to Tango, the Python side: JSON lines on stdin and stdout, PyTango (9.5 to 10) behind.

What each line says is written in spec/wire/tango-bridge.md. A process of its own, because PyTango brings a whole Tango with it and
a library that blocks or crashes shall not do so in a hub.

Threads: one reads stdin and does nothing else, so that it is never blocked; one writes stdout; a few do what may block in Tango (to
find a device takes seconds when it is not there); one pushes; Tango's own threads call back with events. The main thread is
that of the device server, once there is one. Between any two is a queue with a bound in bytes; what does not fit is dropped,
counted and told.
"""

import base64
import collections
import heapq
import itertools
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import time

PROTOCOL = 1
# Bytes of lines that wait for whoever reads our stdout, and of pushes that wait for Tango.
OUTPUT_BOUND = INPUT_BOUND = 64 << 20
# The longest line that is read.
LINE_BOUND = 1 << 30
# Rows of numbers up to this length are written as JSON numbers, longer ones in base64.
PLAIN_ELEMENTS = 32
# How soon a device that cannot be found is looked for again, and a kind of events that an attribute does not send, in seconds. Tango itself
# would ask for the second every 10 s, for each attribute and kind.
RETRY_S, RETRY_KIND_S = 3, 300
WORKERS = 4
# How long the lines that wait may take when stdin has ended, in seconds.
LAST_WORDS_S = 2

# Tango writes to stdout when it likes to; what it says goes to stderr, and our lines to a descriptor that only we know.
OUT = os.dup(1)
os.dup2(2, 1)

# Tampu's words for kinds, and Tango's where they differ.
KINDS = ("change", "alarm", "archive", "periodic", "user", "configuration", "data_ready", "interface")
ALIASES = {"attr_conf": "configuration", "intr_change": "interface", "interface_change": "interface"}
QUALITIES = ("valid", "invalid", "alarm", "changing", "warning")
SEVERITIES = ("warning", "error", "panic")
FORMATS = ("scalar", "spectrum", "image")
WRITABLES = ("read", "read_with_write", "write", "read_write")
# Elements of a fixed size, as they lie in base64. States are Tango's numbers.
NUMBERS = {
    "DevBoolean": "u1", "DevUChar": "u1", "DevShort": "<i2", "DevUShort": "<u2", "DevLong": "<i4", "DevULong": "<u4",
    "DevLong64": "<i8", "DevULong64": "<u8", "DevFloat": "<f4", "DevDouble": "<f8", "DevState": "u1", "DevEnum": "<i2",
}  # fmt: skip
# Errors by which Tango's event system says that it does not hear the source, other than those a device makes itself.
SILENCE = re.compile(
    r"API_(EventTimeout|CantConnect\w*|DeviceNotExported|ServerNotRunning|CorbaException|DeviceTimedOut|CommunicationFailed"
    r"|ZmqFailed|EventChannelNotExported|NotificationServiceFailed|BadConfigurationProperty|DeviceNotDefined|DeviceNotFound)$"
)


# Errors by which an attribute says that it does not send events of a kind.
NOT_SENT = {
    "API_AttributePollingNotStarted", "API_EventPropertiesNotSet", "API_AttributeNotDataReadyEnabled", "API_EventSupported", "API_NotSupportedFeature",
}  # fmt: skip


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
                    SERVER.clear()
                    os._exit(0)  # nobody reads any more

    def finish(self):
        """Writes what waits, if somebody reads it."""
        self.queue.drain(LAST_WORDS_S)


OUTPUT = Output()

try:
    import numpy
    import tango
    import tango.server
except ImportError as missing:
    OUTPUT.error(failure("Tampu_NoPyTango", f"{missing}; install it with: python3 -m pip install 'pytango>=9.5,<11'"))
    OUTPUT.finish()
    os._exit(3)


# ------------------------------------------------------------------------------------------------------------- from Tango


def number_of(enumerated):
    """The number of one of Tango's constants."""
    return int(enumerated)


def failures_of(errors):
    """Tango's stack of errors, innermost first as Tango has it."""
    return [
        {"reason": e.reason, "description": e.desc, "origin": e.origin, "severity": SEVERITIES[min(int(e.severity), 2)]} for e in errors
    ]


def encoded(data):
    """Bytes for JSON."""
    return base64.b64encode(data).decode("ascii")


def value_of(data_type, data_format, data):
    """A value of Tango for JSON."""
    value = {"data_type": data_type, "format": data_format}
    if data_type == "DevEncoded":
        encoding, content = data
        content = content.encode("latin-1") if isinstance(content, str) else bytes(content)
        return {**value, "x": 1, "y": 0, "encoding": encoding, "base64": encoded(content)}
    if data_type == "DevString":
        rows = [data] if data_format == "scalar" else list(data)
        x, y = len(rows), 0
        if data_format == "image":
            x, y, rows = (len(rows[0]) if rows else 0), len(rows), list(itertools.chain.from_iterable(rows))
        return {**value, "x": x, "y": y, "data": rows}
    if data_type not in NUMBERS:
        raise Refused("Tampu_UnknownType", f"values of type {data_type} are not known here")
    if data_type == "DevState":
        data = numpy.vectorize(number_of, otypes=["u1"])(numpy.array(data, dtype=object)) if numpy.size(data) else []
    array = numpy.asarray(data, dtype=NUMBERS[data_type])
    shape = array.shape
    if data_format == "scalar":
        x, y = 1, 0
    elif data_format == "spectrum":
        x, y = array.size, 0
    else:
        x, y = (shape[1], shape[0]) if len(shape) == 2 and array.size else (0, 0)
    value.update(x=x, y=y)
    flat = array.ravel()
    # JSON has no infinities, and not everybody reads its texts of floating point exactly.
    if flat.size > PLAIN_ELEMENTS or flat.dtype.kind == "f":
        value["base64"] = encoded(numpy.ascontiguousarray(flat).tobytes())
    elif data_type == "DevBoolean":
        value["data"] = [bool(one) for one in flat]
    else:
        value["data"] = flat.tolist()
    return value


def time_of(moment):
    """Tango's time in ns."""
    return moment.tv_sec * 1_000_000_000 + moment.tv_usec * 1000 + moment.tv_nsec


def as_number(text):
    """A limit, or none."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if numpy.isfinite(number) else None


def as_band(text):
    """A threshold, `low,high`, or none. Tango has `x` or `low,high` and may leave out the sign of `low`."""
    ends = [as_number(part) for part in (text or "").split(",")]
    return None if None in ends or len(ends) > 2 else f"{-abs(ends[0])},{abs(ends[-1])}"


def specified(text):
    """A text, unless it is Tango's word for none."""
    return "" if text in ("Not specified", "No label", "No unit", "No description") else text


def config_of(name, info):
    """An attribute's configuration."""
    alarms, events = info.alarms, info.events
    data_type = tango.CmdArgType.values[info.data_type].name if isinstance(info.data_type, int) else str(info.data_type)
    period = as_number(events.arch_event.archive_period)
    return {
        "name": name,
        "data_type": data_type,
        "format": info.data_format.name.lower(),
        "max_x": info.max_dim_x,
        "max_y": info.max_dim_y,
        "writable": {"READ": "read", "READ_WITH_WRITE": "read_with_write", "WRITE": "write"}.get(info.writable.name, "read_write"),
        "label": specified(info.label),
        "description": specified(info.description),
        "unit": specified(info.unit),
        "labels": list(info.enum_labels),
        "limits": {
            "min": as_number(info.min_value),
            "max": as_number(info.max_value),
            "alarm_low": as_number(alarms.min_alarm),
            "alarm_high": as_number(alarms.max_alarm),
            "warning_low": as_number(alarms.min_warning),
            "warning_high": as_number(alarms.max_warning),
        },
        "criteria": {
            "change": {"rel": as_band(events.ch_event.rel_change), "abs": as_band(events.ch_event.abs_change)},
            "archive": {"rel": as_band(events.arch_event.archive_rel_change), "abs": as_band(events.arch_event.archive_abs_change)},
            "archive_period_ms": None if period is None else max(int(period), 0),
            "period_ms": int(as_number(events.per_event.period) or 1000),
        },
        "polled_ms": None,
    }


class Address:
    """An attribute as Tango's clients write it, and the parts of that."""

    def __init__(self, text):
        path, mark, options = text.partition("#")
        device, _, self.attribute = path.rpartition("/")
        parts = path.split("//")[-1].split("/")
        if not self.attribute or len(parts) < 4:
            raise Refused("Tampu_BadName", f"'{text}' is no attribute: write domain/family/member/attribute, with tango://HOST:PORT/ before it or not")
        self.text, self.device, self.name = text, device + mark + options, "/".join(parts[-4:])


class Listener:
    """What Tango calls with the events of one attribute and kind."""

    def __init__(self, subscription, kind):
        self.subscription, self.kind = subscription, kind
        self.told, self.silent = False, False

    def __call__(self, event):
        try:
            self._take(event)
        # Whatever is wrong with one event, the next one is another.
        except Exception as why:  # pylint: disable=broad-except
            OUTPUT.could_not_convert(self.subscription.address.text, "in", why)

    def _take(self, event):
        subscription = self.subscription
        if subscription.ended:
            return
        address = subscription.address
        line = {"attribute": address.text, "name": address.name, "kind": self.kind}
        line["received_ns"] = time_of(event.reception_date) or time.time_ns()
        if event.err:
            failures = failures_of(event.errors)
            reasons = {one["reason"] for one in failures}
            if "API_MissedEvents" in reasons:
                line["reason"] = "gap"
            else:
                line["reason"], silent = "error", any(SILENCE.match(reason) for reason in reasons)
                line["lost"] = silent
                self.silent = self.silent or silent
                if reasons & NOT_SENT:
                    SUBSCRIPTIONS.later(lambda: subscription.set_aside(self.kind))
            line["failures"] = failures
        elif self.kind == "configuration":
            # Never dropped: without it the attribute is not there at all.
            OUTPUT.say({"config": {"attribute": address.text, "config": config_of(address.name, event.attr_conf)}})
            if self._heard() != "update":
                SUBSCRIPTIONS.later(lambda: SUBSCRIPTIONS.look_at(address, subscription.proxy))
            return
        else:
            line["reason"] = self._heard()
            if self.kind == "data_ready":
                # Tango says by a counter of nothing that the subscription stands.
                if getattr(event, "ctr", None) is None or NEW_CLIENT and event.event_reason == tango.EventReason.SubSuccess:
                    return
                line["counter"] = event.ctr
            elif self.kind == "interface":
                line.update(
                    attributes=[one.name for one in event.att_list],
                    commands=[one.cmd_name for one in event.cmd_list],
                    started=bool(event.dev_started),
                )
            else:
                self._value(line, event.attr_value)
        if self.kind == "configuration" and not subscription.wants("configuration"):
            return
        OUTPUT.count("events")
        OUTPUT.say({"event": line}, address.text)

    def _heard(self):
        reason = "resumed" if self.silent else "update" if self.told else "first"
        self.told, self.silent = True, False
        return reason

    def _value(self, line, read):
        line["time_ns"], line["quality"] = time_of(read.time), QUALITIES[int(read.quality)]
        if read.quality == tango.AttrQuality.ATTR_INVALID:
            return
        data_type, data_format = read.type.name, read.data_format.name.lower()
        line["value"] = value_of(data_type, data_format, self._or_empty(data_format, read.value))
        if read.w_dim_x and read.w_value is not None:
            line["set_point"] = value_of(data_type, data_format, read.w_value)

    @staticmethod
    def _or_empty(data_format, data):
        if data is None:
            if data_format == "scalar":
                raise Refused("Tampu_NoValue", "there is no value, though the quality is not invalid")
            return []
        return data


class Subscription:
    """An attribute that somebody wants the events of."""

    def __init__(self, address, kinds):
        self.address, self.kinds, self.ended = address, kinds, False
        self.proxy, self.ids = None, []
        self.lock = threading.Lock()

    def wants(self, kind):
        """Whether it was asked for."""
        return kind in self.kinds

    def begin(self, proxy):
        """Subscribes to what it has not; Tango itself goes on trying from there on."""
        with self.lock:
            if self.ended:
                return
            self.proxy, begun = proxy, {kind for kind, _ in self.ids}
            # The configuration always, and first: values are read with it.
            for kind in ["configuration", *self.kinds]:
                if kind in begun:
                    continue
                begun.add(kind)
                listener = Listener(self, kind)
                if kind == "interface":
                    number = proxy.subscribe_event(EVENT_TYPES[kind], listener, **PATIENT)
                else:
                    number = proxy.subscribe_event(self.address.attribute, EVENT_TYPES[kind], listener, **PATIENT)
                self.ids.append((kind, number))

    def set_aside(self, kind):
        """Asks no more for events of a kind that the attribute does not send, and again much later."""
        with self.lock:
            number = next((number for one, number in self.ids if one == kind), None)
            if self.ended or number is None:
                return
            self.ids.remove((kind, number))
            self.proxy.unsubscribe_event(number)
        SUBSCRIPTIONS.later(lambda: self.begin(self.proxy), RETRY_KIND_S)

    def end(self):
        """Takes it back."""
        with self.lock:
            self.ended = True
            for _, number in self.ids:
                try:
                    self.proxy.unsubscribe_event(number)
                except tango.DevFailed as why:
                    OUTPUT.error(failures_of(why.args)[0], attribute=self.address.text)
            self.ids.clear()


class Subscriptions:
    """All of them, and the threads that make them."""

    def __init__(self):
        self.all, self.lock, self.proxies, self.old = {}, threading.Lock(), {}, set()
        self.tasks, self.count, self.changed = [], itertools.count(), threading.Condition()
        for number in range(WORKERS):
            threading.Thread(target=self._work, name=f"worker {number}", daemon=True).start()

    def later(self, task, seconds=0.0):
        """Has a worker do it."""
        with self.changed:
            heapq.heappush(self.tasks, (time.monotonic() + seconds, next(self.count), task))
            self.changed.notify()

    def _next(self):
        with self.changed:
            while not self.tasks or self.tasks[0][0] > time.monotonic():
                self.changed.wait(max(self.tasks[0][0] - time.monotonic(), 0) if self.tasks else None)
            return heapq.heappop(self.tasks)[2]

    def _work(self):
        with tango.EnsureOmniThread():
            while True:
                task = self._next()
                try:
                    task()
                except Exception as why:  # pylint: disable=broad-except
                    OUTPUT.error(failure("Tampu_Unexpected", f"{type(why).__name__}: {why}"))

    def _proxy(self, device):
        with self.lock:
            lock, kept = self.proxies.setdefault(device, (threading.Lock(), []))
        # One thread at a time waits for a device that may not be there.
        with lock:
            if not kept:
                kept.append(tango.DeviceProxy(device))
            return kept[0]

    def subscribe(self, request, wish):
        """`{"attribute": ..., "kinds": [...]}`."""
        address = Address(wish["attribute"])
        kinds = kinds_of(wish.get("kinds", ["change"]))
        subscription = Subscription(address, kinds)
        with self.lock:
            before = self.all.get(address.text.lower())
            self.all[address.text.lower()] = subscription
        said = []

        def task():
            if before:
                before.end()
            try:
                subscription.begin(self._proxy(address.device))
            except tango.DevFailed as why:
                if not said:
                    said.append(True)
                    line = {"attribute": address.text, "name": address.name, "kind": (kinds or ["configuration"])[0]}
                    line.update(received_ns=time.time_ns(), reason="error", lost=True, failures=failures_of(why.args))
                    OUTPUT.say({"event": line}, address.text)
                if not subscription.ended:
                    self.later(task, RETRY_S)

        self.later(task)
        OUTPUT.say({"subscribed": {"attribute": address.text, "name": address.name, "kinds": kinds}}, request=request)

    def unsubscribe(self, request, wish):
        """`{"attribute": ...}`."""
        text = wish["attribute"]
        with self.lock:
            subscription = self.all.pop(text.lower(), None)
        if subscription is None:
            raise Refused("Tampu_NotSubscribed", f"'{text}' is not subscribed to")

        def task():
            subscription.end()
            OUTPUT.say({"unsubscribed": {"attribute": text}}, request=request)

        self.later(task)

    def look_at(self, address, proxy):
        """Tells of a source that we do not get along with, once for each device."""
        try:
            release = proxy.get_idl_version()
        except tango.DevFailed:
            return
        with self.lock:
            told = address.device in self.old
            self.old.add(address.device)
        if NEW_CLIENT and release < 6 and not told:
            why = f"a server of Tango 9, and this is Tango {tango.constants.TgLibVers}: every other event is lost on the way; use PyTango 9.5 for this source"
            OUTPUT.error({**failure("Tampu_OldServer", why), "severity": "warning"}, attribute=address.text)

    def list(self, request, pattern):
        """The attributes a database knows, where there is one."""

        def task():
            try:
                path, mark, options = pattern.partition("#")
                if mark:
                    # One device, which says itself where it is.
                    device, _, last = path.rpartition("/")
                    devices, behind = [device], mark + options
                else:
                    parts = (path.split("/") + ["*"] * 4)[:4]
                    devices, behind, last = tango.Database().get_device_exported("/".join(parts[:3])), "", parts[3]
                wanted = re.compile(re.escape(last).replace(r"\*", ".*").replace(r"\?", "."), re.IGNORECASE)
                found, silent = [], []
                for device in devices:
                    try:
                        proxy = self._proxy(device + behind)
                        if not ours(proxy):
                            found += [f"{device}/{name}{behind}" for name in proxy.get_attribute_list() if wanted.fullmatch(name)]
                    except tango.DevFailed:
                        silent.append(device + behind)
                OUTPUT.say({"listed": {"pattern": pattern, "attributes": found, "silent": silent}}, request=request)
            except tango.DevFailed as why:
                OUTPUT.error(failures_of(why.args)[0], request=request, pattern=pattern)

        self.later(task)


def ours(proxy):
    """Whether a device is one of a bridge: what it has came from Tampu, and does not go back."""
    return proxy.info().server_id.lower().startswith("tampubridge/")


TANGO_NAMES = {"configuration": "ATTR_CONF_EVENT", "interface": "INTERFACE_CHANGE_EVENT"}
# Tango 9 has no alarm events.
EVENT_TYPES = {
    kind: getattr(tango.EventType, name)
    for kind in KINDS
    if hasattr(tango.EventType, name := TANGO_NAMES.get(kind, f"{kind.upper()}_EVENT"))
}
# The release of Tango's interface that is in this process, which a server of an older one may not get along with.
NEW_CLIENT = hasattr(tango, "EventSubMode")
# Neither fails where the device is not there. Before 10.1 the call waits for it; that is a worker's time.
PATIENT = {"sub_mode": tango.EventSubMode.AsyncRead} if NEW_CLIENT else {"stateless": True}


def kinds_of(words):
    """Kinds by Tampu's words or Tango's, each once."""
    kinds = list(dict.fromkeys(ALIASES.get(word, word) for word in words))
    unknown = [kind for kind in kinds if kind not in EVENT_TYPES]
    if unknown:
        raise Refused("Tampu_UnknownKind", f"'{unknown[0]}' is no kind of event here ({', '.join(EVENT_TYPES)})")
    return kinds


# --------------------------------------------------------------------------------------------------------------- to Tango


def plain_text(text):
    """A text that Tango can carry: it has Latin-1 and ends texts with an octet 0."""
    if "\0" in text:
        raise Refused("Tampu_NotConvertible", "a text has an octet 0, with which Tango ends texts")
    try:
        text.encode("latin-1")
    except UnicodeEncodeError as why:
        raise Refused("Tampu_NotConvertible", f"{text[why.start]!r} is not in Latin-1, and Tango's texts are") from why
    return text


def to_tango(config, value):
    """A value for Tango: a scalar, an array, or (format, bytes)."""
    data_type, data_format = config["data_type"], config["format"]
    for key, expected in (("data_type", data_type), ("format", data_format)):
        if value.get(key, expected) != expected:
            raise Refused("Tampu_WrongValue", f"{config['name']} is {expected}, not {value[key]}")
    if data_type == "DevEncoded":
        return plain_text(value["encoding"]), base64.b64decode(value["base64"], validate=True)
    if data_type == "DevString":
        elements = [plain_text(text) for text in value["data"]]
    elif "base64" in value:
        elements = numpy.frombuffer(base64.b64decode(value["base64"], validate=True), dtype=NUMBERS[data_type])
    else:
        elements = numpy.array(value["data"], dtype=NUMBERS[data_type])
    count = {"scalar": 1, "spectrum": value.get("x", len(elements))}.get(data_format, value.get("x", 0) * value.get("y", 0))
    if count != len(elements):
        raise Refused("Tampu_WrongValue", f"{config['name']}: {len(elements)} elements, where its shape says {count}")
    if data_type == "DevEnum" and len(elements) and not (min(elements) >= 0 and max(elements) < len(config.get("labels", []))):
        raise Refused("Tampu_WrongValue", f"{config['name']} has {len(config.get('labels', []))} labels")
    if data_type == "DevState":
        # An index beyond the last one is refused by the table itself.
        elements = [tango.DevState.values[int(number)] for number in elements]
    elif data_type == "DevBoolean":
        elements = elements.astype(bool)
    if data_format == "image":
        x, y = value["x"], value["y"]
        if isinstance(elements, list):
            return [elements[row * x : (row + 1) * x] for row in range(y)]
        return elements.reshape((y, x))
    if data_format == "scalar":
        return elements[0].item() if hasattr(elements[0], "item") else elements[0]
    return elements


def nothing_of(config):
    """A value that stands where there is none."""
    if config["data_type"] == "DevEncoded":
        return "", b""
    zero = {"DevString": "", "DevState": tango.DevState.UNKNOWN, "DevBoolean": False}.get(config["data_type"], 0)
    return {"scalar": zero, "spectrum": [zero], "image": [[zero]]}[config["format"]]


def failed(failures):
    """Tango's exception of a stack of errors."""
    stack = []
    for one in failures:
        error = tango.DevError()
        error.reason, error.desc = one.get("reason", ""), one.get("description", "")
        error.origin = one.get("origin", "")
        error.severity = tango.ErrSeverity.values[SEVERITIES.index(one.get("severity", "error"))]
        stack.append(error)
    return tango.DevFailed(*stack)


Last = collections.namedtuple("Last", "data seconds quality failures")
NOT_YET = Last(None, 0, None, [failure("Tampu_NoValueYet", "the attribute has not been published since the bridge began", "tampu")])


class Served:
    """An attribute of Tampu in a device of Tango."""

    def __init__(self, config):
        parts = config["name"].split("/")
        if len(parts) != 4 or config["data_type"] not in [*NUMBERS, "DevString", "DevEncoded"] or config["format"] not in FORMATS:
            raise Refused("Tampu_BadConfig", f"{config['name']} ({config['data_type']}, {config['format']}) cannot be an attribute in Tango")
        if config["data_type"] == "DevEncoded" and config["format"] != "scalar":
            raise Refused("Tampu_BadConfig", f"{config['name']}: DevEncoded is always a scalar in Tango")
        self.config, self.device_name, self.attribute = config, "/".join(parts[:3]), parts[3]
        # A state is what every device has already.
        self.built_in = self.attribute.lower() in ("state", "status")
        self.last = NOT_YET

    def read(self):
        """What a client that reads gets."""
        last = self.last
        if last.failures:
            raise failed(last.failures)
        return last.data, last.seconds, last.quality

    def written(self, device):
        """A client wrote."""
        try:
            data = device.get_device_attr().get_w_attr_by_name(self.attribute).get_write_value()
            if self.config["format"] == "image" and self.config["data_type"] != "DevString":
                data = numpy.asarray(data)
            value = value_of(self.config["data_type"], self.config["format"], data)
            OUTPUT.count("written")
            OUTPUT.say({"written": {"attribute": self.config["name"], "time_ns": time.time_ns(), "value": value}}, self.config["name"])
        except Exception as why:
            OUTPUT.could_not_convert(self.config["name"], "written", why)
            raise

    def push(self, device, wish):
        """Keeps the value for readers and pushes it to those who subscribed."""
        kinds = kinds_of(wish.get("kinds", ["change"]))
        if "data_ready" in kinds:
            device.push_data_ready_event(self.attribute, int(wish["counter"]))
            kinds.remove("data_ready")
            if not kinds:
                return
        for kind in ("periodic", "configuration", "interface"):
            if kind in kinds:
                raise Refused("Tampu_NotPushable", f"Tango sends {kind} events itself; code cannot")
        if wish.get("failures"):
            last = Last(None, 0, None, wish["failures"])
            pushed = (failed(last.failures),)
        else:
            quality = tango.AttrQuality.values[QUALITIES.index(wish.get("quality", "valid"))]
            invalid = quality == tango.AttrQuality.ATTR_INVALID
            data = nothing_of(self.config) if invalid else to_tango(self.config, wish["value"])
            last = Last(data, wish.get("time_ns", time.time_ns()) / 1e9, quality, None)
            parts = data if self.config["data_type"] == "DevEncoded" else (data,)
            pushed = (*parts, last.seconds, last.quality)
            if wish.get("set_point") and self.config.get("writable", "read") in ("write", "read_write"):
                point = to_tango(self.config, wish["set_point"])
                device.get_device_attr().get_w_attr_by_name(self.attribute).set_write_value(point)
            if self.built_in and not invalid:
                (device.set_state if self.attribute.lower() == "state" else device.set_status)(data)
        if not wish.get("passing"):
            self.last = last
        for kind in kinds:
            if kind == "change":
                device.push_change_event(self.attribute, *pushed)
            elif kind == "archive":
                device.push_archive_event(self.attribute, *pushed)
            elif kind == "alarm":
                device.push_alarm_event(self.attribute, *pushed)
            elif kind == "user":
                device.push_event(self.attribute, [], [], *pushed)
        OUTPUT.count("pushed")

    def definition(self):
        """The attribute as PyTango wants it."""
        config, data_format = self.config, tango.AttrDataFormat.values[FORMATS.index(self.config["format"])]
        limits, criteria = config.get("limits") or {}, config.get("criteria") or {}
        change, archive = criteria.get("change") or {}, criteria.get("archive") or {}
        numeric = config["data_type"] not in ("DevBoolean", "DevString", "DevState", "DevEncoded", "DevEnum")
        options = {
            "label": plain_text(config.get("label") or self.attribute),
            "doc": plain_text(config.get("description") or ""),
            "unit": plain_text(config.get("unit") or ""),
        }
        if config["data_type"] == "DevEnum":
            options["enum_labels"] = [plain_text(label) for label in config["labels"]]
        if numeric:
            names = {
                "min_value": limits.get("min"), "max_value": limits.get("max"),
                "min_alarm": limits.get("alarm_low"), "max_alarm": limits.get("alarm_high"),
                "min_warning": limits.get("warning_low"), "max_warning": limits.get("warning_high"),
                "rel_change": change.get("rel"), "abs_change": change.get("abs"),
                "archive_rel_change": archive.get("rel"), "archive_abs_change": archive.get("abs"),
            }  # fmt: skip
            integer = "Float" not in config["data_type"] and "Double" not in config["data_type"]
            for name, number in names.items():
                if number is not None:
                    is_limit = not name.endswith("change")
                    options[name] = str(int(number) if is_limit and integer and float(number).is_integer() else number)
        if criteria.get("archive_period_ms"):
            options["archive_period"] = str(criteria["archive_period_ms"])
        if criteria.get("period_ms"):
            options["period"] = str(criteria["period_ms"])
        access = tango.AttrWriteType.READ_WRITE if config.get("writable", "read") in ("write", "read_write") else tango.AttrWriteType.READ
        return tango.server.attribute(
            name=self.attribute,
            dtype=tango.CmdArgType.names[config["data_type"]],
            dformat=data_format,
            # Tango wants a bound where Tampu has none.
            max_dim_x=1 if config["format"] == "scalar" else config.get("max_x") or 2**24,
            max_dim_y=0 if config["format"] != "image" else config.get("max_y") or 2**24,
            access=access,
            fget=Bridged.read_served,
            **({"fset": Bridged.write_served} if access == tango.AttrWriteType.READ_WRITE else {}),
            **options,
        )


class Bridged(tango.server.Device):
    """A device whose attributes are Tampu's."""

    served = {}

    def init_device(self):
        super().init_device()
        self.set_state(tango.DevState.ON)
        self.set_status("Attributes of Tampu.")
        SERVER.devices[self.get_name().lower()] = self

    def read_served(self, attr):
        """Any of them."""
        name = f"{self.get_name()}/{attr.get_name()}"
        return (SERVER.gone.get(name.lower()) or SERVER.find(name)).read()

    def write_served(self, attr):
        """Any of them."""
        name = f"{self.get_name()}/{attr.get_name()}"
        if name.lower() in SERVER.gone:
            raise failed(SERVER.gone[name.lower()].last.failures)
        SERVER.find(name).written(self)


class Server:
    """The device server of this process; there can be one, with devices that are known when it begins."""

    def __init__(self):
        self.wish, self.asked = None, threading.Event()
        self.attributes, self.gone, self.devices = {}, {}, {}
        self.pushes, self.up = Bounded(INPUT_BOUND), threading.Event()
        # How many pushes of each attribute found no room since the last that did; the thread that reads stdin has them.
        self.missed = collections.Counter()
        # Where the list of devices lies until Tango has read it.
        self.place = None

    def find(self, name):
        """An attribute that is served."""
        try:
            return self.attributes[name.lower()]
        except KeyError:
            raise Refused("Tampu_NotServed", f"'{name}' is not served") from None

    def serve(self, request, wish):
        """`{"devices": [{"device", "attributes"}]}`, or those two for one device."""
        if self.wish is not None:
            raise Refused("Tampu_AlreadyServing", "a process can be one device server; start another")
        wish = {"devices": [wish], **wish} if "device" in wish else wish
        names, served = {device["device"].lower() for device in wish["devices"]}, []
        for config in (config for device in wish["devices"] for config in device["attributes"]):
            try:
                one = Served(config)
                if one.device_name.lower() not in names:
                    raise Refused("Tampu_BadConfig", f"{config['name']} is of none of the devices")
                served.append(one)
            except Refused as why:
                OUTPUT.error(why.failure, attribute=config["name"])
        self.attributes = {one.config["name"].lower(): one for one in served}
        self.wish = {**wish, "id": request}
        self.asked.set()

    def run(self):
        """Becomes the device server; returns when it ends."""
        wish = self.wish
        names, server, instance = [one["device"] for one in wish["devices"]], "TampuBridge", wish.get("instance", "tampu")
        database = bool(wish.get("database"))
        arguments, address = [server, instance], None
        # A class for each device: in Tango attributes of one name are of one type in all devices of a class.
        classes = {name: Bridged if database else type(f"Tampu{n}", (Bridged,), {}) for n, name in enumerate(names, 1)}
        try:
            if database:
                for other in with_database(server, instance, names):
                    names.remove(other)
                    self.attributes = {name: one for name, one in self.attributes.items() if one.device_name.lower() != other.lower()}
                if not names:
                    raise Refused("Tampu_OtherServer", "all devices are other servers' in the database")
            else:
                host, port = wish.get("host", "127.0.0.1"), wish.get("port") or free_port(wish.get("host", "127.0.0.1"))
                address = f"{host}:{port}"
                # A directory, because Tango writes its file anew when an attribute is configured: once that is gone, it cannot.
                self.place = tempfile.mkdtemp(prefix="tampu-tango-devices-")
                path = os.path.join(self.place, "devices")
                with open(path, "w", encoding="ascii") as devices:
                    devices.writelines(f'{server}/{instance}/DEVICE/{one.__name__}: "{name}"\n' for name, one in classes.items())
                arguments += ["-ORBendPoint", f"giop:tcp:{address}", f"-file={path}"]

            def begun():
                self._begun(address, names)

            tango.server.run(tuple(dict.fromkeys(classes.values())), args=arguments, post_init_callback=begun, raises=True)
        except tango.DevFailed as why:
            OUTPUT.error(failures_of(why.args)[0], request=wish["id"])
        except Refused as why:
            OUTPUT.error(why.failure, request=wish["id"])
        except Exception as why:  # pylint: disable=broad-except
            OUTPUT.error(failure("Tampu_CannotServe", f"{type(why).__name__}: {why}"), request=wish["id"])
        finally:
            self.clear()

    def clear(self):
        """Leaves nothing behind; may be called at any time, by any thread."""
        if self.place:
            shutil.rmtree(self.place, ignore_errors=True)

    def _begun(self, address, names):
        # Tango has read it, and this process may be ended at any moment from here on. It would read it once more when a client has the server
        # restart; that ends this process then, and who started it begins anew with all attributes, which Tango itself would not bring back.
        self.clear()
        for one in list(self.attributes.values()):
            try:
                self._add(one)
            except (tango.DevFailed, Refused, TypeError, ValueError, KeyError) as why:
                del self.attributes[one.config["name"].lower()]
                what = failures_of(why.args)[0] if isinstance(why, tango.DevFailed) else getattr(why, "failure", None) or failure("Tampu_BadConfig", why)
                OUTPUT.error(what, attribute=one.config["name"])
        urls = [f"tango://{address}/{name}#dbase=no" if address else name for name in names]
        attributes = [one.config["name"] for one in self.attributes.values()]
        OUTPUT.say({"serving": {"address": address, "devices": urls, "attributes": attributes}}, request=self.wish["id"])
        self.up.set()

    def _add(self, one):
        device = self.devices[one.device_name.lower()]
        if not one.built_in:
            device.add_attribute(one.definition())
        for kind in ("change", "archive", "alarm"):
            if kind in EVENT_TYPES:
                getattr(device, f"set_{kind}_event")(one.attribute, True, False)
        if not one.built_in:
            device.set_data_ready_event(one.attribute, True)
        if one.config.get("polled_ms"):
            # Tango sends periodic events of what it polls, and of nothing else. It polls nothing that is asked for before the server runs.
            self.pushes.put(("poll", None, one.config["name"]), 0)

    def poll(self, _request, name):
        """Has Tango poll an attribute, once the server runs."""
        if tango.Util.instance().is_svr_starting():
            SUBSCRIPTIONS.later(lambda: self.pushes.put(("poll", None, name), 0), 0.1)
            return
        one = self.find(name)
        self.devices[one.device_name.lower()].poll_attribute(one.attribute, int(one.config["polled_ms"]))

    def add(self, request, config):
        """One more attribute of a device that is served."""
        one = Served(config)
        if one.device_name.lower() not in self.devices:
            raise Refused("Tampu_NotServed", f"the device '{one.device_name}' is not served; devices are known when the server begins")
        if config["name"].lower() in self.attributes:
            raise Refused("Tampu_BadConfig", f"'{config['name']}' is served already")
        key = config["name"].lower()
        before = self.gone.get(key)
        if before and any(before.config.get(what) != config.get(what) for what in ("data_type", "format", "writable", "max_x", "max_y")):
            raise Refused("Tampu_BadConfig", f"'{config['name']}' was served before as something else; that takes another bridge")
        self.attributes[key] = one
        try:
            if not before:
                self._add(one)
        except Exception:
            del self.attributes[key]
            raise
        self.gone.pop(key, None)
        OUTPUT.say({"added": {"attribute": config["name"]}}, request=request)

    def remove(self, request, name):
        """It is served no more: whoever reads it is told.

        In Tango it stays. PyTango 10.3 can take an attribute away, but crashes when a client follows the device's interface.
        """
        one = self.find(name)
        what = [failure("Tampu_Gone", "Tampu no longer has this attribute", "tampu")]
        self.push(None, {"attribute": name, "kinds": ["change"], "failures": what})
        self.gone[name.lower()] = self.attributes.pop(name.lower())
        OUTPUT.say({"removed": {"attribute": name}}, request=request)

    def configure(self, request, config):
        """Another label, unit, description or other limits; Tango tells its clients."""
        one = self.find(config["name"])
        attribute = self.devices[one.device_name.lower()].get_device_attr().get_attr_by_name(one.attribute)
        properties, limits = attribute.get_properties(), config.get("limits") or {}
        for key, name in (("label", "label"), ("unit", "unit"), ("description", "description")):
            if config.get(key) is not None:
                setattr(properties, name, plain_text(config[key]))
        for key, name in (
            ("min", "min_value"), ("max", "max_value"), ("alarm_low", "min_alarm"), ("alarm_high", "max_alarm"),
            ("warning_low", "min_warning"), ("warning_high", "max_warning"),
        ):  # fmt: skip
            if key in limits:
                setattr(properties, name, "NaN" if limits[key] is None else str(limits[key]))
        attribute.set_properties(properties)
        one.config = {**one.config, **config}
        OUTPUT.say({"configured": {"attribute": config["name"]}}, request=request)

    def push(self, _request, wish):
        """`{"attribute", "kinds", ...}`."""
        one = self.find(wish["attribute"])
        try:
            one.push(self.devices[one.device_name.lower()], wish)
        except tango.DevFailed as why:
            OUTPUT.could_not_convert(one.config["name"], "out", Refused(why.args[0].reason, why.args[0].desc))
        except (Refused, KeyError, IndexError, TypeError, ValueError, OverflowError) as why:
            OUTPUT.could_not_convert(one.config["name"], "out", why)

    def offer(self, request, wish, size):
        """A push, which may be dropped. The next of the attribute that is not has the clients told first that some were missed."""
        name, before = wish.get("attribute", "") if isinstance(wish, dict) else "", []
        if self.missed[name]:
            what = {**failure("API_MissedEvents", f"{self.missed[name]} events found no room on the way", "tampu"), "severity": "warning"}
            kinds = [kind for kind in ("change", "alarm", "archive", "user") if kind in EVENT_TYPES]
            before.append(("push", None, {"attribute": name, "kinds": kinds, "passing": True, "failures": [what]}))
        if self.pushes.put(("push", request, wish), size, name, before):
            self.missed.pop(name, None)
        else:
            self.missed[name] += 1

    def run_pushes(self):
        """The thread that pushes, in order."""
        self.up.wait()
        with tango.EnsureOmniThread():
            while True:
                (verb, request, wish), dropped = self.pushes.take()
                for attribute, count in dropped.items():
                    OUTPUT.count("dropped_out", count)
                    OUTPUT.say({"dropped": {"attribute": attribute, "direction": "out", "count": count}})
                answered(lambda verb=verb, request=request, wish=wish: getattr(self, verb)(request, wish), request)


def with_database(server, instance, names):
    """Registers the devices, so that the server finds itself in the database; returns those that are another server's."""
    database, refused = tango.Database(), []
    for name in names:
        try:
            owner = database.get_device_info(name).ds_full_name
        except tango.DevFailed:
            owner = ""  # the database does not know it
        if owner and owner.lower() != f"{server}/{instance}".lower():
            # To register it here would take it away from there.
            what = f"{name} is a device of {owner} in the database; a name is one server's"
            OUTPUT.error(failure("Tampu_OtherServer", what), attribute=f"{name}/*")
            refused.append(name)
            continue
        info = tango.DbDevInfo()
        info.server, info._class, info.name = f"{server}/{instance}", "Bridged", name  # pylint: disable=protected-access
        database.add_device(info)
    return refused


def free_port(host):
    """A port nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


# -------------------------------------------------------------------------------------------------------------- the lines

SERVER, SUBSCRIPTIONS = Server(), Subscriptions()


def answered(do, request):
    """Does it, or says why not."""
    try:
        do()
    except Refused as why:
        OUTPUT.error(why.failure, request=request)
    except tango.DevFailed as why:
        OUTPUT.error(failures_of(why.args)[0], request=request)
    except Exception as why:  # pylint: disable=broad-except
        OUTPUT.error(failure("Tampu_BadRequest", f"{type(why).__name__}: {why}"), request=request)


def understand(line):
    """One line of stdin."""
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
        OUTPUT.error(failure("Tampu_BadRequest", f"'{verb}' is no request"), request=request)


def read_lines():
    """Until stdin ends; and then the process does."""
    lines = sys.stdin.buffer
    while line := lines.readline(LINE_BOUND):
        if len(line) == LINE_BOUND and not line.endswith(b"\n"):
            OUTPUT.error(failure("Tampu_LongLine", f"a line has more than {LINE_BOUND} bytes"))
            break
        if line.strip():
            understand(line)
    OUTPUT.finish()
    SERVER.clear()
    # Tango's own way to end takes seconds, and a subscription to what is not there holds it longer.
    os._exit(0)


def main():
    database = os.environ.get("TANGO_HOST")
    OUTPUT.say({"hello": {"protocol": PROTOCOL, "pytango": tango.__version__, "tango": tango.constants.TgLibVers, "database": database}})
    threading.Thread(target=read_lines, name="stdin", daemon=True).start()
    threading.Thread(target=SERVER.run_pushes, name="pushes", daemon=True).start()
    SERVER.asked.wait()
    SERVER.run()
    # The server could not begin, or somebody told it to end: who started this sees it by our end.
    OUTPUT.finish()
    os._exit(1)


if __name__ == "__main__":
    main()
