"""Bulk data: streams of large data from a sender to receivers, at the speed of the wire.

    with tampu.bulk.Sender("correlator", "spectra", ["data"]) as sender:
        with sender.flow("data").transfer(b"uid://A002/X1") as transfer:
            transfer.send(array)

    with tampu.bulk.Receiver("archive", "spectra", ["data"]) as receiver:
        for item in receiver:
            if isinstance(item, tampu.bulk.Data):
                total += item.array.sum()

A receiver is an iterator, also for ``async for``. The start and the end of a transfer are answered by the call for the
next item: so ``stop`` of the sender returns after the receiver's program has worked on the end. All code of the program
runs on its own threads.
"""

from __future__ import annotations

import builtins
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, AsyncIterator, Iterable, Iterator, Union

from ._aio import readable
from ._control import Control, Offer, StartOrder, offers
from ._native import (
    BulkData,
    BulkError,
    BulkReceiver,
    BulkSender,
    Cancelled,
    CannotListen,
    Closed,
    Denied,
    NobodyLeft,
    NoReceiver,
    NotOffered,
    WrongOrder,
)

__all__ = [
    "BulkError", "Cancelled", "CannotListen", "Closed", "Connection", "Control", "Data", "Denied", "End", "Fault", "File",
    "FileReceiver", "Flow", "Incomplete", "Item", "Lost", "NoReceiver", "NobodyLeft", "NotOffered", "Offer", "Receiver",
    "Report", "Sender", "Start", "StartOrder", "Started", "Transfer", "WrongOrder", "offers",
]  # fmt: skip


@dataclass(frozen=True)
class Start:
    """A transfer begins. ``parameter`` is the sender's."""

    flow: str
    transfer: int
    sender: str
    address: str
    parameter: bytes


@dataclass(frozen=True)
class Data:
    """A piece of the transfer's data. ``offset`` is its place in it; ``end_of_block`` says that a ``send`` ends here."""

    flow: str
    offset: int
    end_of_block: bool
    _native: BulkData = field(repr=False)

    @property
    def bytes(self) -> builtins.bytes:
        """The bytes, copied."""
        return self._native.bytes

    @property
    def array(self) -> Any:
        """The bytes as a read-only array of numpy, where they are. Use ``view`` of the array for another type."""
        import numpy

        return numpy.asarray(self._native)

    def __len__(self) -> int:
        return len(self._native)


@dataclass(frozen=True)
class Lost:
    """Data of the transfer that is lost: from ``begin`` up to ``end``, which is None if nobody knows."""

    flow: str
    begin: int
    end: int | None
    cause: str


@dataclass(frozen=True)
class End:
    """The end of a transfer. It always comes.

    ``complete``: the sender stopped it and nothing is missing. ``reset``: the sender gave it up. If neither ``stopped``
    nor ``reset``, the sender is gone.
    """

    flow: str
    transfer: int
    complete: bool
    stopped: bool
    reset: bool
    bytes: int
    lost_bytes: int
    seconds: float
    lost: list[dict[str, Any]]
    faults: list[dict[str, Any]]


@dataclass(frozen=True)
class Fault:
    """A fault of a transfer, which the sender is told, too."""

    flow: str
    kind: str
    count: int
    text: str


@dataclass(frozen=True)
class Connection:
    """A sender is ``connected``, ``resumed``, ``refused`` or ``disconnected``. ``why`` is the transport or the reason."""

    flow: str
    change: str
    sender: str
    address: str
    why: str


@dataclass(frozen=True)
class File:
    """A received file. ``path`` is its place; that of the kept part, for another attempt, if it is not complete."""

    flow: str
    transfer: int
    sender: str
    name: str
    parameter: str
    path: Path | None
    complete: bool
    why: str | None
    bytes: int
    had: int
    seconds: float
    lost: list[dict[str, Any]]
    faults: list[dict[str, Any]]


Item = Union[Start, Data, Lost, End, Fault, Connection, File]


@dataclass(frozen=True)
class Started:
    """A transfer that has begun, with its receivers. All of them have the bytes before ``offset`` already."""

    transfer: int
    receivers: int
    offset: int


