"""Records of Python's ``logging`` for the log of the observatory.

A call writes its record into a ring in shared memory before it returns. The record survives ``os._exit``, ``fork``,
a crash of the interpreter and kill -9: the host's node sends what a dead process left. No thread of Python is involved.

    import logging
    import tampu.logging

    logging.basicConfig(level=logging.INFO, handlers=[tampu.logging.Handler("CONTROL/DV01")])
    logging.info("antenna on source", extra={"elevation": 62.5})
"""

from __future__ import annotations

import atexit
import contextvars
import logging
import os
import sys
import threading
import time
import traceback
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, Mapping, MutableMapping

from ._native import LogWriter, RecordHandler

__all__ = ["Handler", "StructlogProcessor", "add_level_names", "context", "writer"]

#: Levels of ACS that Python's ``logging`` lacks. Numbers between two levels belong to the lower one.
TRACE, DELOUSE, NOTICE, ALERT, EMERGENCY = 1, 5, 25, 55, 60

#: Longest chain of causes that is logged for one exception.
CHAIN_MAX = 64

_STANDARD = list(logging.makeLogRecord({}).__dict__)
_KNOWN = {*_STANDARD, "message", "asctime", "taskName"}

_Context = tuple[str, tuple[str, ...], tuple[Any, ...]]
_current: contextvars.ContextVar[_Context | None] = contextvars.ContextVar("tampu_log_context", default=None)


def add_level_names() -> None:
    """Names ACS's levels for ``logging``, so that configurations may say ``NOTICE``."""
    for name, number in (("TRACE", TRACE), ("DELOUSE", DELOUSE), ("NOTICE", NOTICE), ("ALERT", ALERT), ("EMERGENCY", EMERGENCY)):
        logging.addLevelName(number, name)


class context:
    """A named activity: records of the block have its name as their context, and its values as data.

    Contexts nest (``observation:scan``), and follow the tasks of asyncio as ``contextvars`` do.

        with tampu.logging.context("scan", scan=7):
            logging.info("on source")
    """

    def __init__(self, name: str, **values: Any) -> None:
        self._name = name
        self._values = values
        self._tokens: list[contextvars.Token[_Context | None]] = []

    def __enter__(self) -> context:
        outer = _current.get()
        if outer is None:
            merged = (sys.intern(self._name), tuple(self._values), tuple(self._values.values()))
        else:
            # Of equal names the innermost counts.
            values = dict(self._values)
            for name, value in zip(outer[1], outer[2]):
                values.setdefault(name, value)
            merged = (sys.intern(f"{outer[0]}:{self._name}"), tuple(values), tuple(values.values()))
        self._tokens.append(_current.set(merged))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        _current.reset(self._tokens.pop())


_writers: dict[tuple[str, str | None, str | None], LogWriter] = {}
_lock = threading.Lock()


def writer(source: str | None = None, *, domain: str | None = None, process: str | None = None) -> LogWriter:
    """The log of this process under a source's name; one for all handlers of the same name.

    Without a name it is ``python/`` and the name of the script.
    """
    if source is None:
        script = os.path.basename(sys.argv[0] if sys.argv else "") or "python"
        source = "python/" + (os.path.splitext(script)[0] or "python")
    key = (source, domain, process)
    with _lock:
        found = _writers.get(key)
        if found is None:
            found = _writers[key] = LogWriter(source, domain=domain, process=process)
        return found


def _span() -> tuple[bytes, bytes] | None:
    """The identities of OpenTelemetry's present trace and span. Without its module there are none."""
    module = sys.modules.get("opentelemetry.trace")
    if module is None:
        return None
    span = module.get_current_span().get_span_context()
    if not span.is_valid:
        return None
    return span.trace_id.to_bytes(16, "big"), span.span_id.to_bytes(8, "big")


