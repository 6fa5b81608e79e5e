"""Bulk data of Python: to Python, to the command and from it; killed, slow and unwilling ends; what errors say."""

import array
import asyncio
import json
import os
import subprocess
import threading
import time

import hub as peers
import numpy
import pytest

import tampu.bulk as bulk

MB = 1 << 20


def noise(length, seed=1):
    return numpy.random.default_rng(seed).integers(0, 256, length, dtype=numpy.uint8).tobytes()


def in_thread(call):
    """Runs a call beside the test; returns a function that waits for it, and raises its error."""
    result = {}

    def run():
        try:
            result["value"] = call()
        except BaseException as error:
            result["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def joined():
        thread.join(60)
        assert not thread.is_alive()
        if "error" in result:
            raise result["error"]
        return result["value"]

    return joined


def whole(receiver, flows=1):
    """Takes items up to the end of so many transfers; returns starts, data and ends by flow."""
    starts, data, ends = {}, {}, {}
    for item in receiver:
        if isinstance(item, bulk.Start):
            starts[item.flow] = item
            data[item.flow] = bytearray()
        elif isinstance(item, bulk.Data):
            assert item.offset == len(data[item.flow])
            data[item.flow] += item.bytes
        elif isinstance(item, bulk.End):
            ends[item.flow] = item
            if len(ends) == flows:
                # Answers the end.
                receiver.next(0)
                return starts, data, ends
    raise AssertionError("the receiver ended")


def test_everything_with_a_buffer_arrives_on_several_flows(place):
    numbers = numpy.arange(600_000, dtype="float64").reshape(3, 200_000)
    # More than a piece, of each kind; the empty block is a frame, too.
    blocks = [b"bytes", bytearray(5 * MB), memoryview(noise(MB))[7:], numbers, array.array("H", range(999)), b""]
    expected = b"".join(bytes(block) for block in blocks)
    with (
        bulk.Receiver("archive", "kinds", ["spectra", "auxiliary"]) as receiver,
        bulk.Sender("correlator", "kinds", ["spectra", "auxiliary"]) as sender,
    ):

        def send(flow, given):
            with sender.flow(flow).transfer(f"of {flow}") as transfer:
                for block in given:
                    transfer.send(block)
            return transfer.report

        first = in_thread(lambda: send("spectra", blocks))
        second = in_thread(lambda: send("auxiliary", [b"x" * 10]))
        starts, data, ends = whole(receiver, flows=2)
        assert (starts["spectra"].parameter, starts["auxiliary"].parameter) == (b"of spectra", b"of auxiliary")
        assert starts["spectra"].sender == "correlator" and ":" in starts["spectra"].address
        assert (bytes(data["spectra"]), bytes(data["auxiliary"])) == (expected, b"x" * 10)
        for end in ends.values():
            assert (end.complete, end.stopped, end.reset, end.lost, end.faults) == (True, True, False, [], [])
        report = first()
        assert (report.complete, report.bytes, report.transfer) == (True, len(expected), 1)
        assert report.deliveries[0]["receiver"]["source"] == "archive"
        assert second().complete
        state = sender.state()
        assert [(flow["flow"], flow["phase"]) for flow in state["flows"]] == [("spectra", "stopped"), ("auxiliary", "stopped")]
        assert receiver.state()["flows"][0]["connected"]
        with pytest.raises(ValueError, match="contiguous"):
            sender.flow("spectra").send(numbers[:, ::2])
        with pytest.raises(TypeError):
            sender.flow("spectra").send("text")


def test_a_block_keeps_its_end_and_items_come_with_await(place):
    async def main():
        loop = asyncio.get_running_loop()
        with bulk.Receiver("archive", "async", bus=False, domain="lab", reports=True) as receiver:
            with bulk.Sender("correlator", "async", bus=False, domain="lab", transport="tcp", frame=1000) as sender:
                sender.connect(receiver.target)
                flow = sender.flow()

                def send():
                    flow.start(b"p")
                    flow.send(noise(2500))
                    flow.send(b"ab", end_of_block=False)
                    flow.send(b"c")
                    return flow.stop()

                sent = loop.run_in_executor(None, send)
                got = []
                async for item in receiver:
                    got.append(item)
                    if isinstance(item, bulk.End):
                        break
                # The sender waits for the answer to the end, which is the call for the next item.
                assert not sent.done()
                receiver.next(0)
                report = await sent
        return got, report

    got, report = asyncio.run(main())
    assert report.check() is report
    assert isinstance(got[0], bulk.Connection) and (got[0].change, got[0].why) == ("connected", "tcp")
    pieces = [(item.offset, len(item), item.end_of_block) for item in got if isinstance(item, bulk.Data)]
    assert pieces == [(0, 1000, False), (1000, 1000, False), (2000, 500, True), (2500, 2, False), (2502, 1, True)]


def test_the_command_sends_to_python(place, tmp_path):
    content = noise(3 * MB + 5)
    (tmp_path / "dump.bin").write_bytes(content)
    with bulk.Receiver("archive", "from-command") as receiver:
        command = place.start("bulk", "send", str(tmp_path / "dump.bin"), "--stream", "from-command", "--parameter", "uid://A/X1")
        starts, data, ends = whole(receiver)
        assert command.wait(60) == 0
    label = json.loads(starts["data"].parameter)
    assert (label["file"], label["size"], label["parameter"]) == ("dump.bin", len(content), "uid://A/X1")
    assert bytes(data["data"]) == content and ends["data"].complete


def test_files_between_the_command_and_python(place, tmp_path):
    content = noise(6 * MB, seed=2)
    source, there, back = tmp_path / "dump.bin", tmp_path / "there", tmp_path / "back"
    source.write_bytes(content)
    # From Python to the command: a file, and a transfer that is none.
    command = place.start("bulk", "recv", "--stream", "files-out", "-o", str(there), "--limit", "2")
    with bulk.Sender("camera", "files-out", connect_wait=30) as sender:
        flow = sender.flow()
        report = flow.send_file(source, name="night/dump.bin", parameter="uid").check()
        assert report.bytes == len(content)
        with flow.transfer("uid://A002/X7") as transfer:
            transfer.send(b"plain")
    assert command.wait(60) == 0
    assert (there / "night" / "dump.bin").read_bytes() == content
    assert [path.read_bytes() for path in there.iterdir() if path.is_file()] == [b"plain"]
    # From the command to Python, which writes the file.
    with bulk.FileReceiver("archive", "files-in", back) as receiver:
        place.run("bulk", "send", str(source), "--stream", "files-in", "--parameter", "uid")
        file = receiver.next(60)
        assert (file.name, file.parameter, file.complete, file.why, file.bytes) == ("dump.bin", "uid", True, None, len(content))
        assert file.path == back / "dump.bin" and file.path.read_bytes() == content
        # The same name again is refused, and the sender learns the reason.
        done = place.run("bulk", "send", str(source), "--stream", "files-in", check=False)
        assert done.returncode != 0 and "there already" in done.stderr
        assert "there already" in receiver.next(60).why


def test_only_the_rest_is_sent(place, tmp_path):
    content = noise(2 * MB, seed=3)
    (tmp_path / "dump.bin").write_bytes(content)
    with bulk.Receiver("archive", "rest") as receiver, bulk.Sender("camera", "rest") as sender:
        sent = in_thread(lambda: sender.flow().send_file(tmp_path / "dump.bin", resume=True))
        assert json.loads(receiver.next(30).parameter)["continue"] is True
        receiver.have(MB)
        rest = b""
        while isinstance(item := receiver.next(30), bulk.Data):
            assert item.offset == MB + len(rest)
            rest += item.bytes
        assert item.complete and rest == content[MB:]
        receiver.next(0)
        assert sent().complete


FEED = """
import sys, tampu.bulk
with tampu.bulk.Sender("camera", sys.argv[1], window=1 << 20, connect_wait=30) as sender:
    flow = sender.flow()
    flow.start(b"endless")
    while True:
        flow.send(bytes(100_000))
"""


def test_the_end_comes_when_the_sender_is_killed(place):
    with bulk.Receiver("archive", "killed-sender", resume=0.3) as receiver:
        program = place.python(FEED, "killed-sender")
        for item in receiver:
            if isinstance(item, bulk.Data) and item.offset > MB:
                program.kill()
                break
        program.wait()
        while not isinstance(item, bulk.End):
            item = receiver.next(30)
            assert item is not None
    assert (item.complete, item.stopped, item.reset) == (False, False, False)
    assert item.lost[-1]["cause"] == "sender_gone"


def test_a_killed_receiver_is_an_error_that_names_it(place, tmp_path):
    command = place.start("bulk", "recv", "--stream", "killed-receiver", "-o", str(tmp_path), stderr=subprocess.DEVNULL)
    with bulk.Sender("camera", "killed-receiver", connect_wait=30, wait=1, ack_wait=1, resume=0.3, window=MB) as sender:
        flow = sender.flow()
        flow.start(b"endless")
        flow.send(bytes(4 * MB))
        command.kill()
        command.wait()
        with pytest.raises(bulk.NobodyLeft, match="killed-receiver|data") as raised:
            while True:
                flow.send(bytes(MB))
        assert raised.value.flow == "data"
        assert raised.value.addresses and raised.value.addresses[0] in sender.state()["flows"][0]["receivers"][0]["receiver"]["address"]
        flow.reset()


def test_a_receiver_that_does_not_read_is_cut(place):
    with (
        bulk.Receiver("archive", "slow", ["cut"], bound=1) as receiver,
        bulk.Sender("camera", "slow", ["cut"], wait=0.3, ack_wait=0.3, window=MB, transport="tcp") as cuts,
    ):
        started = in_thread(lambda: cuts.flow("cut").start())
        assert isinstance(receiver.next(30), bulk.Start)
        # Answers the start; the program takes no data after it.
        receiver.next(0)
        assert started().receivers == 1
        with pytest.raises(bulk.NobodyLeft) as raised:
            for _ in range(200):
                cuts.flow("cut").send(bytes(MB))
        assert raised.value.flow == "cut" and raised.value.addresses
        assert cuts.state()["flows"][0]["receivers"][0]["cut"] in ("send_timeout", "slow")


def test_who_refuses_says_why_and_the_sender_gets_it(place):
    with bulk.Receiver("archive", "refusing") as receiver, bulk.Sender("camera", "refusing") as sender:
        flow = sender.flow()

        def send():
            with flow.transfer(b"a") as transfer:
                for _ in range(100):
                    transfer.send(bytes(MB))

        # In the middle of the data.
        sent = in_thread(send)
        assert isinstance(receiver.next(30), bulk.Start) and isinstance(receiver.next(30), bulk.Data)
        receiver.refuse("the disk is full")
        end = receiver.next(30)
        assert isinstance(end, bulk.End) and not end.complete
        receiver.next(0)
        with pytest.raises(bulk.BulkError, match="the disk is full") as raised:
            sent()
        assert raised.value.flow == "data" and raised.value.addresses
        # At the end, when everything is there: only the receiver's program knows that it failed.
        sent = in_thread(lambda: (flow.start(), flow.send(b"abc"), flow.stop())[-1])
        while not (isinstance(end, bulk.End) and end.complete):
            end = receiver.next(30)
        receiver.refuse("cannot rename")
        receiver.next(0)
        with pytest.raises(bulk.Incomplete, match="cannot rename") as raised:
            sent().check()
        assert raised.value.report.deliveries[0]["faults"][0]["kind"] == "callback_failed"


def test_an_exception_gives_the_transfer_up(place):
    with bulk.Receiver("archive", "given-up") as receiver, bulk.Sender("camera", "given-up") as sender:

        def send():
            with sender.flow().transfer() as transfer:
                transfer.send(b"abc")
                raise ValueError("of the program")

        sent = in_thread(send)
        items = []
        while not items or not isinstance(items[-1], bulk.End):
            items.append(receiver.next(30))
        receiver.next(0)
        assert (items[-1].complete, items[-1].reset) == (False, True)
        with pytest.raises(ValueError, match="of the program"):
            sent()


def test_errors_say_what_where_and_why(place):
    with bulk.Sender("camera", "nobody", connect_wait=0.05) as sender:
        flow = sender.flow()
        with pytest.raises(bulk.NoReceiver, match="flow 'data' needs 1 receivers and has 0") as raised:
            flow.start()
        assert (raised.value.flow, raised.value.addresses) == ("data", [])
        with pytest.raises(bulk.WrongOrder, match="flow 'data'.*send"):
            flow.send(b"x")
        with pytest.raises(KeyError, match="no flow 'other'; it has data"):
            sender.flow("other")
        with pytest.raises(bulk.BulkError, match="invalid target"):
            sender.connect("nowhere")
        with pytest.raises(OSError, match="/nonexistent/file"):
            flow.send_file("/nonexistent/file")
    with pytest.raises(bulk.Closed, match="the sender is closed"):
        flow.start()
    with pytest.raises(bulk.BulkError, match="slow 'sometimes'"):
        bulk.Sender("camera", "nobody", slow="sometimes")
    with pytest.raises(bulk.BulkError, match="colour"):
        bulk.Sender("camera", "nobody", colour="red")
    with bulk.Receiver("archive", "taken") as receiver:
        address = receiver.target.split("/")[0]
        with pytest.raises(bulk.CannotListen, match=address) as raised:
            bulk.Receiver("other", "taken", listen=address)
        assert raised.value.addresses == [address]
        # A token that is not the receiver's.
        with bulk.Sender("stranger", "taken", bus=False, domain=os.environ["TAMPU_DOMAIN"], connect_wait=0.5) as stranger:
            stranger.connect(f"{address}/{'0' * 32}")
            with pytest.raises(bulk.NoReceiver, match="refuses") as raised:
                stranger.flow().start()
            assert raised.value.addresses == [address]
    with bulk.Receiver("archive", "everywhere", listen="0.0.0.0:0") as receiver:
        assert receiver.target.startswith(os.uname().nodename + ":")


LARGE = """
import resource, sys, tampu.bulk
block = bytearray(64 << 20)
with tampu.bulk.Sender("camera", "large", connect_wait=30, wait=60, ack_wait=60) as sender:
    with sender.flow().transfer(b"1 GB") as transfer:
        for number in range(16):
            block[0] = number
            transfer.send(block)
print(transfer.report.bytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

TAKING = """
import resource, tampu.bulk
total, firsts = 0, []
with tampu.bulk.Receiver("archive", "large") as receiver:
    for item in receiver:
        if isinstance(item, tampu.bulk.Data):
            if total % (64 << 20) == 0:
                firsts.append(int(item.array[0]))
            total += len(item)
        elif isinstance(item, tampu.bulk.End):
            break
assert item.complete and firsts == list(range(16)), (item, firsts)
print(total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_gigabyte_needs_the_memory_of_windows(place):
    taking = place.python(TAKING, stdout=subprocess.PIPE)
    sending = place.python(LARGE, stdout=subprocess.PIPE)
    for program in (sending, taking):
        out, _ = program.communicate(timeout=300)
        assert program.returncode == 0
        total, peak = map(int, out.split())
        assert total == 1 << 30
        # In KiB: the program's block of 64 MiB, windows and queues of 100 MiB, the interpreter.
        assert peak < 400 << 10, peak


def offered(name, count=1):
    """Waits until the programs have found each other."""
    peers.until(f"the offer {name}", lambda: len([one for one in bulk.offers() if one["name"] == name]) == count)


def test_another_program_starts_paces_and_stops_a_sender(place):
    def work(offer):
        for order in offer:
            with order, order.flow.transfer(order.parameter) as transfer:
                if order.file:
                    raise KeyError(order.file)
                while True:
                    transfer.send(bytes(1000))

    with (
        bulk.Receiver("archive", "controlled") as receiver,
        bulk.Sender("correlator", "controlled", connect_wait=60.0) as sender,
        sender.offer("corr", starts=True) as offer,
    ):
        done = in_thread(lambda: work(offer))
        offered("corr")
        control = bulk.Control("corr", timeout=60.0)
        with pytest.raises(bulk.BulkError, match="'corr': no flow is sending; start it first"):
            control.stop()
        control.pace(1000)
        received = in_thread(lambda: whole(receiver))
        assert control.start("uid://A002/X1")["active"]
        peers.until("data flows", lambda: sender.state()["flows"][0]["bytes"] > 0)
        state = control.pace(0)
        assert state["report"]["sender"]["flows"][0]["throttle"] is None
        peers.until("a megabyte", lambda: sender.state()["flows"][0]["bytes"] > 1_000_000)
        assert control.pause()["report"]["sender"]["flows"][0]["paused"]
        control.resume()
        # The exception of the stopped call gives the transfer up, and ends no more than its block.
        state = control.stop()
        assert not state["active"] and "stopped by a command" in state["failure"]
        starts, _, ends = received()
        assert starts["data"].parameter == b"uid://A002/X1" and ends["data"].reset

        received = in_thread(lambda: whole(receiver))
        control.start(file="x.bin")
        peers.until("the failure", lambda: control.state()["failure"] == "'x.bin'")
        assert received()[2]["data"].reset
        with pytest.raises(bulk.BulkError, match="invalid rate of 5 bytes/s"):
            control.pace(5)
        with pytest.raises(KeyError):
            done()
        assert not control.state()["active"]


def test_a_stop_ends_the_work_of_a_program_between_two_transfers(place):
    with bulk.Sender("correlator", "plain", receivers=0) as sender, sender.offer("plain") as offer:
        offered("plain")
        control, flow = bulk.Control("plain", timeout=60.0), sender.flow()
        with pytest.raises(bulk.BulkError, match="no flow is sending; start it first"):
            control.stop()
        with offer.work():
            flow.start(b"one")
            flow.stop()
            assert control.state()["active"]
            control.stop()
            with pytest.raises(bulk.Cancelled):
                flow.start(b"two")
        flow.start(b"three")
        flow.stop()
        with pytest.raises(bulk.BulkError, match="no flow is sending; start it first"):
            control.stop()
        with pytest.raises(bulk.BulkError, match="no flow 'other'"), offer.work("other"):
            pass


def test_the_command_controls_python_and_python_the_command(place, tmp_path):
    with bulk.Sender("correlator", "commanded") as sender, sender.offer("corr"):
        offered("corr")
        said = place.run("bulk", "control", "pace", "corr", "5MB", "--json").stdout
        assert json.loads(said)["report"]["sender"]["flows"][0]["throttle"] == 5e6
        with pytest.raises(bulk.BulkError, match="its program begins transfers itself"):
            bulk.Control("corr").start()
    with pytest.raises(bulk.NotOffered, match="no program offers the control 'corr'"):
        bulk.Control("corr", timeout=0.5).state()
    arguments = ["bulk", "recv", "--stream", "commanded", "--output", str(tmp_path), "--control", "files"]
    command = place.start(*arguments)
    offered("files")
    control = bulk.Control("files", timeout=60.0)
    assert not control.close()["active"]
    opened = control.open(protocol="tcp", checksum=True)
    assert opened["active"] and opened["starts"] == 2
    command.terminate()
    assert command.wait(timeout=60) == 0


def test_flows_have_the_settings_of_the_site(tmp_path, monkeypatch):
    config = tmp_path / "site.toml"
    config.write_text(
        'domain = "d"\n[[bulk.flow]]\nstream = "configured"\nthrottle_mb = 5\nchecksum = true\nslow = "skip"\n'
        '[[bulk.flow]]\nstream = "configured"\nflow = "other"\nthrottle_mb = 7\n'
    )
    monkeypatch.setenv("TAMPU_CONFIG", str(config))

    def throttles(**settings):
        with bulk.Sender("s", "configured", ["data", "other"], bus=False, domain="d", **settings) as sender:
            return [flow["throttle"] for flow in sender.state()["flows"]]

    assert throttles() == [5e6, 7e6]
    monkeypatch.setenv("TAMPU_BULK_THROTTLE", "9MB")
    assert throttles() == [9e6, 9e6]
    assert throttles(throttle=1e6) == [1e6, 1e6]
    assert throttles(throttle=0) == [None, None]
    with pytest.raises(bulk.BulkError, match="invalid throttle '-1': give bytes a second, or 0 for no limit"):
        throttles(throttle=-1)
    # A group goes at the pace of its slowest receiver.
    with pytest.raises(bulk.BulkError, match="goes at the pace of its slowest receiver"):
        throttles(group="239.1.2.3:4711")
    config.write_text('[[bulk.flow]]\nstream = "configured"\nthrottle_mb = 0\n')
    with pytest.raises(bulk.BulkError, match="throttle_mb: invalid rate"):
        throttles()
    config.write_text('[[bulk.flow]]\nstream = "configured"\ndirection = "recv"\nendpoint = "127.0.0.2:0"\n')
    with bulk.Receiver("r", "configured", bus=False, domain="d") as receiver:
        assert "127.0.0.2:" in receiver.target
