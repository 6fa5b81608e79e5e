#!/usr/bin/env python3
"""The console's logbooks in a real browser beside a real hub: Debian's Chromium, driven by Playwright.

The list, search as one types, entries that appear by themselves; an entry with files, links, thread and history; two
people who edit one entry; a session that ends while somebody writes; hostile texts; themes; a phone; no barriers (axe).
"""

import json
import re
import sys

from console_page import PASSWORD, Console, check, console_site
from hub import until
from playwright.sync_api import expect

HOSTILE = "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script> [x](javascript:window.hit=1) \u202eleft"
PICTURE = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082")


def enter(browser, site, login, **options):
    console = Console(browser, site, **options)
    console.page.goto(f"{site}book")
    console.page.get_by_role("button", name="Log in to write").click(timeout=30000)
    login_here(console.page, login)
    expect(console.page.get_by_role("link", name="New entry")).to_be_visible(timeout=30000)
    return console


def login_here(page, login):
    page.get_by_label("Login").fill(login)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()


def shown(place, number):
    return json.loads(place.run("book", "show", f"Shift/{number}", "--json").stdout)


def listing(place, console):
    print("the list")
    page = console.page
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-a", "Type=Problem", "-t", "**MAG-01** tripped at 14 A")
    rows = page.get_by_role("list", name="Entries").get_by_role("listitem")
    expect(rows).to_have_count(1, timeout=30000)
    check("an entry appears by itself, unread", "unread" in rows.first.inner_text())
    place.run("book", "post", "Shift", "-a", "Author=Max", "-a", "Type=Routine", "-t", "all is well")
    expect(rows).to_have_count(2, timeout=30000)
    page.get_by_label("Search").fill("mag-01 type:Problem")
    expect(rows).to_have_count(1, timeout=30000)
    until("the address has the search", lambda: "q=mag-01+type%3AProblem" in page.url)
    page.get_by_label("Search").fill("(")
    expect(page.get_by_role("alert").filter(has_text="The hub could not answer")).to_be_visible(timeout=30000)
    page.get_by_label("Search").fill("")
    expect(rows).to_have_count(2, timeout=30000)
    console.axe("list")


def writing(place, console):
    print("a new entry")
    page = console.page
    page.goto(f"{console.site}book?book=Shift&entry=new&text=The+plot&link=run:80123")
    expect(page.get_by_label("Text")).to_have_value("The plot", timeout=30000)
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("alert").filter(has_text="Author is required")).to_be_visible()
    page.get_by_label("Author").fill("Zoe")
    page.get_by_label("Type").select_option("Fixed")
    page.get_by_label("Files").set_input_files([{"name": "trip.png", "mimeType": "image/png", "buffer": PICTURE}, {"name": "two.txt", "mimeType": "text/plain", "buffer": b"two"}])
    expect(page.locator(".files li")).to_have_count(2)
    expect(page.get_by_text("Draft saved")).to_be_visible(timeout=30000)
    console.axe("editor")
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", name="Shift/3")).to_be_visible(timeout=30000)
    expect(page.locator("article")).to_contain_text("run:80123", timeout=30000)
    expect(page.locator("article .files li")).to_have_count(2)
    console.axe("entry")
    entry = shown(place, 3)
    check("the entry has text, files and link", entry["text"].startswith("The plot") and [file["name"] for file in entry["attachments"]] == ["trip.png", "two.txt"])


