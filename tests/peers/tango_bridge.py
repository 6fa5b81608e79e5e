#!/usr/bin/env python3
"""`tampu event bridge-tango` between a hub and unmodified Tango: servers and clients in PyTango, a server in C++ with Debian's Tango, without a database and with one."""

import itertools
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

from hub import Place, check, until
from tango_bridge_python import Lines, free_port, source_on
from tango_peer import CASES, DEVICE, LABELS

HERE = os.path.dirname(os.path.abspath(__file__))
STATES = ["ON", "OFF", "CLOSE", "OPEN", "INSERT", "EXTRACT", "MOVING", "STANDBY", "FAULT", "INIT", "RUNNING", "ALARM", "DISABLE", "UNKNOWN"]
PATIENCE = 40


class Told:
    """The lines of a process, as JSON or as text; those not asked for yet are kept."""

    def __init__(self, stream, read=str):
        self.lines, self.past = queue.Queue(), []
        threading.Thread(target=lambda: [self.lines.put(read(line.rstrip("\n"))) for line in stream], daemon=True).start()

    def hear(self, what, condition, seconds=PATIENCE):
        """The first line for which this holds."""
        for at, line in enumerate(self.past):
            if condition(line):
                return self.past.pop(at)
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                few = "\n".join(str(line)[:300] for line in self.past[-12:])
                sys.exit(f"FAILED: {what}: not within {seconds} s. What came instead, the last of it:\n{few}")
            if condition(line):
                return line
            self.past.append(line)

    def forget(self):
        """What was said until now is of no interest."""
        self.past.clear()
        while not self.lines.empty():
            self.lines.get()


class Publisher:
    """A Tampu attribute whose values are told line by line."""

    def __init__(self, place, name, *arguments):
        self.process = place.start("event", "pub", name, "--user", "--process", "script", *arguments, stdin=subprocess.PIPE)
        until(f"{name} is listed", lambda: place.run("event", "list", name).stdout)

    def say(self, value):
        """Publishes it."""
        self.process.stdin.write(f"{value}\n")
        self.process.stdin.flush()

    def kill(self):
        """As `kill -9` does."""
        self.process.kill()
        self.process.wait()


def shown(data_type, value):
    """A value as `tampu event sub --json` writes it."""
    if isinstance(value, list) and data_type != "DevEncoded":
        return [shown(data_type, one) for one in value]
    if data_type == "DevEncoded":
        return {"format": value[0], "bytes": len(value[1])}
    if data_type == "DevState":
        return STATES[value]
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return {"nan": "NaN"}.get(str(value), str(value))
    return value


def flat(value):
    """Rows one after the other."""
    return [one for row in value for one in row]


def of(name, **members):
    """A condition on events: of this attribute, with these members."""
    full = name if "/" in name else f"{DEVICE}/{name}"
    return lambda event: event["name"].lower() == full and all(event.get(key) == wanted for key, wanted in members.items())


def reason_of(event):
    """The outermost error of an event, and the innermost."""
    errors = event.get("errors") or [{"reason": ""}]
    return [errors[-1]["reason"], errors[0]["reason"]]


