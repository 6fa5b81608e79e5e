#!/usr/bin/env python3
"""pandas and DuckDB read the history of events exactly as the hub answers: every row, values as numbers, gaps among them.

So they do what every release wrote, which lies under testdata.
"""

import glob
import json
import math
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import duckdb
import pandas

from hub import Place, check, until

TEXTS = "attribute reason kind quality text unit type shape source clock note".split()


def with_pandas(files):
    table = pandas.concat([pandas.read_parquet(file) for file in files])
    return [plain(row, lambda time: time.value) for row in table.to_dict("records")]


def with_duckdb(files):
    names = ", ".join(f"'{file}'" for file in files)
    query = f"select * replace (epoch_ns(time) as time, epoch_ns(received) as received) from read_parquet([{names}])"
    cursor = duckdb.connect().execute(query)
    columns = [column[0] for column in cursor.description]
    return [plain(dict(zip(columns, row)), int) for row in cursor.fetchall()]


def plain(row, nanoseconds):
    """A row with nothing of the reader's own types; NaN and nothing told apart by the type of the value."""
    has_value = row["text"] == "" and row["type"] not in ("", "DevString", "DevEncoded") and row["shape"] == "scalar"
    value = None if row["value"] is None or math.isnan(row["value"]) and not has_value else float(row["value"])
    return {name: row[name] for name in TEXTS} | {
        "time": nanoseconds(row["time"]),
        "received": nanoseconds(row["received"]),
        "value": "NaN" if value is not None and math.isnan(value) else value,
        "id": (row["incarnation"], int(row["attribute_number"]), int(row["from_sequence"]), int(row["sequence"])),
        "kind_bits": int(row["kind_bits"]),
        "epoch": None if row["epoch"] is None or math.isnan(row["epoch"]) else int(row["epoch"]),
        "event": bytes(row["event"]),
    }


def by_id(rows):
    return sorted(rows, key=lambda row: (row["id"], row["time"]))


def from_answer(answered):
    """What of a row the hub's answer tells."""
    value = answered.get("value")
    return {
        "attribute": answered["name"],
        "reason": answered["reason"].replace("_", " "),
        "unit": answered.get("unit", ""),
        "source": answered["source"],
        "value": float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None,
        "time": pandas.to_datetime(answered["time"], utc=True).value,
        "from": answered["from"],
        "number": answered["number"],
    }


def same(what, rows, answers):
    got = [
        {name: row[name] for name in ("attribute", "reason", "unit", "source", "value", "time")} | {"from": row["id"][2], "number": row["id"][3]}
        for row in rows
    ]
    key = lambda one: (one["attribute"], one["time"], one["number"])
    check(f"{what}: {len(got)} rows as the hub answers", sorted(got, key=key) == sorted(answers, key=key) and len(got) > 0)


def publish(place, name, values, *more):
    process = place.start("event", "pub", name, "--user", *more, stdin=subprocess.PIPE)
    until(f"{name} is listed", lambda: place.run("event", "list", name, check=False).stdout)
    for value in values:
        process.stdin.write(f"{value}\n")
    process.stdin.flush()
    return process


def live():
    print("event_archive_parquet: what a hub keeps", flush=True)
    place = Place("events")
    try:
        config = os.path.join(place.directory, "hub.toml")
        with open(config, "w", encoding="utf-8") as out:
            out.write('[events]\nkeep = ["lab/*"]\nlongest_kb = 1\n')
        place.up("--config", config)
        publish(place, "lab/gauge/1/pressure", [number / 7 for number in range(2000)], "--unit", "mbar", "--process", "gauges")
        publish(place, "lab/gauge/1/counts", range(-500, 500), "--type", "DevLong64", "--process", "counter")
        publish(place, "lab/gauge/1/long", [",".join("1" * 200)] * 3, "--spectrum", "--process", "long")
        dead = publish(place, "lab/gauge/1/dead", [1], "--process", "dead")

        def answers():
            said = place.run("event", "history", "*", "-n", "0", "--json").stdout
            return [from_answer(json.loads(line)) for line in said.splitlines()]

        until("all is kept", lambda: len(answers()) == 2000 + 1000 + 3 + 1)
        dead.kill()
        expected = until("the death is kept", lambda: (found := answers()) and len(found) == 3005 and found)
        compacted = json.loads(place.run("event", "archive", "compact", "--json").stdout)
        check(f"{compacted['bytes'] / compacted['records']:.0f} bytes an event in {compacted['files']} files", compacted["records"] == 3005)
        check("the hub answers as before", answers() == expected)
        files = sorted(glob.glob(os.path.join(place.data, "*/events/parquet/*/*.parquet")))
        same("pandas", with_pandas(files), expected)
        same("DuckDB", with_duckdb(files), expected)
        query = f"select max(value), count(*) from read_parquet({files!r}) where attribute = 'lab/gauge/1/pressure' and kind like '%user%'"
        check("SQL finds the greatest pressure", duckdb.connect().execute(query).fetchone() == (1999 / 7, 2000))
        gaps = f"select count(*) from read_parquet({files!r}) where reason = 'gap' and note like '%too long%'"
        check("gaps are rows", duckdb.connect().execute(gaps).fetchone() == (3,))
        checked = json.loads(place.run("event", "archive", "check", "--json").stdout)
        check("nothing is found wrong", checked["complete"] and not checked["faults"])
    finally:
        place.close()


def kept():
    print("event_archive_parquet: what every release wrote", flush=True)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../testdata/event-archive")
    for version in sorted(os.listdir(root)):
        files = sorted(glob.glob(os.path.join(root, version, "parquet/*/*.parquet")))
        one, other = by_id(with_pandas(files)), by_id(with_duckdb(files))
        check(f"{version}: pandas and DuckDB read {len(one)} rows alike", one == other and len(one) > 0)
        lines = [json.loads(line) for line in open(os.path.join(root, version, "events.jsonl"), encoding="utf-8")]
        expected = {(line["number"], line["name"], line["note"], line["event"]) for line in lines}
        got = {(row["id"][3], row["attribute"], row["note"], row["event"].hex()) for row in one}
        check(f"{version}: and what was written", got <= expected)


if __name__ == "__main__":
    kept()
    live()
