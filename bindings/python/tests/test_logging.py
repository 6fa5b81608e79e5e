"""Records of `logging` in the archive: their fields, and that none is lost however a process ends."""

import os
import random
import signal
import sys
import time


import hub as peers

BEGIN = """
import logging, os, sys
import tampu.logging
handler = tampu.logging.Handler(sys.argv[1])
log = logging.getLogger("mount")
log.addHandler(handler)
log.setLevel(1)
"""


def data(record):
    return {datum["name"]: datum["value"] for datum in record.get("data", [])}


def test_a_record_has_its_place_and_its_extras(place):
    place.finish(
        BEGIN
        + """
def slew():
    log.warning("cable wrap at %.1f deg of %s", 269.94, "DV01", extra={"axis": "az", "limit": 270, "soft": True, "rate": 0.5})
slew()
log.info("no arguments: 100%")
log.info(12345)
log.log(25, "a notice")
log.log(5, "delouse")
log.error("gr\\xfc\\xdfe \\u2192 \\U0001f52d, and half a pair: \\ud800")
assert handler.wait(30) == "kept"
""",
        "a/place",
    )
    records = place.records("a/place")
    first = records[0]
    assert first["message"] == "cable wrap at 269.9 deg of DV01"
    assert (first["level"], first["logger"], first["routine"], first["file"]) == ("Warning", "mount", "slew", "<string>")
    assert first["line"] == 10
    assert data(first) == {"axis": "az", "limit": "270", "soft": "true", "rate": "0.5"}
    assert [(record["level"], record["message"]) for record in records[1:]] == [
        ("Info", "no arguments: 100%"),
        ("Info", "12345"),
        ("Notice", "a notice"),
        ("Delouse", "delouse"),
        ("Error", "gr\xfc\xdfe \u2192 \U0001f52d, and half a pair: \ufffd\ufffd\ufffd"),
    ]


def test_an_exception_is_a_chain(place):
    place.finish(
        BEGIN
        + """
def read():
    raise OSError(5, "no answer")
try:
    try:
        read()
    except OSError as error:
        raise RuntimeError("moving failed") from error
except RuntimeError:
    log.exception("block %d", 7, extra={"scan": 3})
assert handler.wait(30) == "kept"
""",
        "a/chain",
    )
    records = place.records("a/chain")
    assert [record["message"] for record in records] == ["block 7", "RuntimeError: moving failed", "OSError: [Errno 5] no answer"]
    assert [record["stack_level"] for record in records] == [0, 1, 2]
    assert len({record["stack_id"] for record in records}) == 1 and records[0]["stack_id"]
    assert records[2]["routine"] == "read"
    assert data(records[0])["scan"] == "3" and "moving failed" in data(records[0])["traceback"]
    assert data(records[2])["type"] == "OSError"


def test_contexts_follow_tasks_and_their_values_are_data(place):
    place.finish(
        BEGIN
        + """
import asyncio, contextvars
from tampu.logging import context
user = contextvars.ContextVar("user")
named = tampu.logging.Handler(sys.argv[1], variables=[user])
other = logging.getLogger("other")
other.addHandler(named)
other.setLevel(1)
async def scan(number):
    with context("scan", scan=number):
        await asyncio.sleep(0)
        log.info("on source")
async def main():
    with context("observation", project="2026.1", scan=0):
        await asyncio.gather(scan(1), scan(2))
asyncio.run(main())
log.info("outside")
user.set("ann")
other.info("who")
assert handler.wait(30) == "kept"
""",
        "a/context",
    )
    records = place.records("a/context")
    assert [(record.get("context", ""), data(record)) for record in records] == [
        ("observation:scan", {"scan": "1", "project": "2026.1"}),
        ("observation:scan", {"scan": "2", "project": "2026.1"}),
        ("", {}),
        ("", {"user": "ann"}),
    ]


def test_dict_config_filters_and_wrong_arguments(place):
    said = place.finish(
        """
import logging.config, sys
class Odd(logging.Filter):
    def filter(self, record):
        record.checked = "yes"
        return "even" not in record.msg
logging.config.dictConfig({
    "version": 1,
    "handlers": {"tampu": {"class": "tampu.logging.Handler", "source": sys.argv[1], "level": "INFO", "filters": ["odd"]}},
    "filters": {"odd": {"()": Odd}},
    "root": {"level": "DEBUG", "handlers": ["tampu"]},
})
logging.debug("below the level")
logging.info("even")
logging.info("odd")
logging.info("%d too %s", "wrong")
handler = logging.getLogger().handlers[0]
assert handler.wait(30) == "kept"
""",
        "a/config",
    )
    records = place.records("a/config")
    assert [(record["message"], data(record).get("checked")) for record in records] == [("odd", "yes"), ("%d too %s", "yes")]
    assert data(records[1])["args"] == "('wrong',)"
    assert "--- Logging error ---" in said


def test_a_name_that_cannot_be_used_is_an_error_that_says_so(place):
    said = place.finish("import tampu.logging; tampu.logging.Handler('a\\nb')", code=1)
    assert "TampuError" in said and "control character" in said


