#!/usr/bin/env python3
"""The console's view of attributes in a real browser beside a real hub.

Rights; search and tree of 10 000 attributes; live values; history and live readings joined by number; the death of a
source; zoom, cursor and scales in the address; spectra and images; configuration, criteria and causes of missing
events; hostile names; keys; themes; a phone; a hub that is restarted.
"""

import csv
import pathlib
import re
import sys

from attribute_source import Session, sessions
from console_page import Console, console_site, snapshot_picture
from hub import check, until
from playwright.sync_api import expect

KEPT = {"change": {"abs": "0.001", "rel": None}, "archive": {"abs": "0.001", "rel": None}, "archive_period_ms": None, "period_ms": 1_000_000}
# The plot has room for all but the last.
LIMITS = {"warning_low": -20.0, "alarm_high": 150.0, "max": 1000.0}
SHOWN = "lab/psu/1/voltage"
HOSTILE = "lab/<img src=x onerror=window.hit=1>/\u202eright/\"'{@html 1}"


class Page(Console):
    """The view of attributes, and what a person does with it."""

    def visit(self, parameters=""):
        self.page.goto(f"{self.site}attributes{parameters}")

    def row(self, name):
        return self.page.locator(".values tbody tr").filter(has=self.page.get_by_role("button", name=name, exact=True))

    def cell(self, name, nth):
        return self.row(name).locator("td").nth(nth)

    def find(self, text):
        self.page.get_by_role("searchbox", name="Find attributes").fill(text)

    def seen(self, kind="csv"):
        """The rows of a file that the page makes."""
        with self.page.expect_download() as download:
            self.page.get_by_label("Download").select_option(kind)
        with open(download.value.path(), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def numbers(self, name):
        return [int(row["sequence"]) for row in self.seen() if row["attribute"] == name]


def rights(place, console):
    print("rights")
    console.visit()
    expect(console.page.get_by_role("alert").first).to_contain_text("tampu access allow", timeout=30000)
    console.axe("without a right")
    for verb in ["query", "read"]:
        place.run("access", "allow", "user:*", verb, "**", "--reason", "operators look")
    console.page.get_by_role("button", name="Ask again").click()
    expect(console.page.get_by_text("No server of this site has attributes.")).to_be_visible(timeout=30000)


def live(gateway, console):
    print("history and live values")
    session = Session(gateway, "psu", [{"name": SHOWN, "unit": "V", "label": "Main supply", "criteria": KEPT, "limits": LIMITS}, {"name": "lab/psu/1/never", "criteria": KEPT}])
    for nth in range(50):
        session.publish(0, 10.0 + nth)
    console.visit()
    expect(console.page.get_by_text("2 attributes")).to_be_visible(timeout=30000)
    console.page.keyboard.press("/")
    expect(console.page.get_by_role("searchbox")).to_be_focused()
    console.page.keyboard.type("main")
    expect(console.page.get_by_text("1 of 2 attributes")).to_be_visible()
    console.page.keyboard.press("Enter")
    for _ in range(3):
        console.page.keyboard.press("ArrowDown")
    console.page.keyboard.press("Enter")
    expect(console.row(SHOWN)).to_have_count(1)
    check("the address has the attribute and the search", "a=lab%2Fpsu%2F1%2Fvoltage" in console.page.url and "q=main" in console.page.url)
    expect(console.cell(SHOWN, 0)).to_have_text("59 V", timeout=30000)
    until("the history is there", lambda: console.numbers(SHOWN) == list(range(1, 51)))
    for nth in range(50, 100):
        session.publish(0, 10.0 + nth)
    expect(console.cell(SHOWN, 0)).to_have_text("109 V")
    check("history and live readings have no hole and no double", console.numbers(SHOWN) == list(range(1, 101)))
    console.page.reload()
    until("another page has the same", lambda: console.numbers(SHOWN) == list(range(1, 101)))
    expect(console.cell(SHOWN, 7)).to_have_text("109")
    expect(console.cell(SHOWN, 8)).to_have_text("59.5")
    expect(console.cell(SHOWN, 10)).to_have_text("100")
    kept = console.seen("events")
    check("the file of kept events is exact", [float(row["value"]) for row in kept if row["name"] == SHOWN] == [10.0 + nth for nth in range(100)])
    with console.page.expect_download() as parquet:
        console.page.get_by_label("Download").select_option("parquet")
    data = pathlib.Path(parquet.value.path()).read_bytes()
    check("the same as Parquet", data[:4] == data[-4:] == b"PAR1")
    session.publish(0, 3.5, quality=2)
    expect(console.cell(SHOWN, 1)).to_have_text("alarm")
    return session


def plot(console):
    print("the plot")
    page = console.page
    area = page.get_by_role("application", name=re.compile("Trend of lab.psu.1.voltage"))
    expect(area).to_be_visible()
    box = area.locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 60, steps=5)
    page.mouse.up()
    page.mouse.move(0, 0)
    expect(page).to_have_url(re.compile("since=.*until="))
    expect(page.get_by_role("button", name="To the present")).to_be_visible()
    area.focus()
    page.keyboard.press("Home")
    expect(page).not_to_have_url(re.compile("since="))
    page.keyboard.press("ArrowLeft")
    expect(console.cell(SHOWN, 5)).to_contain_text("3.5")
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("range=450s"))
    page.get_by_label("Range").select_option("1h")
    expect(page).to_have_url(re.compile("range=1h"))
    page.get_by_role("checkbox", name="Log", exact=True).check()
    expect(page).to_have_url(re.compile("log=V"))
    page.get_by_label("Draw").select_option("steps")
    expect(page).to_have_url(re.compile("draw=steps"))
    link = page.url
    page.goto(link)
    expect(page.get_by_role("checkbox", name="Log", exact=True)).to_be_checked()
    check("the address is the whole state", page.get_by_label("Range").input_value() == "1h" and page.get_by_label("Draw").input_value() == "steps")
    expect(console.cell(SHOWN, 0)).to_have_text("3.5 V", timeout=30000)


