"""Control of Python's bulk data: receivers that others open and close, and signals of the own process."""

import os
import signal

import hub as peers
import pytest
from test_bulk import in_thread, offered, whole

import tampu.bulk as bulk


def opened(control):
    """Opens the receiver; false if its program still has items of the last opening."""
    try:
        return control.open()["active"]
    except bulk.BulkError as error:
        assert "has not taken all that the last opening received" in str(error)
        return False


def test_another_program_opens_and_closes_a_receiver(place):
    with (
        bulk.Receiver("archive", "closable", ["spectra", "wvr"], control="archive", opened=False) as receiver,
        bulk.Sender("correlator", "closable", ["spectra"], connect_wait=60.0) as sender,
    ):
        flow = sender.flow("spectra")
        offered("archive")
        control = bulk.Control("archive", timeout=60.0)
        state = control.state()
        assert (state["active"], state["kind"], state["starts"]) == (False, "receiver", 0)
        with pytest.raises(bulk.Closed):
            receiver.state()
        with pytest.raises(bulk.BulkError, match="there is no flow 'autos'; name one of 'spectra', 'wvr'"):
            control.open(flows=["autos"])
        for content in (b"first", b"second"):
            peers.until("it is open", lambda: opened(control))
            assert control.state()["report"]["receiver"]["flows"][0]["flow"] == "spectra" and receiver.target
            received = in_thread(lambda: whole(receiver))
            with flow.transfer(b"uid://A002/X1") as transfer:
                transfer.send(content)
            _, data, ends = received()
            assert bytes(data["spectra"]) == content and ends["spectra"].complete
            assert not control.close()["active"]
            peers.until("the sender has noticed", lambda: not flow.wait_for(1, 0.0))

        # Calls that a close interrupts end first.
        peers.until("it is open", lambda: opened(control))
        taken = in_thread(lambda: [receiver.next(60), receiver.next(60)])
        flow.start(b"cut")
        flow.send(b"data")
        start, data = taken()
        assert start.parameter == b"cut" and data.bytes == b"data"
        assert not control.close()["active"]
        assert not opened(control)
        end = next(item for item in receiver if isinstance(item, bulk.End))
        assert not end.complete
        receiver.next(0)
        peers.until("it opens again", lambda: opened(control))
        flow.reset()
    assert not [offer for offer in bulk.offers() if offer["name"] == "archive"]


def test_a_receiver_of_files_is_opened_with_stricter_settings(place, tmp_path):
    with bulk.FileReceiver("archive", "strict", tmp_path, control="files", transports=["tcp"]) as receiver:
        offered("files")
        control = bulk.Control("files", timeout=60.0)
        with pytest.raises(bulk.BulkError, match="it is open already; close it first"):
            control.open()
        control.close()
        with pytest.raises(bulk.BulkError, match="flow 'data' accepts tcp only, and not shm"):
            control.open(protocol="shm")
        control.open(checksum=True)
        with bulk.Sender("correlator", "strict", connect_wait=60.0) as sender:
            (tmp_path / "source").write_bytes(b"content")
            sender.flow("data").send_file(tmp_path / "source", name="received")
        assert receiver.next(60).path.read_bytes() == b"content"
    with pytest.raises(bulk.BulkError, match="nobody could open it"):
        bulk.Receiver("archive", "strict", opened=False)
    with pytest.raises(bulk.BulkError, match="without the bus cannot be controlled"):
        bulk.Receiver("archive", "strict", control="files", bus=False, domain="d")


class Signalled(Exception):
    """What the handler of the signal raises."""


def signalled(number, frame):
    raise Signalled


@pytest.mark.parametrize("waits", ["a pause", "the limit of the rate"])
def test_a_signal_ends_a_send_that_waits(place, waits):
    before = signal.signal(signal.SIGUSR1, signalled)
    try:
        with (
            bulk.Receiver("archive", "signals") as receiver,
            bulk.Sender("correlator", "signals", connect_wait=60.0) as sender,
            sender.offer("signalled"),
        ):
            offered("signalled")
            control = bulk.Control("signalled", timeout=60.0)
            received = in_thread(lambda: whole(receiver))

            looks = []

            def sent():
                looks.append(sender.state()["flows"][0]["bytes"])
                return looks[-1]

            def stands():
                return sent() == looks[-2]

            def disturb():
                peers.until("data flows", sent)
                if waits == "a pause":
                    control.pause()
                else:
                    control.pace(1000)
                peers.until("the call waits", stands)
                os.kill(os.getpid(), signal.SIGUSR1)

            with pytest.raises(Signalled), sender.flow("data").transfer(b"") as transfer:
                disturbed = in_thread(disturb)
                while True:
                    transfer.send(bytes(1_000_000))
            disturbed()
            assert received()[2]["data"].reset
    finally:
        signal.signal(signal.SIGUSR1, before)
