"""The peer: DuckDB over the archive's own Parquet files. Reads a query a line, tells how long it took and its first value."""

import sys
import time

import duckdb

files = sys.argv[1]
duckdb.sql("SET TimeZone = 'UTC'")
# A progress bar would stand between the answers.
duckdb.sql("SET enable_progress_bar = false")
duckdb.sql(f"CREATE VIEW log AS SELECT * FROM read_parquet('{files}')")
print("duckdb", duckdb.__version__, flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line.split(" ", 1)[0])):
        begun = time.perf_counter()
        rows = duckdb.sql(line.split(" ", 1)[1]).fetchall()
        times.append((time.perf_counter() - begun) * 1e3)
    value = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else len(rows)
    print(sorted(times)[len(times) // 2], value, flush=True)
