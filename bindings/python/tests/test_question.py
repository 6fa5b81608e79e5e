"""Answers of the archives: the same as the program's, with their types, as dicts and by Arrow's C interface."""

import gc
import json
from datetime import datetime, timedelta, timezone

import hub as peers
import pyarrow
import pytest

import tampu
import tampu.event
import tampu.log

BEGIN = """
import logging
import tampu.logging
handler = tampu.logging.Handler({source!r})
logging.basicConfig(level=logging.DEBUG, handlers=[handler])
"""


def logged(place, source, body, count):
    place.finish(BEGIN.format(source=source) + body)
    return place.wait_for(source, count)


def test_records_are_those_of_the_program(place):
    source = "py/asked"
    body = 'for n in range(20): logging.log(10 + n % 4 * 10, "axis %d moves", n, extra={"angle": n / 2} if n % 2 else None)'
    known = logged(place, source, body, 20)
    table = tampu.log.query(fields={"process": [source]})
    rows = [row for row in table.rows() if " died (process " not in row["message"]]
    assert len(rows) == 20 and table.complete and list(rows[0]) == table.columns
    for row, record in zip(rows, known):
        for name in ("message", "level", "process", "host", "file", "line", "routine"):
            assert row[name] == record.get(name), name
        assert (json.loads(row["data"]) if row["data"] else None) == record.get("data")
    since = rows[5]["time"]
    assert [row["message"] for row in tampu.log.query("axis", since=since, limit=2, sources=[source]).rows()] == [
        row["message"] for row in rows[5:7]
    ]
    newest = tampu.log.query("moves", fields={"process": [source]}, newest_first=True, limit=1)
    assert newest.rows()[0]["message"] == "axis 19 moves" and newest.complete
    errors = tampu.log.query(fields={"process": [source]}, levels=["Error"], text="axis")
    assert {row["level"] for row in errors.rows()} == {"Error"} and len(errors) == 5


