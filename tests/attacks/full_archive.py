#!/usr/bin/env python3
"""The archive's disk is full and slow searches run: the collector says that it keeps nothing, the spool takes over, and no record is lost."""

import os
import subprocess

from attacked import Pulse, Site, check, isolated, seeded, sh, until
from hub import Load, once_each


def main():
    isolated()
    seeded("full_archive")
    sh("ip link set lo up")
    # Places of this run alone: what a killed run left in its spool is not to come back in a later one.
    site = Site("fullarchive")
    disk, spool = os.path.join(site.directory, "small"), os.path.join(site.directory, "spool")
    os.makedirs(disk)
    sh(f"mount -t tmpfs -o size=2m tampu {disk}")
    site.data = disk
    try:
        book = os.path.join(site.directory, "book")
        with open(site.config, "a", encoding="utf-8") as file:
            file.write(f'dir = "{book}"\n[spool]\ndir = "{spool}"\nafter_ms = 100\n[collector]\nmin_free_gb = 0\n')
        site.begin()
        site.make_user("zoe")
        load = Load(site, "instrument", per_second=8000, seconds=8, timeout="90s")
        until("the hub says that the disk is full", lambda: "is full" in site.said(), 60)
        # As many slow searches as may run, over and over, as long as this test lives.
        slow = ["sh", "-c", 'while kill -0 "$PPID"; do "$0" log query --regex ".*r.*e.*c.*x" --limit 0 >/dev/null 2>&1; done', os.environ.get("TAMPU_BIN", "tampu")]
        searches = [subprocess.Popen(slow, env=site.environment, start_new_session=True) for _ in range(10)]
        try:
            with Pulse(site) as pulse:
                until("the spool keeps what the archive cannot", lambda: spooled(spool) > 50_000, 90)
            pulse.held("a full archive and slow searches")
            check(f"the spool keeps what the archive cannot ({spooled(spool)} bytes)", True)
            load.thread.join(60)
            check("the process that logs goes on meanwhile", not load.thread.is_alive())
            sh(f"mount -o remount,size=256m {disk}")
        finally:
            for search in searches:
                os.killpg(search.pid, 9)
                search.wait()
        load.finish()
        until("all records are in the archive", lambda: len(site.messages("instrument")) >= len(load.expected), 90)
        check("each record is there once", once_each(site.messages("instrument"), load.expected))
        site.alive()
    finally:
        sh(f"umount -l {disk}")
        site.close()


def spooled(directory):
    """Returns the bytes of the spool."""
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(directory) for name in names)


if __name__ == "__main__":
    main()