class Handler(logging.Handler):
    """Hands records to the log of the observatory.

    ``source`` is the stable name of this program, as ``CONTROL/DV01``. ``domain`` is the installation, that of
    ``TAMPU_DOMAIN`` by default. ``variables`` are context variables whose values become data, under their names or the
    names of a mapping. With ``trace``, records have the identities of OpenTelemetry's present span.

    ``extra=`` becomes data. ``exc_info`` becomes an error chain: a record for the call and one for each cause.
    """

    def __init__(
        self,
        source: str | None = None,
        level: int | str = logging.NOTSET,
        *,
        domain: str | None = None,
        process: str | None = None,
        variables: Iterable[contextvars.ContextVar[Any]] | Mapping[str, contextvars.ContextVar[Any]] = (),
        trace: bool = True,
    ) -> None:
        super().__init__(level)
        self._writer = writer(source, domain=domain, process=process)
        named = dict(variables) if isinstance(variables, Mapping) else {variable.name: variable for variable in variables}
        self._variables = list(named.items())
        self._trace = _span if trace else None
        self._native = RecordHandler(
            self._writer, self.filters, self._slow, logging.LogRecord, _STANDARD, _KNOWN, _current.get,
            None if self._trace is None else (sys.modules, self._trace),
            [(name, variable.get) for name, variable in self._variables],
        )
        # A function of the library in the place of the method: it needs no lock, and filters are read by it.
        self.handle = self._native.handle  # type: ignore[method-assign]

    def _slow(self, record: logging.LogRecord) -> bool | logging.LogRecord:
        """Handles a record with filters, an exception, or something that fails."""
        passed = self.filter(record)
        if passed:
            self.emit(passed if isinstance(passed, logging.LogRecord) else record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record, without looking at filters."""
        try:
            data = {name: value for name, value in record.__dict__.items() if name not in _KNOWN}
            for name, variable in self._variables:
                value = variable.get(None)
                if value is not None:
                    data[name] = value
            failed = None
            try:
                text = record.getMessage()
            except Exception as error:  # The text is shown as it was given; nothing is lost.
                failed, text = error, str(record.msg)
                data["args"] = repr(record.args)
            if record.stack_info:
                data["stack_info"] = record.stack_info
            place = (record.name, record.pathname, record.lineno, record.funcName or "")
            _write(self._writer, record.levelno, place, text, data, record.exc_info, record.threadName, self._trace)
            if failed is not None:
                raise failed
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        """Does nothing: a call returns after its record is safe. ``wait`` asks for more."""

    def wait(self, timeout: float = 10.0, *, grade: str = "kept") -> str:
        """Waits until a collector has all earlier records of this process; returns what has become of them."""
        return self._writer.wait(timeout, grade=grade)

    def survives(self) -> tuple[bool, str]:
        """Whether records survive this process, and if not, why."""
        return self._writer.survives()

    def stats(self) -> dict[str, int]:
        """Counters of this process's log."""
        return self._writer.stats()


def _write(
    target: LogWriter,
    level: int,
    place: tuple[str, str, int, str],
    text: str,
    data: dict[str, Any],
    exc_info: Any,
    thread: str | None,
    trace: Callable[[], tuple[bytes, bytes] | None] | None,
) -> None:
    """Writes a record, and the chain of its exception."""
    inside = _current.get()
    context = None
    if inside is not None:
        context = inside[0]
        for name, value in zip(inside[1], inside[2]):
            data.setdefault(name, value)
    common: dict[str, Any] = {"context": context, "thread": thread or "", "trace": trace() if trace is not None else None}
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if not isinstance(error, BaseException):
        target.write(level, *place, text, data, **common)
        return
    stack = f"{os.getpid():x}-{time.time_ns():x}-{os.urandom(4).hex()}"
    data["traceback"] = "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()
    target.write(level, *place, text, data, stack=stack, stack_level=0, **common)
    for depth, cause in _chain(error):
        name, path, line, function = place[0], "", 0, ""
        where = traceback.extract_tb(cause.__traceback__)
        if where:
            path, line, function = where[-1].filename, where[-1].lineno or 0, where[-1].name
        kind = f"{type(cause).__module__}.{type(cause).__qualname__}".removeprefix("builtins.")
        said = f"{type(cause).__qualname__}: {cause}"
        notes = getattr(cause, "__notes__", None)
        more = {"type": kind} | ({"notes": "\n".join(map(str, notes))} if notes else {})
        target.write(level, name, path, line, function, said, more, stack=stack, stack_level=depth, **common)


def _chain(error: BaseException) -> Iterator[tuple[int, BaseException]]:
    """The exception at depth 1, and its causes below it; those of a group at one depth."""
    seen: set[int] = set()
    waiting = [(1, error)]
    while waiting and len(seen) < CHAIN_MAX:
        depth, one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield depth, one
        waiting += [(depth + 1, inner) for inner in getattr(one, "exceptions", ()) if isinstance(inner, BaseException)]
        cause = one.__cause__
        if cause is None and not one.__suppress_context__:
            cause = one.__context__
        if cause is not None:
            waiting.append((depth + 1, cause))


_METHODS = {
    "debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "warn": logging.WARNING,
    "error": logging.ERROR, "exception": logging.ERROR, "err": logging.ERROR, "failure": logging.ERROR,
    "critical": logging.CRITICAL, "fatal": logging.CRITICAL, "trace": TRACE, "notice": NOTICE, "alert": ALERT,
}


class StructlogProcessor:
    """The last processor of a chain of structlog: writes the event, and ends its way.

    The event is the text, ``exc_info`` an error chain, and everything else data. Put structlog's
    ``CallsiteParameterAdder`` before it for file, line and function.

        structlog.configure(processors=[structlog.contextvars.merge_contextvars, tampu.logging.StructlogProcessor("CONTROL/DV01")])
    """

    def __init__(self, source: str | None = None, *, domain: str | None = None, process: str | None = None, trace: bool = True):
        self._writer = writer(source, domain=domain, process=process)
        self._trace = _span if trace else None

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        import structlog

        data = dict(event)
        level = data.pop("level", method)
        number = _METHODS.get(str(level).lower(), logging.INFO)
        number = int(data.pop("level_number", number))
        name = str(data.pop("logger", None) or getattr(logger, "name", None) or "structlog")
        place = (name, str(data.pop("pathname", "")), int(data.pop("lineno", 0) or 0), str(data.pop("func_name", "")))
        data.pop("timestamp", None)
        thread = data.pop("thread_name", None) or threading.current_thread().name
        exc_info = data.pop("exc_info", None)
        if exc_info is True:
            exc_info = sys.exc_info()
        _write(self._writer, number, place, str(data.pop("event", "")), data, exc_info, thread, self._trace)
        raise structlog.DropEvent


def _close_all() -> None:
    """Ends the logs in order when the interpreter ends. Records of later exit functions are for the host's node."""
    with _lock:
        for one in _writers.values():
            one.close()


atexit.register(_close_all)
