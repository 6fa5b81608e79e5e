#!/usr/bin/env python3
"""Addresses of the console: hostile ones, links that show the same later and elsewhere, and the ways to a time.

Every view with conditions and names that stand twice; records older than the range of their link; times without a zone;
a search that runs out of time; the grip of the histogram, the field for a time, error chains with branches.
"""

import datetime
import json
import re
import sys
import urllib.parse

from console_page import VIEWS, Console, console_site
from hub import check, until
from playwright.sync_api import expect

HOSTILE = {
    "log": ["lock lock", "--exclude a --exclude a", "-- -a -a -b", "--source a,a --field host=x --field host=x --not host=x --not host=x", "--level Info,Info", "--where 'a = 1' --since 1h 'x' x"],
    "timeline": ["event=a/b/c/d,A/B/C/D,a/b/c/d", "event=,,%2C&lanes=log,log", "q=a+a", "last=-1h&at=x&speed=1e99"],
    "attributes": ["a=a/b/c/d*a/b/c/d*A/B/C/D*a/b/c/d#1*a/b/c/d%231*a/b/c/d%231", "a=**&axes=x&range=x&log=V,V", "device=a/b/c&q=a+a"],
    "bulk": ["transfer=x&transfer=x", "stream=a&flow=a"],
    "site": ["source=hub&readers=all", "source=%F0%9F%98%80"],
    "settings": ["part=mine&part=mine", "part=constructor"],
    "book": ["q=a+a&book=__proto__", "entry=1&entry=1&book=a"],
}
# Of the answers that the collector gives, the page reads those about rare records as such that ran out of time at CUT.
CUT = """() => {
  const { parse } = JSON;
  JSON.parse = (text, ...more) => {
    const read = parse(text, ...more);
    if (window.cut && read?.scanned) {
      window.asked = (window.asked ?? 0) + 1;
      read.scanned = { ...read.scanned, complete: false, cursor: { time: window.cut, id: { incarnation: "00000000-00000000-0000000000000000", ring: 0, number: 0 } } };
    }
    return read;
  };
}"""


def parameters(page):
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(page.evaluate("location.href")).query)
    return {name: values[0] for name, values in query.items()}


def opens(console, address):
    """Goes to an address; the header and the view are there, and nothing failed."""
    page = console.page
    page.goto(console.site + address)
    expect(page.get_by_role("navigation", name="Views")).to_be_visible(timeout=30000)
    expect(page.locator("main")).not_to_have_text(re.compile(r"^\s*(Loading…)?\s*$"), timeout=30000)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    # Questions that the hub refuses are not the page's faults.
    console.faults[:] = [fault for fault in console.faults if not re.search("status of 4", fault)]
    check(f"{address}: {console.faults}", console.faults == [] and page.get_by_text("This view could not be shown").count() == 0)


def hostile(console):
    print("hostile addresses")
    page = console.page
    for view in VIEWS:
        for words in HOSTILE[view]:
            opens(console, f"{view}?{urllib.parse.urlencode({'q': words}) if view == 'log' else words}")
            if view == "log":
                expect(page.get_by_role("list", name="Conditions").get_by_role("listitem").first).to_be_visible(timeout=30000)
                console.status("Live")
    page.goto(f"{console.site}log")
    console.filter("-- -a -b")
    page.get_by_role("button", name="Remove -a").click()
    expect(page.get_by_role("list", name="Conditions").get_by_role("listitem")).to_have_text(["-b×"], timeout=30000)


def old(place):
    """A minute of records, ten hours ago; gives its begin."""
    at = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=10)).replace(microsecond=0)
    stamp = lambda nth: f"{at + datetime.timedelta(seconds=nth):%Y-%m-%dT%H:%M:%SZ}"
    night = [{"time": stamp(nth), "level": "Error" if nth == 30 else "Info", "message": f"step {nth}", "source_object": "DOME"} for nth in range(600)]
    place.run("log", "import", "-", input="".join(f"{json.dumps(one)}\n" for one in night))
    return at


def at_end(console):
    """Follows the end again, from a place in the past."""
    console.page.get_by_role("button", name="To the end").click()
    console.status("Live, following")


