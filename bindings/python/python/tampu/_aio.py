"""Waiting in the loop of asyncio."""

from __future__ import annotations

import asyncio


async def readable(descriptor: int) -> None:
    """Waits until a descriptor is readable."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def ready() -> None:
        if not future.done():
            future.set_result(None)

    loop.add_reader(descriptor, ready)
    try:
        await future
    finally:
        loop.remove_reader(descriptor)
