"""Attributes of Python's servers at Python's clients: every type, both ways of waiting, and what is refused."""

import asyncio
import json
import os
import select
import signal
import subprocess
import threading
import time

import hub as peers
import numpy
import pytest

import tampu
import tampu.event as event

# A value of each type and format, and what a subscriber gets.
VALUES = [
    (float, "scalar", 1.25, 1.25),
    (float, "scalar", 3, 3.0),
    ("float32", "scalar", 0.5, 0.5),
    (int, "scalar", -(1 << 40), -(1 << 40)),
    ("uint64", "scalar", (1 << 64) - 1, (1 << 64) - 1),
    ("int16", "scalar", -7, -7),
    ("uint8", "scalar", 255, 255),
    (bool, "scalar", True, True),
    (str, "scalar", "gr\xfc\xdfe", "gr\xfc\xdfe"),
    ("state", "scalar", "MOVING", "MOVING"),
    ("enum", "scalar", "open", "open"),
    ("enum", "scalar", 1, "closed"),
    ("encoded", "scalar", ("JPEG_RGB24", b"\x00\xff"), ("JPEG_RGB24", b"\x00\xff")),
    (float, "spectrum", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    ("uint16", "spectrum", numpy.arange(1000, dtype="uint16"), list(range(1000))),
    (int, "spectrum", numpy.array([], dtype="int64"), []),
    (bool, "spectrum", [True, False], [True, False]),
    (str, "spectrum", ["a", "b"], ["a", "b"]),
    ("uint16", "image", numpy.arange(12, dtype="uint16").reshape(3, 4), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]),
    (float, "image", [[1, 2], [3, 4], [5, 6]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
]


@pytest.fixture(scope="module")
def both(place):
    with event.Server("py/server") as server, event.Client("py/client") as client:
        yield server, client


def plain(value):
    return value.tolist() if isinstance(value, numpy.ndarray) else value


def test_every_type_arrives_as_it_was_pushed(both):
    server, client = both
    attributes = []
    for number, (kind, form, value, expected) in enumerate(VALUES):
        attribute = server.declare(f"t/types/py/a{number}", kind, form, labels=["open", "closed"], unit="m")
        pushed = attribute.push(value, kinds="change")
        assert (pushed.kinds, pushed.number) == ("change", 1)
        attributes.append(attribute)
    got = {}
    with client.subscribe("t/types/*/*") as events:
        while len(got) < len(VALUES):
            one = events.next(30)
            assert one is not None, sorted(got)
            got[one.name] = one
    for number, (kind, form, value, expected) in enumerate(VALUES):
        one = got[f"t/types/py/a{number}"]
        assert plain(one.value) == expected, (kind, form)
        assert (one.reason, one.quality, one.unit, one.source, one.number) == ("first", "valid", "m", "py/server", 1)
        if form != "scalar" and kind not in (str,):
            assert isinstance(one.value, numpy.ndarray) and not one.value.flags.writeable


@pytest.mark.parametrize(
    "kind, form, value, said",
    [
        (float, "scalar", "1.5", "value of type str"),
        (float, "scalar", True, "a bool is not a number"),
        ("int16", "scalar", 40000, "DevShort"),
        (int, "scalar", 1.5, "DevLong64"),
        (float, "spectrum", 1.5, "value of type float"),
        (float, "spectrum", numpy.zeros(4, dtype="float32"), "its elements are 'f'"),
        (float, "spectrum", numpy.zeros((2, 2)), "2 dimensions"),
        (float, "image", [[1, 2], [3]], "different lengths"),
        ("enum", "scalar", "ajar", "'ajar' is not one of its labels"),
        ("state", "scalar", "SLEEPING", "SLEEPING"),
        ("encoded", "scalar", b"", "a pair of a format and its bytes"),
        (str, "spectrum", "text", "a list, a tuple or an array"),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_type(both, kind, form, value, said):
    server, _ = both
    name = f"t/wrong/py/{abs(hash((str(kind), form, str(value))))}"
    attribute = server.declare(name, kind, form, labels=["open", "closed"])
    with pytest.raises(TypeError) as raised:
        attribute.push(value)
    assert name in str(raised.value) and said in str(raised.value)
    attribute.close()
    with pytest.raises(tampu.TampuError, match="was withdrawn"):
        attribute.push(value)


def test_wrong_declarations_are_refused(both):
    server, client = both
    with pytest.raises(ValueError, match="data type"):
        server.declare("t/wrong/py/x", "float128")
    with pytest.raises(TypeError, match="t/wrong/py/x"):
        server.declare("t/wrong/py/x", complex)
    with pytest.raises(ValueError):
        server.declare("not a name")
    server.declare("t/wrong/py/long", float, "spectrum", max_x=2)
    with pytest.raises(tampu.TampuError):
        server.declare("t/wrong/py/long")
    with pytest.raises(tampu.TampuError, match="chnge"):
        client.subscribe("t/*/*/*", kinds="chnge")


def test_an_array_with_gaps_is_copied_and_one_too_long_is_refused(both):
    server, client = both
    attribute = server.declare("t/rows/py/x", "int32", "spectrum", max_x=3)
    attribute.push(numpy.arange(6, dtype="int32")[::2], kinds="change")
    with client.subscribe("t/rows/py/x") as events:
        assert plain(events.next(30).value) == [0, 2, 4]
    with pytest.raises(ValueError, match="t/rows/py/x is a spectrum of at most 3"):
        attribute.push(numpy.arange(4, dtype="int32"))


def test_criteria_and_errors(both):
    server, client = both
    attribute = server.declare("t/criteria/py/x", change_abs=1, limits={"alarm_high": 10})
    assert attribute.push(1.0).kinds != ""
    assert attribute.push(1.5).kinds == ""
    assert attribute.push(11.0).kinds.startswith("change,alarm")
    attribute.fail("NoAnswer", "the gauge does not answer", "read")
    with client.subscribe("t/criteria/py/x") as events:
        one = events.next(30)
        assert one.value is None and one.errors == (("NoAnswer", "the gauge does not answer", "read"),)
        attribute.push(2.0)
        assert events.next(30).value == 2.0
    assert attribute.config["limits"]["alarm_high"] == 10
    assert any(config["name"] == "t/criteria/py/x" for config in client.attributes())


def test_the_loop_of_asyncio_gets_every_event_in_order(both):
    server, client = both
    attribute = server.declare("t/loop/py/x", int, change_abs=0)
    attribute.push(-1)
    count = 20_000

    async def follow(events):
        got = []
        async for one in events:
            assert threading.current_thread() is threading.main_thread()
            got.append(one.value)
            if one.reason == "first":
                attribute.push_all(range(count))
            if one.value == count - 1:
                events.close()
        return got

    got = asyncio.run(asyncio.wait_for(follow(client.subscribe("t/loop/py/x")), 60))
    assert got == [-1, *range(count)]


def test_callbacks_run_in_the_thread_that_asks_for_them(both):
    server, client = both
    attribute = server.declare("t/call/py/x", int, change_abs=0)
    attribute.push(0)
    got, threads = [], set()

    def note(one):
        got.append(one.value)
        threads.add(threading.current_thread().name)
        if one.value == 0:
            attribute.push_all(range(1, 100))
        if one.value == 99:
            events.close()

    events = client.subscribe("t/call/py/x")
    assert events.run(note) == 100
    assert got == list(range(100)) and threads == {"MainThread"}

    got.clear()
    events = client.subscribe("t/call/py/x", first=False)
    attribute.push_all(range(100, 200))

    async def main():
        events = client.subscribe("t/call/py/x")

        def stop(one):
            got.append(one.value)
            events.close()

        await asyncio.wait_for(events.deliver(stop), 30)

    asyncio.run(main())
    assert got == [199]
    # An exception of the callback ends the call and reaches its caller.
    with client.subscribe("t/call/py/x") as events, pytest.raises(ZeroDivisionError):
        events.run(lambda one: 1 / 0, 30)


def test_polls_read_in_the_programs_own_thread(both):
    server, client = both
    attribute = server.declare("t/poll/py/x", int, change_abs=0)
    calls = []

    def read():
        calls.append(threading.current_thread())
        if len(calls) == 3:
            raise OSError("no answer")
        return len(calls)

    server.poll(attribute, 10, read)
    while len(calls) < 5:
        server.run_polls(0.2)
    assert set(calls) == {threading.main_thread()}

    async def some():
        task = asyncio.create_task(server.polls())
        before = len(calls)
        while len(calls) < before + 3:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(some(), 30))
    assert attribute.config["polled_ms"] == 10


def test_a_question_for_the_current_value_reaches_the_program(both, place):
    server, _ = both
    attribute = server.declare("t/read/py/x", float)
    calls = []

    def read():
        calls.append(threading.current_thread())
        if len(calls) == 2:
            raise OSError("no answer")
        return len(calls)

    server.on_read(attribute, read)
    found = []
    for _ in range(3):
        question = place.start("event", "get", "--json", "t/read/py/x", stdout=subprocess.PIPE)
        while question.poll() is None:
            server.run_polls(0.05)
        found.append(json.loads(question.communicate()[0]))
    assert set(calls) == {threading.main_thread()}
    assert [one["value"] for one in found] == [1.0, None, 3.0]
    assert [error["reason"] for error in found[1]["errors"]] == ["OSError"]
    assert [error["description"] for error in found[1]["errors"]] == ["no answer"]


def test_reads_that_are_coroutines_are_awaited_beside_one_another_and_refused_without_a_loop(place):
    with event.Server("py/coroutines") as server:
        slow = server.declare("t/coro/py/slow", int, change_abs=0)
        quick = server.declare("t/coro/py/quick", int, change_abs=0)
        calls, started, release = [], [], []

        async def never():
            started.append(1)
            await release[0].wait()
            return 7

        async def read():
            calls.append(1)
            await asyncio.sleep(0)
            return len(calls)

        server.poll(slow, 10, never)
        server.poll(quick, 10, read)

        async def some():
            release.append(asyncio.Event())
            task = asyncio.create_task(server.polls())
            while len(calls) < 5 or not started:
                await asyncio.sleep(0.01)
            assert started == [1], "the one that is awaited is not called again"
            release[0].set()
            while len(started) < 2:
                await asyncio.sleep(0.01)
            task.cancel()

        asyncio.run(asyncio.wait_for(some(), 30))
        with event.Client("py/coroutines") as client, client.subscribe("t/coro/py/slow") as events:
            first = events.next(30)
            assert first is not None and first.value == 7
        with pytest.raises(TypeError, match="t/coro/py/.*coroutine; await `polls"):
            server.run_polls(30)


def test_two_tasks_share_a_subscription(both):
    server, client = both
    attribute = server.declare("t/tasks/py/x", int, change_abs=0)
    attribute.push(-1)

    async def take(events, got):
        async for one in events:
            got.append(one.value)
            await asyncio.sleep(0)

    async def main():
        with client.subscribe("t/tasks/py/x") as events:
            got = []
            tasks = [asyncio.create_task(take(events, got)) for _ in range(3)]
            for number in range(50):
                while len(got) <= number:
                    await asyncio.sleep(0.001)
                attribute.push(number)
            while len(got) < 51:
                await asyncio.sleep(0.001)
            # One of them leaves; the others go on.
            tasks[0].cancel()
            for number in range(50, 60):
                attribute.push(number)
                while len(got) < number + 2:
                    await asyncio.sleep(0.001)
            events.close()
            await asyncio.gather(*tasks[1:])
            assert sorted(got) == list(range(-1, 60))

    asyncio.run(asyncio.wait_for(main(), 60))


def test_events_that_a_full_queue_dropped_are_told_by_the_next_one(both):
    server, client = both
    attribute = server.declare("t/full/py/x", int, change_abs=0)
    attribute.push(0)
    with client.subscribe("t/full/py/x", bound=4) as events:
        first = events.next(30)
        assert first is not None and (first.number, first.missed) == (1, None)
        attribute.push_all(range(1, 11))
        assert attribute.flush(30)
        while events.stats()["delivered"] < 11:
            time.sleep(0.01)
        got = [(one.number, one.missed) for one in events.take(30)]
        assert got == [(8, (2, 8)), (9, None), (10, None), (11, None)]
        assert events.stats()["dropped"] == 6


def test_latest_values_and_batches(both):
    server, client = both
    pair = [server.declare(f"t/latest/py/{name}", change_abs=0) for name in "xy"]
    for attribute in pair:
        attribute.push(0.5)
    latest, batches = client.latest("t/latest/*/*"), client.batches("t/latest/*/*")
    end = time.monotonic() + 30
    while latest.get("t/latest/py/y") is None or batches.stats()["bound"] < 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    pair[0].push_all(float(number) for number in range(1, 1001))
    values = []
    while not values or values[-1] != 1000.0:
        batch = batches.take(30)
        assert len(batch.value) == len(batch.index) == len(batch.time) == len(batch.number)
        values += batch.value[batch.index == batch.names.index("t/latest/py/x")].tolist() if "t/latest/py/x" in batch.names else []
    assert values[-1000:] == [float(number) for number in range(1, 1001)]
    while latest.get("t/latest/py/x").value != 1000.0:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert {one.name for one in latest.changed()} == {"t/latest/py/x", "t/latest/py/y"}
    batches.close()
    assert batches.take() is None
    assert pair[0].push_all(numpy.arange(500.0, 1000.0)) == 500
    assert pair[0].push_all(numpy.array([1, 1000], dtype="int16")) == 2


def test_acknowledged_events_have_receipts(both):
    server, client = both
    attribute = server.declare("t/receipt/py/x", acknowledged=True)
    attribute.push(1.0)
    with client.subscribe("t/receipt/py/x", kinds="user") as events:
        end = time.monotonic() + 30
        while events.stats()["bound"] == 0:
            assert time.monotonic() < end
            time.sleep(0.01)
        while True:
            receipt = attribute.push_acknowledged(2.0, timeout=30)
            # The history of the hub may be a receiver before the client is.
            if "py/client" in receipt.got:
                break
            assert time.monotonic() < end, receipt
        assert receipt.missing == []


def test_a_killed_server_is_told(place, both):
    _, client = both
    program = place.python(
        """
import tampu.event, time
server = tampu.event.Server("py/victim")
attribute = server.declare("t/victim/py/x", int)
attribute.push(7)
print("up", flush=True)
time.sleep(600)
""",
        stdout=subprocess.PIPE,
    )
    assert program.stdout.readline() == "up\n"
    with client.subscribe("t/victim/py/x") as events:
        assert events.next(30).value == 7
        program.send_signal(signal.SIGKILL)
        program.wait()
        reasons = []
        while "source died" not in reasons:
            one = events.next(30)
            assert one is not None, reasons
            reasons.append(one.reason)


def test_a_view_of_an_event_stays_as_it_was_and_ends_with_its_block(place):
    with event.Server("py/viewed") as server, event.Client("py/viewer") as client:
        image = server.declare("t/viewed/py/image", "uint16", "image", max_x=4, max_y=2, change_abs=0)
        image.push(numpy.arange(8, dtype=numpy.uint16).reshape(2, 4))
        with client.subscribe("t/viewed/py/image") as events:
            first = events.next(30)
            for number in range(100):
                image.push(numpy.full((2, 4), number, dtype=numpy.uint16))
            with first.view() as view:
                assert view.array.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
                assert not view.array.flags.owndata
            with pytest.raises(tampu.TampuError, match="view has ended"):
                view.array


def images(server, name):
    """A call that pushes an image of 256 KiB whose elements are all this number."""
    attribute = server.declare(name, "uint16", "image", max_x=512, max_y=256)

    def push(number, flush=False):
        attribute.push(numpy.full((256, 512), number, dtype=numpy.uint16), kinds="user")
        assert not flush or attribute.flush(30)

    return push


def test_a_view_in_place_is_the_server_s_memory_until_its_block_ends(place):
    with event.Server("py/placed") as server, event.Client("py/reader") as client:
        push = images(server, "t/placed/py/image")
        push(0)
        with client.subscribe("t/placed/py/image", kinds="user", in_place=True) as events:
            assert events.next(30).reason == "first"
            for number in range(1, 4):
                push(number)
            for number in range(1, 4):
                one = events.next(30)
                assert (one.number, one.reason, one.quality, one.missed) == (number + 1, "update", "valid", None)
                with one.view() as view:
                    assert view.array.shape == (256, 512) and not view.array.flags.writeable
                    assert (view.array.min(), view.array.max(), view.valid) == (number, number, True)
                    kept = view.array
                    assert events.take(0.0) == [], "the next one comes after the block"
                assert view.valid
                with pytest.raises(tampu.TampuError, match="view has ended"):
                    view.array
            copy = one.value
            assert copy.flags.owndata and copy.max() == 3
    # The memory of a closed server stays mapped as long as an array leads there.
    assert kept.shape == (256, 512) and kept.max() >= 0


def test_a_server_that_does_not_wait_is_told_of_by_the_view(place, tmp_path):
    qos = tmp_path / "qos.toml"
    qos.write_text('[[topic]]\ntopics = "event-own/**"\nmax_wait_ms = 0\npool = 1048576\n', encoding="utf-8")
    program = place.python(
        """
import os, sys
os.environ["TAMPU_QOS"] = sys.argv[1]
import numpy
import tampu.event
server = tampu.event.Server("py/hasty")
image = server.declare("t/hasty/py/image", "uint16", "image", max_x=512, max_y=256)
for line in sys.stdin:
    for number in line.split():
        image.push(numpy.full((256, 512), int(number), dtype=numpy.uint16), kinds="user")
    print("pushed", flush=True)
""",
        str(qos),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def push(numbers):
        program.stdin.write(" ".join(map(str, numbers)) + "\n")
        program.stdin.flush()
        assert program.stdout.readline() == "pushed\n"

    push(range(20))
    with event.Client("py/late") as client:
        with client.subscribe("t/hasty/py/image", kinds="user", in_place=True) as events:
            assert events.next(30).number == 20
            value = 20
            while True:
                assert value < 2000, "no event lay in the server's memory"
                push([value])
                one = events.next(30)
                while one.number <= value:
                    one = events.next(30)
                with one.view() as view:
                    assert view.array.max() == value and view.valid
                    push(range(value + 1, value + 21))
                    is_copy = view.valid
                value += 21
                if not is_copy:
                    break
                # The pool had no free piece, so a copy was sent, and that stays as it is.
                assert one.value.max() == value - 21
            assert not view.valid
            with pytest.raises(tampu.TampuError, match="used the memory"):
                one.value
            numbers = []
            while value not in numbers:
                one = events.next(30)
                assert one is not None, numbers
                numbers.append(one.number)
    program.stdin.close()
    program.wait()


def test_a_subscription_that_waits_for_its_program_ends_all_the_same(place):
    with event.Server("py/holding") as server:
        push = images(server, "t/holding/py/image")
        push(0)
        for ends in ("subscription", "client", "names"):
            client = event.Client("py/held")
            events = client.subscribe("t/holding/py/image", kinds="user", in_place=True, bound=1)
            assert events.next(30).value.max() == 0
            push(1)
            held = events.next(30)
            push(0)
            if ends == "subscription":
                events.close()
                assert events.next(0) is None
            if ends == "names":
                del events
            client.close()
            assert held.number > 1


def test_a_push_that_waits_for_a_view_of_its_program_lets_other_threads_run(place, monkeypatch, tmp_path):
    qos = tmp_path / "qos.toml"
    settings = "max_wait_ms = 60000\nwait_period_ms = 60000\npool = 1048576\n"
    qos.write_text(f'[[topic]]\ntopics = "event-own/**"\n{settings}', encoding="utf-8")
    monkeypatch.setenv("TAMPU_QOS", str(qos))
    with event.Server("py/pusher") as server, event.Client("py/viewer") as client:
        push = images(server, "t/both/py/image")
        push(0)
        begun, ended = [], []

        def push_many():
            for number in range(2, 12):
                begun.append(number)
                push(number)
                ended.append(number)

        with client.subscribe("t/both/py/image", kinds="user", in_place=True) as events:
            assert events.next(30).reason == "first"
            push(1)
            with events.next(30).view() as view:
                thread = threading.Thread(target=push_many)
                thread.start()
                state = f"self/task/{thread.native_id}"
                # The memory has room for three images, of which the view has one.
                peers.until("a push waits", lambda: len(ended) >= 2 and len(begun) > len(ended) and state_of(state) == "S")
                assert view.array.max() == 1
            assert view.valid, "the server has waited as long as it may"
            numbers = [1]
            while numbers[-1] < 11:
                one = events.next(30)
                assert one.reason == "update" and one.missed is None, numbers
                numbers.append(int(one.value.max()))
            thread.join()
        assert numbers == list(range(1, 12))


def test_held_events_that_nobody_takes_before_the_end_are_counted(place):
    with event.Server("py/untaken") as server:
        push = images(server, "t/untaken/py/image")
        push(0)
        for ends in ("subscription", "client"):
            client = event.Client("py/leaver")
            events = client.subscribe("t/untaken/py/image", kinds="user", in_place=True)
            assert events.next(30).reason == "first"
            push(1)
            push(2)
            with events.next(30).view():
                assert events.take(0.0) == []
                events._native.take()
            # The bell rings once the next event is in the queue.
            assert select.select([events._native.fileno()], [], [], 30)[0]
            assert events.stats()["dropped"] == 0
            (events if ends == "subscription" else client).close()
            assert events.next(0) is None and events.stats()["dropped"] == 1, ends
            client.close()


def test_a_queue_of_long_events_is_bounded_in_bytes(place):
    with event.Server("py/wide") as server, event.Client("py/narrow") as client:
        push = images(server, "t/wide/py/image")
        push(0)
        with client.subscribe("t/wide/py/image", kinds="user") as events:
            assert events.next(30).reason == "first"
            for number in range(1, 1200):
                push(number % 100, flush=number % 20 == 0)
            peers.until("all came", lambda: events.stats()["delivered"] >= 1200)
            taken = events.take()
            dropped = events.stats()["dropped"]
            assert 1000 < len(taken) < 1100 and len(taken) + dropped == 1199
            assert taken[0].missed == (2, 2 + dropped)
            push(7)
            assert (events.next(30).number, events.stats()["dropped"]) == (1201, dropped)


def state_of(process):
    """What the kernel says of the first thread of a process: R runs, S waits."""
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def test_a_waiting_program_can_be_interrupted_and_ends_in_order(place):
    program = place.python(
        """
import signal
import tampu.event
# A test that runs in the background of a shell inherits that it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
client = tampu.event.Client("py/waits")
events = client.subscribe("t/nobody/py/x")
try:
    print("waits", flush=True)
    events.next()
except KeyboardInterrupt:
    print("interrupted", flush=True)
""",
        stdout=subprocess.PIPE,
    )
    assert program.stdout.readline() == "waits\n"
    peers.until("a program that waits", lambda: state_of(program.pid) == "S")
    program.send_signal(signal.SIGINT)
    out, _ = program.communicate(timeout=30)
    assert (out, program.returncode) == ("interrupted\n", 0)
    assert os.path.exists(place.directory)