@dataclass(frozen=True)
class Report:
    """The result of a transfer. ``deliveries`` has a dict for each receiver, as ``tampu bulk send --json`` does."""

    transfer: int
    bytes: int
    seconds: float
    deliveries: list[dict[str, Any]]
    flow: str

    @property
    def complete(self) -> bool:
        """True if all receivers that took part have everything."""
        return bool(self.deliveries) and all(one["complete"] for one in self.deliveries)

    def check(self) -> Report:
        """Raises ``Incomplete`` if a receiver lacks something; returns the report."""
        if not self.complete:
            raise Incomplete(self)
        return self


class Incomplete(BulkError):
    """Some receiver lacks a part of a transfer. ``report`` has the details."""

    def __init__(self, report: Report) -> None:
        lacking = [one for one in report.deliveries if not one["complete"]]
        reasons = "; ".join(f"{_peer(one['receiver'])}: {_why(one)}" for one in lacking) or "no receiver took part"
        super().__init__(f"flow '{report.flow}': transfer {report.transfer} is not complete: {reasons}")
        self.report = report
        self.flow = report.flow
        self.addresses = [one["receiver"]["address"] for one in lacking]


def _peer(peer: dict[str, Any]) -> str:
    return f"{peer['source']} at {peer['address']}" if peer["source"] else str(peer["address"])


def _why(delivery: dict[str, Any]) -> str:
    parts = [fault["text"] for fault in delivery["faults"]]
    if delivery["lost_bytes"]:
        parts.append(f"{delivery['lost_bytes']} bytes were lost")
    if delivery["why"]:
        parts.append(delivery["why"])
    return ", ".join(parts) or f"{delivery['acknowledged']} bytes acknowledged"


class Transfer:
    """A transfer in a ``with`` block. The block's end stops it, and an exception gives it up.

    After the block ``report`` has the result. If a receiver lacks something, the block ends with ``Incomplete``.
    """

    def __init__(self, flow: Flow, parameter: Any) -> None:
        self._flow = flow
        self._parameter = parameter
        self.report: Report | None = None

    def send(self, data: Any) -> None:
        """Sends a block, as ``Flow.send`` does."""
        self._flow.send(data)

    def __enter__(self) -> Transfer:
        self._flow.start(self._parameter)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if error is not None:
            self._flow.reset(f"{type(error).__name__}: {error}")
            return
        self.report = self._flow.stop()
        self.report.check()


class Flow:
    """A flow of a sender."""

    def __init__(self, native: BulkSender, name: str) -> None:
        self._native = native
        self.name = name

    def transfer(self, parameter: Any = b"") -> Transfer:
        """A transfer for a ``with`` block."""
        return Transfer(self, parameter)

    def start(self, parameter: Any = b"") -> Started:
        """Begins a transfer, and waits for its receivers. The parameter is bytes, a text, or an array."""
        return Started(*self._native.start(self.name, parameter.encode() if isinstance(parameter, str) else parameter))

    def begin_at(self, offset: int) -> None:
        """Leaves out the data before ``offset``, which all receivers must have (``Started.offset``)."""
        self._native.begin_at(self.name, offset)

    def send(self, data: Any, *, end_of_block: bool = True) -> None:
        """Sends a block of any length: bytes, a bytearray, a memoryview, an array of numpy without gaps.

        It is copied once, into the memory from which receivers are served. The call waits while that is full.
        """
        self._native.send(self.name, data, end_of_block)

    def stop(self) -> Report:
        """Ends the transfer, and waits until every receiver has it."""
        return self._report(self._native.stop(self.name))

    def reset(self, why: str = "it was reset") -> None:
        """Gives the transfer up. The receivers get a reset, and no more data."""
        self._native.reset(self.name, why)

    def send_file(
        self, path: str | os.PathLike[str], *, name: str | None = None, parameter: str = "", resume: bool = False
    ) -> Report:
        """Sends a file as a transfer of its own, as ``tampu bulk send`` does.

        ``name`` is its name at the receivers, by default its own. With ``resume`` only the rest is sent if an earlier
        attempt left a part there.
        """
        shown = name if name is not None else os.path.basename(os.fspath(path))
        return self._report(self._native.send_file(self.name, Path(path), shown, parameter, resume))

    def wait_for(self, receivers: int = 1, timeout: float = 5.0) -> bool:
        """Waits until so many receivers are connected; returns whether they are."""
        return self._native.wait_for(self.name, receivers, timeout)

    def _report(self, text: str) -> Report:
        return Report(**json.loads(text), flow=self.name)