def permalinks(console):
    print("links to a record")
    page = console.page
    rows = page.get_by_role("listbox", name="Log records")
    console.filter("--source DOME --since 1d")
    console.shows(600)
    page.get_by_label("Level from").select_option("Error")
    rows.get_by_text("step 30", exact=True).click(timeout=30000)
    record = until("the address has the record", lambda: parameters(page).get("record"))
    # The address of somebody whose range was the last hour, ten hours ago.
    page.goto(f"{console.site}log?{urllib.parse.urlencode({'q': '--source DOME --since 1h', 'record': record})}")
    expect(page.get_by_role("complementary", name="Record")).to_contain_text("step 30", timeout=30000)
    expect(rows.get_by_text("step 30", exact=True)).to_be_visible(timeout=30000)
    expect(rows.get_by_text("step 29", exact=True)).to_be_visible(timeout=30000)
    check("the filter says so", re.search(r"--since \d{4}-\d\d-\d\dT[\d:.]+Z", parameters(page)["q"]))
    # A shorter range by hand is what it says.
    page.get_by_role("button", name="Close").click()
    page.get_by_label("Range").select_option("1 hour")
    console.shows(0)
    check("without the record", "record" not in parameters(page) and "at" not in parameters(page))


def links(browser, console, begin):
    print("links of the view")
    page = console.page
    console.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copied = lambda: page.evaluate("navigator.clipboard.readText()")
    console.filter("--source DOME --since 1d")
    console.status("Live, following")
    console.shows(600)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied")).to_be_visible(timeout=30000)
    link = urllib.parse.parse_qs(urllib.parse.urlsplit(copied()).query)
    check(f"the times of a link are whole ({link})", re.search(r"--since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", link["q"][0]) and link["at"][0].endswith("Z"))
    rows = page.get_by_role("listbox", name="Log records")
    top = rows.locator("[role=option] .message").first.inner_text()
    page.goto(copied())
    expect(rows.get_by_text(top, exact=True)).to_be_visible(timeout=30000)
    at_end(console)
    # A time of day is that of the one who wrote it, wherever and whenever the address is opened.
    clock = f"{begin:%H:%M:%S}"
    page.get_by_label("Times in").select_option("utc")
    day = "yesterday" if begin.date() != datetime.datetime.now(datetime.timezone.utc).date() else None
    console.filter(f"--source DOME --since {day or clock}")
    console.shows(600)
    console.status("Live, following")
    address = until("the address has a whole time", lambda: page.url if re.search(r"since.\d{4}", page.url) else None)
    other = Console(browser, console.site, timezone_id="Pacific/Auckland")
    other.log_in()
    other.page.get_by_label("Times in").select_option("local")
    other.page.goto(address)
    other.shows(600)
    check("nothing else is meant elsewhere", other.page.url == address)
    other.context.close()


