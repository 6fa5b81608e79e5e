#!/usr/bin/env python3
"""The console under load: a real hub whose roles are processes, and pages of the console in Chromium.

    bench-console-load.py [--rate 100000] [--seconds 60] [--consoles 20] [--base 10000] [--json] [first|follow|fat|many ...]

first   A browser without a cache opens the log: bytes of the page on the wire, and the time until rows are in sight.
follow  A process logs `rate` records a second; the page follows. Frames are the times between two pictures of the page.
        Afterwards the archive has to have every record, and the page the newest ones without a hole.
fat     A record of 1 MB, then 1000 of 64 KB, while the page follows; it scrolls through them and opens the largest.
many    Processor time of the collector at `base` records a second, without a console and with `consoles` pages.
A row has the figure, its goal and the measured value. Exit code 1 if a goal is missed. `TAMPU_BIN` names the program;
TAMPU_UI_DIST=ui/dist takes the pages from a directory.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "peers"))

from console_page import Console, console_site  # noqa: E402
from playwright.sync_api import expect  # noqa: E402

# Longest time between two pictures, ms.
FRAME = 100
# The heap of the last third of the time may be as large as that of the second third, and this many MB larger.
GROWTH = 20
# Growth of the collector's cost, %.
COST = 20
# The first view: kB on the wire, ms until rows are in sight, and the number of times that it is opened.
FIRST_KB, FIRST_MS, FIRST_VIEWS = 300, 1000, 5
# Time until code is compiled and the list is there, s.
WARM = 5

FRAMES = """
window.frames_ = { worst: 0, slow: 0, count: 0, task: 0 };
let last_ = 0;
const next_ = (now) => {
  const gap = last_ === 0 ? 0 : now - last_;
  last_ = now;
  window.frames_.worst = Math.max(window.frames_.worst, gap);
  window.frames_.slow += gap > 100 ? 1 : 0;
  window.frames_.count++;
  requestAnimationFrame(next_);
};
requestAnimationFrame(next_);
new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => (window.frames_.task = Math.max(window.frames_.task, duration)))).observe({ type: "longtask" });
"""


class Writer(threading.Thread):
    """A process that logs numbered records at a rate, until it is stopped."""

    def __init__(self, place, name, rate):
        super().__init__(daemon=True)
        self.process = place.start("log", "send", "--process", name, "--acknowledged", "kept", "--timeout", "120s", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.rate, self.sent, self.is_over = rate, 0, False
        self.start()

    def run(self):
        begun = time.monotonic()
        while not self.is_over:
            due = int((time.monotonic() - begun) * self.rate)
            if due > self.sent:
                self.process.stdin.write("".join(f"record {number} of the bench\n" for number in range(self.sent, due)))
                self.process.stdin.flush()
                self.sent = due
            time.sleep(0.01)

    def stop(self):
        """Ends in order; returns the number of records."""
        self.is_over = True
        self.join()
        self.process.stdin.close()
        if self.process.wait(timeout=180) != 0:
            raise SystemExit("the process that logs has failed")
        return self.sent


def enter(browser, site):
    """A page that is logged in, and counts its frames."""
    console = Console(browser, site, viewport={"width": 1400, "height": 900})
    console.page.add_init_script(FRAMES)
    console.log_in()
    return console


def begin_frames(page):
    page.evaluate("() => Object.assign(window.frames_, { worst: 0, slow: 0, count: 0, task: 0 })")


def of_archive(console, process):
    """Number of records that the archive has of a process."""
    answer = console.context.request.get(f"{console.site}api/v1/log/histogram", params={"process": process, "bins": "1"})
    return answer.json()["total"]


def numbers(console):
    """Numbers of the rows of the page, and its rows of losses."""
    rows = console.rows()
    found = [int(row["message"].split()[1]) for row in rows if "message" in row]
    return found, len(rows) - len(found)


def first(place, browser, site, arguments):
    """The first view of a browser that has nothing of it."""
    del arguments
    place.run("log", "send", "--process", "first", "--acknowledged", "kept", "a record to see")
    console = enter(browser, site)
    times, sizes = [], []
    for _ in range(FIRST_VIEWS):
        context = browser.new_context(storage_state=console.context.storage_state())
        page = context.new_page()
        page.goto(f"{site}log?q=--process+first")
        page.wait_for_selector(".rows [role=option]")
        times.append(page.evaluate("performance.now()"))
        # Without what the API answers: it depends on the site.
        own = "performance.getEntries().filter(({ entryType, name }) => entryType === 'navigation' || (entryType === 'resource' && /[/]assets[/]|[.]svg$/.test(name)))"
        sizes.append(page.evaluate(f"{own}.reduce((sum, one) => sum + one.encodedBodySize, 0)") / 1000)
        context.close()
    console.context.close()
    yield "first view: pages and code, compressed, kB", f"<= {FIRST_KB}", f"{max(sizes):.0f}", max(sizes) <= FIRST_KB
    yield "first view: rows in sight after, ms", f"<= {FIRST_MS}", f"{sorted(times)[len(times) // 2]:.0f}", sorted(times)[len(times) // 2] <= FIRST_MS


def follow(place, browser, site, arguments):
    """The view follows a fast log."""
    console = enter(browser, site)
    page = console.page
    console.filter("--process fast")
    console.status("Live, following")
    chromium = console.context.new_cdp_session(page)
    chromium.send("Performance.enable")
    heap = lambda: next(one["value"] for one in chromium.send("Performance.getMetrics")["metrics"] if one["name"] == "JSHeapUsedSize") / 1e6
    writer = Writer(place, "fast", arguments.rate)
    time.sleep(min(WARM, arguments.seconds / 4))
    begin_frames(page)
    begun, at_begin = time.monotonic(), writer.sent
    heaps = []
    while (past := time.monotonic() - begun) < arguments.seconds:
        heaps.append((past / arguments.seconds, heap()))
        time.sleep(min(1, arguments.seconds / 30))
    rate = (writer.sent - at_begin) / (time.monotonic() - begun)
    frames = page.evaluate("window.frames_")
    sent = writer.stop()
    ended = time.monotonic()
    expect(page.get_by_text(f"record {sent - 1} of the bench", exact=True)).to_be_visible(timeout=300000)
    lag = time.monotonic() - ended
    archived = of_archive(console, "fast")
    found, losses = numbers(console)
    console.context.close()
    middle, late = (max(size for part, size in heaps if first <= part < first + 1 / 3) for first in (1 / 3, 2 / 3))
    is_whole = found == list(range(sent - len(found), sent))
    yield "log: records logged in a second", f">= {0.95 * arguments.rate:.0f}", f"{rate:.0f}", rate >= 0.95 * arguments.rate
    yield "log: longest time between two frames, ms", f"<= {FRAME}", f"{frames['worst']:.0f}", frames["worst"] <= FRAME
    yield "log: frames above 100 ms", "0", f"{frames['slow']} of {frames['count']}", frames["slow"] == 0
    yield "log: longest task of the page, ms", "", f"{frames['task']:.0f}", None
    yield "log: heap of the last third, MB", f"<= {middle + GROWTH:.0f}", f"{late:.0f}", late <= middle + GROWTH
    yield "log: last record in sight after the end, s", "", f"{lag:.1f}", None
    yield "log: records of the archive", f"{sent}", f"{archived}", archived == sent
    yield "log: newest rows without a hole, or with a row of loss", f"{len(found)}", f"{len(set(found))} and {losses} losses", is_whole or losses > 0


def fat(place, browser, site, arguments):
    """Fat records freeze nothing."""
    del arguments
    console = enter(browser, site)
    page = console.page
    console.filter("--process fat")
    console.status("Live, following")
    begin_frames(page)
    big = "one " + "x" * 1_000_000
    place.run("log", "send", "--process", "fat", "--acknowledged", "kept", "--timeout", "60s", input=f"{big}\n" + "".join(f"fat {nth} {'y' * 65_000}\n" for nth in range(1000)))
    expect(page.locator(".rows [role=option]").filter(has_text=re.compile("fat 999 "))).to_be_visible(timeout=120000)
    arriving = page.evaluate("window.frames_")
    console.shows(1001)
    begin_frames(page)
    for part in (0.5, 0.2, 0.8, 0):
        page.locator(".rows").evaluate("(box, part) => (box.scrollTop = part * box.scrollHeight)", part)
        page.wait_for_timeout(300)
    scrolling = page.evaluate("window.frames_")
    begin_frames(page)
    page.locator(".rows [role=option]").filter(has_text=re.compile("one x")).first.click()
    expect(page.get_by_role("complementary")).to_contain_text("xxx", timeout=60000)
    page.wait_for_timeout(300)
    opening = page.evaluate("window.frames_")
    console.context.close()
    for name, frames in (("while they come", arriving), ("in a scroll", scrolling), ("opening 1 MB", opening)):
        yield f"fat records: longest frame {name}, ms", f"<= {FRAME}", f"{frames['worst']:.0f}", frames["worst"] <= FRAME


def collector_of(hub):
    """The process of the collector's role below a hub."""
    for process in pathlib.Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
                words = (process / "cmdline").read_bytes().split(b"\0")
            except (OSError, IndexError):
                continue
            if parent == hub.pid and b"collector" in words:
                return process
    raise SystemExit("the hub has no process of the collector")


