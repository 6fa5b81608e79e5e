#!/usr/bin/env python3
"""The console's log view in a real browser beside a real hub: Debian's Chromium, driven by Playwright.

Login; the archive and live records without hole or double; filters and their command; pause; reading while records
come; a hub that is restarted; hostile texts; a slow browser; keys; themes; a phone; a proxy's path; no barriers (axe).
"""

import datetime
import io
import json
import pathlib
import re
import shlex
import sys
import urllib.parse
from xml.etree import ElementTree

import pyarrow.parquet

from console_page import Console, PASSWORD, console_site
from console_proxy import Proxy
from hub import check, until
from playwright.sync_api import expect

# The first row that is whole in sight: its message, and its distance from the upper edge.
LOOK = "(box) => { const top = box.getBoundingClientRect().top; return [...box.querySelectorAll('[role=option]')].map((row) => [row.querySelector('.message').textContent, row.getBoundingClientRect().top - top]).find(([, at]) => at > 0); }"
HOSTILE = [
    "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>",
    "{@html 'x'} ${window.hit=1} \" onmouseover=window.hit=1 '",
    "right\u202eleft \u2066isolated\u200b zero\ufeff",
    "escape \x1b[31m \x1b]0;title\x07 bell",
    "line one\nline two\ttab",
    "=HYPERLINK(1)",
    "x" * 50_000,
]


def send(place, process, texts, *arguments):
    """Logs these texts, one record each; returns once the archive has them."""
    place.run("log", "send", "--process", process, "--acknowledged", "kept", *arguments, input="".join(f"{text}\n" for text in texts))


def numbered(begin, end):
    return [f"record {number}" for number in range(begin, end)]


def logins(browser, site):
    print("login")
    console = Console(browser, site)
    page = console.page
    page.goto(site)
    expect(page.get_by_role("heading", name="Log in")).to_be_visible(timeout=30000)
    console.axe("login")
    page.get_by_label("Login").fill("zoe")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).not_to_be_empty(timeout=30000)
    console.log_in()
    check("the page has a session", any(cookie["httpOnly"] for cookie in console.context.cookies()))
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible(timeout=30000)
    console.context.close()


def archive_and_live(place, console):
    print("the archive, then live records")
    send(place, "first", numbered(0, 1500))
    console.log_in()
    console.filter("--process first")
    console.status("Live, following")
    console.shows(1000)
    check("it begins with the newest of the archive", console.messages() == numbered(500, 1500))
    send(place, "first", numbered(1500, 1600))
    console.shows(1100)
    check("live records follow without hole or double", console.messages() == numbered(500, 1600))
    expect(console.page.get_by_text("record 1599", exact=True)).to_be_visible()
    console.page.locator(".rows").evaluate("(box) => (box.scrollTop = 0)")
    console.shows(1600)
    check("scrolling up brings the older ones", console.messages() == numbered(0, 1600))
    xml = console.download("xml")
    found = [record.text for record in ElementTree.fromstring(xml).iter("Info")]
    check("so has a file of the hub", found == numbered(0, 1600))
    check("also in Parquet", len(pyarrow.parquet.read_table(io.BytesIO(console.download("parquet")))) == 1600)
    check("they come above the row in sight", console.page.locator(".rows").evaluate(LOOK)[0].startswith("record 50"))
    label = console.page.locator(".histogram svg").get_attribute("aria-label")
    until("the histogram counts all", lambda: "1600 records" in console.page.locator(".histogram svg").get_attribute("aria-label"))
    check("it names its range", " from " in label)


def older(console):
    """Shows the older records too, as before."""
    console.status("Live, following")
    console.page.locator(".rows").evaluate("(box) => (box.scrollTop = 0)")
    console.shows(1600)


