#!/usr/bin/env python3
"""The console's timeline in a real browser beside the simulated observatory.

Lanes and their values at one cursor; zoom from a year to a microsecond, brush, pan, keys; links of items; live and
replay; permalink and snapshot; rights; themes, a phone, no barriers (axe).
"""

import datetime
import json
import re
import sys
import urllib.parse

from console_page import Console, console_site, snapshot_picture
from hub import check, until
from playwright.sync_api import expect

WIND = "obs/weather/1/wind"
STATE = "obs/lo/dv05/state"
POSITION = "obs/mount/dv05/position"


def nanos(text):
    """Nanoseconds of a time with nine decimals."""
    day = datetime.datetime.fromisoformat(text[:19] + "+00:00")
    return int(day.timestamp()) * 10**9 + int(text[20:29])


class Timeline(Console):
    """The view, and its state as the address has it."""

    def visit(self, parameters=""):
        self.page.goto(f"{self.site}timeline{parameters}")
        expect(self.page.locator(".stage")).to_be_visible(timeout=30000)

    def parameters(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.page.evaluate("location.href")).query)
        return {name: values[0] for name, values in query.items()}

    def range(self):
        """The range of the address, once it has one."""
        there = until("the address has a range", lambda: (lambda all: all if "from" in all else None)(self.parameters()))
        return nanos(there["from"]), nanos(there["to"])

    def box(self):
        return self.page.locator(".axis .picture").bounding_box()

    def lane(self, name):
        return self.page.get_by_role("region", name=name, exact=True)

    def cursor(self):
        return nanos(self.page.locator(".axis .time").inner_text().replace(" ", "T"))

    def hover(self, part, lane="Log"):
        """Moves the pointer to a part of the width, over a lane."""
        box, at = self.box(), self.lane(lane).locator(".picture").bounding_box()
        self.page.mouse.move(box["x"] + part * box["width"] + 1, at["y"] + 3)
        self.page.mouse.move(box["x"] + part * box["width"], at["y"] + 3)


def rights(place, browser, site):
    print("rights")
    view = Timeline(browser, site)
    view.page.goto(site)
    view.page.get_by_label("Login").fill("zoe")
    view.page.get_by_label("Password").fill("correct horse battery")
    view.page.get_by_role("button", name="Log in").click()
    expect(view.page.locator(".connection")).to_have_class(re.compile("open"), timeout=30000)
    view.visit("?last=15m")
    expect(view.page.get_by_role("alert").filter(has_text="may not")).to_have_count(2, timeout=30000)
    expect(view.lane("Logbook")).to_be_visible()
    for verb in ["query", "read"]:
        place.run("access", "allow", "user:*", verb, "**", "--reason", "operators look")
    view.context.close()


def lanes(view):
    print("lanes")
    page = view.page
    view.visit("?last=2h")
    expect(page.locator(".state .status")).to_have_text("Live, following")
    expect(view.lane("Log").locator("path.bar").first).to_be_attached(timeout=30000)
    expect(view.lane("Transfers").locator("a.box").first).to_be_visible(timeout=60000)
    expect(view.lane("Logbook").locator(".entry").first).to_be_visible(timeout=30000)
    for name in [WIND, STATE, POSITION]:
        page.get_by_label("Add an attribute").fill(name)
        page.keyboard.press("Enter")
        expect(view.lane(name)).to_be_visible()
    expect(view.lane(WIND).locator(".value")).to_contain_text("m/s", timeout=30000)
    expect(view.lane(STATE).locator("rect.segment").first).to_be_attached(timeout=30000)
    check("the address has the attributes", view.parameters()["event"] == ",".join([WIND, STATE, POSITION]))
    page.get_by_role("button", name=f"Move {STATE} up").click()
    until("the order changes", lambda: view.parameters()["event"].startswith(STATE))
    page.get_by_role("button", name=f"Remove {POSITION}").click()
    expect(view.lane(POSITION)).to_have_count(0)
    page.get_by_role("checkbox", name="Alarms").uncheck()
    expect(view.lane("Alarms")).to_have_count(0)
    check("the address has the lanes", view.parameters()["lanes"] == "log,transfers,entries")
    page.get_by_role("checkbox", name="Alarms").check()
    page.get_by_label("Records", exact=True).fill("--min-level Nonsense")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("is not a level")
    page.get_by_label("Records", exact=True).fill("--min-level Warning")
    page.keyboard.press("Enter")
    expect(view.lane("Log").locator("path.level-Debug")).to_have_count(0, timeout=30000)
    check("the address has the filter", view.parameters()["q"] == "--min-level Warning")
    view.axe("timeline")


