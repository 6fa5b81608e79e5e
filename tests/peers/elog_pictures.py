#!/usr/bin/env python3
"""ELOG's pages as people see them, in a real browser (Debian's Chromium, driven by Playwright), at 1280 and 390 pixels.

No page is wider than the screen of a phone, every field has a name for screen readers, and every text has the contrast that WCAG
asks for (4.5, large text 3). With `--pictures DIR` each page is also stored as `DIR/WIDTH-NAME.png`, for people to look at.
"""

import argparse
import email
import email.policy
import os
import shutil
import socket
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from aiosmtpd.controller import Controller
from hub import Place, check, until
from playwright.sync_api import sync_playwright

WIDTHS = [1280, 390]

CFG = """[global]
Self register = 3
Forgot password link = 1
Top text = Accelerator control room
[Shift]
Comment = What happens on shift
Attributes = Author, Type, System, Severity, When, Subject
Required Attributes = Author, Type
Options Type = Routine, Problem, Calibration, Configuration
MOptions System = RICH1, RICH2, HLT, Magnet, Vacuum, Cooling
ROptions Severity = low, high, critical
Type When = datetime
Extendable Options = Type
Preset Author = $long_name
Quick filter = Date, Type, System
Allowed encoding = 15
Email All = kim@example.org
Email format = 127
Thumbnail size = 300
[Machine development]
Comment = Plans and results of studies
Attributes = Author, Subject
"""

MARKDOWN = """The **HV of MAG-01** tripped at 14 A. See `elog:Shift/1`, and https://example.org/a/very/long/address/that/no/phone/can/show/in/one/line/without/help

| run | current | remark |
|-|-|-|
| 80123 | 14.2 A | tripped |
| 80124 | 13.9 A | stable |

```
caput MAG01:CURRENT 13.9    # a line of code that is much longer than the screen of a phone is wide, so it has to wrap or to scroll
```

- [x] Breaker reset
- [ ] Expert informed

> The threshold is 14 A.
"""

# The elements with text whose contrast is too low, the fields without a name, and the width that the page needs.
LOOK = """() => {
  const channel = (value) => { const c = value / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parts = (colour) => { const all = colour.match(/[\\d.]+/g).map(Number); return all.length < 4 ? [...all, 1] : all; };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parts(getComputedStyle(one).backgroundColor);
      if (colour[3] > 0.99) return colour;
    }
    return [255, 255, 255, 1];
  };
  const seen = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const pale = [], nameless = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !seen(element) || element.disabled || ['SCRIPT', 'STYLE', 'OPTION'].includes(element.tagName)) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const [front, back] = [light(parts(style.color)), light(behind(element))];
    const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    const large = size >= 24 || size >= 18.6 && Number(style.fontWeight) >= 700;
    if (contrast < (large ? 3 : 4.5)) pale.push(`${element.tagName} '${element.textContent.trim().slice(0, 30)}' ${contrast.toFixed(2)}`);
  }
  for (const field of document.querySelectorAll('input:not([type=hidden]):not([type=submit]):not([type=reset]):not([type=button]), select, textarea')) {
    const named = field.labels?.length || field.ariaLabel || field.getAttribute('aria-labelledby') || field.title;
    if (seen(field) && !field.disabled && !named) nameless.push(`${field.tagName} ${field.name}`);
  }
  const wide = document.documentElement.scrollWidth;
  const beyond = [...document.querySelectorAll('body *')].filter((one) => seen(one) && one.getBoundingClientRect().right > innerWidth + 1);
  return { pale, nameless, wide, beyond: beyond.slice(0, 4).map((one) => `${one.tagName}.${one.className} ${one.name ?? ''}`) };
}"""


class Inbox:
    """Keeps the mails that the server accepted."""

    def __init__(self):
        self.mails = []

    async def handle_DATA(self, server, session, envelope):
        self.mails.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        return "250 taken"


