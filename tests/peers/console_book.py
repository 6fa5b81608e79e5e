#!/usr/bin/env python3
"""The console's logbooks in a real browser beside a real hub: Debian's Chromium, driven by Playwright.

The list, search as one types, entries that appear by themselves, a list of 20 000 entries; an entry with files, links,
thread and history; previews; fields by the logbook's configuration; two people who edit one entry; a session that ends
while somebody writes, with files; hostile texts; themes; a phone; no barriers (axe).
"""

import json
import pathlib
import re
import sys

from console_page import PASSWORD, Console, check, console_site
from hub import until
from playwright.sync_api import expect

HOSTILE = "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script> [x](javascript:window.hit=1) \u202eleft"
# Entries of the long list.
MANY = 20_000
ROW_AT_TOP = "(box) => Math.ceil(box.scrollTop / box.querySelector('li').offsetHeight)"
CONFIGURATION = """
Attributes = Author, Type, Cause, Door, Area
Options Type = Beam{1}, Access{2}
{1} ROptions Cause = Trip, Dump
{2} MOptions Cause = Key, Badge
{1} Show Attributes Edit = Author, Type, Cause
{2} Show Attributes Edit = Author, Type, Cause, Door, Area
Required Attributes = Type
{2} Required Attributes = Type, Door
Locked Attributes = Author
Preset Author = $long_name
Preset text = Shift of $short_name
MOptions Area = A, B
Extendable Options = Area
Default encoding = 3
Allowed encoding = 9
Quote on reply = 0
"""
PICTURE = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082")


def enter(browser, site, login, **options):
    console = Console(browser, site, **options)
    console.page.goto(f"{site}book")
    console.page.get_by_role("button", name="Log in to write").click(timeout=30000)
    login_here(console.page, login)
    expect(console.page.get_by_role("link", name="New entry")).to_be_visible(timeout=30000)
    return console


def login_here(page, login):
    form = page.locator("form.here")
    form.get_by_label("Login").fill(login)
    form.get_by_label("Password").fill(PASSWORD)
    form.get_by_role("button", name="Log in", exact=True).click()


def shown_of(place, entry):
    return json.loads(place.run("book", "show", entry, "--json").stdout)


def shown(place, number):
    return shown_of(place, f"Shift/{number}")


def listing(place, console):
    print("the list")
    page = console.page
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-a", "Type=Problem", "-t", "**MAG-01** tripped at 14 A")
    rows = page.get_by_role("list", name="Entries").get_by_role("listitem")
    expect(rows).to_have_count(1, timeout=30000)
    check("an entry appears by itself, unread", "unread" in rows.first.inner_text())
    place.run("book", "post", "Shift", "-a", "Author=Max", "-a", "Type=Routine", "-t", "all is well")
    expect(rows).to_have_count(2, timeout=30000)
    page.get_by_label("Search", exact=True).fill("mag-01 type:Problem")
    expect(rows).to_have_count(1, timeout=30000)
    until("the address has the search", lambda: "q=mag-01+type%3AProblem" in page.url)
    page.get_by_label("Search", exact=True).fill("")
    page.get_by_text("Help for searches", exact=True).click()
    console.axe("help for searches")
    page.keyboard.press("Escape")
    expect(page.get_by_role("table", name="Help for searches")).to_have_count(0)
    page.get_by_text("Help for searches", exact=True).click()
    page.get_by_role("button", name="Type", exact=True).click()
    expect(page.get_by_label("Search", exact=True)).to_have_value("Type:")
    page.keyboard.type("Problem")
    expect(rows).to_have_count(1, timeout=30000)
    page.get_by_text("Help for searches", exact=True).click()
    page.get_by_role("button", name="-fixed", exact=True).click()
    expect(page.get_by_label("Search", exact=True)).to_have_value("Type:Problem -fixed")
    expect(page.get_by_label("Search", exact=True)).to_be_focused()
    page.get_by_label("Search", exact=True).fill("(")
    expect(page.get_by_role("alert").filter(has_text="The hub could not answer")).to_be_visible(timeout=30000)
    page.get_by_label("Search", exact=True).fill("")
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
    # The heading of the editor has the number too.
    expect(console.page.locator("article")).to_contain_text("zoe's line", timeout=30000)
    other.page.get_by_role("button", name="Save").click()
    expect(other.page.get_by_text("has changed this entry meanwhile")).to_be_visible(timeout=30000)
    check("nothing was overwritten", shown(place, 1)["text"].startswith("zoe's line"))
    other.axe("conflict")
    other.page.get_by_role("button", name="Take what is chosen").click()
    other.page.get_by_role("button", name="Save").click()
    expect(other.page.locator("article")).to_contain_text("max's line", timeout=30000)
    text = shown(place, 1)["text"]
    check("both changes are there", "zoe's line" in text and "max's line" in text)
    other.page.get_by_role("button", name="Show history").click()
    expect(other.page.locator(".difference .new").first).to_contain_text("max's line", timeout=30000)
    parts_of_conflict(place, console.page, other)
    other.context.close()