def cost_of(process, seconds):
    """Processor time of a process in parts of a core."""
    used = lambda: sum(map(int, (process / "stat").read_text().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    begun, before = time.monotonic(), used()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - begun)


def many(place, browser, site, arguments):
    """Consoles cost the collector little."""
    collector = collector_of(place.hub)
    writer = Writer(place, "base", arguments.base)
    time.sleep(WARM)
    seconds = max(10, arguments.seconds / 3)
    alone = cost_of(collector, seconds)
    console = enter(browser, site)
    pages = [console.page, *(console.context.new_page() for _ in range(arguments.consoles - 1))]
    for page in pages:
        page.goto(f"{site}log?q=--process+base")
        expect(page.locator(".state .status")).to_contain_text("Live", timeout=120000)
    time.sleep(WARM)
    with_all = cost_of(collector, seconds)
    console.context.close()
    again = cost_of(collector, seconds)
    writer.stop()
    base = (alone + again) / 2
    growth = 100 * (with_all / base - 1)
    yield "collector without consoles, % of a core", "", f"{100 * alone:.1f} and {100 * again:.1f}", None
    yield f"collector with {arguments.consoles} consoles, % of a core", "", f"{100 * with_all:.1f}", None
    yield f"collector: growth by {arguments.consoles} consoles, %", f"<= {COST}", f"{growth:.0f}", growth <= COST


PARTS = {"first": first, "follow": follow, "fat": fat, "many": many}


def main():
    """Measures, and prints a row for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="first, follow, fat, many; without one all")
    parser.add_argument("--rate", type=int, default=100_000, help="records a second that the page follows")
    parser.add_argument("--seconds", type=float, default=60, help="time of the measurement")
    parser.add_argument("--consoles", type=int, default=20)
    parser.add_argument("--base", type=int, default=10_000, help="records a second while consoles are counted")
    parser.add_argument("--json", action="store_true", help="a JSON object a row")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    missed = False
    for name in arguments.parts or PARTS:
        # A hub of its own, so that no part finds the records of another.
        with console_site("bench", roles=True) as (place, hub, site, browser):
            place.hub = hub
            for verb in ["query", "read"]:
                place.run("access", "allow", "user:*", verb, "**", "--reason", "bench")
            for figure, goal, measured, met in PARTS[name](place, browser, site, arguments):
                missed |= met is False
                if arguments.json:
                    print(json.dumps({"figure": figure, "goal": goal, "measured": measured, "met": met}), flush=True)
                else:
                    print(f"{figure:56} {goal:>12} {measured:>22}  {'' if met is None else 'met' if met else 'missed'}", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