def png(width, height):
    """A picture with a colour gradient."""
    rows = b"".join(b"\0" + bytes(channel for x in range(width) for channel in (x * 255 // width, y * 255 // height, 128)) for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def filled(place):
    """Imports the logbooks and writes entries."""
    with open(os.path.join(place.directory, "elogd.cfg"), "w", encoding="utf-8") as file:
        file.write(CFG)
    logbooks = os.path.join(place.directory, "logbooks")
    os.makedirs(os.path.join(logbooks, "Shift"))
    os.makedirs(os.path.join(logbooks, "Machine development"))
    place.run("book", "import-elog", "--elog-config", os.path.join(place.directory, "elogd.cfg"), logbooks)
    for name, full_name in [("zoe", "Zoë Miller"), ("max", "Max Quartz"), ("kim", "Kim Li")]:
        more = ["--admin"] if name == "zoe" else []
        place.run("book", "users", "add", name, "--full-name", full_name, "--email", f"{name}@example.org", *more, input="correct horse\n")
    place.run("book", "users", "signing", "Shift", "--meaning", "author", "--meaning", "approved=user:zoe")
    picture = os.path.join(place.directory, "HV trend.png")
    with open(picture, "wb") as file:
        file.write(png(900, 300))
    post = lambda text, *more: place.run("book", "post", "Shift", "-a", "Author=Zoë Miller", *more, "-t", "-", input=text)
    post(MARKDOWN + "\n![trend](attachment:HV trend.png)\n".replace("HV trend", "HV%20trend"), "-a", "Type=Problem", "-a", "System=Magnet", "-a", "System=HLT",
         "-a", "Severity=critical", "-a", "Subject=MAG-01 tripped at 14 A, breaker in hall 3", "--attachment", picture)
    for number in range(1, 30):
        post(f"Shift {number} was quiet. Cooling at {20 + number % 3} degrees, vacuum {number}e-9 mbar.", "-a", "Type=Routine", "-a", "System=Cooling",
             "-a", "Severity=low", "-a", f"Subject=Summary of shift {number}")
    place.run("book", "reply", "Shift/1", "-a", "Author=Max Quartz", "-a", "Type=Routine", "-a", "Severity=low", "-a", "Subject=Re: MAG-01 tripped", "-t", "Breaker replaced.")
    place.run("book", "sign", "Shift/1", "--meaning", "approved", "--login", "zoe", input="correct horse\n")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--pictures", help="the directory for pictures")
    pictures = options.parse_args().pictures
    if pictures:
        os.makedirs(pictures, exist_ok=True)
    place, inbox, port, book = Place("pictures"), Inbox(), free_port(), free_port()
    smtp = Controller(inbox, hostname="127.0.0.1", port=port)
    smtp.start()
    try:
        config = os.path.join(place.directory, "tampu.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'[book]\nlisten = "127.0.0.1:{book}"\nmin_free_mb = 0\nelog_url = "http://127.0.0.1:{book}/elog"\n[collector]\nmin_free_gb = 0\n'
                       f'[mail]\nhost = "127.0.0.1"\nport = {port}\ntls = "none"\nfrom = "Logbook <logbook@example.org>"\n')
        place.up("--config", config)
        site = f"http://127.0.0.1:{book}/elog/"
        filled(place)
        with sync_playwright() as playwright:
            program = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            faults = Looked(browser, site, pictures).all(inbox)
            browser.close()
        check(f"all pages are as wide as the screen, and can be read: {faults}", not faults)
    finally:
        smtp.stop()
        place.close()
    print("passed")


class Looked:
    """A person who looks at every page."""

    def __init__(self, browser, site, pictures):
        self.browser, self.site, self.pictures, self.faults = browser, site, pictures, []

    def all(self, inbox):
        for width in WIDTHS:
            self.at(width, inbox)
        return self.faults

    def at(self, width, inbox):
        guest = self.browser.new_context(viewport={"width": width, "height": 800}, is_mobile=width < 500, has_touch=width < 500)
        page = guest.new_page()
        for name, address in [("login", "Shift/?cmd=Login"), ("registration", "Shift/?cmd=New%20user"), ("forgotten", "Shift/?cmd=Forgot")]:
            page.goto(self.site + address)
            self.look(page, width, name)
        zoe = self.browser.new_context(viewport={"width": width, "height": 800}, is_mobile=width < 500, has_touch=width < 500)
        page = zoe.new_page()
        page.goto(f"{self.site}Shift/?cmd=Login")
        page.fill("input[name=uname]", "zoe")
        page.fill("input[name=upassword]", "correct horse")
        page.click("form [type=submit]")
        page.wait_for_selector(".title3")
        page.goto(f"{self.site}Shift/?cmd=New")
        page.select_option("select[name=Type]", "Problem") if page.locator("select[name=Type]").count() else page.fill("[name=Type]", "Problem")
        page.fill("[name=Subject]", "Water leak at rack 12")
        page.check("input[name=encoding][value=Markdown]") if page.locator("input[name=encoding][value=Markdown]").count() else None
        page.fill("textarea[name=Text]", MARKDOWN)
        page.click("button[value=Submit]")
        page.wait_for_selector(".entryhead")
        check("the page after a post names the recipients of its mails", "kim@example.org" in page.text_content("body"))
        until("the mail arrives", lambda: any(mail["Subject"] == "Water leak at rack 12" or "Water leak" in str(mail) for mail in inbox.mails))
        self.tests_a_rule(page, inbox)
        for name, address in [
            ("books", ""), ("list", "Shift/"), ("list-full", "Shift/?mode=Full&npp=3"), ("list-threads", "Shift/?mode=Threaded"), ("entry", "Shift/1"),
            ("form", "Shift/?cmd=New"), ("form-edit", "Shift/2?cmd=Edit"), ("form-reply", "Shift/1?cmd=Reply"), ("find", "Shift/?cmd=Find"),
            ("account", "Shift/?cmd=Config"), ("configuration", "Shift/?cmd=Admin"), ("users", "Shift/?cmd=Users"), ("user", "Shift/?cmd=Users&user=max"),
            ("help", "Shift/?cmd=Help"), ("delete", "Shift/3?cmd=Delete"), ("copy", "Shift/3?cmd=Copy%20to"), ("missing", "Shift/999"),
            ("import", "Shift/?cmd=CSV%20Import"), ("select", "Shift/?cmd=Select"), ("password", "Shift/?cmd=Change%20password"),
        ]:
            page.goto(self.site + address)
            self.look(page, width, name)
        page.goto(f"{self.site}Shift/?cmd=New")
        page.fill("textarea[name=Text]", MARKDOWN)
        page.check("input[name=encoding][value=Markdown]") if page.locator("input[name=encoding][value=Markdown]").count() else None
        page.click("button[value=Preview]")
        page.wait_for_selector("#preview *")
        self.look(page, width, "form-preview")
        page.emulate_media(media="print")
        for name, address in [("print-entry", "Shift/1?printable=1"), ("print-list", "Shift/?printable=1")]:
            page.goto(self.site + address)
            self.look(page, width, name, screen=False)
        page.emulate_media(media="screen")
        html = inbox.mails[0].get_body(("html",))
        check("the mail has HTML", html is not None)
        # The policy of the logbook's pages is not that of a program for mail.
        page = zoe.new_page()
        page.set_content(html.get_content())
        self.look(page, width, "mail")

    def tests_a_rule(self, page, inbox):
        """Adds a rule for mails, presses its button Test, and removes the rule."""
        is_test = lambda mail: mail["Subject"] == "Test of a rule of the logbook" and "zoe@example.org" in mail["To"]
        before = sum(map(is_test, inbox.mails))
        page.goto(f"{self.site}Shift/?cmd=Config")
        page.fill("input[name=query]", "interlock")
        page.click("button:text-is('Add')")
        page.click("form:has-text('interlock') button:text-is('Test')")
        page.wait_for_selector(".done:has-text('A test was sent')")
        until("the mail of the test arrives", lambda: sum(map(is_test, inbox.mails)) == before + 1)
        check("the mail names its rule", any("interlock" in mail.get_content() for mail in inbox.mails if is_test(mail)))
        page.click("form:has-text('interlock') button:text-is('Remove')")
        page.wait_for_selector(".done")
        check("the rule is removed", page.locator("form:has-text('interlock')").count() == 0)

    def look(self, page, width, name, screen=True):
        """Takes a picture and notes what is wrong."""
        if self.pictures:
            page.screenshot(path=os.path.join(self.pictures, f"{width}-{name}.png"), full_page=True)
        found = page.evaluate(LOOK)
        if screen and found["wide"] > width:
            self.faults.append(f"{width} {name}: needs {found['wide']} pixels: {found['beyond']}")
        for what in ("pale", "nameless") if screen else ():
            self.faults += [f"{width} {name}: {what}: {one}" for one in sorted(set(found[what]))]
        print(f"  looked at {name} at {width}", flush=True)


main()
