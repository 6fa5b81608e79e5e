"""Times of questions."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Union

#: A time: nanoseconds since 1970 (UTC), a datetime (local time without a zone), or a timedelta (so long ago).
When = Union[int, datetime, timedelta]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def nanoseconds(when: When | None) -> int | None:
    """The time in nanoseconds since 1970, UTC."""
    if when is None or isinstance(when, int):
        return when
    if isinstance(when, timedelta):
        when = datetime.now(timezone.utc) - when
    if not isinstance(when, datetime):
        raise TypeError(f"a time is an int (nanoseconds since 1970), a datetime or a timedelta, not {when!r}")
    return (when.astimezone(timezone.utc) - _EPOCH) // _MICROSECOND * 1000