def details(place, session, console):
    print("configuration, criteria, causes")
    page = console.page
    console.visit(f"?a={SHOWN}&show={SHOWN}")
    panel = page.locator(".detail")
    expect(panel).to_contain_text("Main supply", timeout=30000)
    panel.get_by_role("button", name="Find out").click()
    expect(panel).to_contain_text("No fault found", timeout=30000)
    console.axe("details")
    panel.get_by_role("button", name="Change criteria").click()
    panel.get_by_label("Change, absolute").fill("much")
    panel.get_by_role("button", name="Set", exact=True).click()
    expect(panel.get_by_role("alert")).to_contain_text("'much' is no threshold")
    panel.get_by_label("Change, absolute").fill("1000")
    panel.get_by_role("button", name="Set", exact=True).click()
    expect(panel.get_by_role("alert")).to_contain_text(re.compile("may not|refuse|denied"), timeout=30000)
    place.run("access", "allow", "user:*", "set", "event/**", "--reason", "operators tune")
    panel.get_by_role("button", name="Set", exact=True).click()
    expect(panel).to_contain_text("absolute 1000", timeout=30000)
    check("the server has the criteria", '"1000"' in place.run("event", "conf", SHOWN, "--json").stdout)
    session.publish(0, 4.5)
    console.visit("?a=lab/psu/1/never&show=lab/psu/1/never")
    # Until the hub has said that there is no value.
    expect(console.cell("lab/psu/1/never", 1)).to_have_text(re.compile("waiting for a value|invalid"), timeout=30000)
    page.get_by_role("button", name="Find out").click()
    expect(page.locator(".detail")).to_contain_text("never pushed it", timeout=30000)
    page.keyboard.press("Escape")
    expect(page.locator(".detail")).to_have_count(0)


