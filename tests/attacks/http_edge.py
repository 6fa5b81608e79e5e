#!/usr/bin/env python3
"""Requests at the edges of HTTP: the right status or a closed connection, one answer for one request, never a 500, and the hub lives."""

import json
import time

import loads
from attacked import Pulse, Site, check, memory, seeded


def main():
    chance = seeded("http_edge")
    site = Site("edge")
    try:
        site.begin()
        site.make_book()
        site.make_user("zoe")
        loads.attach(site, site.post("a file"), "a.txt", b"bytes")
        for at, (name, (request, right)) in enumerate(loads.odd_requests().items()):
            got = loads.send_raw(site, request, f"127.0.3.{at + 1}")
            check(f"{name}: {got or 'closed'}", len(got) <= 1 and (got[0] if got else None) in right)
        # A body that is announced and not wanted is not waited for.
        wanted = b"POST /api/v1/uploads HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10000000000\r\nExpect: 100-continue\r\n\r\n"
        got = loads.send_raw(site, wanted, "127.0.3.200")
        check(f"a large body of a guest is refused before it is sent: {got}", got and got[0] in (401, 403, 413))
        statuses = set()
        requests = [request for request, _ in loads.odd_requests().values()]
        with Pulse(site) as pulse:
            end = time.monotonic() + 6
            count = 0
            while time.monotonic() < end:
                request = bytearray(chance.choice(requests)[:5000])
                for _ in range(chance.randrange(1, 5)):
                    request[chance.randrange(len(request))] = chance.randrange(256)
                statuses.update(loads.send_raw(site, bytes(request), f"127.0.4.{chance.randrange(1, 250)}", 0.1))
                count += 1
        pulse.held(f"{count} requests with random faults")
        check(f"none of them is an error of the hub: {sorted(statuses)}", 500 not in statuses)
        check(f"memory stays bounded ({memory(site.hub.pid)} MiB)", memory(site.hub.pid) < 500)
        answer = site.ask("/check?q=x", b"{", headers={"Content-Type": "application/json"})
        check(f"a problem is told as one: {answer.status}", answer.status < 500 and ("type" in json.loads(answer.body) or answer.status == 200))
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
