#!/usr/bin/env python3
"""Forms of ELOG's pages in a real browser: Debian's Chromium, driven by Playwright.

Pictures that are pasted, files that are dropped, several at once; drafts that outlive a session; who else edits; choices that change
the form; dates in one field; previews; submit pages; guests of one address; and the same form without scripts.
"""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub import Place, check, until
from playwright.sync_api import expect, sync_playwright

CFG = """[global]
Time format = %d.%m.%Y um %H:%M:%S
[Open]
Attributes = Author, When, Subject
Type When = datetime
Submit page = done.html
[Shift]
Attributes = Author, Type, System, Subject
Required Attributes = Author
Options Type = Routine{a}, Problem{b}
{b}Options System = RICH1, HLT
{a}Show attributes edit = Author, Type, Subject
Allowed encoding = 7
"""

# A red picture of one pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

# Gives the page files, as the clipboard or a drag does.
GIVE = """([kind, selector, files]) => {
  const data = new DataTransfer();
  for (const [name, type, base64] of files) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    data.items.add(new File([bytes], name, { type }));
  }
  const target = document.querySelector(selector);
  const event = kind === 'paste'
    ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
    : new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
  target.dispatchEvent(event);
}"""


def log_in(page, site, name):
    page.goto(f"{site}Shift/?cmd=Login")
    page.fill("input[name=uname]", name)
    page.fill("input[name=upassword]", "correct horse battery")
    page.click("form.login [type=submit], form [type=submit]")
    page.wait_for_selector(".title3")


def number(page):
    """The number of the entry that the page shows, once it shows one."""
    page.wait_for_selector(".entryhead")
    return int(page.url.rsplit("/", 1)[1].split("?")[0])


def says(page, selector, text):
    """Waits for a notice of the page."""
    expect(page.locator(selector).filter(has_text=text)).to_have_count(1, timeout=30000)


def pictures(page, site, encoding, mark):
    page.goto(f"{site}Shift/?cmd=New")
    page.check(f"input[name=encoding][value={encoding}]")
    page.fill("[name=Author]", "Zoe")
    page.fill("textarea[name=Text]", "Look: ")
    page.evaluate(GIVE, ["paste", "textarea[name=Text]", [["image.png", "image/png", PNG]]])
    check(f"{encoding}: the text refers to the pasted picture", mark in page.input_value("textarea[name=Text]"))
    page.evaluate(GIVE, ["drop", "form.entry", [["a.txt", "text/plain", "YQ=="], ["b.txt", "text/plain", "Yg=="]]])
    check("three files wait", page.locator(".newfiles li").count() == 3)
    page.click("button[value=Preview]")
    page.wait_for_selector("#preview img")
    check("the preview shows the picture that is not sent yet", page.get_attribute("#preview img", "src").startswith("blob:"))
    page.click("button[value=Submit]")
    entry = number(page)
    image = page.locator(".messageframe img")
    check(f"{encoding}: the entry shows the picture", image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 1)
    check("it has the three files", page.locator("td.attachment").count() == 3)
    return entry


def main():
    place = Place("browser")
    try:
        with open(os.path.join(place.directory, "elogd.cfg"), "w", encoding="utf-8") as file:
            file.write(CFG)
        with open(os.path.join(place.directory, "done.html"), "w", encoding="utf-8") as file:
            file.write("<h1>Thank you</h1>")
        logbooks = os.path.join(place.directory, "logbooks")
        for book in ["Open", "Shift"]:
            os.makedirs(os.path.join(logbooks, book))
        place.up("--book-listen", "127.0.0.1:0")
        site = until("the address", lambda: next((word for word in place.said().split() if word.startswith("http://") and "/elog/" in word), None))
        site = site.rstrip(".,") if site.endswith((".", ",")) else site
        place.run("book", "import-elog", "--elog-config", os.path.join(place.directory, "elogd.cfg"), logbooks)
        for name, full_name in [("zoe", "Zoe Miller"), ("max", "Max Quartz")]:
            place.run("book", "users", "add", name, "--full-name", full_name, "--admin", input="correct horse battery\n")
        with sync_playwright() as playwright:
            program = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            run(browser, site)
            run_guests(browser, site)
            browser.close()
    finally:
        place.close()
    print("passed")


