#!/usr/bin/env python3
"""One guest cannot stop the logbook: another client is answered each time, and posts, under each load that needs no account."""

import time

import loads
from attacked import Pulse, Site, check, forget_peak, memory, seeded

SECONDS = 2


def main():
    chance = seeded("logbook_load")
    site = Site("load", config="[metrics]\nenabled = false", book='connections = 512\n')
    try:
        site.begin()
        site.make_book()
        writer = site.make_user("zoe", may=["read", "write"])
        loads.fill(site, 3000, chance)
        for name, load in {
            "searches for attachments": loads.attachment_misses,
            "trickled bodies": loads.trickled_uploads,
            "idle connections": loads.idle_connections,
            "endless counts": loads.endless_counts,
            "wrong passwords": loads.wrong_passwords,
            "wrong callers": loads.wrong_callers,
            "queries": loads.queries,
        }.items():
            forget_peak(site.hub.pid)
            before = memory(site.hub.pid, "VmRSS")
            with loads.under(load, site, chance):
                with Pulse(site) as pulse:
                    end = time.monotonic() + SECONDS
                    posted = []
                    while time.monotonic() < end or len(posted) < 2:
                        body = {"text": "x" * 100_000, "attributes": {"Author": "zoe"}}
                        posted.append(site.ask("/books/B/entries", body, token=writer, source="127.0.0.8", timeout=120).status)
                        time.sleep(0.2)
            pulse.held(name)
            check(f"{name}: posts of 100 KB are taken ({len(posted)})", set(posted) == {201})
            most = memory(site.hub.pid)
            check(f"{name}: memory stays bounded ({before} MiB before, peak {most} MiB)", most < before + 400)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
