#!/usr/bin/env python3
"""A long answer of the log's archive as a table of pyarrow: the time from the question to the table.

    question.py [MILLIONS]

The example `archive_speed` makes an archive of so many million records (1), and a hub serves it. `TAMPU_BIN` and
`ARCHIVE_SPEED` name the programs. The goal is 10 million rows within 3 s; it is judged with 10 or more.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "peers"))

from hub import Place

TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target"))
MAKER = os.environ.get("ARCHIVE_SPEED", os.path.join(TARGET, "release", "examples", "archive_speed"))
# That of the records of `archive_speed`.
DOMAIN = "speed"
ROWS, SECONDS = 10_000_000, 3.0


def main():
    millions = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rows = int(millions * 1e6)
    with tempfile.TemporaryDirectory(prefix="tampu-question-") as data:
        log = os.path.join(data, DOMAIN, "log")
        os.makedirs(log)
        subprocess.run([MAKER, log, str(millions)], check=True, stdout=subprocess.DEVNULL)
        place = Place(DOMAIN, data=data)
        try:
            os.environ.update({name: value for name, value in place.environment.items() if name.startswith("TAMPU_")})
            place.up()
            import pyarrow

            import tampu.log

            print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}, an archive of {rows:,} records")
            begun = time.monotonic()
            answer = tampu.log.query(limit=rows, timeout=600.0)
            asked = time.monotonic()
            table = pyarrow.table(answer)
            taken = time.monotonic()
            seconds = taken - begun
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
            print(f"{table.num_rows:,} rows, {table.num_columns} columns, {table.nbytes / 1e9:.2f} GB in {seconds:.2f} s: {table.num_rows / seconds:,.0f} rows/s")
            print(f"of these {taken - asked:.4f} s for the table of pyarrow; the process had {memory:.2f} GB at most")
            if table.num_rows != rows or not answer.complete:
                print(f"NOT complete: {rows:,} rows are in the archive")
                return 1
            if rows < ROWS:
                return 0
            good = seconds <= SECONDS * rows / ROWS
            print(f"{'within' if good else 'NOT within'} the goal: {ROWS:,} rows in {SECONDS} s")
            return 0 if good else 1
        finally:
            place.close()


sys.exit(main())