def highlights(console):
    print("highlights")
    page = console.page
    page.locator("body").press("h")
    expect(page.get_by_label("Highlight", exact=True)).to_be_focused()
    page.keyboard.type("'record 159' 1599 RECORD nothing")
    first, second, third = (page.locator(f".rows mark.light-{nth}") for nth in (1, 2, 3))
    console.page.locator(".rows").evaluate("(box) => (box.scrollTop = box.scrollHeight)")
    expect(first.last).to_have_text("record 159", timeout=30000)
    check("the longest phrase wins", second.count() == 0 and first.count() == 10)
    expect(third.first).to_have_text("record")
    looks = [one.first.evaluate("(mark) => [getComputedStyle(mark).textDecorationStyle, getComputedStyle(mark).textDecorationColor].join()") for one in (first, third)]
    check("highlights differ", len(set(looks)) == 2)
    console.shows(1600)
    check("the address has them", "highlight=" in page.url)
    console.axe("highlights")
    page.reload()
    expect(page.get_by_role("group", name="Highlights").locator("mark")).to_have_text(["record 159", "1599", "RECORD", "nothing"], timeout=30000)
    page.get_by_label("Highlight", exact=True).fill("")
    expect(page.locator(".rows mark")).to_have_count(0, timeout=30000)
    older(console)


def saved(browser, console):
    print("saved filters")
    page = console.page
    panel = page.locator("details.saved")

    def open_panel(of=page):
        of.locator("details.saved summary").click()

    open_panel()
    expect(panel.get_by_text("Nothing is saved yet.")).to_be_visible(timeout=30000)
    panel.get_by_label("Save this filter as").fill("the <b>first</b> process")
    panel.get_by_label("For all users").check()
    panel.get_by_role("button", name="Save", exact=True).click()
    name = panel.get_by_role("button", name="the <b>first</b> process", exact=True)
    expect(name).to_be_visible(timeout=30000)
    panel.get_by_label("Save this filter as").fill("mine alone")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("listitem")).to_have_count(2, timeout=30000)
    console.axe("saved filters")
    page.keyboard.press("Escape")
    check("Escape closes the list", not panel.evaluate("(panel) => panel.open"))
    console.filter("--process nobody")
    console.shows(0)
    open_panel()
    name.click()
    expect(page.get_by_role("combobox", name="Filter")).to_have_value("--process first", timeout=30000)
    check("a choice closes the list", not panel.evaluate("(panel) => panel.open"))
    other = Console(browser, console.site)
    other.log_in("max")
    open_panel(other.page)
    expect(other.page.locator("details.saved li")).to_have_count(1, timeout=30000)
    check("others see what is shared, and its owner", "of zoe" in other.page.locator("details.saved li").inner_text())
    check("they cannot delete it", other.page.get_by_role("button", name="Delete the filter").count() == 0)
    other.context.close()
    open_panel()
    panel.get_by_role("button", name="Delete the filter mine alone").click()
    expect(panel.get_by_role("listitem")).to_have_count(1, timeout=30000)
    page.keyboard.press("Escape")
    older(console)


def reading(place, console):
    print("reading while records come")
    page = console.page
    page.locator(".rows").evaluate("(box) => (box.scrollTop = box.scrollHeight / 2 + 7)")
    console.status("reading")
    # The list shows the rows of its new place with the next picture.
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    before = page.locator(".rows").evaluate(LOOK)
    send(place, "first", numbered(1600, 1700))
    console.status("100 new below")
    after = page.locator(".rows").evaluate(LOOK)
    check(f"the row in sight has not moved ({before} and {after})", after == before)
    page.get_by_role("button", name="To the end").click()
    expect(page.get_by_text("record 1699", exact=True)).to_be_visible()
    console.status("Live, following")


def pausing(place, console):
    print("pause")
    page = console.page
    page.get_by_role("button", name="Pause").click()
    send(place, "first", numbered(1700, 1750))
    console.status("Paused, 50 waiting")
    check("nothing came while it was paused", console.messages()[-1] == "record 1699")
    check("the address says that it is paused", "paused=yes" in page.url)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("record 1749", exact=True)).to_be_visible()
    check("all came afterwards", console.messages() == numbered(0, 1750))


