"""Unmodified PyTango on the other side of the bridge: a device server and a client, and the values both ends know.

    tango_peer.py source PORT          serves lab/source/1, by the database of TANGO_HOST if there is one; lines: {"push": [attribute, index of value, kinds]}, {"quality": ...}, {"fail": ...}
    tango_peer.py client URL           lines: {"subscribe": [attribute, kind]}, {"read": attribute}, {"write": [attribute, value]}
"""

import json
import math
import os
import sys
import threading

DEVICE = "lab/source/1"
INTEGERS = {
    "DevUChar": (0, 255), "DevShort": (-(2**15), 2**15 - 1), "DevUShort": (0, 2**16 - 1), "DevLong": (-(2**31), 2**31 - 1),
    "DevULong": (0, 2**32 - 1), "DevLong64": (-(2**63), 2**63 - 1), "DevULong64": (0, 2**64 - 1),
}  # fmt: skip
LABELS = ["open", "shut", "moving"]


def elements():
    """For each type: elements with both ends of what it can be."""
    for name, (low, high) in INTEGERS.items():
        yield name, [low, high, 0, 1, 7]
    yield "DevBoolean", [True, False, True, True, False]
    yield "DevFloat", [1.5, -0.25, math.inf, 3.0, math.nan]
    yield "DevDouble", [0.1, -1e300, math.nan, 1e-300, -math.inf]
    yield "DevString", ["open", "", "fünf °C", 'a "quote"\n', "x" * 300]
    yield "DevState", [0, 13, 8, 1, 6]
    yield "DevEnum", [0, 2, 1, 1, 0]


def cases():
    """Each attribute: name, type, format, and the values it takes in turn (rows of rows for images)."""
    for name, some in elements():
        short = name[3:].lower()
        yield f"{short}_scalar", name, "scalar", some
        # The longer one is beyond what is written as numbers.
        yield f"{short}_spectrum", name, "spectrum", [some, some[:1], some * 40]
        yield f"{short}_image", name, "image", [[some[:3], some[2:5]], [some * 20, some * 20, some * 20], [some[:1]]]
    yield "encoded_scalar", "DevEncoded", "scalar", [["JPEG", [0, 255, 10, 13]], ["", []], ["RAW16", list(range(256)) * 4]]


CASES = list(cases())


def text_of(value):
    """A value that compares, with NaN and all."""
    if isinstance(value, (list, tuple)):
        return [text_of(one) for one in value]
    return repr(float(value)) if isinstance(value, float) else value


