#!/usr/bin/env python3
"""pandas and DuckDB read the archive's files, and an exported one, exactly as the collector answers: every record, every column.

A disk that fills while the archive is compacted, and a file that is damaged, cost nothing but what they say.
"""

import glob
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import duckdb
import pandas
import pyarrow.parquet

from hub import Place, check, isolated, once_each, sh, until

TEXTS = (
    "message logger file routine host process thread context source_object array antenna stack_id log_id uri run_id trace_id span_id"
).split()
NUMBERS = ["priority", "line", "stack_level"]


def awkward(number):
    """A record with something of everything."""
    record = {
        "time": f"2026-03-0{1 + number % 3}T23:59:59.{number:09}",
        "level": ["Trace", "Debug", "Info", "Warning", "Error", "Emergency"][number % 6],
        "message": ["plain", "ünïcode °C", 'with "quotes" and \\', "two\nlines", "", "comma, semicolon;"][number % 6] + str(number),
        "process": f"CONTROL/DV{number % 25:02}",
        "data": [{"name": "scan", "value": str(number)}, {"name": 'odd "name"', "value": "tab\t"}][: number % 3],
    }
    if number % 4 == 0:
        record |= {"line": number, "priority": number % 32, "file": "mount.cpp", "routine": "moveTo", "audiences": ["Operator"]}
    if number % 5 == 0:
        record |= {"stack_id": f"chain-{number}", "stack_level": number % 7, "antenna": "DV01", "log_id": f"id{number}"}
    if number % 7 == 0:
        record |= {"audiences": ["SciLog", "Operator, chief"], "trace_id": f"{number:032x}", "span_id": f"{number:016x}"}
    return record


def expected_row(record):
    """What a row must say of a record that the collector has answered with."""
    row = {name: record.get(name, "") for name in TEXTS}
    row |= {name: record.get(name) for name in NUMBERS}
    row["level"] = record["level"]
    row["time"] = pandas.to_datetime(record["time"], utc=True).value
    row["received"] = pandas.to_datetime(record["received"], utc=True).value
    row["audiences"] = ",".join(one.replace("\\", "\\\\").replace(",", "\\,") for one in record.get("audiences", []))
    pairs = [(datum["name"], datum["value"]) for datum in record.get("data", [])]
    row["data"] = dict(pairs)
    identity = record["id"]
    row["id"] = (identity["incarnation"], identity["ring"], identity["number"])
    return row


def row_of(found, nanoseconds):
    """The same of a row, as a reader gave it."""
    row = {name: found[name] for name in TEXTS + ["level", "audiences"]}
    row |= {name: None if pandas.isna(found[name]) else int(found[name]) for name in NUMBERS}
    row |= {name: nanoseconds(found[name]) for name in ("time", "received")}
    row["data"] = json.loads(found["data"]) if found["data"] else {}
    row["id"] = (found["incarnation"], int(found["ring"]), int(found["number"]))
    return row


def by_id(rows):
    return sorted(rows, key=lambda row: (row["id"], row["time"]))


def with_pandas(files):
    table = pandas.concat([pandas.read_parquet(file) for file in files])
    return [row_of(found, lambda time: time.value) for found in table.to_dict("records")]


def with_duckdb(files):
    connection = duckdb.connect()
    names = ", ".join(f"'{file}'" for file in files)
    query = f"select * replace (epoch_ns(time) as time, epoch_ns(received) as received) from read_parquet([{names}])"
    cursor = connection.execute(query)
    columns = [column[0] for column in cursor.description]
    return [row_of(dict(zip(columns, row)), int) for row in cursor.fetchall()]


def same(what, got, expected):
    got, expected = by_id(got), by_id(expected)
    for one, other in zip(got, expected):
        if one != other:
            differing = {name: (one[name], other[name]) for name in one if one[name] != other[name]}
            sys.exit(f"FAILED: {what}: {one['id']}: {differing}")
    check(f"{what}: {len(got)} records of {len(expected)}, every column", len(got) == len(expected) > 0)


def answer(place):
    found = place.run("log", "query", "--oldest-first", "--limit", "0", "--json", "--until", "2026-04-01T00:00:00Z")
    return [expected_row(json.loads(line)) for line in found.stdout.splitlines()]


def files_of(place):
    return sorted(glob.glob(os.path.join(place.data, "*/log/parquet/*/*.parquet")))


