#!/usr/bin/env python3
"""Computes the ids of imported records from spec/wire/import-id.md alone and holds the vectors against them."""

import datetime
import hashlib
import json
import pathlib
import struct

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "testdata" / "vectors" / "import_id.txt"
LEVELS = {"Trace": 1, "Delouse": 2, "Debug": 3, "Info": 4, "Notice": 5, "Warning": 6, "Error": 8, "Critical": 9, "Alert": 10, "Emergency": 11}
TEXTS = "message logger file routine host process thread context source_object array antenna stack_id log_id uri run_id trace_id span_id".split()


def milliseconds(text):
    moment, nanoseconds = text.split(".")
    since = datetime.datetime.fromisoformat(moment) - datetime.datetime(1970, 1, 1)
    rounded = ((since.days * 86400 + since.seconds) * 10**9 + int(nanoseconds) + 500_000) // 10**6
    return min(max(rounded, -(2**63 // 10**6)), 2**63 // 10**6)


def import_id(record, occurrence):
    text = lambda value: struct.pack("<Q", len(value.encode())) + value.encode()
    number = lambda key: struct.pack("<q", record.get(key, -(2**63)))
    content = b"tampu import 1\0\0" + struct.pack("<q", milliseconds(record["time"]) * 10**6)
    content += bytes([LEVELS[record["level"]], record.get("priority", 0)]) + number("line") + number("stack_level")
    content += b"".join(text(record.get(key, "")) for key in TEXTS)
    archive = record.get("archive")
    content += b"".join(text(archive[key]) for key in ("object", "parameter", "type")) if archive else text("")
    audiences = record.get("audiences", [])
    content += text(str(len(audiences))) + b"".join(map(text, audiences))
    for key in ("data", "attributes"):
        values = record.get(key, [])
        content += text(str(len(values))) + b"".join(text(value["name"]) + text(value["value"]) for value in values)
    ring, number = struct.unpack("<IQ", hashlib.sha256(content + struct.pack("<Q", occurrence)).digest()[:12])
    return f"00000000-00000000-0000000000000000.{ring}.{number}"


lines = VECTORS.read_text().splitlines()
for line in lines:
    record, occurrence, expected = line.split("\t")
    found = import_id(json.loads(record), int(occurrence))
    assert found == expected, f"{record}: {found}, the vector says {expected}"
print(f"{len(lines)} ids of imported records are what the specification says")
