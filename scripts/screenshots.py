#!/usr/bin/env python3
"""Takes the pictures of docs/images: each view of the console in each theme, beside the demo observatory.

A view that an argument names is taken alone: `make screenshots ARGS="log timeline"`.
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
WIND, TEMPERATURE = "obs/weather/1/wind", "obs/weather/1/temperature"
# The address of each view, with something to see in it.
VIEWS = {
    "log": "log?q=--min-level+Info",
    "attributes": f"attributes?a={WIND}*{TEMPERATURE}&range=2m",
    "timeline": f"timeline?last=2m&event={WIND}",
    "bulk": "bulk",
    "book": "book",
    "site": "site",
    "settings": "settings?part=books",
}
# Views that are made for phones too.
ON_PHONES = ("log", "book", "site")
# Records of the demo after which there is something to see.
RECORDS = 1500


def take(browser, site, view, theme, size, name):
    """Takes one picture."""
    console = Console(browser, site, viewport=size)
    console.context.add_init_script(f'localStorage.setItem("tampu.theme", "{theme}")')
    console.log_in()
    console.page.goto(site + VIEWS[view])
    # The view draws what has come meanwhile.
    console.page.wait_for_timeout(4000)
    path = IMAGES / name
    console.page.screenshot(path=path)
    console.context.close()
    print(f"{path.relative_to(ROOT)} {path.stat().st_size // 1000} kB", flush=True)


def main():
    """Takes the pictures of all views, or of those that are named."""
    wanted = sys.argv[1:] or list(VIEWS)
    if unknown := [view for view in wanted if view not in VIEWS]:
        sys.exit(f"screenshots: there is no view {', '.join(unknown)}; there are {', '.join(VIEWS)}")
    IMAGES.mkdir(exist_ok=True)
    with console_site("demo", "--demo") as (place, _, site, browser):
        for verb in ("query", "read"):
            place.run("access", "allow", "user:*", verb, "**", "--reason", "operators look")
        records = lambda: place.run("log", "query", "--json", "-n", str(RECORDS), check=False).stdout.count("\n")
        until("the demo has run for a while", lambda: records() >= RECORDS, seconds=180)
        for view in wanted:
            for theme in THEMES:
                take(browser, site, view, theme, SIZE, f"console-{view}-{theme}.png")
            if view in ON_PHONES:
                take(browser, site, view, "light", PHONE, f"console-{view}-phone.png")


main()