def parts_of_conflict(place, page, other):
    """Both change the type and the links, one the author: what is not clear is for a person to choose."""
    place.run("book", "edit", "Shift/1", "--link", "run:1")
    for one in [page, other.page]:
        one.goto(f"{other.site}book?book=Shift&entry=1&edit=yes")
        expect(one.get_by_label("Links of the entry")).to_have_value("run:1", timeout=30000)
    page.get_by_label("Type").select_option("Fixed")
    page.get_by_label("Author").fill("Zoe Miller")
    page.get_by_label("Links of the entry").fill("run:1\nrun:2")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("article")).to_contain_text("Zoe Miller", timeout=30000)
    other.page.get_by_label("Type").select_option("Routine")
    other.page.get_by_label("Links of the entry").fill("run:3")
    other.page.get_by_role("button", name="Save").click()
    take = other.page.get_by_role("button", name="Take what is chosen")
    expect(take).to_be_disabled(timeout=30000)
    expect(other.page.get_by_text("Both changed it: choose for Type.")).to_be_visible()
    changed = other.page.locator(".conflict .part legend").all_inner_texts()
    check("each part that differs is shown", changed == ["Author", "Type", "Links"])
    other.axe("conflict of attributes")
    other.page.locator(".conflict .part", has_text="Type").get_by_label("mine").check()
    take.click()
    expect(other.page.get_by_label("Author")).to_have_value("Zoe Miller")
    other.page.get_by_role("button", name="Save").click()
    expect(other.page.locator("article")).to_contain_text("Routine", timeout=30000)
    entry = shown(place, 1)
    values = {one["name"]: one["values"] for one in entry["attributes"]}
    check("no change is lost in silence", values == {"Author": ["Zoe Miller"], "Type": ["Routine"]} and [link["target"] for link in entry["links"]] == ["2", "3"])


def previews(place, console):
    print("the preview")
    page = console.page
    page.goto(f"{console.site}book?book=Shift&entry=new")
    page.get_by_label("Author").fill("Zoe", timeout=30000)
    preview = page.get_by_role("region", name="Preview")
    page.get_by_role("button", name="Beside").click()
    for markup, text, found in [
        ("markdown", "**HV** trip", "strong"), ("elcode", "[b]HV[/b] trip", "b"), ("html", "<p><u>HV</u> trip</p>", "u"), ("plain", "HV trip", "pre"),
    ]:
        page.get_by_label("Markup").select_option(markup)
        page.get_by_label("Text").fill(text)
        expect(preview.locator(found)).to_contain_text("HV", timeout=30000)
    for markup in ["markdown", "html", "elcode", "plain"]:
        page.get_by_label("Markup").select_option(markup)
        page.get_by_label("Text").fill(f"{markup} {HOSTILE}")
        expect(preview).to_contain_text(f"{markup} ", timeout=30000)
        check(f"no script in a preview of {markup}", page.evaluate("window.hit") is None and preview.locator("script, a[href^='javascript']").count() == 0)
    page.get_by_label("Markup").select_option("markdown")
    page.get_by_label("Text").fill("see ")
    page.get_by_label("Files").set_input_files([{"name": "a trip.png", "mimeType": "image/png", "buffer": PICTURE}])
    shows = "(image) => image.complete && image.naturalWidth === 1"
    until("the new picture is shown", lambda: preview.locator("img").count() == 1 and preview.locator("img").evaluate(shows))
    console.axe("preview beside the text")
    page.keyboard.press("Alt+p")
    expect(page.get_by_label("Text")).to_be_hidden()
    console.axe("preview alone")
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", name="Shift/")).to_be_visible(timeout=30000)
    # A viewed entry is as its preview: the picture is a file of the entry.
    until("the picture of the entry is shown", lambda: page.locator("article .text img").count() == 1 and page.locator("article .text img").evaluate(shows))
    number = int(page.get_by_role("heading", name="Shift/").inner_text().split("/")[1])
    check("the text names the file", "a_trip.png" in shown(place, number)["text"])