def cursor(place, view):
    print("one cursor")
    page = view.page
    kept = lambda: [json.loads(row) for row in place.run("event", "history", WIND, "--json").stdout.splitlines()]
    events = until("the observatory publishes once a minute", lambda: (lambda all: all if len(all) >= 2 else None)(kept()), 120)
    first, second = nanos(events[-2]["time"]), nanos(events[-1]["time"])
    span = 4 * (second - first)
    begin = first - (second - first)
    text = lambda ns: f"{datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC):%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09}Z"
    view.visit(f"?from={text(begin)}&to={text(begin + span)}&event={WIND},{STATE}")
    expect(view.lane(WIND).locator("path.line")).to_be_attached(timeout=30000)
    for part, event in [(0.4, events[-2]), (0.49, events[-2]), (0.51, events[-1])]:
        view.hover(part)
        number = float(re.match(r"[-\d.]+", view.lane(WIND).locator(".value").inner_text()).group(0))
        check(f"the value at {part} is that of the event before ({number})", abs(number - event["value"]) < 1e-3 * abs(event["value"]) + 1e-6)
        check("the cursor is below the pointer", abs(view.cursor() - (begin + part * span)) < span / 200)
        check("it is one line over all lanes", page.locator(".over .cursor").count() == 1)
    spoken = page.get_by_role("slider").get_attribute("aria-valuetext")
    check(f"it is spoken with the values ({spoken})", WIND in spoken and STATE in spoken)
    box = view.lane("Log").locator(".picture").bounding_box()
    page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + 1)
    until("a click holds it", lambda: "at" in view.parameters())
    held = nanos(view.parameters()["at"])
    check("where the click was", abs(held - (begin + 0.25 * span)) < span / 200)
    view.hover(0.5)
    expect(page.locator(".axis .beside")).to_contain_text("after the held cursor")
    page.mouse.move(5, 5)
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    until("a key moves it", lambda: nanos(view.parameters()["at"]) == held + span * 20_000 // 10**6)
    page.keyboard.press("Escape")
    until("it is let go", lambda: "at" not in view.parameters())


def cut(view):
    print("more than a lane shows")
    page = view.page

    page.add_init_script("""{
      const { json } = Response.prototype;
      Response.prototype.json = async function () {
        const read = await json.call(this);
        return window.name === "cut" && this.url.includes("/api/v1/timeline?") ? { ...read, cut: ["transfers", "entries"] } : read;
      };
    }""")
    page.evaluate("() => (window.name = 'cut')")
    view.visit("?last=2h&lanes=transfers,entries")
    expect(page.get_by_text(re.compile("^Transfers: only the newest [0-9]+ are shown"))).to_be_visible(timeout=60000)
    expect(page.get_by_text(re.compile("^Logbook: only the newest [0-9]+ are shown"))).to_be_visible(timeout=30000)
    page.get_by_role("checkbox", name="Logbook").uncheck()
    expect(page.get_by_text(re.compile("^Logbook: only"))).to_have_count(0, timeout=30000)
    view.axe("more than a lane shows")
    page.evaluate("() => (window.name = '')")


def zooms(view):
    print("from a year to a microsecond")
    page = view.page
    view.visit("?last=365d")
    page.get_by_role("button", name="Zoom out").wait_for()
    page.keyboard.press("PageUp")
    begin, end = view.range()
    check("it begins with a year and stands still", end - begin == 365 * 86400 * 10**9)
    view.hover(0.8)
    below = view.cursor()
    for _ in range(400):
        page.mouse.wheel(0, -400)
        if len(page.locator(".axis .tick").first.inner_text()) >= 9:
            break
    for _ in range(60):
        page.mouse.wheel(0, -400)
    until("the range is a microsecond", lambda: (lambda ends: ends[1] - ends[0] == 1000)(view.range()))
    begin, end = view.range()
    check("the time below the pointer is still in sight", begin <= below <= end)
    expect(page.locator(".axis .tick").first).to_have_text(re.compile(r"^\d\d\.\d{7,9}$"))
    until("the lanes are there", lambda: view.lane("Log").get_by_text("no records").count() == 1)
    page.get_by_label("Range").select_option("1h")
    until("a chosen length", lambda: (lambda ends: ends[1] - ends[0] == 3600 * 10**9)(view.range()))

    print("brush, pan, back")
    box = view.box()
    before = view.range()
    y = view.lane("Transfers").locator(".picture").bounding_box()["y"] + 20
    page.mouse.move(box["x"] + 0.25 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], y, steps=4)
    expect(page.locator(".over .brush")).to_be_visible()
    page.mouse.up()
    until("the brush chooses the range", lambda: abs(view.range()[0] - (before[0] + 900 * 10**9)) < 10**10 and abs(view.range()[1] - (before[0] + 1800 * 10**9)) < 10**10)
    brushed = view.range()
    page.go_back()
    until("back is the range before", lambda: view.range() == before)
    page.go_forward()
    until("forward is the brushed one", lambda: view.range() == brushed)
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 0.25 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    until("Shift and drag move it", lambda: abs(view.range()[0] - (brushed[0] - 225 * 10**9)) < 5 * 10**9)
    check("its length stays", view.range()[1] - view.range()[0] == brushed[1] - brushed[0])
    page.keyboard.press("+")
    until("+ zooms in", lambda: abs((view.range()[1] - view.range()[0]) * 2 - (brushed[1] - brushed[0])) <= 2)
    page.keyboard.press("l")
    expect(page.locator(".state .status")).to_have_text("Live, following")


