"""Events that the servers of all languages send, as Cyclone DDS reads them out of spec/event.idl: a reader of the kit without our code."""

import collections
import json
import pathlib
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import idl  # noqa: E402

HEAD = 24
HELLO, ACK, OPEN, ATTRIBUTE, EVENTS = 1, 3, 16, 37, 38
COUNTED = 16
# Most events have no `left_out` and no `age`. A reader that always wants them would look for them in the zeros at the end.
EVENT = idl.load("event", without=[("Event", "left_out"), ("Event", "age")]).Event
TYPES = ["", "DevBoolean", "DevUChar", "DevShort", "DevUShort", "DevLong", "DevULong", "DevLong64", "DevULong64", "DevFloat", "DevDouble",
         "DevString", "DevState", "DevEncoded", "DevEnum"]  # fmt: skip
FORMATS = ["scalar", "spectrum", "image"]
QUALITIES = ["valid", "invalid", "alarm", "changing", "warning"]
STATES = "ON OFF CLOSE OPEN INSERT EXTRACT MOVING STANDBY FAULT INIT RUNNING ALARM DISABLE UNKNOWN".split()
REASONS = ["first", "update", "resumed"]
FLOATS = {"DevFloat": ">f", "DevDouble": ">d"}


def elements(data_type, value):
    """Elements as texts, as the drivers write them (README.md)."""
    if data_type == "DevEncoded":
        return [value.format, bytes(value.data).hex()]
    if data_type in FLOATS:
        return [struct.pack(FLOATS[data_type], number).hex() for number in value]
    if data_type == "DevState":
        return [STATES[number] for number in value]
    if data_type == "DevBoolean":
        return ["true" if truth else "false" for truth in value]
    return [str(element) for element in value]


def shown(sample):
    """The event of a sample of the bus, with the members that drivers print."""
    event = EVENT.deserialize(sample)
    data_type = TYPES[event.value.discriminator]
    return {
        "type": data_type, "format": FORMATS[event.format], "x": str(event.x), "y": str(event.y), "quality": QUALITIES[event.quality],
        "elements": elements(data_type, event.value.value), "number": str(event.number),
    }  # fmt: skip


class Subscription:
    """A subscription to attributes through the gateway, whose events Cyclone DDS reads. Its thread reads them as they come."""

    def __init__(self, path, patterns):
        self.events = collections.defaultdict(list)
        self.changed = threading.Condition()
        self.failure = None
        self._names = {}
        self._received = 0
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(path))
        self._connection.settimeout(1)
        self._send(HELLO, 0, 0, json.dumps({"versions": [1], "client": "cyclonedds", "source": "conf/cyclonedds"}).encode())
        self._send(OPEN, 1, 1, json.dumps({"attributes": patterns, "kinds": ["change"], "credit": 1 << 30}).encode())
        threading.Thread(target=self._read, daemon=True).start()

    def close(self):
        """Ends the connection."""
        self._connection.close()

    def _send(self, kind, number, identity, body):
        self._connection.sendall(struct.pack("<IBBHIIQ", len(body), kind, 0, 0, identity, 0, number) + body)

    def _read(self):
        taken = b""
        try:
            while True:
                try:
                    more = self._connection.recv(1 << 20)
                    if not more:
                        raise EOFError("the hub ended the connection")
                    taken += more
                except TimeoutError:
                    pass
                while len(taken) >= HEAD and len(taken) >= (end := HEAD + struct.unpack_from("<I", taken)[0]):
                    self._take(*struct.unpack_from("<BBHIIQ", taken, 4), taken[HEAD:end])
                    taken = taken[end:]
                # At least each second, which is more often than a beat.
                self._send(ACK, 0, 0, struct.pack("<Q", self._received))
        except Exception as failure:
            with self.changed:
                self.failure = self.failure or failure
                self.changed.notify_all()

    def _take(self, kind, _flags, _zero, _identity, _other, number, body):
        if kind < COUNTED:
            return
        self._received = number
        if kind == ATTRIBUTE:
            info = json.loads(body)
            self._names[info["attribute"]] = info["config"]["name"]
        elif kind == EVENTS:
            at = 0
            while at < len(body):
                length, handle = struct.unpack_from("<II", body, at)
                event = {"reason": REASONS[body[at + 8]], **shown(body[at + 32 : at + 32 + length])}
                with self.changed:
                    self.events[self._names[handle]].append(event)
                    self.changed.notify_all()
                at += 32 + (length + 7 & ~7)