class Sender:
    """The sending side of a stream, under the stable name of a source.

    It connects to all receivers of the stream that the bus announces (``follow``), and to those that ``connect`` names.
    With ``bus=False`` it does without the bus; ``domain`` is needed then.

    Settings, of all its flows: ``transport`` ("tcp", "shm", "udp", "multicast"), ``group`` and ``interface`` of
    multicast, ``protection`` ("auto", "none", "authenticated", "encrypted"), ``checked`` (checksums), ``frame`` and
    ``window`` (bytes), ``acknowledge`` ("start_and_stop", "never", "every_send"), ``slow`` ("cut", "skip"), ``throttle``
    (bytes a second; 0 for no limit), ``receivers`` (that a start needs), ``connect_wait``, ``wait``, ``ack_wait``,
    ``resume`` (seconds). What is not set here has the value of the environment, of ``[[bulk.flow]]`` in the
    configuration file that ``TAMPU_CONFIG`` names, or its default.
    """

    def __init__(
        self,
        source: str,
        stream: str,
        flows: Iterable[str] = ("data",),
        *,
        domain: str | None = None,
        bus: bool = True,
        follow: bool = True,
        **settings: Any,
    ) -> None:
        names = _names(flows)
        self._native = BulkSender(source, stream, names, json.dumps(settings), domain=domain, bus=bus)
        self._flows = {name: Flow(self._native, name) for name in names}
        self._offers: list[Offer] = []
        if bus and follow:
            self._native.follow()

    def flow(self, name: str = "data") -> Flow:
        """A flow by its name."""
        found = self._flows.get(name)
        if found is None:
            raise KeyError(f"the sender has no flow '{name}'; it has {', '.join(self._flows)}")
        return found

    def offer(self, name: str, *, starts: bool = False) -> Offer:
        """Lets other programs pace, pause and stop the sender under this name, and with ``starts`` start it."""
        offer = Offer(self._native.offer(name, starts), self)
        self._offers.append(offer)
        return offer

    def connect(self, target: str) -> None:
        """Connects to a receiver whose ``target`` is known without the bus."""
        self._native.connect(target)

    def state(self) -> dict[str, Any]:
        """The state of all flows and their receivers, as ``tampu bulk stat --json`` has it."""
        state: dict[str, Any] = json.loads(self._native.state())
        return state

    def close(self) -> None:
        """Delivers what was sent, gives up running transfers, and closes the connections."""
        for offer in self._offers:
            offer.close()
        self._native.close()

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()


