#!/usr/bin/env python3
"""Takes the pictures of docs/images: each view of the console in each theme, and parts of views in one, beside the demo
observatory.

A view or part that an argument names is taken alone: `make screenshots ARGS="log timeline"`.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/peers"))

from console_page import Console, console_site  # noqa: E402
from hub import until  # noqa: E402

IMAGES = ROOT / "docs/images"
THEMES = ("light", "dark", "night")
SIZE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}
DEVICE = "obs/weather/1"
WIND, TEMPERATURE = "obs/weather/1/wind", "obs/weather/1/temperature"
CRYOSTAT = "obs/cryostat/dv05/temperature"
# The address of each view, with something to see in it.
VIEWS = {
    "log": "log?q=--min-level+Info",
    "attributes": f"attributes?a={WIND}*{TEMPERATURE}&range=2m",
    "timeline": f"timeline?last=2m&event={WIND},obs/lo/dv01/state,{CRYOSTAT}",
    "bulk": "bulk",
    "book": "book",
    "site": "site",
    "settings": "settings?part=books",
}
# Parts of views: an address, and the texts to click.
PARTS = {
    "patterns": ("log?q=--min-level+Info&reduce=source", ["Patterns", "Saved filters"]),
    "device": (f"attributes?tree=no&range=2m&device={DEVICE}&a={WIND}*{TEMPERATURE}", []),
    "hub": ("settings?part=hub", []),
    "search": ("book", ["Help for searches"]),
}
# Views that are made for phones too.
ON_PHONES = ("log", "book", "site")
# Records of the demo after which there is something to see.
RECORDS = 1500


def take(browser, site, address, theme, size, name, clicks=()):
    """Takes one picture."""
    console = Console(browser, site, viewport=size)
    console.context.add_init_script(f'localStorage.setItem("tampu.theme", "{theme}")')
    console.log_in()
    console.page.goto(site + address)
    for text in clicks:
        console.page.get_by_text(text, exact=True).click()
    if address == VIEWS["site"]:
        # The site is asked every 5 s, and each answer is a point of the small plots.
        until("the small plots have points", lambda: console.page.evaluate("document.querySelector('.spark polyline')?.points.length >= 6"), seconds=120)
    # The view draws what has come meanwhile.
    console.page.wait_for_timeout(4000)
    path = IMAGES / name
    console.page.screenshot(path=path)
    console.context.close()
    print(f"{path.relative_to(ROOT)} {path.stat().st_size // 1000} kB", flush=True)


def main():
    """Takes the pictures of all views, or of those that are named."""
    known = [*VIEWS, *PARTS]
    wanted = sys.argv[1:] or known
    if unknown := [view for view in wanted if view not in known]:
        sys.exit(f"screenshots: there is no view {', '.join(unknown)}; there are {', '.join(known)}")
    IMAGES.mkdir(exist_ok=True)
    with console_site("demo", "--demo") as (place, _, site, browser):
        for verb in ("query", "read"):
            place.run("access", "allow", "user:*", verb, "**", "--reason", "operators look")
        records = lambda: place.run("log", "query", "--json", "-n", str(RECORDS), check=False).stdout.count("\n")
        until("the demo has run for a while", lambda: records() >= RECORDS, seconds=180)
        place.run("book", "post", "Shift log", "--author", "Zoe", "-a", "Author=Zoe", "-a", "Subject=Wind falls", "-t", "Wind below 12 m/s again. Antennas may be unstowed.", "--link", f"event:{WIND}")
        for view in wanted:
            if view in PARTS:
                address, clicks = PARTS[view]
                take(browser, site, address, "light", SIZE, f"console-{view}-light.png", clicks)
                continue
            for theme in THEMES:
                take(browser, site, VIEWS[view], theme, SIZE, f"console-{view}-{theme}.png")
            if view in ON_PHONES:
                take(browser, site, VIEWS[view], "light", PHONE, f"console-{view}-phone.png")


main()
