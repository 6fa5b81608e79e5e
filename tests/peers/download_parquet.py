#!/usr/bin/env python3
"""pandas and DuckDB read the Parquet files that the hub makes for a whole search of logs or events, over HTTP, as the hub answers the search."""

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import duckdb
import pandas

from hub import Place, check, until

RECORDS = 5000


class Api:
    """The hub's HTTP server, as its owner asks it."""

    def __init__(self, place):
        found = subprocess.run(["find", place.directory, "-name", "book.json"], capture_output=True, text=True, check=True).stdout.split()
        with open(found[0], encoding="utf-8") as file:
            told = json.load(file)
        self.url, self.token = told["url"], told["token"]

    def ask(self, path, **query):
        request = urllib.request.Request(f"{self.url}/api/v1{path}?{urllib.parse.urlencode(query)}", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.headers, answer.read()


def download(api, place, file_name, path, **query):
    headers, content = api.ask(path, format="parquet", **query)
    check(f"{file_name}: {len(content)} bytes of Parquet as an attachment", "parquet" in headers["Content-Type"] and ".parquet" in headers["Content-Disposition"])
    file = os.path.join(place.directory, f"{file_name}.parquet")
    with open(file, "wb") as out:
        out.write(content)
    return file


def lines(api, path, **query):
    return [json.loads(line) for line in api.ask(path, **query)[1].splitlines()]


def logs(api, place):
    text = "".join(
        json.dumps({"time": f"2026-01-0{2 + number % 3}T03:04:05.{number:09}Z", "level": ["Info", "Warning"][number % 2], "message": f"m{number} é",
                    "process": f"P{number % 7}", "data": [{"name": "number", "value": str(number)}]}) + "\n"
        for number in range(RECORDS))
    file = os.path.join(place.directory, "records.jsonl")
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    place.run("log", "import", file)
    query = {"process": "P1,P2", "level": "Warning"}
    expected = until("the records are found", lambda: (found := lines(api, "/log/export", **query)) and len(found) > 700 and found)
    key = lambda row: (row["time"], row["message"])
    for order in ("oldest", "newest"):
        file = download(api, place, f"log-{order}", "/log/export", order=order, **query)
        table = pandas.read_parquet(file)
        got = sorted((row["time"].value, row["message"], row["level"], row["process"]) for row in table.to_dict("records"))
        wanted = sorted((pandas.to_datetime(row["time"], utc=True).value, row["message"], row["level"], row["process"]) for row in expected)
        check(f"pandas reads {len(got)} records, the {order} first", got == wanted)
        counted = duckdb.connect().execute(f"select count(*), count(distinct message) from read_parquet('{file}') where process = 'P1'").fetchone()
        check(f"DuckDB counts {counted[0]} of one process", counted[0] == counted[1] == sum(row["process"] == "P1" for row in expected))
    few = pandas.read_parquet(download(api, place, "log-few", "/log/export", limit=10, order="oldest"))
    check("a limit holds", len(few) == 10)
    none = duckdb.connect().execute(f"select count(*) from read_parquet('{download(api, place, 'log-none', '/log/export', process='nobody')}')").fetchone()
    check("a file without records is one", none == (0,))


def events(api, place):
    process = place.start("event", "pub", "lab/gauge/1/pressure", "--user", "--unit", "mbar", "--process", "gauges", stdin=subprocess.PIPE)
    until("the attribute is listed", lambda: place.run("event", "list", "lab/gauge/1/pressure", check=False).stdout)
    for number in range(3000):
        process.stdin.write(f"{number / 7}\n")
    process.stdin.flush()
    expected = until("all is kept", lambda: (found := lines(api, "/event/export", name="lab/*")) and len(found) == 3000 and found)
    file = download(api, place, "events", "/event/export", name="lab/*", order="oldest")
    table = pandas.read_parquet(file)
    got = sorted((row["time"].value, row["attribute"], row["value"], row["unit"], row["reason"]) for row in table.to_dict("records"))
    wanted = sorted((pandas.to_datetime(row["time"], utc=True).value, row["name"], row["value"], row["unit"], row["reason"]) for row in expected)
    check(f"pandas reads {len(got)} events", got == wanted)
    check("SQL finds the greatest", duckdb.connect().execute(f"select max(value) from read_parquet('{file}')").fetchone() == (2999 / 7,))


def main():
    place = Place("downloads")
    try:
        config = os.path.join(place.directory, "hub.toml")
        with open(config, "w", encoding="utf-8") as out:
            out.write('[events]\nkeep = ["lab/*"]\n')
        place.up("--config", config)
        api = Api(place)
        logs(api, place)
        events(api, place)
    finally:
        place.close()


if __name__ == "__main__":
    main()