def fields(place, console):
    print("fields by the configuration")
    page = console.page
    place.run("book", "make", "Rules", "-a", "Author")
    file = pathlib.Path(place.directory) / "rules.cfg"
    file.write_text(CONFIGURATION, encoding="utf-8")
    place.run("book", "config", "edit", "Rules", str(file))
    page.goto(f"{console.site}book?book=Rules&entry=new")
    form = page.get_by_role("group", name="Attributes")
    expect(form.get_by_label("Author")).to_have_text("Zoe Miller", timeout=30000)
    check("a locked attribute has no field", form.get_by_role("textbox", name="Author").count() == 0)
    expect(page.get_by_label("Text")).to_have_value("Shift of zoe")
    check("the markups are those of the logbook", page.get_by_label("Markup").locator("option").all_inner_texts() == ["markdown", "plain"])
    form.get_by_label("Type").select_option("Beam")
    form.get_by_role("radio", name="Dump").check(timeout=30000)
    expect(form.get_by_label("Door")).to_have_count(0)
    form.get_by_label("Type").select_option("Access")
    expect(form.get_by_role("checkbox", name="Key")).to_be_visible(timeout=30000)
    check("a value of the other condition is taken back", form.get_by_label("Dump").count() == 0)
    form.get_by_role("checkbox", name="Badge").check()
    form.get_by_label("Another value of Area").fill("C")
    form.get_by_role("button", name="Add").click()
    console.axe("fields")
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("alert").filter(has_text="Door is required")).to_be_visible()
    expect(form.get_by_label("Door")).to_be_focused()
    form.get_by_label("Door").fill("North")
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", name="Rules/1")).to_be_visible(timeout=30000)
    values = {one["name"]: one["values"] for one in shown_of(place, "Rules/1")["attributes"] if one["values"]}
    check("the entry has the values", values == {"Author": ["Zoe Miller"], "Type": ["Access"], "Cause": ["Badge"], "Door": ["North"], "Area": ["C"]})
    # The refusal of the hub stands at the field.
    place.run("book", "make", "Numbers", "-a", "Run", "-a", "Author", "--required", "Author")
    file.write_text("Attributes = Run, Author\nType Run = numeric\n", encoding="utf-8")
    place.run("book", "config", "edit", "Numbers", str(file))
    page.goto(f"{console.site}book?book=Numbers&entry=new")
    page.get_by_role("combobox", name="Run").fill("many", timeout=30000)
    page.get_by_role("button", name="Post").click()
    expect(page.locator(".attribute", has_text="Run").get_by_role("alert")).to_contain_text("expected a number", timeout=30000)
    expect(page.get_by_role("combobox", name="Run")).to_be_focused()
    console.axe("refusal at its field")
    # Earlier values are proposed.
    page.goto(f"{console.site}book?book=Shift&entry=new")
    page.get_by_label("Author").press_sequentially("Zo", timeout=30000)
    until("an earlier author is proposed", lambda: "Zoe Miller" in page.locator("datalist option").evaluate_all("(all) => all.map((one) => one.value)"))