def live_and_replay(place, view):
    print("live")
    page = view.page
    view.visit("?last=1m&q=--process+fresh")
    expect(view.lane("Log").locator(".picture svg")).to_be_attached()
    expect(page.get_by_text("No record in this range before the cursor.")).to_be_visible(timeout=30000)
    place.run("log", "send", "--process", "fresh", "--acknowledged", "kept", "--level", "Error", input="now it happens\n")
    expect(view.lane("Log").locator("path.level-Error")).to_be_attached(timeout=30000)
    expect(page.locator(".records")).to_contain_text("now it happens", timeout=30000)
    first = view.cursor()
    until("it follows", lambda: view.cursor() > first + 10**9)
    page.keyboard.press(" ")
    begin, end = view.range()
    expect(page.locator(".state .status")).to_contain_text("Past")

    print("replay")
    text = urllib.parse.quote
    view.visit(f"?from={begin}&to={end}")
    start = page.url
    begin, end = end - 60 * 10**9, end
    iso = lambda ns: f"{datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC):%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09}Z"
    begin -= 600 * 10**9
    view.visit(f"?from={text(iso(begin))}&to={text(iso(begin + 60 * 10**9))}")
    check("another address", page.url != start)
    page.get_by_role("button", name="Replay", exact=True).click()
    page.get_by_label("Speed").select_option("10")
    expect(page.locator(".state .status")).to_have_text("Replay, 10×")
    page.mouse.move(5, 5)
    at = view.cursor()
    until("the playhead moves", lambda: view.cursor() > at + 5 * 10**9)
    expect(page.locator(".over .veil")).to_be_attached()
    page.keyboard.press(" ")
    expect(page.locator(".state .status")).to_have_text("Replay, paused")
    at = view.cursor()
    page.wait_for_timeout(500)
    check("a pause holds it", view.cursor() == at)
    page.keyboard.press(">")
    page.keyboard.press(">")
    expect(page.get_by_label("Speed")).to_have_value("600")
    until("the address has the speed", lambda: view.parameters().get("speed") == "600")
    page.keyboard.press(" ")
    expect(page.locator(".state .status")).to_have_text("Live, following", timeout=60000)
    check("it caught up with the present", "speed" not in view.parameters())


