"""Attribute events: publish the values of attributes, and follow those of others.

    server = tampu.event.Server("vacuum")
    pressure = server.declare("sr/vacuum/c01-1/pressure", float, unit="mbar", change_rel=5)
    pressure.push(1.2e-9)

    async with tampu.event.Client("panel") as client:
        async for event in client.subscribe("*/vacuum/*/pressure"):
            print(event.name, event.value, event.unit, event.reason)

All code of the program runs on its own threads: the one that iterates, the loop of asyncio, or the one that calls
``run``.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import deque
from functools import partial
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, NamedTuple

from ._aio import readable, wake
from ._native import Event, EventAttribute, EventClient, EventColumns, EventServer, EventStream, LatestEvents, Table, View
from ._when import When, nanoseconds

__all__ = [
    "Attribute", "Batch", "Batches", "Client", "Event", "Latest", "Pushed", "Receipt", "Server", "Subscription", "Table",
    "View", "history",
]  # fmt: skip

#: Types of Python and numpy, and the data types that they stand for.
_TYPES = {
    bool: "DevBoolean", int: "DevLong64", float: "DevDouble", str: "DevString",
    "bool": "DevBoolean", "uint8": "DevUChar", "int16": "DevShort", "uint16": "DevUShort", "int32": "DevLong",
    "uint32": "DevULong", "int64": "DevLong64", "uint64": "DevULong64", "float32": "DevFloat", "float64": "DevDouble",
    "str": "DevString", "state": "DevState", "enum": "DevEnum", "encoded": "DevEncoded",
}  # fmt: skip

_AT_ONCE = 1024


class Pushed(NamedTuple):
    """What became of a push. Without kinds no criterion held, and no event was sent."""

    kinds: str
    number: int
    readers: int


class Receipt(NamedTuple):
    """The receivers of an acknowledged event."""

    number: int
    got: list[str]
    missing: list[str]


class Attribute:
    """An attribute of a server. It is withdrawn by ``close``, or with its server."""

    def __init__(self, native: EventAttribute, name: str) -> None:
        self._native = native
        self.name = name

    def push(
        self, value: Any, *, quality: str | None = None, time: int | None = None, kinds: str | None = None
    ) -> Pushed:
        """Publishes a reading if a criterion holds. It becomes the current value in any case.

        Arrays of numpy, of the attribute's own type and in rows, are read where they are. ``time`` is in nanoseconds
        since 1970, UTC. With ``kinds`` the event has these kinds, whatever the criteria say.
        """
        return Pushed(*self._native.push(value, quality=quality, time=time, kinds=kinds))

    def push_all(self, values: Iterable[Any]) -> int:
        """Publishes many readings in a row; returns the number of events sent."""
        return self._native.push_all(values)

    def push_acknowledged(self, value: Any, *, kinds: str = "user", timeout: float = 5.0) -> Receipt:
        """Publishes a reading and waits until its subscribers have it. For attributes declared ``acknowledged``."""
        return Receipt(*self._native.push_acknowledged(value, kinds, timeout))

    def fail(self, reason: str, description: str, origin: str = "") -> Pushed:
        """Publishes that the attribute could not be read, if that is new."""
        return Pushed(*self._native.fail(reason, description, origin))

    def data_ready(self, counter: int) -> Pushed:
        """Publishes that data can be fetched."""
        return Pushed(*self._native.data_ready(counter))

    def readers(self) -> int:
        """Number of processes that read its events."""
        return self._native.readers()

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until all readers have the events so far."""
        return self._native.flush(timeout)

    @property
    def config(self) -> dict[str, Any]:
        """Its present configuration."""
        config: dict[str, Any] = json.loads(self._native.config())
        return config

    def close(self) -> None:
        """Withdraws the attribute."""
        self._native.close()