def children(pid):
    """The processes a process has started."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if entry.isdigit() and fields[1] == str(pid) and fields[0] != "Z":
            found.append(int(entry))
    return found


def from_tango(source, follower):
    """All types and formats, and everything beside values."""
    for name, data_type, data_format, values in CASES:
        first = shown(data_type, flat(values[0]) if data_format == "image" else values[0])
        event = follower.hear(f"the first value of {name}", of(name, value=first))
        if event["time"] != "2023-11-14T22:13:20.250000000Z":
            sys.exit(f"FAILED: {event}: its time")
    check(f"the current values of {len(CASES)} attributes come first, with Tango's time", True)
    count = 0
    for name, data_type, data_format, values in CASES:
        for index, value in list(enumerate(values))[1:]:
            source.tell({"push": [name, index, ["change"]]})
            wanted = shown(data_type, flat(value) if data_format == "image" else value)
            condition = lambda event, wanted=wanted: event.get("kinds") == ["change"] and event["value"] == wanted
            event = follower.hear(f"{name} = {str(wanted)[:80]}", lambda event, name=name, holds=condition: of(name)(event) and holds(event), 10)
            if event["time"] != f"2023-11-14T22:13:{21 + index:02}.500000000Z":
                sys.exit(f"FAILED: {event}: its time")
            count += 1
    check(f"{count} change events of {len(CASES)} attributes, all types and formats, with Tango's time", True)

    follower.forget()
    source.tell({"push": ["double_scalar", 1, ["archive", "user"]]})
    for kind in ("archive", "user"):
        follower.hear(f"an event of kind {kind}", of("double_scalar", kinds=[kind], value=-1e300))
    check("each event comes as the kind it is", True)
    for number, quality in ((2, "alarm"), (4, "warning"), (3, "changing"), (1, "invalid")):
        source.tell({"quality": number})
        source.tell({"push": ["long_scalar", 2, ["change"]]})
        event = follower.hear(quality, of("long_scalar", quality=quality))
        if (event["value"] is None) != (quality == "invalid"):
            sys.exit(f"FAILED: {event}")
    source.tell({"quality": 0})
    check("qualities come as Tango has them, and an invalid reading has no value", True)
    source.tell({"fail": True})
    source.tell({"push": ["long_scalar", 2, ["change"]]})
    event = follower.hear("an error of the device", lambda event: of("long_scalar")(event) and event.get("errors"))
    check("an error of the device comes with its text", event["errors"][0]["description"] == "the cable is off" and reason_of(event)[0] == "Lab_Broken")
    source.tell({"fail": False})
    source.tell({"push": ["long_scalar", 3, ["change"]]})
    follower.hear("and then a value", of("long_scalar", value=1))
    source.tell({"data_ready": ["long_scalar", 17]})
    follower.hear("data ready", of("long_scalar", kinds=["data_ready"], value=17))
    check("data_ready events come with their counter", True)


def configuration(place, source, follower):
    """What attributes are, and that they come and go."""
    listed = {line["name"]: line for line in map(json.loads, place.run("event", "list", f"{DEVICE}/*", "--json").stdout.splitlines())}
    config = listed[f"{DEVICE}/configured"]
    wanted = ("mbar", "The pressure", "of the vessel", -5, 90, "-2,3", 5000)
    limits, criteria = config["limits"], config["criteria"]
    have = (config["unit"], config["label"], config["description"], limits["min"], limits["alarm_high"])
    check("unit, label, limits and thresholds are Tango's", (*have, criteria["change"]["abs"], criteria["archive_period_ms"]) == wanted)
    check("labels too", listed[f"{DEVICE}/enum_scalar"]["labels"] == LABELS)
    import tango  # pylint: disable=import-outside-toplevel

    proxy = tango.DeviceProxy(source.url)
    changed = proxy.get_attribute_config("configured")
    changed.unit = "Pa"
    proxy.set_attribute_config(changed)
    follower.hear("a configuration that changes", of("configured", reason="config_changed"))
    line = json.loads(place.run("event", "list", f"{DEVICE}/configured", "--json").stdout)
    check("a changed configuration is told, and is the one that holds", line["unit"] == "Pa" and line["epoch"] > 1)
    source.tell({"add": "late"})
    follower.hear("an interface event", lambda event: event.get("kinds") == ["interface"] and "late" in event["value"])
    until("an attribute that came to a device is here", lambda: place.run("event", "list", f"{DEVICE}/late").stdout, PATIENCE)
    check("an attribute that comes to a device is told, and is here", True)


def to_tango(publisher, client, errors):
    """Tampu's attribute for a client of Tango."""

    def event(what, kind, **members):
        wanted = lambda line: line.get("kind") == kind and all(line.get(key) == value for key, value in members.items())
        return client.hear(what, wanted)

    client.tell({"read": "level"})
    read = client.hear("a read", lambda line: "read" in line or "failed" in line)
    check("a Tango client reads Tampu's value, with its type", read.get("value") == "1.5" and read["type"] == "DevDouble")
    for kind in ("change", "archive", "user", "alarm", "data_ready", "configuration", "periodic"):
        client.tell({"subscribe": ["level", kind]})
        client.hear(f"{kind} is subscribed", lambda line: line.get("subscribed") == "level")
    for kind in ("change", "archive", "user", "alarm", "periodic"):
        event(f"the first {kind} event", kind, value="1.5")
    conf = event("the configuration", "configuration")["conf"]
    check("it subscribes to change, archive, user, alarm and periodic events, and has the unit", conf[1] == "mbar")
    publisher.say(2.5)
    for kind in ("change", "user", "periodic"):
        event(f"a {kind} event", kind, value="2.5")
    check("what is published in Tampu is an event there, of its kinds", True)
    client.tell({"write": ["level", 3.5]})
    check("a write is refused", client.hear("a refusal", lambda line: "failed" in line or "wrote" in line).get("failed", [""])[0] == "API_AttrNotWritable")
    publisher.kill()
    told = client.hear("an error", lambda line: line.get("kind") == "change" and "errors" in line)
    check("the death of the source is an error to it, with the name", told["errors"][0][0] == "Tampu_SourceDied" and "script" in told["errors"][0][1])

    def refusal():
        # What is polled may be a moment old.
        client.tell({"read": "level"})
        return client.hear("a read", lambda line: "failed" in line or "read" in line).get("failed")

    check("and to who reads", until("a read that fails", refusal)[0] == "Tampu_SourceDied")
    errors.hear("the devices that are served", lambda line: "to Tango: 1 attributes in 1 devices" in line)


