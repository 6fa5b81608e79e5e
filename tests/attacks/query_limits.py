#!/usr/bin/env python3
"""Queries that are deep, long, dear or wrong: an answer of the right kind, bounded memory, other clients answered."""

from urllib.parse import quote

import loads
from attacked import Pulse, Site, check, forget_peak, memory, seeded, together


def main():
    chance = seeded("query_limits")
    site = Site("queries")
    try:
        site.begin()
        site.make_book()
        site.make_user("zoe")
        loads.fill(site, 1000, chance)
        for number in range(4):
            site.post(f"{number} " + "some large text " * 60_000)
        forget_peak(site.hub.pid)
        before = memory(site.hub.pid, "VmRSS")
        with Pulse(site) as pulse:
            for query in loads.QUERIES:
                answer = site.ask("/search?q=" + quote(query)[:60_000])
                check(f"'{query[:30]!r}' ({len(query)} characters): {answer.status}", answer.status in (200, 400, 414, 422, 431))
            for more, right in {
                "q=a&sort=nope": {200, 400}, "q=a&after=forged": {400}, "q=a&count=18446744073709551616": {400}, "q=a&limit=-1": {400}, "q=a&limit=100000": {200, 400},
                "q=a&skip=18446744073709551615": {200, 400}, "q=a&time_ms=18446744073709551615": {200, 400}, "q=a&book=../../etc": {200, 400, 401, 404}, "q=%ff": {200, 400},
                "q=a&q=b": {200, 400}, "nope=1": {200, 400},
            }.items():
                answer = site.ask("/search?" + more)
                check(f"{more}: {answer.status}", answer.status in right)
            first = site.ask("/search?q=text&limit=1").json()
            for other in (f"/search?q=other&after={first['next']}", f"/search?q=text&sort=-id&after={first['next']}"):
                answer = site.ask(other)
                check(f"a cursor of another search: {answer.status}", answer.status in (200, 400) and answer.status < 500)
            pages = together([lambda: site.ask("/search?q=large&limit=1000&text=true") for _ in range(6)])
            check(f"pages of large entries: {[page.status for page in pages]}", {page.status for page in pages} <= {200, 503})
            # A guest's count ends at its limit.
            counted = site.ask("/search?q=&count=100000000").json()["count"]
            check(f"a count of a guest is bounded: {counted}", counted.get("atleast", counted.get("exactly")) <= 10_000)
        pulse.held("queries")
        most = memory(site.hub.pid)
        check(f"memory stays bounded ({before} MiB before, peak {most} MiB)", most < before + 400)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