class Server:
    """Attributes of this process, under the stable name of a source."""

    def __init__(self, source: str, *, domain: str | None = None) -> None:
        self._native = EventServer(source, domain=domain)
        self._attributes: list[Attribute] = []
        self._reads: dict[int, tuple[Attribute, Callable[[], Any], bool]] = {}

    def declare(
        self,
        name: str,
        type: type | str = float,
        format: str = "scalar",
        *,
        unit: str = "",
        label: str = "",
        description: str = "",
        labels: Iterable[str] = (),
        max_x: int = 0,
        max_y: int = 0,
        limits: Mapping[str, float] | None = None,
        change_abs: float | str | None = None,
        change_rel: float | str | None = None,
        archive_abs: float | str | None = None,
        archive_rel: float | str | None = None,
        archive_period_ms: int | None = None,
        period_ms: int = 1000,
        acknowledged: bool = False,
        redundant: bool = False,
        urgent: bool = False,
    ) -> Attribute:
        """Declares an attribute ``domain/family/member/attribute``.

        ``type`` is ``float``, ``int``, ``bool``, ``str``, a name of numpy such as ``"uint16"``, ``"state"``, ``"enum"``,
        ``"encoded"``, or a name of Tango such as ``"DevDouble"``. ``format`` is ``"scalar"``, ``"spectrum"`` (a row) or
        ``"image"`` (rows). A change of ``change_abs``, or of ``change_rel`` percent, sends a change event.
        """
        thresholds = {
            kind: {key: str(value) for key, value in pair.items() if value is not None}
            for kind, pair in (
                ("change", {"abs": change_abs, "rel": change_rel}),
                ("archive", {"abs": archive_abs, "rel": archive_rel}),
            )
        }
        config = {
            "name": name, "data_type": _TYPES.get(type, type), "format": format, "unit": unit, "label": label,
            "description": description, "labels": list(labels), "max_x": max_x, "max_y": max_y,
            "limits": dict(limits or {}),
            "criteria": {**thresholds, "archive_period_ms": archive_period_ms, "period_ms": period_ms},
        }  # fmt: skip
        try:
            text = json.dumps(config)
        except TypeError as error:
            raise TypeError(f"{name}: {error}; the type is {type!r}") from None
        attribute = Attribute(self._native.declare(text, acknowledged, redundant, urgent), name)
        self._attributes.append(attribute)
        return attribute

    def poll(self, attribute: Attribute, period_ms: int, read: Callable[[], Any]) -> None:
        """Has ``read`` called at this period, and pushes what it returns. ``run_polls`` or ``polls`` calls it.

        The period can be changed from outside while the program runs (``tampu event conf``). An exception becomes a
        failed reading. ``read`` may be a coroutine function, for ``polls``; while one is awaited it is not called again.
        """
        number = len(self._reads)
        self._reads[number] = (attribute, read, True)
        self._native.poll(attribute._native, period_ms, number)

    def on_read(self, attribute: Attribute, read: Callable[[], Any], max_age_ms: int = 0) -> None:
        """Has ``read`` called when somebody asks for the current value and the last reading is older than this, and
        pushes what it returns. ``run_polls`` or ``polls`` calls it.

        Those who ask wait at most 2 s, and share the reading. They get the text of an exception; the attribute's reading
        stays as it is. ``read`` may be a coroutine function, for ``polls``.
        """
        number = len(self._reads)
        self._reads[number] = (attribute, read, False)
        self._native.on_read(attribute._native, max_age_ms, number)

    def run_polls(self, timeout: float | None = None) -> int:
        """Reads attributes when they are due or asked for, in this thread, until the server is closed or the time is over."""
        loop_end = None if timeout is None else _now() + timeout
        count = 0
        while True:
            left = None if loop_end is None else max(0.0, loop_end - _now())
            due = self._native.wait_due(left)
            if not due:
                return count
            for number in due:
                self._refuse(number, self._read(number))
                count += 1

    async def polls(self) -> None:
        """Reads attributes when they are due or asked for, in the loop of asyncio, until the server is closed.

        Reads that are coroutines are awaited beside one another.
        """
        running: dict[int, asyncio.Task[None]] = {}
        try:
            while (due := self._native.due()) is not None:
                if not due:
                    await readable(self._native.fileno())
                for number in due:
                    if number not in running and (reading := self._read(number)) is not None:
                        running[number] = task = asyncio.ensure_future(self._await(number, reading))
                        task.add_done_callback(partial(_forget, running, number))
        finally:
            for task in list(running.values()):
                task.cancel()

    def _read(self, number: int) -> Awaitable[Any] | None:
        """Reads an attribute, or returns what has to be awaited for it."""
        attribute, read, _ = self._reads[number]
        try:
            value = read()
            if inspect.isawaitable(value):
                return value
            attribute.push(value)
        except Exception as error:
            self._failed(number, error)
        else:
            self._native.read_ended(number)
        return None

    async def _await(self, number: int, reading: Awaitable[Any]) -> None:
        try:
            self._reads[number][0].push(await reading)
        except Exception as error:
            self._failed(number, error)
        else:
            self._native.read_ended(number)

    def _failed(self, number: int, error: Exception) -> None:
        attribute, read, is_poll = self._reads[number]
        if is_poll:
            attribute.fail(type(error).__name__, str(error), getattr(read, "__qualname__", ""))
        else:
            self._native.read_ended(number, type(error).__name__, str(error))

    def _refuse(self, number: int, reading: Awaitable[Any] | None) -> None:
        if reading is None:
            return
        attribute, read, _ = self._reads[number]
        if inspect.iscoroutine(reading):
            reading.close()
        name = getattr(read, "__qualname__", repr(read))
        error = TypeError(f"{attribute.name}: the read {name} is a coroutine; await `polls()` in place of `run_polls()`")
        self._failed(number, error)
        raise error

    def close(self) -> None:
        """Withdraws all attributes and ends the polls."""
        for attribute in self._attributes:
            attribute.close()
        self._native.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()