def ways(console, begin):
    print("ways to a time")
    page = console.page
    rows = page.get_by_role("listbox", name="Log records")
    console.filter("--source DOME --since 1d")
    console.status("Live, following")
    console.shows(600)
    stamp = lambda nth: f"{begin + datetime.timedelta(seconds=nth):%Y-%m-%dT%H:%M:%SZ}"
    page.locator("body").press("t")
    field = page.get_by_label("Go to", exact=True)
    expect(field).to_be_focused()
    field.fill("soon")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This is not a time.")).to_be_visible()
    field.fill(stamp(100))
    page.keyboard.press("Enter")
    expect(rows.get_by_text("step 100", exact=True)).to_be_visible(timeout=30000)
    expect(rows).to_be_focused()
    # A time outside of the range makes it longer.
    console.filter("--source DOME --since 1h")
    console.shows(0)
    page.locator("body").press("t")
    field.fill(stamp(200))
    page.keyboard.press("Enter")
    expect(rows.get_by_text("step 200", exact=True)).to_be_visible(timeout=30000)

    print("the grip of the histogram")
    console.filter(f"--source DOME --since {stamp(0)} --until {stamp(600)}")
    console.status("Past")
    console.shows(600)
    grip = page.get_by_role("slider", name="Scroll through time")
    grip.focus()
    page.keyboard.press("Home")
    expect(rows.get_by_text("step 0", exact=True)).to_be_visible(timeout=30000)
    expect(grip).to_have_attribute("aria-valuenow", "0")
    expect(grip).to_have_attribute("aria-valuetext", re.compile(f"In sight: {stamp(0)}"))
    page.keyboard.press("PageUp")
    until("a page of bars on", lambda: grip.get_attribute("aria-valuenow") != "0")
    expect(rows.get_by_text("step 0", exact=True)).to_have_count(0, timeout=30000)
    check("it keeps the focus", grip.evaluate("(grip) => grip === document.activeElement"))
    box, all_of_it = grip.bounding_box(), page.locator(".histogram svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(all_of_it["x"] + all_of_it["width"] * 0.9, box["y"] + 5, steps=5)
    expect(rows.get_by_text("step 540", exact=True)).to_be_visible(timeout=30000)
    page.mouse.up()
    check("a drag of the grip chooses no range", stamp(600) in parameters(page)["q"])
    console.axe("the grip of the histogram")


def summaries(console):
    print("Space opens what has the focus")
    page = console.page
    at_end(console)
    for name in ["patterns", "saved"]:
        panel = page.locator(f"details.{name}")
        panel.locator("summary").focus()
        page.keyboard.press(" ")
        until(f"{name} opens", lambda panel=panel: panel.evaluate("(panel) => panel.open"))
        check("and nothing pauses", "paused" not in parameters(page))
        page.keyboard.press(" ")
        until(f"{name} closes", lambda panel=panel: not panel.evaluate("(panel) => panel.open"))
    console.status("Live, following")


def rare(console, begin):
    print("a search that runs out of time")
    page = console.page
    page.evaluate(CUT)
    cut = int((begin - datetime.timedelta(hours=1)).timestamp())
    page.evaluate(f"() => (window.cut = {cut} * 1e9)")
    console.filter("--source DOME --min-level Error --since 1d")
    console.shows(1)
    searched = page.get_by_text("The search reached its time limit. It has gone back to")
    expect(searched).to_contain_text(f"{begin - datetime.timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}", timeout=30000)
    asked = page.evaluate("window.asked")
    page.locator(".rows").evaluate("(box) => { box.scrollTop = 0; box.dispatchEvent(new Event('scroll')); }")
    page.set_viewport_size({"width": 1400, "height": 880})
    page.evaluate("() => new Promise((done) => setTimeout(done, 500))")
    check("it does not go on by itself", page.evaluate("window.asked") == asked)
    console.axe("a search that ran out of time")
    page.evaluate("() => (window.cut = undefined)")
    page.get_by_role("button", name="Search on").click()
    expect(searched).to_have_count(0, timeout=30000)
    console.shows(1)


def chains(place, console):
    print("an error chain with branches")
    page = console.page
    for level, text in [(0, "observation failed"), (1, "antenna one"), (2, "its drive"), (1, "antenna two"), (2, "its receiver")]:
        place.run("log", "send", text, "--process", "chains", "--acknowledged", "kept", "--level", "Error", "--stack", "chain-9", "--stack-level", str(level))
    console.filter("--process chains")
    console.shows(5)
    page.locator(".rows").get_by_text("its receiver", exact=True).click()
    detail = page.get_by_role("complementary", name="Record")
    item = lambda text: detail.get_by_role("listitem").filter(has=page.get_by_role("button", name=re.compile(text)))
    expect(item("antenna two").last.get_by_role("listitem")).to_have_count(1, timeout=30000)
    expect(item("antenna two").last.get_by_role("listitem")).to_contain_text("its receiver")
    expect(item("antenna one").last.get_by_role("listitem")).to_contain_text("its drive")
    expect(item("observation failed").last.get_by_role("listitem")).to_have_count(4)
    console.axe("an error chain")


def main():
    with console_site("links") as (place, _, site, browser):
        for verb in ["query", "read"]:
            place.run("access", "allow", "user:*", verb, "**", "--reason", "operators look")
        begin = old(place)
        console = Console(browser, site, viewport={"width": 1400, "height": 900})
        console.log_in()
        hostile(console)
        permalinks(console)
        links(browser, console, begin)
        ways(console, begin)
        summaries(console)
        rare(console, begin)
        chains(place, console)
        check(f"no faults in the page: {console.faults}", console.faults == [])
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
