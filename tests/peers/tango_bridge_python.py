#!/usr/bin/env python3
"""The bridge's Python side between this test, which speaks its lines, and unmodified PyTango servers and clients, without a database."""

import base64
import json
import os
import queue
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from hub import check, until
from tango_peer import CASES, DEVICE, LABELS, text_of

HERE = os.path.dirname(os.path.abspath(__file__))
BRIDGE = os.path.join(HERE, "..", "..", "crates", "tango", "python", "tango_bridge.py")
STRUCT = {
    "DevBoolean": "B", "DevUChar": "B", "DevShort": "h", "DevUShort": "H", "DevLong": "i", "DevULong": "I", "DevLong64": "q",
    "DevULong64": "Q", "DevFloat": "f", "DevDouble": "d", "DevState": "B", "DevEnum": "h",
}  # fmt: skip
PATIENCE = 60


class Lines:
    """A process that speaks JSON lines."""

    started = []

    def __init__(self, *command):
        python = os.environ.get("BRIDGE_PYTHON", sys.executable) if command[0] == BRIDGE else sys.executable
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([python, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.heard, self.past = queue.Queue(), []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        Lines.started.append(self)

    def _read(self):
        for line in self.process.stdout:
            self.heard.put(json.loads(line))

    def tell(self, line):
        """Says it."""
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def hear(self, what, condition, seconds=PATIENCE):
        """The first line not heard before for which this holds; the others are kept for later questions."""
        for at, line in enumerate(self.past):
            if condition(line):
                return self.past.pop(at)
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.heard.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                few = "\n".join(json.dumps(line)[:300] for line in self.past[-12:])
                sys.exit(f"FAILED: {what}: not within {seconds} s. What came instead, the last of it:\n{few}")
            if condition(line):
                return line
            self.past.append(line)

    def forget(self):
        """What was heard until now is of no interest."""
        self.past.clear()
        while not self.heard.empty():
            self.heard.get()

    def kill(self):
        """As `kill -9` does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def free_port():
    """A port nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def decoded(value):
    """A value of the bridge as lists, by the words of the specification alone."""
    if value["data_type"] == "DevEncoded":
        return [value["encoding"], list(base64.b64decode(value["base64"]))]
    if "base64" in value:
        data, code = base64.b64decode(value["base64"]), STRUCT[value["data_type"]]
        flat = [one for (one,) in struct.iter_unpack("<" + code, data)]
        if value["data_type"] == "DevBoolean":
            flat = [bool(one) for one in flat]
    else:
        flat = value["data"]
    if value["format"] == "scalar":
        assert len(flat) == 1, value
        return text_of(flat[0])
    if value["format"] == "spectrum":
        assert len(flat) == value["x"], value
        return text_of(flat)
    assert len(flat) == value["x"] * value["y"], value
    return [text_of(flat[row * value["x"] : (row + 1) * value["x"]]) for row in range(value["y"])]


def value_for(data_type, data_format, value):
    """The other way."""
    if data_type == "DevEncoded":
        return {"data_type": data_type, "format": data_format, "x": 1, "y": 0, "encoding": value[0], "base64": base64.b64encode(bytes(value[1])).decode()}
    x, y, flat = 1, 0, [value]
    if data_format == "spectrum":
        x, flat = len(value), value
    elif data_format == "image":
        x, y, flat = len(value[0]), len(value), [one for row in value for one in row]
    made = {"data_type": data_type, "format": data_format, "x": x, "y": y}
    if data_type in ("DevFloat", "DevDouble") or (len(flat) > 32 and data_type != "DevString"):
        made["base64"] = base64.b64encode(struct.pack(f"<{len(flat)}{STRUCT[data_type]}", *flat)).decode()
    else:
        made["data"] = flat
    return made


def source_on(port):
    """A device server, up."""
    source = Lines(os.path.join(HERE, "tango_peer.py"), "source", str(port))
    source.hear("the source is up", lambda line: "ready" in line)
    return source


def events(name, reason=None, kind="change"):
    """A condition on lines of the bridge."""

    def holds(line):
        event = line.get("event", {})
        return event.get("name") == f"{DEVICE}/{name}" and event["kind"] == kind and reason in (None, event["reason"])

    return holds


def inwards(bridge):
    """Tango's events on our side."""
    port = free_port()

    def url(name):
        return f"tango://127.0.0.1:{port}/{DEVICE}/{name}#dbase=no"

    bridge.tell({"id": 1, "subscribe": {"attribute": url("long_scalar"), "kinds": ["change"]}})
    bridge.hear("the subscription is confirmed", lambda line: line.get("id") == 1 and "subscribed" in line)
    told = bridge.hear("an error for a source that is not there", events("long_scalar", "error"))["event"]
    check("what is not there is an error of the source, with its reason", told["lost"] and told["failures"][0]["reason"].startswith("API_"))
    source = source_on(port)
    bridge.hear("a value when the source has come", lambda line: events("long_scalar")(line) and "value" in line["event"])
    check("a subscription made before the source is there gets its value when it comes", True)

    for name, *_ in CASES:
        if name != "long_scalar":
            bridge.tell({"subscribe": {"attribute": url(name), "kinds": ["change"]}})
    for name, data_type, data_format, values in CASES:
        config = bridge.hear(f"the configuration of {name}", lambda line: line.get("config", {}).get("attribute") == url(name))["config"]["config"]
        expected = {"name": f"{DEVICE}/{name}", "data_type": data_type, "format": data_format, "writable": "read", "unit": ""}
        if {key: config[key] for key in expected} != expected or config["labels"] != (LABELS if data_type == "DevEnum" else []):
            sys.exit(f"FAILED: the configuration of {name}: {config}")
        if name == "long_scalar":
            continue
        first = bridge.hear(f"the first value of {name}", events(name))["event"]
        wanted = (values[0] if name.startswith("encoded") else text_of(values[0]), "first", "valid", 1700000000_250000000)
        if (decoded(first["value"]), first["reason"], first["quality"], first["time_ns"]) != wanted:
            sys.exit(f"FAILED: the first value of {name}: {first}, wanted {wanted}")
        if (first["value"]["data_type"], first["value"]["format"]) != (data_type, data_format):
            sys.exit(f"FAILED: the type of {name}: {first}")
    check(f"configuration and first value of {len(CASES)} attributes, all types and formats", True)

    count = 0
    for name, data_type, _, values in CASES:
        for index, value in enumerate(values):
            source.tell({"push": [name, index, ["change"]]})
            event = bridge.hear(f"value {index} of {name}", events(name, "update"))["event"]
            wanted = value if data_type == "DevEncoded" else text_of(value)
            if decoded(event["value"]) != wanted or event["time_ns"] != 1700000001_500000000 + index * 1_000_000_000:
                sys.exit(f"FAILED: value {index} of {name}: {event}, wanted {wanted}")
            count += 1
    check(f"{count} change events carry what was pushed", True)

    name = "double_scalar"
    bridge.tell({"id": 9, "subscribe": {"attribute": url(name), "kinds": ["change", "archive", "user", "alarm", "data_ready", "intr_change", "attr_conf"]}})
    bridge.hear("subscribed anew", lambda line: line.get("id") == 9)
    for kind in ("change", "archive", "user", "alarm"):
        bridge.hear(f"the first of kind {kind}", events(name, "first", kind))
    # Nothing tells that these stand, so they are asked for until they do.
    stands = []

    def ready():
        source.tell({"data_ready": [name, 41 + len(stands)]})
        stands.append(True)
        try:
            return bridge.heard.get(timeout=0.2) if not bridge.past else bridge.past.pop()
        except queue.Empty:
            return None

    until("a data_ready event", lambda: (lambda line: line and events(name, None, "data_ready")(line) and line["event"]["counter"] >= 41)(ready()))
    bridge.forget()
    source.tell({"push": [name, 3, ["change", "archive", "user", "alarm"]]})
    for kind in ("change", "archive", "user", "alarm"):
        event = bridge.hear(f"an event of kind {kind}", events(name, "update", kind))["event"]
        if decoded(event["value"]) != repr(1e-300):
            sys.exit(f"FAILED: {event}")
    check("change, archive, user, alarm and data_ready events", True)

    for number, quality in ((2, "alarm"), (3, "changing"), (4, "warning"), (1, "invalid")):
        source.tell({"quality": number})
        source.tell({"push": [name, 0, ["change"]]})
        event = bridge.hear(f"quality {quality}", events(name, "update"))["event"]
        if event["quality"] != quality or ("value" in event) != (quality != "invalid"):
            sys.exit(f"FAILED: {event}")
    check("all qualities; an invalid one has no value", True)
    source.tell({"quality": 0})
    source.tell({"fail": True})
    source.tell({"push": [name, 0, ["change"]]})
    event = bridge.hear("an error pushed by the device", events(name, "error"))["event"]
    wanted = [{"reason": "Lab_Broken", "description": "the cable is off", "origin": "source", "severity": "error"}]
    check("an error of the device has its stack, and does not mean that the source is lost", event["failures"] == wanted and not event["lost"])
    source.tell({"fail": False})

    bridge.tell({"subscribe": {"attribute": url("configured"), "kinds": ["attr_conf"]}})
    config = bridge.hear("a whole configuration", lambda line: line.get("config", {}).get("attribute") == url("configured"))["config"]["config"]
    limits = {"min": -5, "max": None, "alarm_low": None, "alarm_high": 90, "warning_low": None, "warning_high": None}
    check("limits", config["limits"] == limits)
    check("texts", (config["label"], config["unit"], config["description"]) == ("The pressure", "mbar", "of the vessel"))
    change = {key: [float(end) for end in band.split(",")] for key, band in config["criteria"]["change"].items()}
    check("criteria", change == {"rel": [-1, 1], "abs": [-2, 3]} and config["criteria"]["archive_period_ms"] == 5000)

    source.tell({"add": "late"})
    event = bridge.hear("an interface event", lambda line: events(name, None, "interface")(line) and "late" in line["event"]["attributes"])["event"]
    check("an attribute that comes is an interface event", "double_scalar" in event["attributes"] and not event["started"])

    bridge.forget()
    killed = time.monotonic()
    source.kill()
    bridge.hear("an error after the source was killed", lambda line: events(name, "error")(line) and line["event"]["lost"])
    noticed = time.monotonic() - killed
    source = source_on(port)
    back = time.monotonic()
    event = bridge.hear("a value after the source has come back", events(name, "resumed"))["event"]
    resumed = time.monotonic() - back
    check("after kill -9 an error, and after the restart a value by itself", decoded(event["value"]) == repr(0.1))
    source.tell({"push": [name, 3, ["change"]]})
    bridge.hear("updates after the restart", lambda line: events(name, "update")(line) and decoded(line["event"]["value"]) == repr(1e-300))
    check(f"and updates again (Tango noticed the death after {noticed:.1f} s and was back {resumed:.1f} s after the restart)", True)

    bridge.tell({"id": 20, "unsubscribe": {"attribute": url(name)}})
    bridge.hear("unsubscribed", lambda line: line.get("id") == 20 and "unsubscribed" in line)
    bridge.forget()
    source.tell({"push": [name, 0, ["change"]]})
    source.tell({"push": ["long_spectrum", 0, ["change"]]})
    bridge.hear("the other's event", events("long_spectrum", "update"))
    check("nothing more after unsubscribing", not any(events(name)(line) for line in bridge.past))
    source.kill()


def outwards(bridge):
    """Our attributes for Tango's clients."""
    served = [name for name, *_ in CASES]
    configs = []
    for name, data_type, data_format, _ in CASES:
        config = {"name": f"lab/tampu/1/{name}", "data_type": data_type, "format": data_format, "max_x": 4096, "max_y": 64 if data_format == "image" else 0}
        config.update(writable="read_write" if data_type != "DevState" and data_format != "image" else "read", labels=LABELS if data_type == "DevEnum" else [])
        configs.append(config)
    configs.append({
        "name": "lab/tampu/1/temperature", "data_type": "DevDouble", "format": "scalar", "label": "Temperature", "unit": "Cel", "polled_ms": 100,
        "description": "of the cold plate", "limits": {"max": 90, "alarm_high": 50}, "criteria": {"change": {"abs": "-1,2"}, "period_ms": 200},
    })  # fmt: skip
    other = {"name": "lab/tampu/2/long_scalar", "data_type": "DevString", "format": "spectrum", "max_x": 16}
    bridge.tell({"id": 2, "serve": {"devices": [{"device": "lab/tampu/1", "attributes": configs}, {"device": "lab/tampu/2", "attributes": [other]}]}})
    line = bridge.hear("the devices are served", lambda line: line.get("id") == 2)
    if "serving" not in line or len(line["serving"]["attributes"]) != len(configs) + 1:
        bridge.hear("nothing more", lambda line: "error" in line, 1)
    urls = line["serving"]["devices"]
    check(f"{len(configs) + 1} attributes in two devices are served, of one name with two types", len(urls) == 2)

    client = Lines(os.path.join(HERE, "tango_peer.py"), "client", urls[0])
    client.hear("the client is there", lambda line: "ready" in line)
    client.tell({"read": "long_scalar"})
    failed = client.hear("a read before there is a value", lambda line: "failed" in line or "read" in line)
    check("a read before there is a value is an error that says so", failed.get("failed", [""])[0] == "Tampu_NoValueYet")

    def push(name, **what):
        bridge.tell({"push": {"attribute": f"lab/tampu/1/{name}", **what}})

    start = 1_700_000_000_000_000_000
    for name, data_type, data_format, values in CASES:
        push(name, kinds=["change"], time_ns=start, value=value_for(data_type, data_format, values[-1]))
    count = 0
    for name, data_type, data_format, values in CASES:
        client.tell({"subscribe": [name, "change"]})
        client.hear(f"{name} is subscribed", lambda line: line.get("subscribed") == name)
        first = client.hear(f"the first value of {name}", lambda line: line.get("event") == name)
        if first.get("value") != (values[-1] if data_type == "DevEncoded" else text_of(values[-1])):
            sys.exit(f"FAILED: the first value of {name}: {json.dumps(first)[:300]}")
        for index, value in enumerate(values):
            push(name, kinds=["change"], time_ns=start + index * 1000, quality="valid", value=value_for(data_type, data_format, value))
            event = client.hear(f"value {index} of {name}", lambda line: line.get("event") == name)
            wanted = value if data_type == "DevEncoded" else text_of(value)
            if event.get("value") != wanted or event["type"] != data_type or abs(event["time"] - (start + index * 1000) / 1e9) > 2e-6:
                sys.exit(f"FAILED: value {index} of {name}: {json.dumps(event)[:300]}, wanted {str(wanted)[:300]}")
            client.tell({"read": name})
            read = client.hear(f"a read of {name}", lambda line: line.get("read") == name or "failed" in line)
            if read.get("value") != wanted:
                sys.exit(f"FAILED: a read of {name}: {json.dumps(read)[:300]}, wanted {str(wanted)[:300]}")
            count += 1
    check(f"{count} values of {len(CASES)} attributes reach an unmodified client as events and by reading", True)

    for kind in ("archive", "user", "alarm", "data_ready", "configuration", "periodic"):
        name = "temperature" if kind in ("configuration", "periodic") else "double_scalar"
        push("temperature", kinds=["change"], value=value_for("DevDouble", "scalar", 20.5))
        client.tell({"subscribe": [name, kind]})
        client.hear(f"{name} is subscribed for {kind}", lambda line: line.get("subscribed") == name)
    client.hear("a periodic event", lambda line: line.get("kind") == "periodic" and line.get("value") == "20.5")
    check("an attribute that is polled has periodic events", True)
    conf = client.hear("the configuration", lambda line: line.get("kind") == "configuration")["conf"]
    check("the configuration reaches the client", conf[:2] == ["Temperature", "Cel"] and conf[4] == "of the cold plate" and float(conf[2]) == 90)
    check("with limits and thresholds", float(conf[5]) == 50 and [abs(float(end)) for end in conf[6].split(",")] == [1, 2])
    bridge.tell({"id": 5, "configure": {"name": "lab/tampu/1/temperature", "label": "Cold plate", "limits": {"max": 80}}})
    bridge.hear("configured", lambda line: line.get("id") == 5 and "configured" in line)
    conf = client.hear("the new configuration", lambda line: line.get("kind") == "configuration" and line["conf"][0] == "Cold plate")["conf"]
    check("a configuration that changes is an event", float(conf[2]) == 80)
    client.forget()
    push("double_scalar", kinds=["archive", "user", "alarm", "change"], quality="alarm", value=value_for("DevDouble", "scalar", 7.5))
    for kind in ("archive", "user", "alarm", "change"):
        event = client.hear(f"an event of kind {kind}", lambda line: line.get("event") == "double_scalar" and line["kind"] == kind)
        if event["value"] != "7.5" or event["quality"] != 2:
            sys.exit(f"FAILED: {event}")
    push("double_scalar", kinds=["data_ready"], counter=99)
    client.hear("data ready", lambda line: line.get("kind") == "data_ready" and line["counter"] == 99)
    check("archive, user, alarm and data_ready events, with quality", True)

    push("double_scalar", kinds=["change"], quality="invalid", time_ns=start)
    event = client.hear("an invalid event", lambda line: line.get("event") == "double_scalar" and line["kind"] == "change")
    check("an invalid event has no value", event["quality"] == 1 and event["value"] is None)
    stack = [{"reason": f"Cryo_{n}", "description": f"why {n}", "origin": "cryo", "severity": s} for n, s in enumerate(("error", "panic"))]
    push("double_scalar", kinds=["change"], failures=stack)
    event = client.hear("an error", lambda line: line.get("event") == "double_scalar" and "errors" in line)
    check("an error has its stack", event["errors"][:2] == [["Cryo_0", "why 0", "cryo", 1], ["Cryo_1", "why 1", "cryo", 2]])
    client.tell({"read": "double_scalar"})
    check("and is what a read gets", client.hear("a read", lambda line: "failed" in line)["failed"][0] == "Cryo_0")

    for name, data_type, data_format, value in (("long_scalar", "DevLong", "scalar", 42), ("double_spectrum", "DevDouble", "spectrum", [1.5, 2.5]),
                                                ("string_scalar", "DevString", "scalar", "été"), ("boolean_scalar", "DevBoolean", "scalar", True)):  # fmt: skip
        client.tell({"write": [name, value]})
        client.hear(f"{name} was written", lambda line: line.get("wrote") == name)
        written = bridge.hear(f"what was written to {name}", lambda line: line.get("written", {}).get("attribute") == f"lab/tampu/1/{name}")["written"]
        if decoded(written["value"]) != text_of(value):
            sys.exit(f"FAILED: {written}, wanted {value}")
    check("what clients write comes back", True)
    client.forget()
    push("long_scalar", kinds=["change"], value=value_for("DevLong", "scalar", 5), set_point=value_for("DevLong", "scalar", 77))
    event = client.hear("a set point", lambda line: line.get("event") == "long_scalar")
    check("a set point of ours is the client's", event["value"] == 5 and event["set_point"] == 77)

    bad = [
        ("string_scalar", {"data": ["\u4e2d"], "x": 1}),
        ("long_scalar", {"data": [2**31], "x": 1}),
        ("long_spectrum", {"data": [1, 2], "x": 3}),
        ("enum_scalar", {"data": [3], "x": 1}),
        ("long_spectrum", {"base64": "AAA=", "x": 1}),
        ("long_scalar", {"data_type": "DevDouble", "data": [1.5], "x": 1}),
        ("long_scalar", {"data": ["x"], "x": 1}),
        ("long_scalar", {}),
    ]
    for name, value in bad:
        push(name, kinds=["change"], value=value)
    push("long_scalar", kinds=["periodic"], value={"data": [1], "x": 1})
    bridge.tell({"push": {"attribute": "no/such/thing/x", "value": {}}})
    bridge.hear("what is not served is refused", lambda line: line.get("error", {}).get("failure", {}).get("reason") == "Tampu_NotServed")
    bridge.tell({"id": 8, "counts": {}})
    counts = bridge.hear("counts", lambda line: line.get("id") == 8)["counts"]
    refused = sum(count for key, count in counts["unconvertible"].items() if key.startswith("out "))
    if refused != len(bad) + 1:
        sys.exit(f"FAILED: {refused} of {len(bad) + 1} refused: {counts}")
    check("what cannot be converted is counted and told", bool(bridge.hear("a word of it", lambda line: "unconvertible" in line)))

    bridge.tell({"id": 11, "add": {"name": "lab/tampu/2/late", "data_type": "DevShort", "format": "scalar"}})
    bridge.hear("an attribute more", lambda line: line.get("id") == 11 and "added" in line)
    bridge.tell({"push": {"attribute": "lab/tampu/2/late", "value": value_for("DevShort", "scalar", -3)}})
    bridge.tell({"push": {"attribute": "lab/tampu/2/long_scalar", "value": value_for("DevString", "spectrum", ["a", "b"])}})
    second = Lines(os.path.join(HERE, "tango_peer.py"), "client", urls[1])
    for name, value in (("late", -3), ("long_scalar", ["a", "b"])):
        second.tell({"read": name})
        read = second.hear("a read of the second device", lambda line: line.get("read") == name or "failed" in line)
        if read.get("value") != value:
            sys.exit(f"FAILED: {read}")
    bridge.tell({"id": 12, "remove": "lab/tampu/2/late"})
    bridge.hear("it is gone", lambda line: line.get("id") == 12 and "removed" in line)
    second.tell({"read": "late"})
    check("who reads what is gone is told", second.hear("a read", lambda line: "failed" in line)["failed"][0] == "Tampu_Gone")
    bridge.tell({"id": 13, "add": {"name": "lab/tampu/2/late", "data_type": "DevShort", "format": "scalar"}})
    bridge.hear("it is back", lambda line: line.get("id") == 13 and "added" in line)
    bridge.tell({"push": {"attribute": "lab/tampu/2/late", "value": value_for("DevShort", "scalar", -4)}})
    bridge.tell({"id": 14, "counts": {}})
    bridge.hear("counts", lambda line: line.get("id") == 14)

    def late():
        second.tell({"read": "late"})
        return second.hear("a read", lambda line: "read" in line or "failed" in line).get("value")

    until("the new value is read", lambda: late() == -4)
    check(f"attributes come and go while {len(served)} others are served", True)


def requests(bridge):
    """Bad ones."""
    bridge.process.stdin.write('no json\n[1]\n{"a": 1, "b": 2}\n{"what": 1}\n{"id": 4, "subscribe": {"attribute": "a/b", "kinds": []}}\n')
    bridge.tell({"id": 5, "subscribe": {"attribute": "a/b/c/d", "kinds": ["chnage"]}})
    bridge.tell({"id": 6, "push": {"attribute": "a/b/c/d"}})
    for _ in range(4):
        bridge.hear("a bad line is told", lambda line: line.get("error", {}).get("failure", {}).get("reason") == "Tampu_BadRequest")
    for number, reason in ((4, "Tampu_BadName"), (5, "Tampu_UnknownKind"), (6, "Tampu_NotServed")):
        bridge.hear(reason, lambda line: line.get("id") == number and line["error"]["failure"]["reason"] == reason)
    bridge.tell({"id": 7, "list": "*/vacuum/*/pressure"})
    bridge.hear("a list without a database is an error", lambda line: line.get("id") == 7 and "error" in line)
    check("bad requests are told, one by one", True)


def unread():
    """Nobody reads what it says for a while."""
    lines = 20_000
    with subprocess.Popen([sys.executable, BRIDGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # A bridge that waited for its reader would read no further, and we would wait for ever.
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            process.stdin.write(b'{"what": 1}\n' * lines)
            process.stdin.flush()
            told = [json.loads(process.stdout.readline()) for _ in range(lines + 1)]
        except (OSError, ValueError) as why:
            sys.exit(f"FAILED: requests are read while nobody reads the answers: {why}")
        finally:
            watchdog.cancel()
        check("requests are read while nobody reads the answers, and none is forgotten", sum("error" in line for line in told) == lines)
        process.stdin.close()
        check("then it ends", process.wait(10) == 0)


OFFER = """
import os, sys
sys.path.insert(0, sys.argv[1])
said = os.dup(1)
import bridge_to_tango
server = bridge_to_tango.Server()
server.pushes.bound = 100
for wish in ({"attribute": "a"}, {"attribute": "a"}, {"attribute": "a"}, {"attribute": "b"}):
    server.offer(None, wish, 60)
server.pushes.take()
server.offer(None, {"attribute": "a"}, 60)
server.pushes.put("configuration", 1000)
queue = [item[2] if isinstance(item, tuple) else item for item, _ in server.pushes.items]
told = [(one["attribute"], one.get("passing"), [f["description"] for f in one.get("failures", [])]) if isinstance(one, dict) else one for one in queue]
os.write(said, repr((told, dict(server.missed))).encode())
os._exit(0)
"""


def no_room():
    """Pushes that find no room are owed to Tango's clients; what has no name finds room always."""
    done = subprocess.run([sys.executable, "-B", "-c", OFFER, os.path.dirname(BRIDGE)], stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True)
    missed = ("a", True, ["2 events found no room on the way"])
    wanted = repr(([missed, ("a", None, []), "configuration"], {"b": 1}))
    check(f"what found no room is told before the attribute's next event ({done.stdout})", done.stdout == wanted)


def main():
    os.environ.pop("TANGO_HOST", None)
    with tempfile.TemporaryDirectory() as place:
        # Whatever a bridge leaves behind lies there, also when it is killed.
        os.environ["TMPDIR"] = place
        run()
        left = os.listdir(place)
        check(f"nothing is left behind {left}", not left)


def run():
    """All of it."""
    no_room()
    try:
        bridge = Lines(BRIDGE)
        hello = bridge.hear("hello", lambda line: "hello" in line)["hello"]
        print(f"tango_bridge_python: PyTango {hello['pytango']}, Tango {hello['tango']}", flush=True)
        requests(bridge)
        unread()
        outwards(bridge)
        inwards(bridge)
        bridge.process.stdin.close()
        check("it ends when stdin does", bridge.process.wait(10) == 0)
    finally:
        for one in Lines.started:
            if one.process.poll() is None:
                one.kill()


if __name__ == "__main__":
    main()