def _forget(running: dict[int, asyncio.Task[None]], number: int, _: asyncio.Task[None]) -> None:
    del running[number]


def _now() -> float:
    import time

    return time.monotonic()


class Subscription:
    """Events of some attributes, in the order of each source.

    Iterate with ``async for`` or ``for``; ``next`` waits at most so long; ``run`` and ``deliver`` call a function. When
    the queue is full, the oldest event is dropped and counted in ``stats``, and ``missed`` of the next event of its
    attribute has its number. Several tasks may iterate one subscription; each event goes to one of them.
    """

    def __init__(self, native: EventStream) -> None:
        self._native = native
        self._waiting: deque[Event] = deque()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            taken = self._native.take(_AT_ONCE)
            if taken is None:
                raise StopAsyncIteration
            if not taken:
                await readable(self._native.fileno())
                continue
            self._waiting.extend(taken)
            wake(self._native.fileno())
        return self._waiting.popleft()

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._waiting:
            taken = self._native.wait(None, _AT_ONCE)
            if taken is None:
                raise StopIteration
            self._waiting.extend(taken)
        return self._waiting.popleft()

    def next(self, timeout: float | None = None) -> Event | None:
        """The next event within ``timeout`` seconds, or None."""
        if not self._waiting:
            self._waiting.extend(self._native.wait(timeout, _AT_ONCE) or ())
        return self._waiting.popleft() if self._waiting else None

    def take(self, timeout: float | None = 0.0) -> list[Event]:
        """All events that are there; waits for the first at most ``timeout`` seconds."""
        if self._waiting:
            taken = list(self._waiting)
            self._waiting.clear()
            return taken
        return self._native.wait(timeout) or []

    def run(self, callback: Callable[[Event], Any], timeout: float | None = None) -> int:
        """Calls ``callback`` with each event, in this thread, until ``close``, or for ``timeout`` seconds without an event."""
        return self._native.run(callback, timeout)

    async def deliver(self, callback: Callable[[Event], Any]) -> None:
        """Calls ``callback`` with each event, in the loop of asyncio, until ``close``."""
        while (count := self._native.call(callback, _AT_ONCE)) is not None:
            if count:
                wake(self._native.fileno())
                await asyncio.sleep(0)
            else:
                await readable(self._native.fileno())

    def stats(self) -> dict[str, int]:
        """Counters: bound attributes, delivered events, dropped events."""
        return self._native.stats()

    def close(self) -> None:
        """Ends the subscription, and every wait for it."""
        self._native.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()