def filters(place, console):
    print("filters")
    page = console.page
    send(place, "second", ["LO1 lost its lock"], "--level", "Error", "--source", "CONTROL/DV05", "--value", "kelvin=4.7", "--stack", "chain-1", "--stack-level", "0")
    send(place, "second", ["mount stopped"], "--level", "Critical", "--source", "CONTROL/DV05", "--stack", "chain-1", "--stack-level", "1")
    send(place, "second", ["all is well"], "--level", "Info", "--source", "CONTROL/DV06")
    console.filter("--process second --where 'kelvin > 4.5'")
    console.shows(1)
    console.filter("--process second --where 'kelvin >'")
    expect(console.page.get_by_role("alert").filter(has_text="The hub cannot search with this filter")).to_be_visible(timeout=30000)
    console.filter("--process second --min-level Error --since 1h")
    console.shows(2)
    check("the address has the filter", "q=--process+second+--min-level+Error+--since+1h" in page.url)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="Copy as command").click()
    until("the command is copied", lambda: page.evaluate("window.copied"))
    command = shlex.split(page.evaluate("window.copied").replace("log tail", "log query"))
    done = place.run(*command[1:], "--oldest-first", "--json")
    texts = [json.loads(text)["message"] for text in done.stdout.splitlines()]
    check("the command shows the same records", texts == console.messages() == ["LO1 lost its lock", "mount stopped"])

    print("the record")
    page.get_by_text("LO1 lost its lock").click()
    detail = page.get_by_role("complementary", name="Record")
    expect(detail).to_contain_text("kelvin")
    expect(detail.locator(".chain li")).to_have_count(2)
    console.axe("log with a record")
    link = page.url
    page.get_by_role("button", name="Without source CONTROL/DV05", exact=True).click()
    console.shows(0)
    page.go_back()
    console.shows(2)
    other = console.context.new_page()
    other.goto(link)
    expect(other.get_by_role("complementary", name="Record")).to_contain_text("LO1 lost its lock", timeout=30000)
    other.get_by_role("button", name="Show context").click()
    expect(other.locator(".rows").get_by_text("all is well")).to_be_visible(timeout=30000)
    other.close()
    page.get_by_role("button", name="Close").click()

    page.get_by_role("combobox", name="Filter").fill("--where li")
    expect(page.get_by_role("option", name="line", exact=True)).to_be_visible(timeout=30000)

    print("a filter that cannot be read")
    page.get_by_role("combobox", name="Filter").fill("--min-level Loud")
    expect(page.get_by_role("alert").first).to_contain_text("'Loud' is not a level")
    page.get_by_role("combobox", name="Filter").fill("--proc")
    page.get_by_role("option", name=re.compile("--process")).click()
    page.get_by_role("option", name=re.compile("second")).click()
    page.keyboard.press("Enter")
    console.shows(3)
    page.get_by_role("button", name="Remove process second").click()
    console.status("Live")


