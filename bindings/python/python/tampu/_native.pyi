"""The library behind the package. Programs use ``tampu`` and ``tampu.logging``."""

from contextvars import ContextVar
from logging import LogRecord
from typing import Any, Callable, Literal, Mapping, Sequence

class TampuError(Exception): ...

class LogWriter:
    def __new__(cls, source: str, *, domain: str | None = None, process: str | None = None) -> LogWriter: ...
    def write(
        self,
        level: int,
        name: str,
        path: str,
        line: int,
        function: str,
        text: str,
        data: Mapping[str, Any] | None = None,
        *,
        context: str | None = None,
        thread: str = "",
        stack: str = "",
        stack_level: int | None = None,
        trace: tuple[bytes, bytes] | None = None,
    ) -> None: ...
    def enabled(self, name: str, level: int) -> bool: ...
    def set_level(self, name: str, level: int | None) -> None: ...
    def wait(self, timeout: float = 10.0, *, grade: Literal["kept", "received"] | str = "kept") -> str: ...
    def survives(self) -> tuple[bool, str]: ...
    def stats(self) -> dict[str, int]: ...
    def close(self) -> None: ...

class RecordHandler:
    def __new__(
        cls,
        writer: LogWriter,
        filters: list[Any],
        slow: Callable[[LogRecord], Any],
        record_class: type[LogRecord],
        standard: Sequence[str],
        known: set[str],
        context: Callable[[], Any],
        trace: Callable[[], tuple[bytes, bytes] | None] | None,
        variables: Sequence[tuple[str, Callable[..., Any]]],
    ) -> RecordHandler: ...
    def handle(self, record: LogRecord) -> bool: ...
