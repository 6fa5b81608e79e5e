#!/usr/bin/env python3
"""A minute after large questions the memory of each of a hub's processes is at most twice what it was before."""

import os
import subprocess

from attacked import Site, check, forget_peak, memory, seeded, until

RECORDS = 300_000
# MiB: pages of code and caches that the first use of a part reads, however small the question is.
SLACK = 40


def main():
    seeded("memory_given_back")
    site = Site("memory")
    try:
        site.begin()
        lines = os.path.join(site.directory, "lines")
        with open(lines, "w", encoding="utf-8") as file:
            file.writelines(f"record {number} of a night, with a text of some length\n" for number in range(RECORDS))

        def send():
            with open(lines, encoding="utf-8") as file:
                site.run("log", "send", "--process", "night", "--timeout", "60s", stdin=file)

        def query():
            with open(os.devnull, "w", encoding="ascii") as nowhere:
                arguments = ("log", "query", "--json", "--limit", "0")
                asking = site.start(*arguments, stdout=nowhere, stderr=subprocess.PIPE)
                _, said = asking.communicate()
                check(f"the query of all ends well {said[-500:]}", asking.returncode == 0)

        loads = {"a flood of records": send, "a query of all": query, "eight queries of all, one after the other": lambda: [query() for _ in range(8)]}
        for name, load in loads.items():
            before = memory(site.hub.pid, "VmRSS")
            forget_peak(site.hub.pid)
            load()
            peak, most = memory(site.hub.pid), max(2 * before, before + SLACK)
            until(f"after {name}, memory is given back ({before} MiB before, peak {peak} MiB)",
                  lambda most=most: memory(site.hub.pid, "VmRSS") <= most, 75)
            check(f"{name}: {before} MiB before, peak {peak} MiB, {memory(site.hub.pid, 'VmRSS')} MiB afterwards", True)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