def run(browser, site):
    zoe = browser.new_context()
    page = zoe.new_page()
    faults = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: dialog.accept())
    log_in(page, site, "zoe")

    print("choices change the form")
    page.goto(f"{site}Shift/?cmd=New")
    page.fill("[name=Subject]", "stays")
    page.fill("textarea[name=Text]", "text stays")
    page.select_option("[name=Type]", "Problem")
    page.wait_for_selector("select[name=System]")
    check("a field became a choice, and the rest stayed",
          page.input_value("[name=Subject]") == "stays" and page.input_value("textarea[name=Text]") == "text stays")
    page.select_option("[name=Type]", "Routine")
    page.wait_for_selector("[name=System]", state="detached")

    print("pictures and files")
    for encoding, mark in [("HTML", '<img src="attachment:pasted-'), ("ELCode", "[img]attachment:pasted-")]:
        entry = pictures(page, site, encoding, mark)

    print("an error leaves the form with its files")
    page.goto(f"{site}Shift/?cmd=New")
    page.evaluate(GIVE, ["drop", "form.entry", [["a.txt", "text/plain", "YQ=="]]])
    page.evaluate("document.querySelectorAll('[required]').forEach((field) => field.removeAttribute('required'))")
    page.click("button[value=Submit]")
    says(page, ".warning.live", "Author")
    check("the file still waits", page.locator(".newfiles li").count() == 1)
    page.fill("[name=Author]", "Zoe")
    page.click("button[value=Submit]")
    number(page)
    check("and is sent then", page.locator("td.attachment").count() == 1)

    print("drafts outlive the session")
    page.goto(f"{site}Shift/?cmd=New")
    page.fill("[name=Subject]", "long story")
    page.fill("textarea[name=Text]", "once upon a time")
    says(page, ".note.live", re.compile(r"Draft saved at \d\d\.\d\d\.\d{4} um \d\d:\d\d:\d\d$"))
    zoe.clear_cookies()
    page.fill("textarea[name=Text]", "once upon a time, there was a magnet")
    says(page, ".note.live", "The draft is not saved")
    second = zoe.new_page()
    log_in(second, site, "zoe")
    page.type("textarea[name=Text]", "!")
    says(page, ".note.live", "Draft saved")
    second.goto(f"{site}Shift/?cmd=New")
    second.click("form.drafts a >> text=long story")
    second.wait_for_selector("input[name=draft_id]", state="attached")
    check("after a new login the draft is offered", "there was a magnet" in second.input_value("textarea[name=Text]"))
    second.fill("[name=Author]", "Zoe")
    second.click("button[value=Submit]")
    number(second)
    second.goto(f"{site}Shift/?cmd=New")
    check("a sent draft is gone", second.locator("form.drafts").count() == 0)
    second.close()

    print("somebody else edits")
    page.goto(f"{site}Shift/{entry}?cmd=Edit")
    max_context = browser.new_context()
    other = max_context.new_page()
    log_in(other, site, "max")
    other.goto(f"{site}Shift/{entry}?cmd=Edit")
    says(other, ".warning.live", "Zoe Miller")
    other.fill("[name=Subject]", "changed by Max")
    other.click("button[value=Submit]")
    number(other)
    says(page, ".warning.live", "was changed while")
    page.fill("[name=Subject]", "changed by Zoe")
    page.click("button[value=Submit]")
    says(page, ".warning.live", "was changed by somebody else")
    check("nobody overwrites, and the text is still there", page.input_value("[name=Subject]") == "changed by Zoe")

    print("without scripts")
    plain = browser.new_context(java_script_enabled=False, storage_state=max_context.storage_state())
    page = plain.new_page()
    page.goto(f"{site}Shift/?cmd=New")
    page.select_option("[name=Type]", "Problem")
    page.click("button[value=Update]")
    check("Update", page.locator("select[name=System]").count() == 1)
    page.fill("[name=Author]", "Max")
    page.fill("textarea[name=Text]", "plain")
    page.click("button[value=Preview]")
    check("Preview", "plain" in page.inner_text("#preview"))
    page.click("button[value=Save]")
    check("Save", page.locator("input[name=draft_id]").count() == 1)
    page.set_input_files("[name=attfile1]", [{"name": name, "mimeType": "text/plain", "buffer": b"x"} for name in ["a.txt", "b.txt"]])
    page.click("button[value=Submit]")
    number(page)
    check("Submit with two files", page.locator("td.attachment").count() == 2)
    # The browser reports refused requests of its own: the answers above with status 403, 409 and 422.
    faults = [fault for fault in faults if "status of 4" not in fault]
    check(f"no script failed and the policy forbade nothing: {faults}", not faults)


def run_guests(browser, site):
    faults = []

    def guest(**options):
        page = browser.new_context(**options).new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())
        return page

    print("a date is one field, and a submit page follows a new entry")
    page = guest()
    page.goto(f"{site}Open/?cmd=New")
    check("the separate fields are hidden", not page.is_visible("[name=y1]") and page.locator("input[type=datetime-local]").count() == 1)
    page.fill("[name=Author]", "Ada")
    page.fill("input[type=datetime-local]", "2026-02-03T04:05:06")
    page.fill("textarea[name=Text]", "from a guest")
    page.click("button[value=Submit]")
    page.wait_for_selector("h1:text-is('Thank you')")
    page.goto(f"{site}Open/1")
    check("the entry has the date", page.locator("td.attribvalue:text-is('03.02.2026 um 04:05:06')").count() == 1)
    plain = guest(java_script_enabled=False)
    plain.goto(f"{site}Open/?cmd=New")
    for name, value in [("Author", "Ada"), ("y1", "2026"), ("m1", "2"), ("d1", "4"), ("h1", "5"), ("n1", "6"), ("c1", "7")]:
        plain.fill(f"[name={name}]", value)
    plain.click("button[value=Submit]")
    plain.wait_for_selector("h1:text-is('Thank you')")
    plain.goto(f"{site}Open/2")
    check("without a script, too", plain.locator("td.attribvalue:text-is('04.02.2026 um 05:06:07')").count() == 1)

    print("guests of one address learn of each other")
    looked = lambda response: response.request.method == "POST" and response.ok
    for _ in range(2):
        with page.expect_response(looked):
            page.goto(f"{site}Open/1?cmd=Edit")
        check("a guest alone, also after a reload", page.inner_text(".warning.live >> nth=0") == "" and page.locator(".warning.live:has-text('edits')").count() == 0)
    check("the field has the date", page.input_value("input[type=datetime-local]") == "2026-02-03T04:05:06")
    other = guest()
    other.goto(f"{site}Open/1?cmd=Edit")
    says(other, ".warning.live", "somebody at 127.0.0.1")
    says(page, ".warning.live", "somebody at 127.0.0.1")
    page.fill("input[type=datetime-local]", "")
    page.click("button[value=Submit]")
    page.wait_for_selector(".entryhead")
    check("an emptied date is none", page.locator("td.attribvalue:has-text('2026')").count() == 0)
    check(f"no script failed: {faults}", not faults)


main()