class Batch(NamedTuple):
    """Readings in columns of numpy. ``names[index[i]]`` is the attribute of the reading ``i``."""

    names: list[str]
    index: Any
    time: Any
    number: Any
    value: Any


class Batches:
    """Numbers of some attributes, in batches: for plots and sums of fast attributes. Needs numpy."""

    def __init__(self, native: EventColumns) -> None:
        self._native = native

    def take(self, timeout: float | None = None) -> Batch | None:
        """All readings that are there; waits for the first at most ``timeout`` seconds. None after ``close``."""
        import numpy

        columns = self._native.wait(timeout)
        if columns is None:
            return None
        names, index, time, number, value = columns
        return Batch(
            names, numpy.frombuffer(index, numpy.uint32), numpy.frombuffer(time, numpy.int64),
            numpy.frombuffer(number, numpy.uint64), numpy.frombuffer(value, numpy.float64),
        )  # fmt: skip

    def stats(self) -> dict[str, int]:
        """Counters, as those of a subscription."""
        return self._native.stats()

    def close(self) -> None:
        """Ends the subscription."""
        self._native.close()


class Latest:
    """The latest event of each attribute."""

    def __init__(self, native: LatestEvents) -> None:
        self._native = native

    def get(self, name: str) -> Event | None:
        """The latest event of an attribute, or None."""
        return self._native.get(name)

    def changed(self) -> list[Event]:
        """The latest events of the attributes that changed since the last call."""
        return self._native.changed()

    def close(self) -> None:
        """Ends the subscription."""
        self._native.close()


class Client:
    """Subscriptions of this process."""

    def __init__(self, source: str, *, domain: str | None = None) -> None:
        self._native = EventClient(source, domain=domain)

    def subscribe(
        self,
        *attributes: str,
        kinds: str = "change",
        first: bool = True,
        reliable: bool = True,
        bound: int = 100_000,
        in_place: bool = False,
    ) -> Subscription:
        """Follows attributes by names and patterns such as ``*/vacuum/*/pressure``. The current value comes first.

        With ``in_place``, ``event.view()`` gives long arrays of a server on this host in the server's own memory, without
        a copy. The next event of the server comes after the end of the block. The server waits, up to its limit
        (``max_wait_ms``); beyond it events are reported as missing. ``view.valid`` is false if the server has used the
        memory again before.
        """
        return Subscription(self._native.stream(list(attributes), kinds, first, reliable, bound, in_place))

    def batches(
        self, *attributes: str, kinds: str = "change", first: bool = True, reliable: bool = True, bound: int = 4_000_000
    ) -> Batches:
        """Follows numeric attributes in batches of columns. Reports about sources are left out."""
        return Batches(self._native.columns(list(attributes), kinds, first, reliable, bound))

    def latest(self, *attributes: str, kinds: str = "change", reliable: bool = True) -> Latest:
        """Keeps the latest event of each attribute."""
        return Latest(self._native.latest(list(attributes), kinds, reliable))

    def attributes(self) -> list[dict[str, Any]]:
        """The configurations of all attributes on the bus.

        The first call begins to read them, and waits until no more arrive, at most one second. Later calls know all that
        have arrived since.
        """
        found: list[dict[str, Any]] = json.loads(self._native.attributes())
        return found

    def close(self) -> None:
        """Ends the client. Its subscriptions get no more events."""
        self._native.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def history(
    *attributes: str,
    since: When | None = None,
    until: When | None = None,
    kinds: Iterable[str] = (),
    newest_first: bool = False,
    limit: int | None = None,
    domain: str | None = None,
    timeout: float = 30.0,
) -> Table:
    """Events of these attributes that the hub keeps, the oldest first; names, or patterns with ``*`` and ``?``.

    Gaps and reports about sources are rows too. ``timeout`` is for each part of the answer, in seconds.
    """
    asked: dict[str, Any] = {"attributes": list(attributes), "kinds": list(kinds), "newest_first": newest_first}
    optional = {"since": nanoseconds(since), "until": nanoseconds(until), "limit": limit}
    asked.update((name, value) for name, value in optional.items() if value is not None)
    return Table.of_history(json.dumps(asked), domain, timeout)
