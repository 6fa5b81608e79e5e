#!/usr/bin/env python3
"""Processor time of a browser that shows live attributes: a real hub, and a page of the console in Chromium.

    bench-console-live.py [--attributes 50] [--hertz 10] [--range 5m] [--seconds 20] [--json]

A session of the gateway publishes the attributes, and the page shows their values and their trends. Chromium counts the
time of the page's main thread, by kind of work, and the processor time of the page's process. `TAMPU_BIN` names the
program; TAMPU_UI_DIST=ui/dist takes the pages from a directory. Exit code 1 if the goal is missed: a quarter of a core.
"""

import argparse
import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "peers"))

from attribute_source import Session, Waves  # noqa: E402
from console_page import Console, console_site  # noqa: E402
from playwright.sync_api import expect  # noqa: E402

# The part of a core that the page may need.
GOAL = 0.25
# Time until the page is at rest, s: code is compiled, histories are loaded.
WARM = 6


def main():
    """Measures, and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attributes", type=int, default=50)
    parser.add_argument("--hertz", type=float, default=10)
    parser.add_argument("--range", default="5m", help="time that the plot shows")
    parser.add_argument("--seconds", type=float, default=20, help="time of the measurement")
    parser.add_argument("--json", action="store_true", help="a JSON object")
    arguments = parser.parse_args()
    names = [f"bench/wave/w{nth:03}/value" for nth in range(arguments.attributes)]
    criteria = {"change": {"abs": "0.001", "rel": None}, "archive": {"abs": None, "rel": None}, "archive_period_ms": None, "period_ms": 100_000}
    with console_site("bench") as (place, _hub, site, browser):
        for verb in ["query", "read"]:
            place.run("access", "allow", "user:*", verb, "**", "--reason", "bench")
        gateway = next(pathlib.Path(place.directory).rglob("gateway.sock"))
        session = Session(gateway, "waves", [{"name": name, "unit": "V", "criteria": criteria} for name in names])
        waves = Waves(session, len(names), arguments.hertz)
        console = Console(browser, site, viewport={"width": 1400, "height": 900})
        console.page.add_init_script("window.pictures = 0; const clear = CanvasRenderingContext2D.prototype.clearRect; CanvasRenderingContext2D.prototype.clearRect = function (...all) { window.pictures++; clear.apply(this, all); };")
        console.log_in()
        page = console.page
        page.goto(f"{site}attributes?a={'*'.join(names)}&range={arguments.range}")
        expect(page.locator(".values tbody tr")).to_have_count(len(names))
        # Each attribute comes as often as it is published.
        expect(page.locator(".values tbody tr").last).to_contain_text(re.compile(r"valid"), timeout=30000)
        chromium = console.context.new_cdp_session(page)
        chromium.send("Performance.enable", {"timeDomain": "threadTicks"})
        whole = browser.new_browser_cdp_session()

        def look():
            metrics = {one["name"]: one["value"] for one in chromium.send("Performance.getMetrics")["metrics"]}
            kinds = {}
            for process in whole.send("SystemInfo.getProcessInfo")["processInfo"]:
                kinds[process["type"]] = kinds.get(process["type"], 0.0) + process["cpuTime"]
            return time.monotonic(), metrics, kinds, waves.published, page.evaluate("window.pictures")

        time.sleep(WARM)
        begin, end = look(), (time.sleep(arguments.seconds), look())[1]
        seconds = end[0] - begin[0]
        rates = page.locator(".values tbody tr td:nth-of-type(4)").all_inner_texts()
        waves.stop()
        row = {"attributes": len(names), "events_per_s": round((end[3] - begin[3]) / seconds), "seen_per_s": round(sum(map(float, rates)))}
        for name in ["TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration"]:
            row[name] = round((end[1][name] - begin[1][name]) / seconds, 4)
        row["pictures_per_s"] = round((end[4] - begin[4]) / seconds, 2)
        row["heap_mb"] = round(end[1]["JSHeapUsedSize"] / 1e6, 1)
        for kind in ["renderer", "GPU", "browser"]:
            row[f"process_{kind.lower()}"] = round((end[2].get(kind, 0) - begin[2].get(kind, 0)) / seconds, 4)
        row["goal"] = GOAL
        console.context.close()
        session.leave()
    if arguments.json:
        print(json.dumps(row))
    else:
        print(f"{row['attributes']} attributes, {row['events_per_s']} events/s published, {row['seen_per_s']} events/s seen by the page, {row['pictures_per_s']} pictures/s of the plot")
        print(f"main thread of the page  {100 * row['TaskDuration']:5.1f} % of a core (script {100 * row['ScriptDuration']:.1f}, style {100 * row['RecalcStyleDuration']:.1f}, layout {100 * row['LayoutDuration']:.1f})")
        print(f"process of the page      {100 * row['process_renderer']:5.1f} % of a core, heap {row['heap_mb']} MB; goal {100 * GOAL:.0f}: {'met' if row['process_renderer'] <= GOAL else 'missed'}")
        print(f"other processes          {100 * row['process_gpu']:5.1f} % drawing (GPU process, in software here), {100 * row['process_browser']:.1f} % browser")
    if row["seen_per_s"] < 0.9 * row["events_per_s"]:
        print("the page has not seen all events", file=sys.stderr)
        return 1
    return int(row["process_renderer"] > GOAL)


if __name__ == "__main__":
    sys.exit(main())
