"""Questions to the archive of log records.

    table = tampu.log.query("axis", min_level="Warning", since=timedelta(hours=1))
    for record in table.rows():
        print(record["time"], record["source_object"], record["message"])

``pandas``, ``polars``, ``pyarrow`` and DuckDB take the table without a copy: ``polars.DataFrame(table)``,
``pyarrow.table(table)``.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping

from ._native import Table
from ._when import When, nanoseconds

__all__ = ["Table", "query"]


def query(
    *words: str,
    since: When | None = None,
    until: When | None = None,
    min_level: str | None = None,
    levels: Iterable[str] = (),
    sources: Iterable[str] = (),
    fields: Mapping[str, Iterable[str]] | None = None,
    text: str | None = None,
    regex: str | None = None,
    newest_first: bool = False,
    limit: int | None = None,
    columns: Iterable[str] = (),
    domain: str | None = None,
    timeout: float = 30.0,
) -> Table:
    """Records that the collector keeps, the oldest first. All conditions must hold.

    ``words`` must all stand in the message or in a value beside it. ``sources`` and the values of ``fields`` are names,
    or patterns with ``*`` and ``?``; one of each must match. ``columns`` names the columns of the answer; without them it
    has all. ``timeout`` is for each part of the answer, in seconds.
    """
    asked: dict[str, Any] = {
        "words": list(words), "levels": list(levels), "sources": list(sources),
        "fields": {name: list(patterns) for name, patterns in (fields or {}).items()}, "newest_first": newest_first,
    }  # fmt: skip
    optional = {
        "since": nanoseconds(since), "until": nanoseconds(until), "min_level": min_level, "text": text, "regex": regex,
        "limit": limit,
    }  # fmt: skip
    asked.update((name, value) for name, value in optional.items() if value is not None)
    return Table.of_log(json.dumps(asked), list(columns), domain, timeout)
