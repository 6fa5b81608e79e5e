#!/usr/bin/env python3
"""Long histories and threads come in pages: no reader makes the hub hold a whole one in memory."""

import re

from attacked import Pulse, Site, check, forget_peak, memory, seeded, together

REVISIONS, SIZE = 20, 1 << 20


def main():
    seeded("history_memory")
    site = Site("history")
    try:
        site.begin()
        site.make_book()
        site.make_user("zoe")
        text = "words of a long text " * (SIZE // 21)
        number = site.post("short")
        for revision in range(REVISIONS):
            content = {"text": f"{revision} {text}", "attributes": {"Author": "x"}}
            site.must(f"/books/B/entries/{number}", content, "PUT", headers={"If-Match": "*"})
        for reply in range(8):
            site.post(f"{reply} " + text, parent=number)

        forget_peak(site.hub.pid)
        before = memory(site.hub.pid, "VmRSS")
        with Pulse(site) as pulse:
            paths = ["/books/B/entries/1/history", "/books/B/entries/1/thread?text=true", "/elog/B/1", "/elog/B/?mode=threaded"] * 4
            answers = together([lambda path=path, at=at: site.ask(path, source=f"127.0.1.{at + 1}") for at, path in enumerate(paths)])
        pulse.held("histories and threads")
        statuses = [answer.status if hasattr(answer, "status") else answer for answer in answers]
        check(f"16 readers are answered: {sorted(set(map(str, statuses)))}", set(statuses) <= {200, 503} and 200 in statuses)
        most = memory(site.hub.pid)
        whole = REVISIONS * SIZE >> 20
        check(f"they take less than the history has ({before} MiB before, peak {most} MiB; 16 histories of {whole} MiB)",
              most < before + 400)
        # The pages together are the whole history.
        found, after, largest = [], "", 0
        while True:
            page = site.ask(f"/books/B/entries/{number}/history{after}").json()
            found += [revision["number"] for revision in page["revisions"]]
            largest = max(largest, len(page["revisions"]))
            if not page.get("next"):
                break
            after = "?after=" + page["next"]
        check(f"a page of the history ends with the text that reaches 4 MiB: {largest}", largest <= 5)
        check("each revision comes once", found == list(range(REVISIONS + 1)))
        thread = site.ask(f"/books/B/entries/{number}/thread?text=true")
        check(f"a page of a thread is bounded: {len(thread.body) >> 20} MiB", len(thread.body) < 8 << 20 and re.search(rb'"next":"', thread.body))
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