def conflict(place, console, browser, site):
    print("two people edit one entry")
    other = enter(browser, site, "max")
    for one in [console, other]:
        one.page.goto(f"{site}book?book=Shift&entry=1&edit=yes")
        expect(one.page.get_by_label("Text")).to_have_value(re.compile("MAG-01"), timeout=30000)
    expect(other.page.get_by_role("status").filter(has_text="zoe has been editing it")).to_be_visible(timeout=30000)
    console.page.get_by_label("Text").fill("zoe's line\n**MAG-01** tripped at 14 A")
    other.page.get_by_label("Text").fill("**MAG-01** tripped at 14 A\n\nmax's line")
    console.page.get_by_role("button", name="Save").click()
    expect(console.page.get_by_role("heading", name="Shift/1")).to_be_visible(timeout=30000)
    other.page.get_by_role("button", name="Save").click()
    expect(other.page.get_by_text("has changed this entry meanwhile")).to_be_visible(timeout=30000)
    check("nothing was overwritten", shown(place, 1)["text"].startswith("zoe's line"))
    other.axe("conflict")
    other.page.get_by_role("button", name="Take both").click()
    other.page.get_by_role("button", name="Save").click()
    expect(other.page.get_by_role("heading", name="Shift/1")).to_be_visible(timeout=30000)
    text = shown(place, 1)["text"]
    check("both changes are there", "zoe's line" in text and "max's line" in text)
    other.page.get_by_role("button", name="Show history").click()
    expect(other.page.locator(".difference .new").first).to_contain_text("max's line", timeout=30000)
    other.context.close()


def session(place, console):
    print("the session ends while somebody writes")
    page = console.page
    page.goto(f"{console.site}book?book=Shift&entry=new")
    page.get_by_label("Author").fill("Zoe", timeout=30000)
    page.get_by_label("Text").fill("first words")
    expect(page.get_by_text("Draft saved")).to_be_visible(timeout=30000)
    console.context.clear_cookies()
    page.get_by_label("Text").fill("first words, and the rest")
    expect(page.get_by_text("Your session has ended")).to_be_visible(timeout=30000)
    check("the text stays", page.get_by_label("Text").input_value() == "first words, and the rest")
    login_here(page, "zoe")
    expect(page.get_by_text("Your session has ended")).to_have_count(0, timeout=30000)
    page.reload()
    page.get_by_role("button", name="Go on with it").click(timeout=30000)
    expect(page.get_by_label("Text")).to_have_value("first words, and the rest")
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", name="Shift/4")).to_be_visible(timeout=30000)
    check("it is posted", shown(place, 4)["text"] == "first words, and the rest")


def hostile(place, console):
    print("hostile texts")
    page = console.page
    place.run("book", "make", "<b>Bad", "-a", "<i>Author")
    for encoding in ["markdown", "html", "elcode", "plain"]:
        place.run("book", "post", "<b>Bad", "-a", f"<i>Author={HOSTILE}", "--encoding", encoding, "-t", HOSTILE)
    page.goto(f"{console.site}book?book=%3Cb%3EBad")
    expect(page.get_by_role("list", name="Entries").get_by_role("listitem")).to_have_count(4, timeout=30000)
    for number in range(1, 5):
        page.goto(f"{console.site}book?book=%3Cb%3EBad&entry={number}")
        expect(page.locator("article .text")).to_contain_text("left", timeout=30000)
        check("no script, no address with one", page.evaluate("window.hit") is None and page.locator("article script, article a[href^='javascript']").count() == 0)


def looks(browser, site, console):
    print("looks")
    page = console.page
    page.goto(f"{site}book?book=Shift")
    expect(page.get_by_role("list", name="Entries").get_by_role("listitem").first).to_be_visible(timeout=30000)
    for theme in ["dark", "night", "light"]:
        page.get_by_label("Theme").select_option(theme)
        console.axe(f"theme {theme}")
    phone = enter(browser, site, "zoe", viewport={"width": 390, "height": 800}, has_touch=True)
    for address in ["book", "book?book=Shift&entry=1", "book?book=Shift&entry=new"]:
        phone.page.goto(f"{site}{address}")
        expect(phone.page.locator(".book ol, .book article, .book form.editor").first).to_be_visible(timeout=30000)
        check(f"a phone shows no wider page: {address}", phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
    phone.context.close()


def main():
    with console_site("consolebook") as (place, _, site, browser):
        place.run("book", "users", "add", "max", "--full-name", "Max Li", "--admin", input=f"{PASSWORD}\n")
        place.run("book", "make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem,Fixed", "--required", "Author")
        console = enter(browser, site, "zoe")
        listing(place, console)
        writing(place, console)
        conflict(place, console, browser, site)
        session(place, console)
        hostile(place, console)
        looks(browser, site, console)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
