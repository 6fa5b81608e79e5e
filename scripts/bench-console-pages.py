#!/usr/bin/env python3
"""Speed of the console's pages over an archive of a chosen size: a real hub, asked over HTTP on one connection.

    bench-console-pages.py [--millions 1] [--runs 20] [--data DIRECTORY] [--json]

The example `archive_speed` makes the archive, a day of records, which a directory keeps for later runs. `TAMPU_BIN` and
`ARCHIVE_SPEED` name the programs; both have to be release builds for figures that count. A row has the median, the 95th
percentile and the longest time of a request in ms, and the goal, if there is one. Exit code 1 if a goal is missed.
"""

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target"))
TAMPU = os.environ.get("TAMPU_BIN", os.path.join(TARGET, "release", "tampu"))
MAKER = os.environ.get("ARCHIVE_SPEED", os.path.join(TARGET, "release", "examples", "archive_speed"))
DOMAIN = "speed"
DAY = 86_400_000_000_000
# Goals of the console, in ms.
GOALS = {"first page": 150, "histogram of a day": 500, "jump to any time": 200}


class Hub:
    """A hub over an archive, and a connection with it."""

    def __init__(self, data, run):
        environment = dict(os.environ, TAMPU_DATA_DIR=data, TAMPU_RUN_DIR=run, TAMPU_BOOK_LISTEN="127.0.0.1:0")
        command = [TAMPU, "up", "--in-process", "--domain", DOMAIN]
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            if "is up" in line:
                break
        else:
            raise SystemExit("the hub ended")
        # Its later lines must not fill the pipe.
        subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)
        with open(os.path.join(run, DOMAIN, "book.json"), encoding="utf-8") as file:
            place = json.load(file)
        self.headers = {"Authorization": "Bearer " + place["token"]}
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(place["url"]).netloc)

    def get(self, path, **parameters):
        """Returns the JSON of an answer, and the time until its last byte in ms."""
        begun = time.perf_counter()
        self.connection.request("GET", f"/api/v1{path}?{urllib.parse.urlencode(parameters)}", headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - begun) * 1000
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body.decode()}")
        return json.loads(body), took

    def end(self):
        """Ends the hub."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def questions(hub):
    """Yields a name and a function that asks once, and returns the time in ms."""
    whole = hub.get("/log/histogram", bins=1)[0]
    oldest = hub.get("/log/query", order="oldest", limit=1)[0]["records"][0]["cursor"]
    # The hub's own records are later than the day of the archive.
    begin = int(oldest.split(".", maxsplit=1)[0])
    end = begin + DAY
    day = {"since": begin, "until": end}
    records = hub.get("/log/query", limit=100)[0]
    some = [hub.get("/log/query", since=random.randrange(begin, end), order="oldest", limit=1)[0]["records"][0] for _ in range(20)]

    def asked(path, **parameters):
        return lambda: hub.get(path, **{name: value() if callable(value) else value for name, value in parameters.items()})[1]

    any_time = lambda: random.randrange(begin, end)  # pylint: disable=unnecessary-lambda-assignment
    any_cursor = lambda: random.choice(some)["cursor"]  # pylint: disable=unnecessary-lambda-assignment
    print(f"{whole['total']} records from {whole['earliest']} to {whole['latest']}", file=sys.stderr)
    yield "first page", asked("/log/query", limit=100)
    yield "next page", asked("/log/query", limit=100, after=records["next"])
    yield "first page of warnings", asked("/log/query", limit=100, min_level="Warning")
    yield "first page with a rare word", asked("/log/query", limit=100, word="unlikely")
    yield "jump to any time", asked("/log/query", limit=100, order="oldest", since=any_time)
    yield "page before any place", asked("/log/query", limit=100, before=any_cursor)
    yield "context of any record", asked("/log/context", at=any_cursor)
    yield "histogram of a day", asked("/log/histogram", bins=288, **day)
    yield "histogram of an hour", asked("/log/histogram", bins=200, since=begin + DAY // 2, until=begin + DAY // 2 + DAY // 24)
    yield "histogram of warnings", asked("/log/histogram", bins=288, min_level="Warning", **day)
    yield "counts by process", asked("/log/stat", by="process", **day)
    yield "patterns of a day", asked("/log/patterns", bins=40, **day)

    def record(with_time):
        chosen = random.choice(some)
        hint = {"time": chosen["time"]} if with_time else {}
        return hub.get("/log/records/" + urllib.parse.quote(chosen["id"]), **hint)[1]

    yield "record by id and time", lambda: record(True)
    yield "record by id", lambda: record(False)


def main():
    """Measures, and prints a row for each question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millions", type=float, default=1, help="records of the archive, in millions")
    parser.add_argument("--runs", type=int, default=20, help="requests of each kind")
    parser.add_argument("--data", help="directory that keeps the archive")
    parser.add_argument("--json", action="store_true", help="a JSON object a row")
    arguments = parser.parse_args()
    random.seed(1)
    missed = False
    with tempfile.TemporaryDirectory(prefix="tampu-console-") as scratch:
        data = os.path.abspath(arguments.data or os.path.join(scratch, "data"))
        log = os.path.join(data, DOMAIN, "log")
        if not os.path.exists(os.path.join(log, "manifest.jsonl")):
            os.makedirs(log, exist_ok=True)
            subprocess.run([MAKER, log, str(arguments.millions)], check=True, stdout=sys.stderr)
        hub = Hub(data, os.path.join(scratch, "run"))
        try:
            for name, ask in questions(hub):
                times = sorted(ask() for _ in range(arguments.runs))
                median, high, longest = times[len(times) // 2], times[int(len(times) * 0.95)], times[-1]
                goal = GOALS.get(name)
                missed |= goal is not None and high > goal
                if arguments.json:
                    row = {"request": name, "median_ms": median, "p95_ms": high, "longest_ms": longest, "goal_ms": goal}
                    print(json.dumps(row), flush=True)
                else:
                    wanted = "" if goal is None else f"goal {goal}: {'missed' if high > goal else 'met'}"
                    print(f"{name:30} {median:9.1f} {high:9.1f} {longest:9.1f}  {wanted}", flush=True)
        finally:
            hub.end()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