def groups(place, console):
    print("one row for several sources")
    page = console.page
    # By one command: records of one row are at most a second apart.
    resets = [json.dumps({"level": "Info", "message": "correlator reset", "source_object": f"CONTROL/DV0{number}"}) for number in (1, 2, 3)]
    send(place, "antennas", resets, "--from-json")
    send(place, "antennas", ["subreflector at 4 mm", "subreflector at 17 mm"], "--source", "CONTROL/DV01")
    console.filter("--process antennas")
    console.shows(5)
    page.get_by_label("One row for").select_option("all sources")
    rows = page.locator(".rows [role=option]")
    expect(rows).to_have_count(3, timeout=30000)
    expect(rows.first).to_contain_text("×3correlator reset")
    check("the row names the sources", "CONTROL/DV01, CONTROL/DV02, CONTROL/DV03" in rows.first.locator(".group").get_attribute("title"))
    check("a file has all records", len(console.rows()) == 5)
    other = console.context.new_page()
    other.goto(page.url)
    expect(other.locator(".rows [role=option]")).to_have_count(3, timeout=30000)
    other.close()
    page.get_by_label("One row for").select_option("each record")
    expect(rows).to_have_count(5)

    print("patterns")
    page.get_by_text("Patterns", exact=True).click()
    table = page.get_by_role("group", name="Patterns").get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(3, timeout=30000)
    expect(table.get_by_role("row").nth(1)).to_contain_text("correlator reset")
    expect(table.get_by_role("row").nth(1).get_by_role("cell").first).to_have_text("3")
    tops = table.get_by_role("row").nth(1).get_by_role("button").evaluate_all("(buttons) => buttons.map((one) => one.getBoundingClientRect().top)")
    check("the buttons of a pattern are side by side", len(tops) == 2 and tops[0] == tops[1])
    console.axe("log with patterns")
    page.get_by_role("button", name="Only: subreflector at 17 mm").click()
    console.shows(2)
    page.go_back()
    console.shows(5)
    page.get_by_role("button", name="Without: subreflector at 17 mm").click()
    console.shows(3)

    print("a pattern has the records of its place, and the filter keeps its own conditions")
    place_of = {"file": "src/motor*.rs", "routine": "turn"}
    logged = [("turned by 4", 7), ("turned by 17", 7), ("turned by 3", 8), ("stopped", 7)]
    records = [json.dumps({"level": "Info", "message": message, "line": line, **place_of}) + "\n" for message, line in logged]
    records += [json.dumps({"level": "Info", "message": "turned by 5"}) + "\n", json.dumps({"level": "Info", "message": "turned by hand"}) + "\n"]
    place.run("log", "send", "--from-json", "--process", "motors", "--acknowledged", "kept", input="".join(records))
    console.filter("--regex 'turned|stopped' --where 'level = Info or scan = 7' --process motors")
    console.shows(6)
    expect(table.get_by_role("row")).to_have_count(5, timeout=30000)
    page.get_by_role("button", name="Only: stopped").click()
    console.shows(3)
    page.get_by_role("button", name="Without: stopped").click()
    console.shows(0)
    page.go_back()
    page.go_back()
    console.shows(6)
    page.get_by_role("button", name="Without: stopped").click()
    console.shows(3)
    page.get_by_role("button", name="Only: turned by 5").click()
    console.shows(1)
    page.get_by_text("Patterns", exact=True).click()

    print("a list that has no scroll bar is filled")
    send(place, "crowd", ["the first of all"])
    send(place, "crowd", ["alike"] * 2500)
    console.filter("--process crowd")
    expect(page.locator(".rows")).to_contain_text("alike", timeout=30000)
    page.get_by_label("One row for").select_option("all sources")
    expect(page.locator(".rows")).to_contain_text("the first of all", timeout=30000)
    page.get_by_label("One row for").select_option("each record")


def asks(page):
    """A list of the questions of a page to the archive of logs, as the hub gets them from now on."""
    asked = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: asked.append(frame) if isinstance(frame, bytes) and frame[4:5] == b"\x15" and b"log/" in frame else None))
    page.reload()
    return asked


def refused(console):
    print("a filter that the hub refuses is not asked for again, and says why")
    page = console.page
    fault = page.locator("#filter-fault")
    console.filter("--process antennas")
    console.shows(5)
    asked = asks(page)
    console.shows(5)
    for line, why in (("--regex '[' --process antennas", "'[': error: unclosed character class"), ("--where 'scan = '", "character 8")):
        asked.clear()
        console.filter(line)
        expect(fault).to_contain_text(why, timeout=30000)
        before = len(asked)
        # Further questions came after 1 and 2 s.
        page.wait_for_timeout(4000)
        check(f"nothing is asked afterwards: {asked[before:]}", asked[before:] == [])
        check("the archive was searched once", sum(b"log/query" in question for question in asked) == 1)
        expect(page.get_by_role("combobox", name="Filter")).to_have_attribute("aria-invalid", "true")
        check("the histogram has nothing of another filter", page.locator(".histogram svg").count() == 0)
        expect(page.locator(".state")).not_to_contain_text("asked again")
        expect(page.locator(".state")).not_to_contain_text("Loading")
        console.filter("--process antennas")
        console.shows(5)
        expect(fault).to_be_empty()
    page.go_back()
    expect(fault).to_contain_text("character 8", timeout=30000)
    console.filter("--process antennas")
    console.shows(5)