def push_marks(server, heard):
    """Has the C++ server push events until one was heard."""
    for number in itertools.count():
        server.stdin.write(f"mark {number % 4}\n")
        server.stdin.flush()
        if heard.wait(0.25):
            return


def in_cxx(place, compiled):
    """A server that is not ours in any way: the bench's, in C++, with Debian's Tango."""
    if compiled.wait(PATIENCE) != 0:
        sys.exit("FAILED: the C++ server does not compile")
    port = free_port()
    with subprocess.Popen([compiled.program, "server", str(port), "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        bridge = None
        try:
            ready = json.loads(next(line for line in server.stdout if line.startswith("{")))
            arguments = ("--instance", "cxx", "--subscribe", ready["ready"], "--python", sys.executable, "--no-database")
            bridge = place.start("event", "bridge-tango", *arguments, stderr=subprocess.PIPE)
            said = Told(bridge.stderr)
            follower = Told(place.start("event", "sub", "bench/event/1/value", "--json", stdout=subprocess.PIPE).stdout, json.loads)
            follower.hear("the first value of a C++ server", of("bench/event/1/value"))
            if ready["tango"].startswith("9"):
                said.hear("word of an old server", lambda line: "PyTango 9.5" in line)
            # Of a server of Tango 9, a client of Tango 10 loses every other event; the bridge says so. The first events may come
            # before the bridge has subscribed.
            heard = threading.Event()
            marks = threading.Thread(target=push_marks, args=(server, heard))
            marks.start()
            try:
                event = follower.hear("an event of a C++ server", lambda event: event.get("value") and event["value"][0] in range(-4, 0))
            finally:
                heard.set()
                marks.join()
            check(f"a C++ server of Tango {ready['tango']} is followed", len(event["value"]) == 4)
        finally:
            server.kill()
            if bridge:
                bridge.kill()


def with_database(place, directory):
    """The same by name and pattern: PyTango brings a Tango database along, and unlike the usual one it needs no other server."""
    port = free_port()
    host = f"127.0.0.1:{port}"
    command = [sys.executable, "-m", "tango.databaseds.database", "--host", "127.0.0.1", "--port", str(port), "2"]

    import tango  # pylint: disable=import-outside-toplevel

    def answers():
        # Its port is open before it is a database.
        try:
            return tango.Database("127.0.0.1", port).get_info()
        except tango.DevFailed:
            return None

    with subprocess.Popen(command, cwd=directory, env={**os.environ, "TANGO_HOST": host}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as database:
        bridges = []
        try:
            until("the database is there", answers)
            os.environ["TANGO_HOST"] = host
            source_on(free_port())
            arguments = ("event", "bridge-tango", "--tango-host", host, "--python", sys.executable)
            bridges.append(place.start(*arguments, "--instance", "one", "--subscribe", "LAB/s*/*/long_s*", "--serve", "lab/tampu/*", stderr=subprocess.PIPE))
            said = Told(bridges[0].stderr)
            follower = Told(place.start("event", "sub", f"{DEVICE}/*", "--json", stdout=subprocess.PIPE).stdout, json.loads)
            follower.hear("a value found by pattern", of("long_scalar", value=-(2**31)))
            follower.hear("and another", lambda event: of("long_spectrum")(event) and event["value"])
            check("attributes are found in a Tango database by pattern", "double" not in place.run("event", "list", f"{DEVICE}/*").stdout)
            said.hear("the device is served", lambda line: "in 1 devices: lab/tampu/1" in line)
            client = Lines(os.path.join(HERE, "tango_peer.py"), "client", "lab/tampu/1")
            client.tell({"read": "level"})
            read = client.hear("a read", lambda line: "read" in line or "failed" in line)
            check("a client of Tango finds a device of Tampu by its name", read.get("value") == "4.5")
            bridges.append(place.start(*arguments, "--instance", "two", "--subscribe", "lab/tampu/*/*", "--serve", "lab/tampu/*", stderr=subprocess.PIPE))
            other = Told(bridges[1].stderr)
            other.hear("nothing to follow", lambda line: "falls under lab/tampu/*/*" in line)
            check("what a bridge serves is not followed by another one", True)
            other.hear("a refusal", lambda line: "lab/tampu/1 is a device of TampuBridge/one" in line)
            check("a device that another server has in the database is left to it", bridges[0].poll() is None)
        finally:
            del os.environ["TANGO_HOST"]
            for bridge in bridges:
                bridge.kill()
            database.kill()
    said = place.run("event", "bridge-tango", "--tango-host", host, "--serve", "*", "--python", sys.executable, check=False)
    check("without the database it ends with 3, and says the way out", said.returncode == 3 and host in said.stderr and "--no-database" in said.stderr)


def compile_server(directory):
    """Starts the compiler."""
    program = os.path.join(directory, "tango_server")
    config = lambda what: subprocess.run(["pkg-config", what, "tango"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    source = os.path.join(HERE, "..", "..", "benches", "peers", "tango_event.cpp")
    # pylint: disable-next=consider-using-with
    compiler = subprocess.Popen(["c++", "-std=c++17", "-w", *config("--cflags"), "-o", program, source, *config("--libs"), "-pthread"])
    compiler.program = program
    return compiler


def main():
    begun = time.monotonic()
    os.environ.pop("TANGO_HOST", None)
    directory = tempfile.TemporaryDirectory(prefix="tampu-cxx-")  # pylint: disable=consider-using-with
    compiled, place = compile_server(directory.name), Place("tango")
    try:
        place.up("--roles", "node")
        port = free_port()
        source = source_on(port)
        source.url = f"tango://127.0.0.1:{port}/{DEVICE}#dbase=no"
        publisher = Publisher(place, "lab/tampu/1/level", "--unit", "mbar")
        publisher.say(1.5)
        served = free_port()
        bridge = place.start(
            "event", "bridge-tango", "--no-database", "--python", sys.executable, "--subscribe", f"tango://127.0.0.1:{port}/{DEVICE}/*#dbase=no",
            "--serve", "*", "--listen", f"127.0.0.1:{served}", "--poll", "100ms", "--interval", "500ms", "--json",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        errors, counts = Told(bridge.stderr), Told(bridge.stdout, json.loads)
        follower = Told(place.start("event", "sub", f"{DEVICE}/*", "-k", "all", "--json", stdout=subprocess.PIPE).stdout, json.loads)
        from_tango(source, follower)
        configuration(place, source, follower)
        served_url = f"tango://127.0.0.1:{served}/lab/tampu/1#dbase=no"
        client = Lines(os.path.join(HERE, "tango_peer.py"), "client", served_url)
        client.hear("the client is there", lambda line: "ready" in line)
        # What came from Tango is not among it.
        to_tango(publisher, client, errors)
        served = counts.hear("counters", lambda line: line["to_tango_attributes"] > 0)
        check("what came from Tango is not served back", served["to_tango_attributes"] == 1)

        follower.forget()
        pythons = children(bridge.pid)
        check("each direction has a process of its own", len(pythons) == 2)
        for pid in pythons:
            os.kill(pid, 9)
        follower.hear("the end of the Python side", lambda event: of("long_scalar")(event) and "Tango_BridgeEnded" in reason_of(event))
        follower.hear("and a value again", of("long_scalar", value=1))
        counts.hear("counters", lambda line: line["restarts"] == 2)
        errors.hear("the device server again", lambda line: "to Tango: 1 attributes in 1 devices" in line)
        check("after kill -9 of both Python processes they are back, with everything they were asked", True)
        publisher = Publisher(place, "lab/tampu/1/level", "--unit", "mbar")
        publisher.say(4.5)

        # Tango itself takes up to 20 s to notice, on either side: both at once.
        source.kill()
        follower.hear("word that the source is not heard", lambda event: of("long_scalar")(event) and reason_of(event)[0] == "Tango_SourceDied")
        errors.hear("word of the device", lambda line: f"{DEVICE} is silent" in line)
        source = source_on(port)
        follower.hear("a value after the restart of the server", of("long_scalar", value=-(2**31)))
        errors.hear("word of the device", lambda line: f"{DEVICE} sends again" in line)
        source.tell({"push": ["long_scalar", 1, ["change"]]})
        follower.hear("and updates", of("long_scalar", value=2**31 - 1))
        check("a server of Tango that dies is an error, and is followed again when it is back", True)
        client.hear("a value after the restart of the device server", lambda line: line.get("kind") == "change" and line.get("value") == "4.5")
        check("a client of Tango follows the device server again by itself", True)
        in_cxx(place, compiled)

        pythons = children(bridge.pid)
        bridge.terminate()
        check("it ends when it is told to", bridge.wait(15) == 0)
        check("and its Python processes with it", len(pythons) == 2 and not any(os.path.exists(f"/proc/{pid}") for pid in pythons))
        with_database(place, directory.name)
        print(f"tango_bridge: {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        compiled.kill()
        for one in Lines.started:
            if one.process.poll() is None:
                one.kill()
        place.close()
        directory.cleanup()


if __name__ == "__main__":
    main()
