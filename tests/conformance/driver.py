"""Driver of the conformance kit in Python. README.md has its protocol, ../peers/conformance.py runs it."""

import json
import logging
import struct
import sys
import threading
import time

import driver_bulk
import tampu.event
import tampu.log
import tampu.logging

LEVELS = {
    "Trace": tampu.logging.TRACE, "Delouse": tampu.logging.DELOUSE, "Debug": logging.DEBUG, "Info": logging.INFO,
    "Notice": tampu.logging.NOTICE, "Warning": logging.WARNING, "Error": logging.ERROR, "Critical": logging.CRITICAL,
    "Alert": tampu.logging.ALERT, "Emergency": tampu.logging.EMERGENCY,
}  # fmt: skip
FLOATS = {"DevFloat": ">f", "DevDouble": ">d"}

lock = threading.Lock()


def say(**line):
    """Prints a line for the runner."""
    with lock:
        print(json.dumps(line, ensure_ascii=False), flush=True)


def element(data_type, text):
    """Reads an element."""
    if data_type in FLOATS:
        return struct.unpack(FLOATS[data_type], bytes.fromhex(text))[0]
    if data_type == "DevBoolean":
        return text == "true"
    return text if data_type in ("DevString", "DevState") else int(text)


def shown(data_type, labels, value):
    """Writes an element as text."""
    if data_type in FLOATS:
        return struct.pack(FLOATS[data_type], value).hex()
    if data_type == "DevBoolean":
        return "true" if value else "false"
    if data_type == "DevEnum":
        return str(labels.index(value) if isinstance(value, str) else value)
    return str(value)


def event_line(event):
    """An event or a notice as the runner reads it."""
    missed = [event.missed] if isinstance(event.missed, str) else list(map(str, event.missed or ()))
    line = {"line": "event", "name": event.name, "source": event.source, "reason": event.reason, "missed": missed}
    if event.quality is None:
        return line
    line |= {"number": str(event.number), "quality": event.quality, "errors": [text for error in event.errors for text in error]}
    value = event.value
    if value is None:
        return line
    config = json.loads(event.config)
    data_type, shape = config["data_type"], config["format"]
    if data_type == "DevEncoded":
        elements, x, y = [value[0], bytes(value[1]).hex()], 1, 0
    else:
        rows = [[value]] if shape == "scalar" else [value] if shape == "spectrum" else value
        elements = [shown(data_type, config.get("labels", []), one) for row in rows for one in row]
        x, y = (len(rows[0]) if len(rows) else 0), (len(rows) if shape == "image" else 0)
    return line | {"type": data_type, "format": shape, "x": str(x), "y": str(y), "elements": elements}


class Driver:
    """What the process publishes and follows."""

    def __init__(self, name):
        self.server = tampu.event.Server(f"{name}/server")
        self.client = tampu.event.Client(f"{name}/client")
        self.logger = logging.getLogger("conformance")
        self.logger.setLevel(1)
        self.logger.addHandler(tampu.logging.Handler(name))
        self.attributes = {}
        self.bulk = driver_bulk.Bulk(f"{name}/bulk", say)
        self.receive, self.sender, self.transfer, self.close = self.bulk.receive, self.bulk.open, self.bulk.transfer, self.bulk.close

    def declare(self, command):
        attribute = self.server.declare(command["name"], command["type"], command["format"], labels=command["labels"])
        self.attributes[command["name"]] = (attribute, command["type"], command["format"])

    def readable(self, command):
        attribute = self.server.declare(command["name"], float)
        self.attributes[command["name"]] = (attribute, "DevDouble", "scalar")
        left = [element("DevDouble", text) for text in command["elements"]]
        self.server.on_read(attribute, lambda: left.pop(0) if len(left) > 1 else left[0])
        threading.Thread(target=self.server.run_polls, daemon=True).start()

    def push(self, command):
        attribute, data_type, shape = self.attributes[command["name"]]
        texts, x, y = command["elements"], int(command["x"]), int(command["y"])
        if data_type == "DevEncoded":
            value = (texts[0], bytes.fromhex(texts[1]))
        else:
            elements = [element(data_type, text) for text in texts]
            rows = [elements[row * x : (row + 1) * x] for row in range(y)]
            value = elements[0] if shape == "scalar" else elements if shape == "spectrum" else rows
        attribute.push(value, quality=command["quality"], kinds=",".join(command["kinds"]) or None)

    def withdraw(self, command):
        self.attributes.pop(command["name"])[0].close()

    def follow(self, command):
        events = self.client.subscribe(*command["attributes"], kinds=",".join(command["kinds"]))
        threading.Thread(target=events.run, args=(lambda event: say(**event_line(event)),), daemon=True).start()

    def log(self, command):
        data = {
            "word": command["word"], "count": int(command["count"]), "ratio": float(command["ratio"]),
            "truth": command["truth"] == "true",
        }  # fmt: skip
        self.logger.log(LEVELS[command["level"]], "%s", command["message"], extra=data)

    def records(self, command):
        """Prints the records of a process, once the archive has as many as asked for."""
        for _ in range(200):
            found = tampu.log.query(fields={"process": [command["process"]]}).rows()
            if len(found) >= int(command["count"]):
                break
            time.sleep(0.05)
        for record in found:
            # A column has texts: lists are JSON in it.
            data = json.loads(record["data"] or "[]")
            say(line="record", process=record["process"], level=record["level"], message=record["message"],
                names=[one["name"] for one in data], values=[one["value"] for one in data])  # fmt: skip


def main():
    driver = Driver(sys.argv[1])
    say(line="ready")
    for line in sys.stdin:
        command = json.loads(line)
        verb, name = command["do"], command.get("name", "")
        if verb == "end":
            break
        try:
            getattr(driver, verb)(command)
            if verb not in ("push", "log"):
                say(line="done", do=verb, name=name)
        except Exception as why:
            say(line="error", do=verb, name=name, why=f"{type(why).__name__}: {why}")


if __name__ == "__main__":
    main()