def device(place, console):
    print("the page of a device")
    page = console.page
    name = SHOWN.rsplit("/", 1)[0]
    place.run("log", "send", "--source", name, "--level", "Error", "--acknowledged", "kept", "the supply tripped")
    place.run("log", "send", "--source", "lab/psu/other", "--acknowledged", "kept", "not this one")
    place.run("book", "make", "Shift", "-a", "Author")
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-t", f"{name} was reset")
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-t", "the main supply", "--link", f"event:{SHOWN}")
    console.visit(f"?a={SHOWN}&show={SHOWN}")
    page.get_by_role("button", name="Page of the device").click()
    panel = page.get_by_role("region", name=f"Device {name}")
    records = panel.get_by_role("list", name="Its records in the time in sight")
    expect(records.get_by_role("listitem")).to_have_count(1, timeout=30000)
    expect(records).to_contain_text("the supply tripped")
    expect(panel.get_by_role("list", name="Entries that name it").get_by_role("listitem")).to_have_count(2, timeout=30000)
    expect(console.cell(SHOWN, 0)).to_be_visible(timeout=30000)
    console.axe("a device")
    other = console.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("region", name=f"Device {name}")).to_contain_text("the supply tripped", timeout=30000)
    other.get_by_role("link", name=re.compile("the supply tripped")).click()
    expect(other.get_by_role("complementary", name="Record")).to_contain_text("the supply tripped", timeout=30000)
    other.close()
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_have_count(0)


def death(gateway, session, console):
    print("a source that dies")
    console.visit(f"?a={SHOWN}")
    expect(console.cell(SHOWN, 0)).to_have_text("4.5 V", timeout=30000)
    session.leave()
    expect(console.cell(SHOWN, 1)).to_have_text("the source has ended", timeout=60000)
    again = Session(gateway, "psu", [{"name": SHOWN, "unit": "V", "criteria": KEPT, "limits": LIMITS}])
    again.publish(0, 77.0)
    expect(console.cell(SHOWN, 0)).to_have_text("77 V", timeout=60000)
    check("its next life is the same attribute", console.seen()[-1]["value"] == "77")
    return again


def arrays(place, gateway, console):
    print("spectra and images")
    page = console.page
    session = Session(gateway, "camera", [
        {"name": "lab/cam/1/profile", "format": "spectrum", "max_x": 16, "unit": "counts", "criteria": KEPT},
        {"name": "lab/cam/1/image", "format": "image", "max_x": 8, "max_y": 4, "criteria": KEPT},
    ])
    session.publish(0, [float(nth) for nth in range(16)])
    session.publish(1, [[float(row * 8 + column) for column in range(8)] for row in range(4)])
    console.visit("?a=lab/cam/1/profile*lab/cam/1/image*lab/cam/1/profile%23" + "3")
    spectrum = page.get_by_role("region", name="Spectrum lab/cam/1/profile")
    expect(spectrum).to_contain_text("16 elements", timeout=30000)
    image = page.get_by_role("region", name="Image lab/cam/1/image")
    expect(image).to_contain_text("8 × 4", timeout=30000)
    canvas = image.get_by_role("application")
    canvas.focus()
    for key in ["ArrowRight", "ArrowRight", "ArrowDown"]:
        page.keyboard.press(key)
    expect(image).to_contain_text("[2, 1] = 10")
    colour = "(canvas) => [...canvas.getContext('2d').getImageData(%d, %d, 1, 1).data]"
    pixels = image.locator("canvas")
    check("the least and the largest element have the ends of the colours", pixels.evaluate(colour % (0, 0)) == [68, 1, 84, 255] and pixels.evaluate(colour % (7, 3)) == [253, 231, 37, 255])
    expect(console.cell("lab/cam/1/profile[3]", 0)).to_have_text("3 counts")
    session.publish(0, [float(nth) * 2 for nth in range(16)])
    expect(console.cell("lab/cam/1/profile[3]", 0)).to_have_text("6 counts")
    until("the trend of an element has both values", lambda: [row["value"] for row in console.seen() if "[3]" in row["attribute"]] == ["3", "6"])
    until("the history has both", lambda: len(place.run("event", "history", "lab/cam/1/profile", "--json").stdout.splitlines()) == 2)
    spectrum.get_by_role("button", name="Look back").click()
    slider = spectrum.get_by_role("slider")
    expect(slider).to_have_attribute("max", "1", timeout=30000)
    slider.fill("0")
    check("the slider shows an earlier value", "0 … 15" in spectrum.get_by_role("img").get_attribute("aria-label"))
    spectrum.get_by_role("button", name="Live").click()
    expect(spectrum.get_by_role("img")).to_have_attribute("aria-label", re.compile("0 … 30"))
    console.axe("spectrum and image")
    return session


