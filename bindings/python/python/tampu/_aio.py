"""Waiting in the loop of asyncio."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

# Of each loop, the tasks that wait, by their descriptor.
_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, list[asyncio.Future[None]]]] = WeakKeyDictionary()


async def readable(descriptor: int) -> None:
    """Waits until a descriptor is readable, or until another task calls ``wake``. Several tasks may wait for one."""
    loop = asyncio.get_running_loop()
    waiters = _waiting.setdefault(loop, {}).setdefault(descriptor, [])
    future: asyncio.Future[None] = loop.create_future()
    if not waiters:
        loop.add_reader(descriptor, _wake, waiters)
    waiters.append(future)
    try:
        await future
    finally:
        waiters.remove(future)
        if not waiters:
            loop.remove_reader(descriptor)
            del _waiting[loop][descriptor]


def wake(descriptor: int) -> None:
    """Has the other tasks look again that wait for a descriptor. A task that takes something stills its bell."""
    waiters = _waiting.get(asyncio.get_running_loop(), {}).get(descriptor)
    if waiters:
        _wake(waiters)


def _wake(waiters: list[asyncio.Future[None]]) -> None:
    for future in waiters:
        if not future.done():
            future.set_result(None)
