#!/usr/bin/env python3
"""Senders choose the times of their records, and nothing else: thousands of days become a few files of the archive, and each record is kept."""

import datetime
import os
import socket

from attacked import Pulse, Site, check, seeded, until

DAYS = 3000


def main():
    seeded("record_times")
    site = Site("times", config='[syslog]\nenabled = true\nudp = "127.0.0.1:0"\ntcp = "127.0.0.1:0"')
    try:
        site.begin()
        site.find_inputs()
        first = datetime.date(1700, 1, 1)
        with socket.create_connection(("127.0.0.1", site.syslog_tcp)) as stream:
            for day in range(DAYS):
                date = first + datetime.timedelta(days=day * 50)
                stream.sendall(f"<13>1 {date}T00:00:00Z h attacker - - - day {day}\n".encode())
        until("the records are kept", lambda: len(site.messages("attacker")) == DAYS, 60)
        with Pulse(site) as pulse:
            site.run("log", "archive", "compact")
        pulse.held("compaction")
        files = [file for _, _, names in os.walk(site.data) for file in names if file.endswith(".parquet")]
        check(f"{DAYS} days are {len(files)} files", len(files) <= 8)
        check("each record is found", sorted(site.messages("attacker")) == sorted(f"day {day}" for day in range(DAYS)))
        found = site.run("log", "query", "--process", "attacker", "--until", "1800-01-01", "--limit", "0", "--json").stdout.splitlines()
        wanted = sum(first + datetime.timedelta(days=day * 50) < datetime.date(1800, 1, 1) for day in range(DAYS))
        check(f"they are found by the times they give ({len(found)} of {wanted})", len(found) == wanted)
        checked = site.run("log", "archive", "check", check=False)
        check(f"the archive is whole: {checked.stdout.strip()[-200:]}", checked.returncode == 0)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
