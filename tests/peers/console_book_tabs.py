#!/usr/bin/env python3
"""The console's logbooks in many tabs and for several persons, in a real browser beside a real hub.

Nine tabs with one stream of news; links of entries that lead to their views; a login inside the logbook; a session that ends while
somebody looks at the list; entries in browsers that clean no HTML; marks of entries that were read.
"""

import json
import re
import sys

from console_book import HOSTILE, enter, login_here
from console_page import Console, check, console_site
from hub import until
from playwright.sync_api import expect

TABS = 9
COUNTS = """
  window.streams = new Set(); window.sockets = new Set();
  const [Stream, Socket] = [EventSource, WebSocket];
  window.EventSource = class extends Stream {
    constructor(...given) { super(...given); streams.add(this); }
    close() { streams.delete(this); super.close(); }
  };
  window.WebSocket = class extends Socket {
    constructor(...given) { super(...given); sockets.add(this); this.addEventListener("close", () => sockets.delete(this)); }
  };
"""


def tabs(place, browser, site):
    print("many tabs")
    console = enter(browser, site, "zoe")
    console.context.add_init_script(COUNTS)
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-t", "the first entry")
    pages = []
    for number in range(TABS):
        page = console.context.new_page()
        page.goto(f"{site}book?book=Shift" + ("&entry=1" if number % 2 else ""))
        expect(page.get_by_text("the first entry")).to_be_visible(timeout=30000)
        pages.append(page)
    check(f"{TABS} tabs show entries", True)
    streams = lambda: [page.evaluate("streams.size") for page in pages]
    console.page.close()
    until("one of them holds the stream", lambda: sum(streams()) == 1)
    place.run("book", "post", "Shift", "-a", "Author=Max", "-t", "news for all")
    for page in pages[::2]:
        expect(page.get_by_text("news for all")).to_be_visible(timeout=30000)
    # The tab with the stream is closed: another one goes on.
    holder = pages.pop(streams().index(1))
    holder.close()
    until("another tab holds the stream", lambda: sum(streams()) == 1)
    place.run("book", "edit", "Shift/1", "-t", "the first entry, corrected")
    for page in pages:
        expect(page.get_by_text("the first entry, corrected")).to_be_visible(timeout=30000)
    # A tab that nobody sees needs no news; it reads again when it is seen.
    for page in pages:
        page.evaluate("Object.defineProperty(document, 'visibilityState', { get: () => window.hides ? 'hidden' : 'visible', configurable: true })")
        page.evaluate("window.hides = true; document.dispatchEvent(new Event('visibilitychange'))")
    until("no tab in sight: no stream", lambda: sum(streams()) == 0)
    place.run("book", "post", "Shift", "-a", "Author=Max", "-t", "news of the night")
    lists = [page for page in pages if "entry=" not in page.url]
    for page in lists:
        page.evaluate("window.hides = false; document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.get_by_text("news of the night")).to_be_visible(timeout=30000)
    until("one stream again", lambda: sum(streams()) == 1)
    console.context.close()


def links(place, console):
    print("links of an entry")
    page = console.page
    place.run("log", "send", "--process", "dome", "--level", "Error", "--acknowledged", "kept", "the dome did not close")
    name = json.loads(place.run("log", "query", "--process", "dome", "--json").stdout.splitlines()[0])["id"]
    record, gone = (f"{name['incarnation']}.{name['ring']}.{number}" for number in (name["number"], 4_000_000))
    other = place.run("book", "post", "Shift", "-a", "Author=Max", "-t", "the dome was slow").stdout.strip()
    wanted = [f"record:{record}", f"record:{gone}", "run:80123", "event:weather/wind", "transfer:nothing", f"entry:{other.lower()}"]
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-t", "see the links", *[word for link in wanted for word in ("--link", link)])
    page.goto(f"{console.site}book?book=Shift&q=%22see+the+links%22")
    page.get_by_role("list", name="Entries").get_by_role("link").first.click(timeout=30000)
    rows = page.locator("article .targets li")
    expect(rows).to_have_count(len(wanted), timeout=30000)
    expect(rows.nth(0)).to_contain_text(re.compile(r"\d\d:\d\d.* Error the dome did not close"))
    expect(rows.nth(1)).to_contain_text("not there any more")
    check("what is gone is no link", rows.nth(1).get_by_role("link").count() == 0)
    expect(rows.nth(4)).to_contain_text("not there any more")
    expect(rows.nth(5)).to_contain_text("the dome was slow")
    console.axe("links of an entry")
    entry = page.url
    rows.nth(0).get_by_role("link").click()
    expect(page.get_by_role("heading", name="Record")).to_be_visible(timeout=30000)
    expect(page.locator("main")).to_contain_text("the dome did not close")
    page.goto(entry)
    rows.nth(2).get_by_role("link").click(timeout=30000)
    expect(page.get_by_role("combobox", name="Filter")).to_have_value(re.compile("run_id=80123"), timeout=30000)
    page.goto(entry)
    rows.nth(3).get_by_role("link").click(timeout=30000)
    page.wait_for_url(re.compile(r"/attributes\?.*weather"))
    page.goto(entry)
    rows.nth(5).get_by_role("link").click(timeout=30000)
    expect(page.locator("article")).to_contain_text("the dome was slow", timeout=30000)
    mentions = page.get_by_role("list", name="Entries that mention it")
    expect(mentions).to_contain_text("see the links", timeout=30000)
    console.axe("an entry that another mentions")
    mentions.get_by_role("link").click()
    expect(rows).to_have_count(len(wanted), timeout=30000)


def escaped(place, console):
    print("a record in an entry")
    page = console.page
    place.run("log", "send", "--process", "marks", "--acknowledged", "kept", "# <b>[x](http://y) *loud*")
    page.goto(f"{console.site}log?q=--process+marks+--since+1h")
    page.get_by_text("*loud*").click(timeout=30000)
    page.get_by_role("link", name="New entry about it").click(timeout=30000)
    expect(page.get_by_label("Text", exact=True)).to_have_value("\\# \\<b\\>\\[x\\]\\(http://y\\) \\*loud\\*", timeout=30000)
    page.get_by_role("combobox", name="Logbook").select_option("Shift")
    page.get_by_role("button", name="Beside").click()
    expect(page.get_by_role("region", name="Preview").locator(".text")).to_have_text("# <b>[x](http://y) *loud*", timeout=30000)


def guest(place, browser, site):
    print("a login inside the logbook")
    place.run("access", "allow", "guest", "read", "weather/**", "--reason", "a public page")
    visitor = Console(browser, site)
    visitor.context.add_init_script(COUNTS)
    page = visitor.page
    page.goto(f"{site}book")
    open_sockets = lambda: page.evaluate("[...sockets].filter((one) => one.readyState <= 1).length")
    expect(page.locator(".connection")).to_have_text("Connected", timeout=60000)
    header = page.locator("header")
    expect(header.get_by_role("button", name="Log in")).to_be_visible()
    page.get_by_role("button", name="Log in to write").click()
    login_here(page, "zoe")
    expect(header.get_by_role("button", name="Log out")).to_be_visible(timeout=30000)
    expect(header.get_by_role("button", name="Log in")).to_have_count(0)
    expect(header.get_by_role("link", name="Bulk data")).to_be_visible(timeout=30000)
    expect(page.get_by_role("link", name="New entry")).to_be_visible(timeout=30000)
    until("one session with the hub", lambda: open_sockets() == 1)
    expect(page.locator(".connection")).to_have_text("Connected", timeout=30000)
    header.get_by_role("link", name="Log", exact=True).click()
    expect(page.get_by_role("listbox", name="Log records")).to_be_visible(timeout=30000)
    visitor.context.close()


def over(place, browser, site):
    print("a session that ends beside the list")
    for address in ["book?book=Shift", "book?book=Shift&entry=1"]:
        console = enter(browser, site, "max")
        page = console.page
        page.goto(site + address)
        expect(page.get_by_text("the first entry").first).to_be_visible(timeout=30000)
        place.run("book", "users", "password", "max", input="correct horse battery\n")
        expect(page.get_by_text("Your session has ended")).to_be_visible(timeout=60000)
        console.axe(f"a session that ended: {address}")
        expect(page.locator("header").get_by_role("button", name="Log out")).to_have_count(0)
        login_here(page, "max")
        expect(page.get_by_text("Your session has ended")).to_have_count(0, timeout=30000)
        expect(page.locator("header").get_by_role("button", name="Log out")).to_be_visible(timeout=30000)
        expect(page.get_by_text("the first entry").first).to_be_visible(timeout=30000)
        console.context.close()


def old_browser(place, browser, site):
    print("a browser that cleans no HTML")
    console = enter(browser, site, "zoe")
    console.context.add_init_script("delete Element.prototype.setHTML; delete Document.parseHTML;")
    page = console.page
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-t", "## Beam\n\n- **lost** at `14 A` & <b>late</b>\n\n| a | b |\n|-|-|\n| 1 | [2](https://example.org/x?a=1&b=2) |\n\n" + HOSTILE)
    page.goto(f"{site}book?book=Shift&q=Beam")
    page.get_by_role("list", name="Entries").get_by_role("link").first.click(timeout=30000)
    text = page.locator("article .text")
    expect(text.get_by_role("heading", name="Beam")).to_be_visible(timeout=30000)
    expect(text.locator("li strong")).to_have_text("lost")
    expect(text.locator("td").nth(1)).to_have_text("2")
    expect(text.locator("a").first).to_have_attribute("href", "https://example.org/x?a=1&b=2")
    check("the browser has no cleaner", page.evaluate("!Element.prototype.setHTML && 'trustedTypes' in window"))
    check("nothing runs", page.evaluate("window.hit") is None and text.locator("script, [onerror], a[href^='javascript']").count() == 0)
    console.context.close()


def read_marks(place, browser, site):
    print("marks of entries that were read")
    console = enter(browser, site, "zoe")
    page = console.page
    page.evaluate("localStorage.setItem('tampu.book.seen', JSON.stringify({ since: '2000-01-01T00:00:00Z', read: {} }))")
    page.goto(f"{site}book?book=Shift")
    expect(page.locator("li.unread").first).to_be_visible(timeout=30000)
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.locator("li.unread")).to_have_count(0)
    kept = page.evaluate("JSON.parse(localStorage.getItem('tampu.book.seen'))")
    check("one mark stands for a logbook", kept["books"]["Shift"] > "2020" and len(kept["read"]) < 60)
    page.goto(f"{site}book")
    expect(page.locator("li.unread").first).to_be_visible(timeout=30000)
    check("other logbooks keep their marks", all("Other/" in row for row in page.locator("li.unread .title").all_inner_texts()))
    console.context.close()


def main():
    with console_site("consoletabs") as (place, _, site, browser):
        for verb in ("query", "read"):
            place.run("access", "allow", "user:*", verb, "**", "--reason", "operators look")
        place.run("book", "users", "add", "max", "--full-name", "Max Li", input="correct horse battery\n")
        place.run("book", "make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem")
        place.run("book", "make", "Other", "-a", "Author")
        place.run("book", "post", "Other", "-a", "Author=Max", "-t", "elsewhere")
        tabs(place, browser, site)
        console = enter(browser, site, "zoe")
        links(place, console)
        escaped(place, console)
        guest(place, browser, site)
        over(place, browser, site)
        old_browser(place, browser, site)
        read_marks(place, browser, site)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