def beside(place, console):
    print("beside a record")
    page = console.page
    detail = page.get_by_role("complementary", name="Record")
    console.filter("--process antennas --source CONTROL/DV02")
    console.shows(1)
    page.locator(".rows [role=option]").first.click()
    detail.get_by_role("button", name="same process").click()
    console.shows(5)
    page.go_back()
    console.filter("--process 'hub@*' --contains API")
    console.shows(1)
    page.locator(".rows [role=option]").first.click()
    detail.get_by_role("button", name="same thread").click()
    until("the records of the thread", lambda: "thread%3Dmain" in page.url and len(console.rows()) > 3)
    check("all of them are of one thread", {row["thread"] for row in console.rows() if "thread" in row} == {"main"})
    expect(detail).to_contain_text("the logbook's API is at", timeout=30000)

    print("beside a record: the same trace")
    trace, other = "4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000001234"
    traced = [("front", "asked", trace), ("back", "answered", trace), ("back", "not asked", other), ("back", "alone", None)]
    for process, message, of in traced:
        record = {"level": "Info", "message": message, **({"trace_id": of, "span_id": "00f067aa0ba902b7"} if of else {})}
        place.run("log", "send", "--process", process, "--acknowledged", "kept", "--from-json", input=json.dumps(record) + "\n")
    console.filter("--process front")
    console.shows(1)
    page.locator(".rows [role=option]").first.click()
    detail.get_by_role("button", name="same trace").click()
    console.shows(2)
    check("the trace goes through both programs", console.messages() == ["asked", "answered"])
    console.filter("--contains alone")
    console.shows(1)
    page.locator(".rows [role=option]").first.click()
    expect(detail).to_contain_text("alone")
    expect(detail.get_by_role("button", name="same trace")).to_have_count(0)
    console.filter("--process 'hub@*' --contains API")
    console.shows(1)
    page.locator(".rows [role=option]").first.click()
    expect(detail).to_contain_text("the logbook's API is at", timeout=30000)

    detail.get_by_text("Levels of its program").click()
    levels = detail.get_by_role("group", name="Levels of its program")
    levels.get_by_label("Stored from: audit").select_option("Error", timeout=30000)
    expect(detail.get_by_role("alert")).to_have_text("The program does not change the levels of audit.", timeout=30000)
    stored = levels.get_by_label("Stored from: slow-search")
    expect(stored).to_have_value("Debug", timeout=30000)
    console.axe("levels of a program")
    stored.select_option("Warning")
    def level():
        loggers = [json.loads(line) for line in place.run("log", "levels", "--json").stdout.splitlines()]
        return next(one["central"] for one in loggers if one["logger"] == "slow-search")
    until("the hub has the level", lambda: level() == "Warning")
    expect(stored).to_be_enabled(timeout=30000)
    stored.select_option("Debug")
    expect(stored).to_have_value("Debug", timeout=30000)
    expect(stored).to_be_enabled(timeout=30000)

    link = detail.get_by_role("link", name="New entry about it").get_attribute("href")
    record = urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)["link"][0]
    place.run("book", "make", "Shift", "-a", "Author")
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-t", "the API was slow", "--link", record)
    detail.get_by_role("button", name="Close").click()
    page.locator(".rows [role=option]").filter(has_text="the logbook's API is at").first.click()
    expect(detail.get_by_role("link", name="Shift/1: the API was slow")).to_be_visible(timeout=30000)
    other = console.context.new_page()
    other.goto(detail.get_by_role("link", name="Timeline around it").evaluate("(link) => link.href"))
    expect(other.get_by_role("heading", name="Timeline")).to_be_attached(timeout=30000)
    other.close()
    detail.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="To the end").click()
    console.status("Live")


