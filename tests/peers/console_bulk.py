#!/usr/bin/env python3
"""The console's view of bulk data in a real browser, beside real senders and receivers.

Rights; rates and progress; who waits for whom; pause, resume and stop, also where the rules refuse; history with its
older pages, a transfer with its links and mentions; hostile names; keys; themes, a phone, no barriers (axe).
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

from console_page import Console, console_site
from hub import check, until
from playwright.sync_api import expect

HOSTILE = '<img src=x onerror="window.hit=1">'


class Bulk(Console):
    """The view, and its parts."""

    def visit(self, parameters=""):
        self.page.goto(f"{self.site}bulk{parameters}")
        expect(self.page.get_by_role("heading", name="Bulk data", exact=True)).to_be_visible(timeout=30000)

    def part(self, name):
        return self.page.get_by_role("region", name=name, exact=True)

    def row(self, part, name):
        return self.part(part).get_by_role("row").filter(has_text=name)

    def picture(self, name):
        """Keeps a picture for a person, in the directory TAMPU_PICTURES."""
        if os.environ.get("TAMPU_PICTURES"):
            self.page.screenshot(path=f"{os.environ['TAMPU_PICTURES']}/bulk-{name}.png")

    def where(self):
        return self.page.evaluate("location.href")


def enter(browser, site):
    view = Bulk(browser, site, viewport={"width": 1500, "height": 1000})
    page = view.page
    page.goto(site)
    page.get_by_label("Login").fill("zoe")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".connection")).to_have_class(re.compile("open"), timeout=30000)
    return view


def rights(place, browser, site):
    print("rights")
    view = enter(browser, site)
    view.page.reload()
    expect(view.page.get_by_role("link", name="Log", exact=True)).to_be_visible(timeout=30000)
    expect(view.page.get_by_role("link", name="Bulk data")).to_have_count(0, timeout=30000)
    view.visit()
    expect(view.page.get_by_role("alert").filter(has_text="may not")).to_have_count(2, timeout=30000)
    place.run("access", "allow", "user:*", "read", "**", "--reason", "operators look")
    view.context.close()


def running(place, view, big, into):
    print("what runs")
    page = view.page
    view.visit()
    expect(page.get_by_text("No sender and no receiver runs.")).to_be_visible(timeout=30000)
    expect(page.get_by_text("No transfer matches.")).to_be_visible(timeout=30000)
    view.axe("nothing runs")
    receiver = place.start("bulk", "recv", "--stream", "files", "--flow", "data", "-o", str(into))
    sender = place.start("bulk", "send", str(big), "--stream", "files", "--flow", "data", "--control", "corr", "--throttle", "1MB", "--parameter", "uid://A002/X1")
    row = view.row("Senders", "files/data")
    expect(row.get_by_role("progressbar")).to_be_visible(timeout=60000)
    expect(row).to_contain_text("big.bin")
    expect(row).to_contain_text(re.compile(r"[\d.]+ (k|M)B of 60.0 MB"))
    expect(row).to_contain_text(re.compile(r"live"))
    expect(row.get_by_role("img", name=re.compile("Rate of files.data")).locator("path")).to_have_attribute("d", re.compile("L.*L"), timeout=30000)
    bytes_of = lambda: row.get_by_role("progressbar").evaluate("(bar) => bar.value")
    first = bytes_of()
    until("it makes progress", lambda: bytes_of() > first)
    expect(view.row("Receivers", "files/data")).to_contain_text("shm")
    expect(view.row("History", "files/data")).to_contain_text("under way", timeout=30000)
    expect(view.row("History", "files/data")).to_contain_text("big.bin")
    expect(view.row("History", "files/data")).to_contain_text("of 60.0 MB")
    view.axe("a transfer runs")
    view.picture("runs")
    return sender, receiver


def waits(place, view, receiver):
    print("who waits for whom")
    page = view.page
    receiver.send_signal(signal.SIGSTOP)
    finding = view.part("Who waits for whom").get_by_role("listitem")
    expect(finding.filter(has_text=re.compile(r"files/data\) waits \d+s for|waits .* for "))).to_have_count(1, timeout=60000)
    receiver.send_signal(signal.SIGCONT)
    expect(view.part("Who waits for whom").get_by_text("Nobody waits, nothing is lost")).to_be_visible(timeout=60000)
    lonely = place.start("bulk", "send", "/etc/hostname", "--stream", HOSTILE, "--flow", "data")
    expect(view.row("Senders", HOSTILE)).to_be_visible(timeout=60000)
    check("no text was run", page.evaluate("window.hit") is None and page.locator("main img:not([role])").count() == 0)
    lonely.terminate()
    lonely.wait()
    expect(view.row("Senders", HOSTILE)).to_have_count(0, timeout=60000)


def control(place, view, sender):
    print("control")
    page = view.page
    row = view.row("Senders", "files/data")
    row.get_by_role("button", name="Pause files/data").click(timeout=60000)
    expect(row.get_by_role("alert")).to_contain_text("Refused", timeout=30000)
    expect(row.locator("code")).to_have_text("tampu bulk control pause corr --flow data")
    view.axe("a refusal")
    place.run("access", "allow", "user:zoe", "set", "bulk/control/*", "--reason", "operators act")
    row.get_by_role("button", name="Pause files/data").click()
    expect(view.part("Who waits for whom").get_by_text(re.compile("files/data\\) is paused"))).to_be_visible(timeout=60000)
    expect(row.get_by_role("alert")).to_have_count(0)
    bytes_of = lambda: row.get_by_role("progressbar").evaluate("(bar) => bar.value")
    until("the rate falls to nothing", lambda: row.locator(".rate .number").inner_text() == "0 B/s", 60)
    first = bytes_of()
    page.wait_for_timeout(1500)
    check("nothing is sent", bytes_of() == first)
    row.get_by_role("button", name="Resume files/data").click()
    until("it goes on", lambda: bytes_of() > first, 60)
    row.get_by_role("button", name="Stop files/data").click()
    expect(row.get_by_role("group", name=re.compile("Stop files.data"))).to_be_visible()
    row.get_by_role("button", name="Cancel").click()
    row.get_by_role("button", name="Stop files/data").click()
    row.get_by_role("button", name="Stop", exact=True).click()
    until("the sender ends", lambda: sender.poll() is not None, 60)
    expect(view.row("Senders", "files/data")).to_have_count(0, timeout=60000)
    expect(view.row("History", "files/data")).to_contain_text(re.compile("incomplete|broken off"), timeout=60000)


def history(place, view, small):
    print("history")
    page = view.page
    place.run("bulk", "send", str(small), "--stream", "files", "--flow", "data")
    rows = view.part("History").get_by_role("row")
    expect(rows.filter(has_text="complete")).to_have_count(2, timeout=60000)
    page.get_by_label("Outcome").select_option("complete")
    expect(rows).to_have_count(2, timeout=30000)
    page.get_by_label("Stream", exact=True).fill("nothing of this name")
    expect(page.get_by_text("No transfer matches.")).to_be_visible()
    page.get_by_label("Stream", exact=True).fill("FILES")
    expect(rows).to_have_count(2)
    check("the address has the choice", "stream=FILES" in view.where() and "outcome=complete" in view.where())
    rows.last.get_by_role("link").click()
    detail = page.get_by_role("complementary")
    expect(detail).to_contain_text("1000 (1.0 kB)")
    expect(detail).to_contain_text("small.bin (1.0 kB)")
    expect(detail.get_by_role("link", name="Timeline at this time")).to_have_attribute("href", re.compile(r"/timeline\?from=.*&to=.*&at="))
    transfer = page.evaluate("new URL(location.href).searchParams.get('transfer')")
    place.run("book", "post", "Shift log", "-a", "Subject=About a file", "--link", f"transfer:{transfer}", "-t", "It was small.")
    page.reload()
    expect(detail.get_by_role("link", name=re.compile("About a file"))).to_be_visible(timeout=30000)
    expect(detail.get_by_role("link", name="New entry about it")).to_have_attribute("href", re.compile(r"/book\?book=Shift\+log&entry=new&.*link=transfer%3A"))
    view.axe("a transfer")
    view.picture("transfer")
    link = view.where()
    detail.get_by_role("link", name="Its records").click()
    expect(page.locator(".rows [role=option]").filter(has_text="files#data").first).to_be_visible(timeout=30000)
    page.goto(link)
    expect(detail).to_contain_text("1000 (1.0 kB)", timeout=30000)

    print("keys")
    page.get_by_label("Outcome").select_option("")
    expect(rows).to_have_count(3, timeout=30000)
    page.locator("body").press("j")
    expect(detail).to_contain_text("big.bin (60.0 MB)")
    expect(detail).to_contain_text("uid://A002/X1")
    page.keyboard.press("k")
    expect(detail).to_contain_text("1000 (1.0 kB)")
    page.keyboard.press("Escape")
    expect(detail).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next transfer")
    page.keyboard.press("Escape")
    view.visit("?transfer=of-yesterday.1.a%23b")
    expect(detail).to_contain_text("The archive does not have this transfer", timeout=30000)
    # The browser names each answer that is no success.
    view.faults = [fault for fault in view.faults if "of-yesterday" not in fault]


def older(place, view):
    print("older transfers")
    page = view.page
    many = pathlib.Path(place.directory) / "many"
    many.mkdir()
    for nth in range(350):
        (many / f"{nth:03}.bin").write_bytes(b"x")
    receiver = place.start("bulk", "recv", "--stream", "crowd", "--flow", "data", "-o", str(many.with_name("kept")), stdout=subprocess.DEVNULL)
    place.run("bulk", "send", *map(str, sorted(many.iterdir())), "--stream", "crowd", "--flow", "data", "--receivers", "1")
    receiver.terminate()
    view.visit("?stream=crow")
    rows = view.part("History").locator("tbody tr")
    expect(rows).to_have_count(300, timeout=60000)
    expect(rows.first).to_contain_text("349.bin")
    page.get_by_role("button", name="Show 300 older").click()
    expect(rows).to_have_count(350, timeout=60000)
    expect(rows.last).to_contain_text("000.bin")
    expect(view.part("History").get_by_role("status").last).to_have_text("350 transfers, all of this choice")
    expect(page.get_by_role("button", name="Show 300 older")).to_have_count(0)
    # The newest page is asked for again; what is loaded stays.
    place.start("bulk", "send", str(many / "000.bin"), "--stream", "crowd2", "--flow", "data", "--receivers", "0")
    expect(rows).to_have_count(351, timeout=60000)
    expect(rows.last).to_contain_text("000.bin")
    view.axe("older transfers")


def looks(browser, site, view):
    print("looks")
    page = view.page
    view.visit()
    expect(view.row("Receivers", "files/data")).to_be_visible(timeout=30000)
    for theme in ["dark", "night", "light"]:
        page.get_by_label("Theme").select_option(theme)
        view.axe(f"theme {theme}")
        view.picture(theme)
    phone = Bulk(browser, site, viewport={"width": 390, "height": 800}, has_touch=True)
    phone.context.add_cookies(view.context.cookies())
    phone.visit()
    expect(phone.row("Receivers", "files/data")).to_be_visible(timeout=30000)
    check("a phone shows no wider page", phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    phone.axe("phone")
    phone.picture("phone")
    check(f"a phone has no faults: {phone.faults}", phone.faults == [])
    phone.context.close()


def main():
    with console_site("bulk") as (place, _, site, browser):
        files = pathlib.Path(place.directory)
        big, small, into = files / "big.bin", files / "small.bin", files / "into"
        big.write_bytes(os.urandom(60_000_000))
        small.write_bytes(b"x" * 1000)
        into.mkdir()
        place.run("book", "make", "Shift log", "-a", "Subject")
        rights(place, browser, site)
        view = enter(browser, site)
        sender, receiver = running(place, view, big, into)
        waits(place, view, receiver)
        control(place, view, sender)
        place.run("access", "allow", "user:*", "query", "log/**", "--reason", "operators look")
        history(place, view, small)
        older(place, view)
        looks(browser, site, view)
        check(f"no faults in the page: {view.faults}", view.faults == [])
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