class Receiver:
    """The receiving side of a stream: an iterator of the items of its flows, also for ``async for``.

    At most ``bound`` bytes of data wait for the program; then the sender waits. ``reports=True`` gives faults and changes
    of connections as items, too. A receiver is read by one thread or task at a time.

    With ``control`` other programs may close and open it under this name (``Control.close`` and ``open``); with
    ``opened=False`` it waits for them. A transfer that runs at a close ends incomplete. It is not opened again before the
    program has taken what the last opening received.

    Settings: ``listen`` (an address and port, by default one of the loopback), ``announce`` (the address for others),
    ``protection``, ``transports`` (those it accepts), ``checked`` (checksums), ``resume`` (seconds). What is not set
    here has the value of the environment, of ``[[bulk.flow]]`` in the configuration file, or its default.
    """

    def __init__(
        self,
        source: str,
        stream: str,
        flows: Iterable[str] = ("data",),
        *,
        domain: str | None = None,
        bus: bool = True,
        bound: int = 64 << 20,
        reports: bool = False,
        control: str | None = None,
        opened: bool = True,
        **settings: Any,
    ) -> None:
        self._reports = reports
        self._native = BulkReceiver(
            source, stream, _names(flows), json.dumps(settings), bound, domain=domain, bus=bus, control=control, opened=opened
        )

    @property
    def target(self) -> str:
        """Address for senders without the bus, with the token that admits them. ``Closed`` while others have closed it."""
        return self._native.target

    def next(self, timeout: float | None = None) -> Item | None:
        """The next item within ``timeout`` seconds, or None; also after ``close``, when all items are taken."""
        while True:
            given = self._native.wait(timeout)
            if not given:
                return None
            item = _item(given)
            if self._wanted(item):
                return item

    def have(self, bytes: int) -> None:
        """After a ``Start``: so many bytes of the transfer are here already, and need not be sent."""
        self._native.have(bytes)

    def refuse(self, why: str) -> None:
        """Refuses the rest of the transfer of the last item, or its end. The sender gets the reason."""
        self._native.refuse(why)

    def state(self) -> dict[str, Any]:
        """The state of all flows, as ``tampu bulk stat --json`` has it. ``Closed`` while others have closed it."""
        state: dict[str, Any] = json.loads(self._native.state())
        return state

    def close(self, timeout: float = 2.0) -> None:
        """Ends the receiver. A running transfer ends, and senders get ``timeout`` seconds for the last answer."""
        self._native.close(timeout)

    def _wanted(self, item: Item) -> bool:
        return self._reports or not isinstance(item, (Fault, Connection))

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        item = self.next()
        if item is None:
            raise StopIteration
        return item

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Item:
        while True:
            given = self._native.take()
            if given is None:
                raise StopAsyncIteration
            if not given:
                await readable(self._native.fileno())
                continue
            item = _item(given)
            if self._wanted(item):
                return item

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if error is not None:
            self.refuse(f"{type(error).__name__}: {error}")
        self.close()


class FileReceiver(Receiver):
    """A receiver that writes each transfer to a file below ``directory``, as ``tampu bulk recv`` does.

    Its items are of the type ``File``. The data does not pass through Python. Names come from the sender and cannot
    lead out of the directory; a file has a temporary name until it is complete. ``replace`` allows to replace files,
    ``dotfiles`` names that begin with a dot; ``sync`` writes each file to the disk before it is acknowledged.
    """

    def __init__(
        self,
        source: str,
        stream: str,
        directory: str | os.PathLike[str],
        flows: Iterable[str] = ("data",),
        *,
        replace: bool = False,
        dotfiles: bool = False,
        sync: bool = False,
        domain: str | None = None,
        bus: bool = True,
        reports: bool = False,
        control: str | None = None,
        opened: bool = True,
        **settings: Any,
    ) -> None:
        self._reports = reports
        self._native = BulkReceiver(
            source, stream, _names(flows), json.dumps(settings), 1, directory=Path(directory),
            allowed=(replace, dotfiles, sync), domain=domain, bus=bus, control=control, opened=opened,
        )  # fmt: skip


def _names(flows: Iterable[str]) -> list[str]:
    return [flows] if isinstance(flows, str) else list(flows)


def _item(given: tuple[Any, ...]) -> Item:
    kind, flow, *values = given
    if kind == "data":
        data: BulkData = values[0]
        return Data(flow, data.offset, data.end_of_block, data)
    if kind == "start":
        return Start(flow, *values)
    if kind == "end":
        text, reset, seconds = values
        end = json.loads(text)
        named = {name: end[name] for name in ("transfer", "complete", "stopped", "bytes", "lost_bytes", "lost", "faults")}
        return End(flow=flow, reset=reset, seconds=seconds, **named)
    if kind == "lost":
        return Lost(flow, *values)
    if kind == "fault":
        return Fault(flow, *values)
    if kind == "file":
        found = json.loads(values[0])
        found["path"] = None if found["path"] is None else Path(found["path"])
        return File(flow=flow, **found)
    return Connection(flow, *values)