def keys(console):
    print("keys")
    page = console.page
    console.filter("--process second")
    console.shows(3)
    page.get_by_role("listbox", name="Log records").focus()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Record")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary", name="Record")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    console.axe("help")
    page.keyboard.press("Escape")
    page.keyboard.press(" ")
    console.status("Paused")
    page.keyboard.press(" ")
    console.status("Live")
    page.keyboard.press("u")
    check("times are local", page.get_by_label("Times in").input_value() == "local")
    page.keyboard.press("u")
    page.keyboard.press("/")
    check("the filter has the focus", page.evaluate("document.activeElement.getAttribute('role')") == "combobox")
    page.keyboard.press("Escape")
    page.get_by_role("listbox", name="Log records").focus()
    # Another zone means other times of the filter: the rows are asked for again.
    console.shows(3)
    expect(page.locator(".rows [role=option]")).to_have_count(3)
    page.keyboard.press("End")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("k")
    page.keyboard.press("f")
    console.shows(2)


def hostile(place, console):
    print("hostile texts")
    page = console.page
    fields = ["source_object", "logger", "file", "routine", "thread", "context", "array", "antenna", "stack_id", "run_id", "log_id", "uri"]
    for text in HOSTILE:
        short = text[:200]
        record = {"level": "Warning", "message": text, **{field: short for field in fields}, "data": [{"name": short, "value": text}]}
        place.run("log", "send", "--process", "hostile", "--acknowledged", "kept", "--from-json", input=json.dumps(record) + "\n")
    console.filter("--process hostile")
    console.shows(len(HOSTILE))
    for nth in range(len(HOSTILE)):
        page.locator(".rows [role=option]").nth(nth).click()
        expect(page.get_by_role("complementary", name="Record")).to_be_visible()
    shown = page.locator(".rows").inner_text()
    check("signs that hide or reorder are shown as such", "\\u{202e}" in shown and "\\u{1b}" in shown and "\u202e" not in shown)
    check("no text was run", page.evaluate("window.hit") is None and page.locator(".rows img").count() == 0)
    check("the records are whole", sorted(console.messages()) == sorted(HOSTILE))
    page.get_by_role("button", name="Close").click()
    page.get_by_text("Patterns", exact=True).click()
    patterns = page.get_by_role("group", name="Patterns").get_by_role("table")
    expect(patterns.get_by_role("row")).to_have_count(len(HOSTILE) + 1, timeout=30000)
    check("patterns show them as they are", "\\u{202e}" in patterns.inner_text() and "\u202e" not in patterns.inner_text())
    page.get_by_text("Patterns", exact=True).click()
    timeline = console.context.new_page()
    timeline.goto(f"{console.site}timeline?last=15m&q=--process%20hostile")
    expect(timeline.locator(".stage path.bar").first).to_be_attached(timeout=60000)
    axis = timeline.locator(".axis .picture")

    def shown_before_the_end():
        # The range goes on with the time, and its lanes may come while the pointer moves.
        axis.hover()
        axis.hover(position={"x": axis.bounding_box()["width"] - 3, "y": 3})
        return timeline.locator(".records li").count() > 0

    until("records before the cursor", shown_before_the_end, 60)
    for shown in (page, timeline):
        check("no text was run, and none became an element", shown.evaluate("window.hit") is None and shown.locator("img[src=x], script:not([src])").count() == 0)
    timeline.close()


