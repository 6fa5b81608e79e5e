"""Control of bulk transfers by other programs: the offering and the commanding side. ``tampu.bulk`` has the names."""

from __future__ import annotations

import json
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator

from ._native import BulkCommander, BulkControl, Cancelled

if TYPE_CHECKING:
    from .bulk import Flow, Sender


class StartOrder:
    """A start that another program asks for. Its ``with`` block reports the end of the work, or its exception.

    ``parameter`` is a text for the receivers, ``file`` one of the files that this program offers, or None. A stop of the
    other program raises ``Cancelled`` in ``Flow.send``; the block reports it and goes on behind it.
    """

    def __init__(self, native: BulkControl, flow: Flow, parameter: str, file: str | None) -> None:
        self._native = native
        self.flow = flow
        self.parameter = parameter
        self.file = file

    def __enter__(self) -> StartOrder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> bool:
        self._native.ended(None if error is None else str(error) or type(error).__name__)
        return isinstance(error, Cancelled)


class Offer:
    """A sender that other programs may pace, pause and stop under a name, and start if this program takes starts.

    It is an iterator of ``StartOrder``; the call for the next one reports the end of the one before. ``close`` ends it.
    """

    def __init__(self, native: BulkControl, sender: Sender) -> None:
        self._native = native
        self._sender = sender

    def next(self, timeout: float | None = None) -> StartOrder | None:
        """The next start within ``timeout`` seconds, or None; also after ``close``."""
        self._native.ended(None)
        given = self._native.next(timeout)
        if given is None:
            return None
        flow, parameter, file = given
        return StartOrder(self._native, self._sender.flow(flow), parameter, file)

    @contextmanager
    def work(self, flow: str = "data") -> Iterator[None]:
        """Notes that the program works on a flow by itself inside the ``with`` block.

        A stop of another program then also ends what is between two transfers, or before the first one: ``Flow.start`` and
        ``Flow.transfer`` raise ``Cancelled`` until the block ends. Without it a stop ends a running transfer only.
        """
        work = self._native.begin_work(flow)
        try:
            yield
        finally:
            work.end()

    def close(self) -> None:
        """Ends the offer. The work of a start is cancelled."""
        self._native.close()

    def __iter__(self) -> Iterator[StartOrder]:
        return self

    def __next__(self) -> StartOrder:
        order = self.next()
        if order is None:
            raise StopIteration
        return order

    def __enter__(self) -> Offer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()


class Control:
    """Commands to the sender or receiver that a program offers under a name, as ``tampu bulk control`` gives them.

    Each command returns the state after it (``spec/bulk-control.md``). ``NotOffered``: no program offers the name, or none
    has answered within ``timeout`` seconds. ``Denied``: the rules of its host refuse. ``BulkError``: it refuses.
    """

    def __init__(self, name: str, *, domain: str | None = None, timeout: float = 5.0) -> None:
        self.name = name
        self._native = BulkCommander(domain)
        self._timeout = timeout

    def state(self) -> dict[str, Any]:
        """The state and its counters."""
        return self._ask("state")

    def start(self, parameter: str = "", *, file: str | None = None, flow: str | None = None) -> dict[str, Any]:
        """Starts a sender. ``file`` is one of those that its program offers."""
        return self._ask({"start": {"parameter": parameter, "file": file, "flow": flow}})

    def pace(self, bytes_per_s: float, *, flow: str | None = None) -> dict[str, Any]:
        """Limits the rate, also of a running transfer, to 1000 to 10^12 bytes a second; 0 lifts the limit."""
        return self._ask({"pace": {"bytes_per_s": bytes_per_s, "flow": flow}})

    def pause(self, *, flow: str | None = None) -> dict[str, Any]:
        """No data is sent until ``resume``."""
        return self._ask({"pause": {"flow": flow}})

    def resume(self, *, flow: str | None = None) -> dict[str, Any]:
        """Ends a pause."""
        return self._ask({"resume": {"flow": flow}})

    def stop(self, *, flow: str | None = None) -> dict[str, Any]:
        """Ends the running transfer."""
        return self._ask({"stop": {"flow": flow}})

    def open(self, **settings: Any) -> dict[str, Any]:
        """Opens a receiver. Settings, at least as strict as its own: ``flows``, ``protocol``, ``checksum``, ``protection``."""
        return self._ask({"open": settings})

    def close(self) -> dict[str, Any]:
        """Closes a receiver. Its running transfers end incomplete."""
        return self._ask("close")

    def _ask(self, command: Any) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self._native.ask(self.name, json.dumps(command), self._timeout))
        return state


def offers(*, domain: str | None = None, timeout: float = 5.0) -> list[dict[str, Any]]:
    """All senders and receivers that programs offer, with their states."""
    found: list[dict[str, Any]] = json.loads(BulkCommander(domain).ask(None, None, timeout))
    return found