def many(gateway, console):
    print("10 000 attributes")
    page = console.page
    names = [f"sr/vac{nth % 10}/c{nth // 100:03}/p{nth}" for nth in range(9_999)]
    all_sessions = sessions(gateway, "many", [{"name": name, "unit": "mbar", "criteria": KEPT} for name in names] + [{"name": HOSTILE, "unit": "\u202e<b>", "label": "<script>window.hit=1</script>", "criteria": KEPT}])
    all_sessions[-1].publish(999, 1.0)
    console.visit()
    expect(page.get_by_text(re.compile(r"^10003 attributes"))).to_be_visible(timeout=60000)
    tree = page.get_by_role("tree")
    check("the tree is closed at first", tree.get_by_role("treeitem").count() <= 3)
    console.find("sr/")
    expect(page.get_by_text("9999 of 10003 attributes")).to_be_visible()
    check("few rows are in the page", tree.get_by_role("treeitem").count() < 100)
    tree.focus()
    page.keyboard.press("End")
    expect(tree.get_by_role("treeitem").last).to_contain_text("p9989")
    console.find("c042 p42")
    expect(page.get_by_text("100 of 10003 attributes")).to_be_visible()
    tree.get_by_role("treeitem").filter(has_text=re.compile("p4207")).click()
    expect(console.row("sr/vac7/c042/p4207")).to_have_count(1)
    console.axe("many attributes")

    print("hostile names")
    console.find("window.hit")
    tree.get_by_role("treeitem").last.click()
    expect(page.locator(".values tbody tr")).to_have_count(2)
    expect(page.locator(".values tbody tr").last).to_contain_text("\\u{202e}", timeout=30000)
    expect(page.locator(".values tbody tr td").filter(has_text="1 \\u{202e}<b>")).to_have_count(1, timeout=30000)
    page.locator(".values tbody tr").last.get_by_role("button").first.click()
    expect(page.locator(".detail")).to_contain_text("<script>")
    check("no text was run", page.evaluate("window.hit") is None and page.locator(".attributes img, .attributes script, .attributes b").count() == 0)
    return all_sessions


# Rows of the plot that have the colour of alarms from end to end.
ALARM_LINES = """() => {
  const canvas = document.querySelector(".plot canvas");
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = getComputedStyle(document.documentElement).getPropertyValue("--error");
  const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const count = (y) => { let n = 0; for (let x = 0; x < width; x++) { n += wanted.every((one, nth) => data[4 * (y * width + x) + nth] === one) ? 1 : 0; } return n; };
  return Array.from({ length: height }, (_, y) => count(y)).filter((n) => n > width / 2).length;
}"""


def limits(console):
    print("limits in the plot")
    console.visit(f"?a={SHOWN}")
    expect(console.cell(SHOWN, 0)).to_have_text("77 V", timeout=30000)
    plot = console.page.get_by_role("application")
    expect(plot).to_have_attribute("aria-label", re.compile(r"Limits: .*warning up to -20, .*alarm from 150, .*largest possible 1000"))
    until("the alarm limit is a line", lambda: console.page.evaluate(ALARM_LINES) == 1)
    console.axe("limits")
    console.page.get_by_role("checkbox", name="Limits").uncheck()
    until("no limit is shown", lambda: console.page.evaluate(ALARM_LINES) == 0)
    expect(plot).not_to_have_attribute("aria-label", re.compile("Limits"))
    check("the address has it", "limits=no" in console.page.url)