def site_view(place, browser, console):
    print("the site")
    page = console.page
    page.get_by_role("link", name="Site").click()
    expect(page.get_by_role("heading", name="Site")).to_be_visible()
    expect(page.get_by_role("alert").first).to_contain_text("may not read", timeout=30000)
    expect(page.get_by_text("Not everything could be asked.")).to_be_visible()
    place.run("access", "allow", "user:*", "read", "**", "--reason", "operators look")
    hosts = page.get_by_role("region", name="Hosts").get_by_role("row")
    expect(hosts).to_have_count(2, timeout=30000)
    expect(hosts.last).to_contain_text("collector")
    expect(page.get_by_role("alert")).to_have_count(0, timeout=30000)
    page.get_by_label("Name").fill("hub@")
    expect(page.get_by_role("region", name="Sources of logs").get_by_role("row")).to_have_count(2)
    check("the address has the text", "source=hub" in page.url)
    # A plot has a line from its second value on; the rate of a source from the third look on.
    for region in ["Hosts", "Sources of logs", "Spools"]:
        expect(page.get_by_role("region", name=region).locator(".spark polyline").first).to_be_attached(timeout=60000)
    check("a row of spools has all columns", page.get_by_role("region", name="Spools").get_by_role("row").last.locator("th, td").evaluate_all("(cells) => cells.length === 5 && cells.every((cell) => cell.offsetWidth > 0)"))
    expect(page.get_by_role("region", name="Checks of the site")).to_contain_text("everything is", timeout=30000)
    expect(page.get_by_role("region", name="Who reads from whom").get_by_role("img")).to_have_attribute("aria-label", re.compile("[1-9][0-9]* writers"))
    expect(page.get_by_role("region", name="Processes").get_by_role("row", name=re.compile("^hub@")).first).to_be_visible()
    readers = page.get_by_role("region", name="Readers that are behind")
    readers.get_by_label("All readers").check()
    expect(readers.get_by_role("row", name=re.compile("hub@")).first).to_contain_text("keeps up")
    check("the address has the choice too", "source=hub" in page.url and "readers=all" in page.url)
    console.axe("site")
    phone = Console(browser, console.site, viewport={"width": 390, "height": 800}, has_touch=True)
    phone.log_in()
    phone.page.goto(f"{console.site}site")
    expect(phone.page.get_by_role("region", name="Processes").get_by_role("row", name=re.compile("^hub@")).first).to_be_visible(timeout=60000)
    check("a phone shows no wider page", phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    for theme in ["light", "dark", "night"]:
        phone.page.get_by_label("Theme").select_option(theme)
        phone.axe(f"the site on a phone, {theme}")
    phone.context.close()
    page.get_by_role("region", name="Sources of logs").get_by_role("link").click()
    console.status("Live")
    check("a source leads to its records", "process+hub" in page.url)


def restart(place, hub, console, port):
    print("a restart of the hub")
    console.filter("--process again")
    console.status("Live, following")
    send(place, "again", numbered(0, 300))
    console.shows(300)
    hub.kill()
    hub.wait()
    expect(console.page.locator(".connection")).to_have_class(re.compile("broken"), timeout=30000)
    hub = place.up("--book-listen", f"127.0.0.1:{port}")
    # These are in the archive before the page comes back, and their process has gone.
    send(place, "again", numbered(300, 400))
    expect(console.page.locator(".connection")).to_have_class(re.compile("open"), timeout=60000)
    send(place, "again", numbered(400, 500))
    console.shows(500)
    check("no hole and no double", console.messages() == numbered(0, 500))
    return hub


def counting(place, console):
    print("a histogram that counts live records itself")
    page = console.page
    page.evaluate("() => { const { send } = WebSocket.prototype; window.asked = []; WebSocket.prototype.send = function (data) { const text = new TextDecoder().decode(data); if (text.includes('log/stat')) { window.asked.push(text); } send.call(this, data); }; }")
    console.filter("--process counted")
    console.status("Live, following")
    until("an empty range is counted", lambda: page.evaluate("window.asked.length"))
    page.wait_for_timeout(5000)
    empty = page.evaluate("window.asked")
    check(f"it is not counted again while nothing comes: {len(empty)} questions", len(empty) <= 2)
    send(place, "counted", numbered(0, 5))
    total = lambda: int(page.locator(".histogram svg").get_attribute("aria-label").split()[0])
    until("the first ones are counted", lambda: total() == 5, 60)
    before = len(page.evaluate("window.asked"))
    for turn in range(1, 7):
        send(place, "counted", numbered(5 * turn, 5 * turn + 5))
        until("each record is counted once", lambda turn=turn: total() == 5 * turn + 5, 60)
    asked = page.evaluate("window.asked")[before:]
    check("without a question for each", len(asked) < 6)
    check("none of them looks for the first record again", not any('"by":{}' in question for question in asked))


def slow(place, console):
    print("a slow browser")
    page = console.page
    console.filter("--process burst")
    console.status("Live, following")
    session = console.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 8})
    send(place, "burst", numbered(0, 60_000))
    expect(page.get_by_text("record 59999", exact=True)).to_be_visible(timeout=120000)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    got = console.messages()
    check("the window is bounded, and its end is whole", len(got) <= 50_000 and got == numbered(60_000 - len(got), 60_000))
    check("the page holds few rows", page.locator(".rows [role=option]").count() < 200)