def links(view):
    print("links")
    page = view.page
    view.visit(f"?last=2h&event={WIND}")
    box = view.lane("Transfers").locator("a.box").first
    expect(box).to_be_visible(timeout=30000)
    check("a transfer leads to it", "/bulk?transfer=" in box.get_attribute("href"))
    check("an attribute leads to it", f"/attributes?a={urllib.parse.quote(WIND, safe='')}" in view.lane(WIND).get_by_role("link").first.get_attribute("href"))
    entry = view.lane("Logbook").locator("a.entry").first
    check("an entry leads to it", re.search(r"/book\?book=Shift\+log&entry=\d+$", entry.get_attribute("href")))
    page.keyboard.press(" ")
    view.range()
    page.get_by_role("region", name="Records before the cursor").get_by_role("link").first.click()
    expect(page.get_by_role("complementary", name="Record")).to_be_visible(timeout=30000)
    page.go_back()
    expect(view.lane("Log").locator("path.bar").first).to_be_attached(timeout=30000)
    bar = view.lane("Log").locator("path.bar").first
    foot = bar.evaluate("(path) => { const { x, y } = path.getPointAtLength(0); const { left, top } = path.ownerSVGElement.getBoundingClientRect(); return [left + x, top + y]; }")
    page.mouse.click(foot[0] + 1, foot[1] - 1)
    expect(page.get_by_role("listbox", name="Log records")).to_be_visible(timeout=30000)
    check("a bar leads to its records", "at=" in page.url and "--until" in page.url)
    page.go_back()


def permalink(browser, site, view):
    print("permalink and snapshot")
    page = view.page
    view.visit(f"?last=2h&event={WIND},{STATE}&q=--min-level+Info")
    expect(view.lane(WIND).locator("path.line")).to_be_attached(timeout=30000)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    view.hover(0.7)
    at = view.cursor()
    page.keyboard.press("y")
    link = until("the link is copied", lambda: page.evaluate("window.copied"))
    other = view.context.new_page()
    other.goto(link)
    expect(other.locator(".axis .time")).to_be_visible(timeout=30000)
    copy = Timeline.__new__(Timeline)
    copy.page, copy.site = other, site
    # The link has the range as it was when the key was pressed; the range of the page itself moves on.
    check("another page shows the same time", abs(copy.cursor() - at) < 10**9 and copy.range()[1] - copy.range()[0] == 7200 * 10**9)
    expect(copy.lane(WIND)).to_be_visible()
    expect(other.get_by_label("Records", exact=True)).to_have_value("--min-level Info")
    other.close()

    # The snapshot has what is in sight.
    expect(view.lane("Log").locator("path.bar").first).to_be_attached(timeout=30000)
    expect(view.lane("Transfers").locator("a.box").first).to_be_visible(timeout=60000)
    page.get_by_role("button", name="Snapshot into an entry").click()
    page.wait_for_url(re.compile(r"/book\?book=Shift\+log&entry=new&"))
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(page.url).query)
    text = query["text"][0]
    parts = ["/timeline?from=", f"| {WIND} | ", "Records: ", "Transfers:"]
    check(f"the text has the link and the values: {text if any(part not in text for part in parts) else ''}", all(part in text for part in parts))
    wide, high, colours = snapshot_picture(page, "tampu-timeline-")
    check(f"it has a picture of the lanes: {wide}x{high}, {colours} colours", wide > 1500 and high > 400 and colours > 8)
    check("the entry has the attributes as links", [link.split("@")[0] for link in query["link"][0].split("\n")] == [f"event:{WIND}", f"event:{STATE}"])


def looks(browser, site, view):
    print("looks")
    page = view.page
    view.visit(f"?last=15m&event={WIND},{STATE}")
    expect(view.lane(STATE).locator("rect.segment").first).to_be_attached(timeout=30000)
    for theme in ["dark", "night", "light"]:
        page.get_by_label("Theme").select_option(theme)
        view.axe(f"theme {theme}")
    page.locator("body").press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Replay from the cursor")
    page.keyboard.press("Escape")
    phone = Timeline(browser, site, viewport={"width": 390, "height": 800}, has_touch=True)
    phone.log_in()
    phone.visit(f"?last=15m&event={WIND},{STATE}")
    expect(phone.lane(WIND).locator("path.line")).to_be_attached(timeout=30000)
    check("a phone shows no wider page", phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    phone.axe("phone")
    check(f"a phone has no faults: {phone.faults}", phone.faults == [])
    phone.context.close()


def main():
    with console_site("timeline", "--demo", "--no-tail") as (place, _, site, browser):
        rights(place, browser, site)
        view = Timeline(browser, site, viewport={"width": 1400, "height": 1000})
        view.log_in()
        lanes(view)
        zooms(view)
        live_and_replay(place, view)
        links(view)
        permalink(browser, site, view)
        looks(browser, site, view)
        cut(view)
        cursor(place, view)
        check(f"no faults in the page: {view.faults}", view.faults == [])
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
