#!/usr/bin/env python3
"""The console's log view while the collector is away: nothing that is shown goes, and what is missing comes afterwards."""

import os
import pathlib
import re
import signal
import sys
import threading

from console_page import Console, console_site
from hub import check, until
from playwright.sync_api import expect


def collector(hub):
    """The process of the collector, below the hub."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0") if process.name.isdigit() else []
            if b"collector" in words and (process / "stat").read_text().rsplit(")", 1)[1].split()[1] == str(hub.pid):
                return int(process.name)
        except OSError:
            continue
    return None


class Outage:
    """A time without a collector: each new one is killed at once."""

    def __init__(self, hub):
        self.hub = hub
        self.over = threading.Event()
        self.kills = 0
        self.killer = threading.Thread(target=self.kill)

    def kill(self):
        while not self.over.wait(0.02):
            process = collector(self.hub)
            if process:
                try:
                    os.kill(process, signal.SIGKILL)
                    self.kills += 1
                except ProcessLookupError:
                    pass

    def __enter__(self):
        self.killer.start()
        until("the collector is killed", lambda: self.kills)
        return self

    def __exit__(self, *_):
        self.over.set()
        self.killer.join()


def fault(page):
    """The words about what is missing."""
    return page.locator(".state .fault")


def paging(place, hub, console):
    print("a page that does not come")
    page = console.page
    console.filter("--process first")
    console.shows(1000)
    console.status("Live, following")
    page.get_by_role("button", name="Pause").click()
    console.status("Paused")
    with Outage(hub):
        page.locator(".rows").evaluate("(box) => (box.scrollTop = 0)")
        expect(fault(page)).to_contain_text("is asked again", timeout=60000)
        console.status("Paused")
        check("the rows stay, and the view can go on", page.locator(".rows [role=option]").count() > 0 and page.get_by_role("button", name="Resume").is_visible())
        console.axe("a page that does not come")
    page.locator(".rows").evaluate("(box) => (box.scrollTop = 0)")
    console.shows(2000, 120)
    expect(fault(page)).to_have_count(0, timeout=60000)
    place.run("log", "send", "--process", "first", "--acknowledged", "kept", "after the outage")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="To the end").click()
    expect(page.get_by_text("after the outage", exact=True)).to_be_visible(timeout=60000)


def opened(place, hub, console):
    print("a view that is opened meanwhile")
    page = console.page
    with Outage(hub):
        page.goto(f"{console.site}log?q=--process+first")
        expect(fault(page)).to_contain_text("is asked again", timeout=120000)
    console.status("Live, following", 120)
    console.shows(1000)
    expect(page.locator(".histogram svg")).to_have_attribute("aria-label", re.compile("^3001 records"), timeout=60000)
    expect(fault(page)).to_have_count(0, timeout=60000)
    place.run("log", "send", "--process", "first", "--acknowledged", "kept", "and live")
    expect(page.get_by_text("and live", exact=True)).to_be_visible(timeout=60000)


def main():
    with console_site("outage", roles=True) as (place, hub, site, browser):
        for verb in ["query", "read"]:
            place.run("access", "allow", "user:*", verb, "log/**", "--reason", "operators look")
        place.run("log", "send", "--process", "first", "--acknowledged", "kept", input="".join(f"record {nth}\n" for nth in range(3000)))
        console = Console(browser, site, viewport={"width": 1400, "height": 900})
        console.log_in()
        paging(place, hub, console)
        opened(place, hub, console)
        check(f"no faults in the page: {console.faults}", console.faults == [])
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