def readers():
    print("archive_parquet: other programs read it", flush=True)
    place = Place("parquet")
    try:
        place.up()
        file = os.path.join(place.directory, "in.jsonl")
        with open(file, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(awkward(number)) + "\n" for number in range(30_000))
        place.run("log", "import", file)
        expected = answer(place)
        check("everything is there before it is compacted", len(expected) == 30_000)
        compacted = json.loads(place.run("log", "archive", "compact", "--json").stdout)
        check(f"and in {compacted['files']} files behind it", compacted["records"] >= 30_000)
        check("the collector answers as before", by_id(answer(place)) == by_id(expected))
        # Their own times are long before their reception.
        files = [file for file in files_of(place) if "/far/" in file]
        check("records of other days share a directory", len(files) > 0)
        same("pandas", with_pandas(files), expected)
        same("DuckDB", with_duckdb(files), expected)
        times = duckdb.connect().execute(f"select epoch_ns(time) from '{files[0]}'").fetchall()
        check("a file is ordered by time", times == sorted(times))
        query = f"select count(*) from read_parquet({files!r}) where level = 'Error' and process like '%DV0%'"
        found = place.run("log", "stat", "--json", "--level", "Error", "--process", "*DV0*", "--until", "2026-04-01T00:00:00Z").stdout.splitlines()
        counted = sum(json.loads(line).get("count", 0) for line in found if json.loads(line).get("level") == "Error")
        check("both count the same", duckdb.connect().execute(query).fetchone()[0] == counted > 0)

        footer = pyarrow.parquet.ParquetFile(files[0]).metadata.row_group(0)
        columns = [footer.column(place) for place in range(footer.num_columns)]
        check("every column has an offset index", all(column.has_offset_index for column in columns))
        indexed = {column.path_in_schema for column in columns if column.has_column_index}
        check("and a column index, where its values have an order", {"time", "level", "process", "ring", "line"} <= indexed)
        rewritten(place, expected)

        exported = os.path.join(place.directory, "out.parquet")
        place.run("log", "export", "--until", "2026-04-01T00:00:00Z", "-o", exported)
        same("pandas, an exported file", with_pandas([exported]), expected)
        same("DuckDB, an exported file", with_duckdb([exported]), expected)

        checked = json.loads(place.run("log", "archive", "check", "--json").stdout)
        check("nothing is found wrong", checked["complete"] and not checked["faults"] and checked["records"] >= 30_000)
        copy = os.path.join(place.directory, "copy")
        place.run("log", "archive", "backup", "-o", copy)
        elsewhere = json.loads(place.run("log", "archive", "check", "--data", copy, "--json").stdout)
        check("a backup made meanwhile is as good", not elsewhere["faults"] and elsewhere["records"] >= 30_000)

        # The backup is damaged; the archive is not, as its files are others or linked before they were written to.
        victim = sorted(glob.glob(os.path.join(copy, "*/log/parquet/far/*.parquet")))[0]
        with open(victim, "rb") as whole:
            content = bytearray(whole.read())
        os.unlink(victim)
        middle = len(content) // 2
        content[middle : middle + 64] = bytes(64)
        with open(victim, "wb") as out:
            out.write(content)
        damaged = place.run("log", "archive", "check", "--data", copy, check=False)
        check("a damaged file is named", damaged.returncode == 1 and victim in damaged.stdout)
    finally:
        place.close()


def rewritten(place, expected):
    """Files that pyarrow and DuckDB write anew, with their defaults, are the archive's as before."""
    for program in ("pyarrow", "DuckDB"):
        copy = os.path.join(place.directory, f"rewritten-{program}")
        place.run("log", "archive", "backup", "-o", copy)
        for file in sorted(glob.glob(os.path.join(copy, "*/log/parquet/*/*.parquet"))):
            new = file + ".tmp"
            if program == "pyarrow":
                pyarrow.parquet.write_table(pyarrow.parquet.read_table(file, partitioning=None), new)
            else:
                duckdb.connect().execute(f"copy (select * from read_parquet('{file}')) to '{new}' (format parquet)")
            os.replace(new, file)
        checked = json.loads(place.run("log", "archive", "check", "--data", copy, "--json").stdout)
        check(f"{program}: nothing is found wrong in what it has rewritten", not checked["faults"] and checked["records"] >= 30_000)
        second = Place("parquet", data=copy)
        try:
            second.up()
            check(f"{program}: a collector answers from them as before", by_id(answer(second)) == by_id(expected))
        finally:
            second.close()


def full():
    print("archive_parquet: the disk fills up while it is compacted", flush=True)
    disk = "/tmp/tampu-small-parquet"
    os.makedirs(disk, exist_ok=True)
    sh(f"mount -t tmpfs -o size=16m tampu {disk}")
    place = Place("small", data=disk)
    try:
        place.up()
        expected = [f"record {number}" for number in range(20_000)]
        place.run("log", "send", "--process", "instrument", input="\n".join(expected))
        sh(f"head -c 32m /dev/zero > {disk}/filler 2>/dev/null || true")
        refused = place.run("log", "archive", "compact", check=False)
        check("a compaction without room says so", refused.returncode == 1 and "disk is full" in refused.stderr)
        check("what is there is still found", once_each(place.messages("instrument"), expected))
        os.unlink(f"{disk}/filler")

        def compacted():
            done = place.run("log", "archive", "compact", "--json", check=False)
            return done.returncode == 0 and json.loads(done.stdout)

        done = until("with room again it goes on", compacted, 60)
        check("everything is in Parquet", done["records"] >= len(expected))
        check("each record is there once", once_each(place.messages("instrument"), expected))
        checked = json.loads(place.run("log", "archive", "check", "--json").stdout)
        check("nothing is found wrong", not checked["faults"])
    finally:
        place.close()
        sh(f"umount -l {disk}")
        os.rmdir(disk)


if __name__ == "__main__":
    isolated()
    readers()
    full()