def plain(value):
    """What PyTango gives, as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (bytes, bytearray)):
        return list(value)
    if type(value).__name__ == "DevState":
        return int(value)
    return text_of(value)


def say(line):
    """A line to the test, whole."""
    os.write(OUT, (json.dumps(line) + "\n").encode())


def source(port):
    """The device server."""
    import tango
    from tango.server import Device, attribute, run

    formats = {"scalar": tango.SCALAR, "spectrum": tango.SPECTRUM, "image": tango.IMAGE}

    def for_tango(data_type, data_format, value):
        if data_type == "DevEncoded":
            return value[0], bytes(value[1])
        if data_type == "DevState":
            state = tango.DevState.values
            rows = value if data_format == "image" else [value if data_format == "spectrum" else [value]]
            rows = [[state[one] for one in row] for row in rows]
            return rows if data_format == "image" else rows[0] if data_format == "spectrum" else rows[0][0]
        return value

    class Source(Device):
        def init_device(self):
            super().init_device()
            self.index = {name: 0 for name, *_ in CASES}
            self.made = {name: (t, f, values) for name, t, f, values in CASES}
            self.quality, self.fails = tango.AttrQuality.ATTR_VALID, False
            Source.one = self

        def value(self, name):
            t, f, values = self.made[name]
            return for_tango(t, f, values[self.index[name] % len(values)])

        def read_it(self, attr):
            if self.fails:
                tango.Except.throw_exception("Lab_Broken", "the cable is off", "source")
            return self.value(attr.get_name()), 1700000000.25, self.quality

        def write_it(self, attr):
            say({"written": [attr.get_name(), plain(attr.get_write_value())]})

        @attribute(
            dtype=float, rel_change="1", abs_change="-2,3", archive_period="5000", min_value=-5, max_alarm=90,
            unit="mbar", label="The pressure", doc="of the vessel",
        )  # fmt: skip
        def configured(self):
            return 4.5

    def serve_lines():
        device = Source.one
        with tango.EnsureOmniThread():
            for name, t, f, _ in CASES:
                options = {"enum_labels": LABELS} if t == "DevEnum" else {}
                device.add_attribute(
                    attribute(
                        name=name, dtype=tango.CmdArgType.names[t], dformat=formats[f], max_dim_x=4096, max_dim_y=64 if f == "image" else 0,
                        fget=Source.read_it, **options,
                    )  # fmt: skip
                )
                device.set_change_event(name, True, False)
                device.set_archive_event(name, True, False)
                device.set_alarm_event(name, True, False)
                device.set_data_ready_event(name, True)
            say({"ready": True})
            for line in sys.stdin:
                command = json.loads(line)
                if "quality" in command:
                    device.quality = tango.AttrQuality.values[command["quality"]]
                elif "fail" in command:
                    device.fails = command["fail"]
                elif "add" in command:
                    device.add_attribute(attribute(name=command["add"], dtype=float, fget=Source.read_it))
                elif "data_ready" in command:
                    device.push_data_ready_event(*command["data_ready"])
                else:
                    name, index, kinds = command["push"]
                    device.index[name] = index
                    if device.fails:
                        error = tango.DevError()
                        error.reason, error.desc, error.origin, error.severity = "Lab_Broken", "the cable is off", "source", tango.ErrSeverity.ERR
                        what = (tango.DevFailed(error),)
                    else:
                        value = device.value(name)
                        what = (*(value if name.startswith("encoded") else (value,)), 1700000001.5 + index, device.quality)
                    for kind in kinds:
                        if kind == "user":
                            device.push_event(name, [], [], *what)
                        else:
                            getattr(device, f"push_{kind}_event")(name, *what)
        os._exit(0)

    without = ["-nodb", "-dlist", DEVICE]
    if os.environ.get("TANGO_HOST"):
        info, without = tango.DbDevInfo(), []
        info.server, info._class, info.name = "Source/one", "Source", DEVICE
        tango.Database().add_device(info)
    run(
        (Source,),
        args=["Source", "one", *without, "-ORBendPoint", f"giop:tcp:127.0.0.1:{port}"],
        post_init_callback=lambda: threading.Thread(target=serve_lines, daemon=True).start(),
    )


def client(url):
    """Subscribes, reads and writes as any client does."""
    import tango

    kinds = {
        "change": tango.EventType.CHANGE_EVENT, "archive": tango.EventType.ARCHIVE_EVENT, "user": tango.EventType.USER_EVENT,
        "alarm": tango.EventType.ALARM_EVENT, "data_ready": tango.EventType.DATA_READY_EVENT, "periodic": tango.EventType.PERIODIC_EVENT,
        "configuration": tango.EventType.ATTR_CONF_EVENT,
    }  # fmt: skip

    def reading(read):
        invalid = read.quality == tango.AttrQuality.ATTR_INVALID
        value = None if invalid else [] if read.value is None else plain(read.value)
        point = plain(read.w_value) if read.w_dim_x else None
        return {"value": value, "quality": int(read.quality), "time": read.time.totime(), "type": read.type.name, "set_point": point}

    def listener(name, kind):
        def take(event):
            line = {"event": name, "kind": kind}
            if event.err:
                line["errors"] = [[e.reason, e.desc, e.origin, int(e.severity)] for e in event.errors]
            elif kind == "data_ready":
                line["counter"] = event.ctr
            elif kind == "configuration":
                conf = event.attr_conf
                line["conf"] = [conf.label, conf.unit, conf.max_value, list(conf.enum_labels), conf.description, conf.alarms.max_alarm]
                line["conf"] += [conf.events.ch_event.abs_change]
            else:
                line.update(reading(event.attr_value))
            say(line)

        return take

    proxy = tango.DeviceProxy(url)
    say({"ready": True})
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "subscribe" in command:
                name, kind = command["subscribe"]
                proxy.subscribe_event(name, kinds[kind], listener(name, kind))
                say({"subscribed": name})
            elif "read" in command:
                say({"read": command["read"], **reading(proxy.read_attribute(command["read"]))})
            else:
                proxy.write_attribute(*command["write"])
                say({"wrote": command["write"][0]})
        except tango.DevFailed as why:
            say({"failed": [why.args[0].reason, why.args[0].desc], "command": command})
    os._exit(0)


if __name__ == "__main__":
    OUT = os.dup(1)
    os.dup2(2, 1)
    {"source": source, "client": client}[sys.argv[1]](sys.argv[2])