def test_structlog(place):
    place.finish(
        """
import sys, structlog, tampu.logging
structlog.configure(processors=[
    structlog.contextvars.merge_contextvars,
    structlog.processors.CallsiteParameterAdder(),
    tampu.logging.StructlogProcessor(sys.argv[1]),
])
log = structlog.get_logger()
structlog.contextvars.bind_contextvars(scan=7)
log.warning("cable wrap", axis="az")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
assert tampu.logging.writer(sys.argv[1]).wait(30) == "kept"
""",
        "a/structlog",
    )
    records = place.records("a/structlog")
    assert [record["message"] for record in records] == ["cable wrap", "failed", "ZeroDivisionError: division by zero"]
    assert data(records[0])["axis"] == "az" and data(records[0])["scan"] == "7"
    assert records[0]["level"] == "Warning" and records[0]["line"] > 0


def test_spans_of_opentelemetry(place):
    place.finish(
        BEGIN
        + """
from opentelemetry import trace
context = trace.SpanContext(0x0102, 0x0304, is_remote=False)
with trace.use_span(trace.NonRecordingSpan(context)):
    log.info("inside")
log.info("outside")
assert handler.wait(30) == "kept"
""",
        "a/spans",
    )
    inside, outside = place.records("a/spans")
    assert (inside["trace_id"], inside["span_id"]) == (f"{0x0102:032x}", f"{0x0304:016x}")
    assert "trace_id" not in outside


def test_children_of_fork_and_exits_without_an_end_lose_nothing(place):
    place.finish(
        BEGIN
        + """
import multiprocessing, threading
def child(name):
    log.info("from %s", name)
log.info("parent")
processes = [multiprocessing.get_context("fork").Process(target=child, args=(f"child {number}",)) for number in range(5)]
[process.start() for process in processes]
[process.join() for process in processes]
threads = [threading.Thread(target=child, args=(f"thread {number}",)) for number in range(5)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
pid = os.fork()
if pid == 0:
    log.info("grandchild")
    os._exit(0)
os.waitpid(pid, 0)
log.info("last")
os._exit(0)
""",
        "a/fork",
    )
    expected = ["parent", "grandchild", "last", *[f"from {kind} {number}" for kind in ("child", "thread") for number in range(5)]]
    found = place.wait_for("a/fork", len(expected))
    assert sorted(record["message"] for record in found) == sorted(expected)
    threads = {record["message"]: record["thread"] for record in found}
    assert threads["from thread 3"].startswith("Thread-4")


def test_an_end_in_order_leaves_nothing_behind_and_late_records_arrive(place):
    place.finish(
        """
import atexit, logging, sys
atexit.register(lambda: logging.getLogger("late").warning("after the close"))
import tampu.logging
logging.getLogger().addHandler(tampu.logging.Handler(sys.argv[1]))
logging.warning("before")
""",
        "a/late",
    )
    found = place.wait_for("a/late", 2)
    assert [record["message"] for record in found][:2] == ["before", "after the close"]
    place.finish(BEGIN + 'log.info("one")', "a/order")
    assert place.messages("a/order") == ["one"]


VICTIM = BEGIN + """
import mmap, time
counter = mmap.mmap(os.open(sys.argv[2], os.O_RDWR), 8)
number = 0
while True:
    log.info("call %d", number, extra={"number": number})
    number += 1
    counter[:8] = number.to_bytes(8, "little")
    if number % 200 == 0:
        time.sleep(0.002)
"""


def test_killed_processes_lose_nothing(place, tmp_path):
    kills = int(os.environ.get("TAMPU_KILLS", "20"))
    seed = int(os.environ.get("TAMPU_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    moments = random.Random(seed)
    produced = recovered = told = lost = doubled = 0
    for kill in range(kills):
        name, path = f"victim/{kill}", tmp_path / f"count-{kill}"
        path.write_bytes(bytes(8))
        victim = place.python(VICTIM, name, str(path))
        peers.until("the victim logs", lambda: victim.poll() is not None or int.from_bytes(path.read_bytes(), "little") > 0, 120)
        assert victim.poll() is None
        time.sleep(moments.uniform(0, 0.2))
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        counted = int.from_bytes(path.read_bytes(), "little")
        numbers, reported = all_of_dead(place, name, counted)
        missing = len(set(range(counted)) - set(numbers))
        produced += counted
        recovered += len(set(numbers))
        told += reported
        lost += max(0, missing - reported)
        doubled += len(numbers) - len(set(numbers))
    print(f"{kills} kills: {produced} produced, {recovered} recovered, {told} told as lost, {lost} lost, {doubled} doubled")
    assert (lost, doubled) == (0, 0)
    # The call that the kill interrupted may have written its record before its number was counted.
    assert produced <= recovered + told <= produced + kills


def all_of_dead(place, name, counted):
    """The numbers of a dead process's records, and how many it lacks as the log itself tells.

    The report of the death travels apart from the records of other levels, so it may come before the last of them.
    """
    end = time.monotonic() + 60
    while True:
        records = place.records(name)
        numbers = [int(data(record)["number"]) for record in records if "number" in data(record)]
        # On a busy machine a ring may be full.
        reported = sum(int(record["data"][0]["value"]) for record in records if " lost here:" in record["message"])
        dead = any(" died (process " in record["message"] for record in records)
        if dead and len(set(numbers)) + reported >= counted or time.monotonic() > end:
            return numbers, reported
        time.sleep(0.05)
