#!/usr/bin/env python3
"""Entries that are dear to render, and pictures that are large once unpacked: bounded memory, other clients answered, no work for readers who left."""

import time

import loads
from attacked import Pulse, Site, check, forget_peak, memory, seeded, tree, until


def busy(pid):
    """Returns the seconds of processor that a process tree has taken."""
    ticks = 0
    for one in tree(pid):
        try:
            with open(f"/proc/{one}/stat", encoding="ascii", errors="replace") as file:
                words = file.read().rsplit(")", 1)[1].split()
            ticks += int(words[11]) + int(words[12])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ticks / 100


def rests(pid):
    """True if a process tree takes less than a fifth of a processor for a while."""
    before = busy(pid)
    time.sleep(0.5)  # the span of the measurement
    return busy(pid) - before < 0.1


def main():
    chance = seeded("rendering")
    site = Site("rendering")
    try:
        site.begin()
        site.make_book()
        site.make_user("zoe")
        # Eight entries are answered at a time. Answers that are made of long texts share 160 MiB, and so do those that are sent.
        for name, load, extra in [("entries dear to render", loads.render_bombs, 500), ("large pictures", loads.picture_bombs, 300)]:
            with loads.under(load, site, chance):
                until("the load is prepared", lambda: getattr(site, "bombs" if load == loads.render_bombs else "gallery", None), 120)
                forget_peak(site.hub.pid)
                before = memory(site.hub.pid, "VmRSS")
                with Pulse(site) as pulse:
                    time.sleep(6)
                pulse.held(name)
                most = memory(site.hub.pid)
            check(f"{name}: memory stays bounded ({before} MiB before, peak {most} MiB)", most < before + extra)
            until(f"{name}: the hub rests once its readers have left", lambda: rests(site.hub.pid), 60)
            check(f"{name}: the hub rests once its readers have left", True)
        entry, _ = site.gallery
        for at, name in enumerate(loads.pictures()):
            answer = site.ask(f"/books/B/entries/{entry}/attachments/{at}/preview?size=100")
            check(f"{name}: {answer.status}, {len(answer.body)} bytes", answer.status in (200, 404, 415, 422) and len(answer.body) < 200_000)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