def test_times_are_numbers_datetimes_and_ages(place):
    logged(place, "py/times", 'logging.info("at a time")', 1)
    asked = {"fields": {"process": ["py/times"]}, "text": "at a time"}
    (row,) = tampu.log.query(**asked).rows()
    at = datetime.fromtimestamp(row["time"] // 10**9, timezone.utc)
    assert len(tampu.log.query(since=at, until=at + timedelta(seconds=1), **asked)) == 1
    assert len(tampu.log.query(since=at.astimezone().replace(tzinfo=None), **asked)) == 1
    assert len(tampu.log.query(until=at, **asked)) == 0
    assert len(tampu.log.query(since=timedelta(hours=1), **asked)) == 1


def test_arrow_takes_a_long_answer_and_keeps_it_alive(place):
    count = 66_000  # More than a batch has.
    body = f'for n in range({count}): logging.info("row %d", n)\nassert handler.wait(60)\n'
    place.finish(BEGIN.format(source="py/long") + body)
    asked = {"fields": {"process": ["py/long"]}, "text": "row", "limit": count}
    peers.until("the whole log", lambda: len(tampu.log.query(**asked)) == count, 120)
    table = tampu.log.query(**asked)
    # A reader may ask for a stream and not read it, and for another.
    table.__arrow_c_stream__()
    taken = pyarrow.table(table)
    taken.validate(full=True)
    assert taken.column("message").num_chunks == 2
    first = taken.slice(65_530, 12)
    expected = [f"row {n}" for n in range(65_530, 65_542)]
    del table, taken
    gc.collect()
    assert first.column("message").to_pylist() == expected
    assert first.schema.field("time").type == pyarrow.timestamp("ns", "UTC")
    assert first.schema.field("line").type == pyarrow.int64()
    assert first.column("stack_level").null_count == 12
    # Half of a stream read.
    reader = pyarrow.RecordBatchReader.from_stream(tampu.log.query(**asked))
    batch = reader.read_next_batch()
    reader.close()
    del reader
    gc.collect()
    assert batch.column("message")[65_535].as_py() == "row 65535"


def test_only_the_named_columns_are_asked_for(place):
    source = "py/few"
    body = 'for n in range(30): logging.log(20 + n % 3 * 10, "few %d", n)'
    known = logged(place, source, body, 30)
    table = tampu.log.query("few", fields={"process": [source]}, columns=["message", "level", "routine"])
    assert table.columns == ["message", "level", "routine"] and table.complete
    assert [(row["message"], row["level"], row["routine"]) for row in table.rows()] == [
        (record["message"], record["level"], record.get("routine")) for record in known
    ]
    with pytest.raises(tampu.TampuError, match="no column 'colour'"):
        tampu.log.query(columns=["colour"])


def test_names_that_repeat_are_a_dictionary(place):
    source = "py/names"
    body = 'for n in range(40): logging.log(20 + n % 2 * 10, "name %d", n)'
    logged(place, source, body, 40)
    table = pyarrow.table(tampu.log.query("name", fields={"process": [source]}))
    table.validate(full=True)
    assert table.schema.field("process").type == pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    assert table.column("process").to_pylist() == [source] * 40
    assert table.column("level").to_pylist() == ["Info", "Warning"] * 20
    # A name that no record has, and a text.
    assert table.column("antenna").null_count == 40 and table.schema.field("message").type == pyarrow.string()
    assert table.column("level").combine_chunks().dictionary.to_pylist() == ["Info", "Warning"]


def test_pandas_polars_and_duckdb_take_an_answer(place):
    import duckdb
    import pandas
    import polars

    source = "py/frames"
    body = 'for n in range(100): logging.log(20 + n % 2 * 10, "frame %d", n)'
    known = logged(place, source, body, 100)
    records = tampu.log.query("frame", fields={"process": [source]})
    times = [row["time"] for row in records.rows()]
    expected = [record["message"] for record in known]
    frame = pandas.DataFrame.from_arrow(records)
    assert frame["message"].tolist() == expected and frame["time"].astype("int64").tolist() == times
    assert list(frame.columns) == records.columns and frame["stack_level"].isna().all()
    columns = polars.DataFrame(records)
    assert columns["message"].to_list() == expected and columns.columns == records.columns
    assert columns.filter(polars.col("level") == "Warning").height == 50
    counted = duckdb.sql("SELECT level, count(*), min(line) FROM records GROUP BY level ORDER BY level").fetchall()
    line = known[0]["line"]
    assert counted == [("Info", 50, line), ("Warning", 50, line)]


def test_numbers_of_the_history_are_read_where_they_are(place):
    """A column of numbers has one place in memory for all that read it."""
    count = 500
    with tampu.event.Server("py/places") as server:
        attribute = server.declare("t/places/py/number", float, archive_abs=0.5)
        for number in range(count):
            attribute.push(float(number), kinds="archive")
        ask = lambda: tampu.event.history("t/places/py/number", kinds=["archive"], limit=count)
        peers.until("the events", lambda: len(ask()) == count)
        table = ask()
    one, two = (pyarrow.table(table).column("value").chunk(0) for _ in range(2))
    assert one.buffers()[1].address == two.buffers()[1].address
    assert one.to_numpy(zero_copy_only=not one.null_count).tolist() == [float(number) for number in range(count)]


def test_events_of_the_history_have_their_values(place):
    with tampu.event.Server("py/kept") as server:
        pressure = server.declare("t/kept/py/pressure", float, unit="mbar")
        state = server.declare("t/kept/py/state", "state")
        row = server.declare("t/kept/py/row", "int32", "spectrum", max_x=8)
        name = server.declare("t/kept/py/name", str)
        for number in range(3):
            pressure.push(number * 1.5, kinds="archive")
        state.push("MOVING", kinds="archive")
        row.push([1, 2, 3], kinds="archive")
        name.push("M83", kinds="archive")
        pressure.fail("no_answer", "the gauge does not answer")

        def found(attribute, least):
            table = tampu.event.history(f"t/kept/py/{attribute}")
            rows = [row for row in table.rows() if row["quality"] == "valid" and "archive" in row["kinds"]]
            return (table, rows) if len(rows) >= least else None

        table, rows = peers.until("the pressures", lambda: found("pressure", 3))
        assert [row["value"] for row in rows] == [0.0, 1.5, 3.0]
        assert {row["unit"] for row in rows} == {"mbar"} and {row["source"] for row in rows} == {"py/kept"}
        assert [row["text"] for row in peers.until("the state", lambda: found("state", 1))[1]] == ["MOVING"]
        assert [row["text"] for row in peers.until("the name", lambda: found("name", 1))[1]] == ["M83"]
        table, rows = peers.until("the row", lambda: found("row", 1))
        assert [row["values"] for row in rows] == [[1.0, 2.0, 3.0]] and rows[0]["value"] is None
        taken = pyarrow.table(table)
        taken.validate(full=True)
        assert taken.schema.field("values").type == pyarrow.list_(pyarrow.field("item", pyarrow.float64()))
        assert [1.0, 2.0, 3.0] in taken.column("values").to_pylist()
        last = tampu.event.history("t/kept/py/pressure", kinds=["archive"], newest_first=True, limit=1)
        assert len(last) == 1 and last.complete


def test_an_answer_without_rows_is_a_table(place):
    table = tampu.event.history("t/nobody/py/nothing")
    assert len(table) == 0 and table.rows() == []
    taken = pyarrow.table(table)
    assert taken.num_rows == 0 and taken.column_names == table.columns


@pytest.mark.parametrize(
    "asked, reason",
    [
        ({"min_level": "Loud"}, "Loud"),
        ({"regex": "("}, "unclosed group"),
        ({"fields": {"colour": ["red"]}}, "colour"),
        ({"since": "yesterday"}, "a time is"),
    ],
)
def test_a_wrong_question_says_what_is_wrong(place, asked, reason):
    with pytest.raises((tampu.TampuError, TypeError), match=reason):
        tampu.log.query(**asked)


def test_a_domain_without_a_hub_is_an_error(place):
    with pytest.raises(tampu.TampuError):
        tampu.event.history("*", domain="nobody-here", timeout=1.0)