def snapshot(console):
    print("a snapshot into an entry")
    page = console.page
    console.visit(f"?a={SHOWN}&tree=no&range=15m")
    expect(page.locator(".plot canvas")).to_be_visible(timeout=30000)
    expect(console.row(SHOWN)).to_be_visible(timeout=30000)
    until("readings are in sight", lambda: len(console.numbers(SHOWN)) > 3)
    page.get_by_role("button", name="Snapshot into an entry").click()
    page.wait_for_url(re.compile(r"/book\?book=Shift&entry=new&"))
    text = page.get_by_label("Text", exact=True)
    expect(text).to_have_value(re.compile(rf"^Trends from .*attributes\?.*since=.*\| {SHOWN} \|", re.DOTALL), timeout=30000)
    expect(page.get_by_label("Links of the entry")).to_have_value(re.compile(f"^event:{SHOWN}@20"))
    wide, high, colours = snapshot_picture(page, "tampu-attributes-")
    check(f"it has a picture of the plot: {wide}x{high}, {colours} colours", wide > 800 and high > 300 and colours > 4)
    page.get_by_role("button", name="Cancel").click()


def looks(browser, site, console):
    print("looks")
    console.visit(f"?a={SHOWN}*lab/cam/1/image&show={SHOWN}")
    expect(console.cell(SHOWN, 0)).to_have_text("77 V", timeout=30000)
    for theme in ["dark", "night", "light"]:
        console.page.get_by_label("Theme").select_option(theme)
        console.axe(f"theme {theme}")
    console.page.keyboard.press("?")
    expect(console.page.get_by_role("dialog")).to_contain_text("Hide or show the tree")
    console.page.keyboard.press("Escape")
    phone = Page(browser, site, viewport={"width": 390, "height": 800}, has_touch=True)
    phone.log_in()
    phone.visit(f"?a={SHOWN}&tree=no&show={SHOWN}")
    expect(phone.cell(SHOWN, 0)).to_have_text("77 V", timeout=30000)
    check("a phone shows no wider page", phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    phone.axe("phone")
    check(f"a phone has no faults: {phone.faults}", phone.faults == [])
    phone.context.close()


def restart(place, hub, gateway, console, port):
    print("a restart of the hub")
    console.visit(f"?a={SHOWN}")
    expect(console.cell(SHOWN, 0)).to_have_text("77 V", timeout=30000)
    hub.kill()
    hub.wait()
    expect(console.page.locator(".connection")).to_have_class(re.compile("broken"), timeout=30000)
    place.up("--book-listen", f"127.0.0.1:{port}")
    session = Session(gateway, "psu", [{"name": SHOWN, "unit": "V", "criteria": KEPT}])
    session.publish(0, 88.0)
    expect(console.cell(SHOWN, 0)).to_have_text("88 V", timeout=60000)
    until("the file has both lives", lambda: {"77", "88"} <= {row["value"] for row in console.seen()})
    session.leave()


def main():
    with console_site("attributes") as (place, hub, site, browser):
        gateway = next(pathlib.Path(place.directory).rglob("gateway.sock"))
        # The page begins with the log.
        place.run("access", "allow", "user:*", "query", "log/**", "--reason", "operators look")
        console = Page(browser, site, viewport={"width": 1400, "height": 900})
        console.log_in()
        rights(place, console)
        # An answer of the API that refuses is a line in the browser's own log.
        console.faults.clear()
        session = live(gateway, console)
        plot(console)
        details(place, session, console)
        device(place, console)
        snapshot(console)
        session = death(gateway, session, console)
        camera = arrays(place, gateway, console)
        limits(console)
        looks(browser, site, console)
        attributes = many(gateway, console)
        check(f"no faults in the page: {console.faults}", console.faults == [])
        for one in [camera, *attributes]:
            one.leave()
        restart(place, hub, gateway, console, int(site.rstrip("/").rsplit(":", 1)[1]))
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