def last_night(place, console):
    print("a fault of last night in three clicks")
    at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=10)
    night = [{"time": f"{(at + datetime.timedelta(seconds=nth)).isoformat().removesuffix('+00:00')}Z", "level": "Error" if nth == 30 else "Info",
              "message": "the dome did not close" if nth == 30 else f"step {nth}", "source_object": "DOME"} for nth in range(60)]
    place.run("log", "import", "-", input="".join(f"{json.dumps(one)}\n" for one in night))
    other = console.context.new_page()
    other.goto(console.site)
    rows = other.get_by_role("listbox", name="Log records")
    expect(rows).to_be_visible(timeout=30000)
    other.get_by_label("Range").select_option("1 day")
    other.get_by_label("Level from").select_option("Error")
    rows.get_by_text("the dome did not close").click(timeout=30000)
    detail = other.get_by_role("complementary", name="Record")
    expect(detail).to_contain_text("the dome did not close")
    # One more click leads to the cause.
    detail.get_by_role("button", name="Show context").click()
    expect(rows.get_by_text("step 29", exact=True)).to_be_visible(timeout=30000)
    expect(rows.get_by_text("step 31", exact=True)).to_be_visible(timeout=30000)
    other.close()


def looks(browser, site, console):
    print("looks")
    page = console.page
    console.filter("--since 1h")
    console.status("Live")
    for theme in ["dark", "night", "light"]:
        page.get_by_label("Theme").select_option(theme)
        console.axe(f"theme {theme}")
    phone = Console(browser, site, viewport={"width": 390, "height": 800}, has_touch=True)
    phone.log_in()
    expect(phone.page.locator(".rows [role=option]").first).to_be_visible(timeout=30000)
    check("a phone shows no wider page", phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    phone.axe("phone")
    check("a phone has no faults", phone.faults == [])
    phone.context.close()


def proxied(browser, port):
    print("below a path of a proxy")
    with Proxy(port, "/observatory") as proxy:
        console = Console(browser, f"http://127.0.0.1:{proxy.port}/observatory/")
        console.log_in()
        console.filter("--process first --since 1h")
        console.status("Live, following")
        console.shows(1000)
        check("views stay below it", "/observatory/log?" in console.page.url)
        check(f"no faults below a path: {console.faults}", console.faults == [])
        console.page.get_by_role("link", name="ELOG pages").click()
        expect(console.page).to_have_url(re.compile("/observatory/elog/"))
        console.page.goto(f"{console.site}logbook")
        expect(console.page).to_have_url(f"{console.site}book")
        console.context.close()


def main():
    with console_site("console") as (place, hub, site, browser):
        port = int(site.rstrip("/").rsplit(":", 1)[1])
        for verb in ["query", "read"]:
            place.run("access", "allow", "user:*", verb, "log/**", "--reason", "operators look")
        place.run("access", "allow", "user:zoe", "set", "log/levels", "--reason", "zoe sets levels")
        logins(browser, site)
        console = Console(browser, site, viewport={"width": 1400, "height": 900})
        archive_and_live(place, console)
        highlights(console)
        place.run("book", "users", "add", "max", "--full-name", "Max Quartz", input=f"{PASSWORD}\n")
        saved(browser, console)
        reading(place, console)
        pausing(place, console)
        filters(place, console)
        groups(place, console)
        refused(console)
        beside(place, console)
        keys(console)
        hostile(place, console)
        looks(browser, site, console)
        proxied(browser, port)
        site_view(place, browser, console)
        check(f"no faults in the page: {console.faults}", console.faults == [])
        hub = restart(place, hub, console, port)
        counting(place, console)
        slow(place, console)
        last_night(place, console)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