def long_list(place, console):
    print("a long list")
    page = console.page
    logs = [{"id": nth, "owner": "zoe", "createdDate": 1_700_000_000_000 + nth * 1000, "title": f"entry {nth}", "description": f"text {nth}"} for nth in range(1, MANY + 1)]
    file = pathlib.Path(place.directory) / "logs.json"
    file.write_text(json.dumps(logs), encoding="utf-8")
    place.run("book", "make", "Long", "-a", "Title")
    place.run("book", "import", "--format", "olog", str(file), "--book", "Long")
    page.goto(f"{console.site}book?book=Long")
    rows = page.get_by_role("list", name="Entries").get_by_role("listitem")
    expect(page.locator(".state")).to_have_text(f"{MANY} entries", timeout=60000)
    first = rows.first.locator("a.title")
    expect(first).to_have_text(f"Long/{MANY}")
    check("few rows are in the page", rows.count() < 80)
    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="Long/1", exact=True)).to_be_focused(timeout=30000)
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("link", name="Long/2", exact=True)).to_be_focused(timeout=30000)
    console.axe("the end of a long list")
    box = page.locator(".box")
    for place_of in [0.5, 0.25, 0.75, 0.1]:
        box.evaluate("(box, part) => box.scrollTo(0, box.scrollHeight * part)", place_of)
        wanted = int(box.evaluate(ROW_AT_TOP))
        expect(page.locator(f'li[data-row="{wanted}"] a.title')).to_have_text(f"Long/{MANY - wanted}", timeout=30000)
        check("the rows in the page stay few", rows.count() < 80)
    before = box.evaluate("(box) => box.scrollTop")
    wanted = int(box.evaluate(ROW_AT_TOP))
    seen = page.locator(f'li[data-row="{wanted + 3}"] a.title').inner_text()
    place.run("book", "post", "Long", "-a", "Title=new", "-t", "new")
    expect(page.locator(".state")).to_have_text(f"{MANY + 1} entries", timeout=60000)
    expect(page.locator(f'li[data-row="{wanted + 4}"] a.title')).to_have_text(seen, timeout=30000)
    check("who reads stays at the same entries", box.evaluate("(box) => box.scrollTop") > before)
    page.keyboard.press("Home")
    expect(page.get_by_role("link", name=f"Long/{MANY + 1}")).to_be_focused(timeout=30000)
    page.keyboard.press("PageDown")
    check("a page further", int(page.evaluate("document.activeElement.closest('li').dataset.row")) > 3)


def session(place, console):
    print("the session ends while somebody writes")
    page = console.page
    page.goto(f"{console.site}book?book=Shift&entry=new")
    page.get_by_label("Author").fill("Zoe", timeout=30000)
    page.get_by_label("Text").fill("first words")
    page.get_by_label("Files").set_input_files([{"name": "run.dat", "mimeType": "application/octet-stream", "buffer": b"a measurement"}])
    expect(page.get_by_text("Draft saved")).to_be_visible(timeout=30000)
    console.context.clear_cookies()
    page.get_by_label("Text").fill("first words, and the rest")
    expect(page.get_by_text("Your session has ended")).to_be_visible(timeout=30000)
    page.get_by_label("Files").set_input_files([{"name": "late.dat", "mimeType": "application/octet-stream", "buffer": b"another"}])
    expect(page.locator(".files li", has_text="late.dat").get_by_role("alert")).to_be_visible(timeout=30000)
    check("the text stays", page.get_by_label("Text").input_value() == "first words, and the rest")
    login_here(page, "zoe")
    expect(page.get_by_text("Your session has ended")).to_have_count(0, timeout=30000)
    expect(page.locator(".files li", has_text="late.dat").get_by_role("alert")).to_have_count(0, timeout=30000)
    until("the draft has both files", lambda: page.evaluate("fetch('api/v1/drafts').then((answer) => answer.json()).then((all) => all[0]?.attachments.length)") == 2)
    page.reload()
    page.get_by_role("button", name="Go on with it").click(timeout=30000)
    expect(page.get_by_label("Text")).to_have_value("first words, and the rest")
    expect(page.locator(".files li")).to_have_count(2)
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", name="Shift/4")).to_be_visible(timeout=30000)
    entry = shown(place, 4)
    check("it is posted, with its files", entry["text"] == "first words, and the rest" and [file["name"] for file in entry["attachments"]] == ["run.dat", "late.dat"])


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
        previews(place, console)
        fields(place, console)
        long_list(place, console)
        hostile(place, console)
        looks(browser, site, console)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
