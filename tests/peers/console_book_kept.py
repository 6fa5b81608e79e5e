#!/usr/bin/env python3
"""Nothing that somebody writes in the console's editor is lost in silence, in a real browser beside a real hub.

A view that is left before the draft was saved; drafts that fail; another logbook for the same text; a file that the hub does not
get; pictures at the cursor that can be undone.
"""

import json
import re
import sys

from console_page import check, console_site
from console_book import PICTURE, enter, shown_of
from hub import until
from playwright.sync_api import expect

FILE = {"name": "run.dat", "mimeType": "application/octet-stream", "buffer": b"a measurement"}
PASTE = """(area, bytes) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], "image.png", { type: "image/png" }));
  area.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def editor(console, book="Shift"):
    """The editor of a new entry, without an earlier draft."""
    page = console.page
    page.goto(f"{console.site}book?book={book}&entry=new")
    expect(page.get_by_label("Author")).to_be_visible(timeout=30000)
    return page.get_by_label("Text", exact=True)


def drafts(console):
    return console.page.evaluate("fetch('api/v1/drafts').then((answer) => answer.json())")


def drop_drafts(console):
    console.page.evaluate(
        """async () => {
          const { form } = await (await fetch('api/v1/whoami')).json();
          for (const { number } of await (await fetch('api/v1/drafts')).json()) {
            await fetch(`api/v1/drafts/${number}`, { method: 'DELETE', headers: { 'X-Tampu-Form': form } });
          }
        }"""
    )
    until("no drafts are left", lambda: drafts(console) == [])


def left_early(console):
    print("a view that is left before its draft was saved")
    page = console.page
    for leave in [lambda: page.get_by_role("link", name="Site", exact=True).click(), lambda: page.get_by_role("button", name="Cancel").click(), page.go_back]:
        page.goto(f"{console.site}book?book=Shift")
        page.get_by_role("link", name="New entry").click(timeout=30000)
        expect(page.get_by_label("Author")).to_be_visible(timeout=30000)
        page.get_by_label("Text", exact=True).fill("words of the last moment")
        leave()
        expect(page.locator("form.editor")).to_have_count(0, timeout=30000)
        until("the draft has them", lambda: [one["text"] for one in drafts(console)] == ["words of the last moment"])
        drop_drafts(console)


def failing_draft(console):
    print("a draft that cannot be saved")
    page = console.page
    asked = []
    answer = []
    # Dialogs are told of during a call to the page only.
    number = lambda: page.evaluate("1") and len(asked)

    def decide(dialog):
        asked.append(dialog.message)
        dialog.accept() if answer.pop(0) else dialog.dismiss()

    page.on("dialog", decide)
    page.goto(f"{console.site}book?book=Shift")
    page.get_by_role("link", name="New entry").click(timeout=30000)
    text = page.get_by_label("Text", exact=True)
    expect(page.get_by_label("Author")).to_be_visible(timeout=30000)
    page.route("**/api/v1/drafts*", lambda route: route.abort())
    text.fill("words that nobody keeps")
    answer.append(False)
    page.get_by_role("link", name="Site", exact=True).click()
    until("the page asks", lambda: number() == 1)
    check("it says that the text would be lost", "not kept as a draft" in asked[0])
    expect(page.get_by_text("The draft could not be saved")).to_be_visible(timeout=30000)
    check("the form stays, with its text", text.input_value() == "words that nobody keeps" and "/book?" in page.url)
    console.axe("a draft that fails")
    answer.append(False)
    page.go_back()
    until("a step back asks, too", lambda: number() == 2)
    until("the address is that of the form again", lambda: "entry=new" in page.url)
    check("the text is still there", text.input_value() == "words that nobody keeps")
    answer.append(True)
    page.get_by_role("link", name="Site", exact=True).click()
    expect(page.locator("form.editor")).to_have_count(0, timeout=30000)
    check("a person may let it go", number() == 3)
    page.unroute("**/api/v1/drafts*")
    page.remove_listener("dialog", decide)
    # A hub that is there again gets the draft without another key.
    text = editor(console)
    page.route("**/api/v1/drafts*", lambda route: route.abort())
    text.fill("words for later")
    expect(page.get_by_text("The draft could not be saved")).to_be_visible(timeout=30000)
    page.unroute("**/api/v1/drafts*")
    expect(page.get_by_text("Draft saved")).to_be_visible(timeout=60000)
    drop_drafts(console)


def other_book(place, console):
    print("another logbook for the same text")
    page = console.page
    text = editor(console)
    page.get_by_label("Author").fill("Zoe")
    page.get_by_label("Type").select_option("Routine")
    page.get_by_label("Files").set_input_files([FILE])
    text.fill("the same text")
    expect(page.get_by_text("Draft saved")).to_be_visible(timeout=30000)
    page.get_by_role("combobox", name="Logbook").select_option("Other")
    expect(page.get_by_label("Place")).to_be_visible(timeout=30000)
    check("the text is in the form, not in the address", text.input_value() == "the same text" and "same" not in page.url and "book=Other" in page.url)
    check("the author stays", page.get_by_label("Author").input_value() == "Zoe")
    expect(page.locator(".files li")).to_have_count(1)
    expect(page.get_by_label("Type")).to_have_value("")
    until("its draft is one for the other logbook", lambda: [one["book"] for one in drafts(console)] == ["Other"])
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", name="Other/1")).to_be_visible(timeout=30000)
    entry = shown_of(place, "Other/1")
    values = {one["name"]: one["values"] for one in entry["attributes"] if one["values"]}
    check("the entry has text, author and file", [entry["text"], values, [file["name"] for file in entry["attachments"]]] == ["the same text", {"Author": ["Zoe"]}, ["run.dat"]])
    until("its draft is gone", lambda: drafts(console) == [])


def failed_file(place, console):
    print("a file that the hub does not get")
    page = console.page
    text = editor(console)
    page.get_by_label("Author").fill("Zoe")
    text.fill("see the file")
    page.route("**/api/v1/uploads", lambda route: route.abort())
    page.get_by_label("Files").set_input_files([FILE])
    row = page.locator(".files li", has_text="run.dat")
    expect(row.get_by_role("alert")).to_be_visible(timeout=30000)
    expect(page.get_by_role("button", name="Post")).to_be_disabled()
    text.press("Control+Enter")
    expect(page.get_by_role("alert").filter(has_text="The hub does not have run.dat")).to_be_visible()
    check("nothing was posted", "entry=new" in page.url)
    console.axe("a file that failed")
    page.unroute("**/api/v1/uploads")
    row.get_by_role("button", name="Send run.dat again").click()
    expect(row.get_by_role("alert")).to_have_count(0, timeout=30000)
    page.get_by_role("button", name="Post").click()
    expect(page.get_by_role("heading", name="Shift/")).to_be_visible(timeout=30000)
    number = page.get_by_role("heading", name="Shift/").inner_text()
    check("the entry has the file", [file["name"] for file in shown_of(place, number)["attachments"]] == ["run.dat"])


def pictures(console):
    print("a picture at the cursor")
    page = console.page
    text = editor(console)
    text.press_sequentially("first line\nsecond")
    text.evaluate("(area) => area.setSelectionRange(5, 5)")
    text.evaluate(PASTE, list(PICTURE))
    expect(text).to_have_value(re.compile(r"^first!\[picture-\d+-0\.png\]\(attachment:[^)]*\) line\nsecond$"))
    place_of = text.evaluate("(area) => [area.selectionStart, area.value.indexOf(' line')]")
    check("the cursor is behind the picture", place_of[0] == place_of[1])
    page.keyboard.type("!")
    expect(text).to_have_value(re.compile(r"\)! line"))
    # The browser may take back the letter and the picture in one step.
    for _ in range(2):
        if text.input_value() != "first line\nsecond":
            page.keyboard.press("Control+z")
    expect(text).to_have_value("first line\nsecond")
    page.keyboard.press("Control+Shift+z")
    expect(text).to_have_value(re.compile(r"^first!\[picture"))
    expect(page.get_by_text("Draft saved")).to_be_visible(timeout=30000)
    drop_drafts(console)


def main():
    with console_site("consolekept") as (place, _, site, browser):
        place.run("book", "make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem", "--required", "Author")
        place.run("book", "make", "Other", "-a", "Author", "-a", "Place", "-a", "Type=Beam,Access")
        console = enter(browser, site, "zoe")
        left_early(console)
        failing_draft(console)
        other_book(place, console)
        failed_file(place, console)
        pictures(console)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
