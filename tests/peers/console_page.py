"""What the tests of the console share: a hub with a user, a browser, and a page with what a person does with it.

The browser is Debian's Chromium, driven by Playwright. TAMPU_UI_DIST=ui/dist takes the pages from a directory in place
of those in the program.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess

from hub import Place, check, until
from playwright.sync_api import expect, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
# A page that is not the hub's own, as `built` makes it, may not speak to this host otherwise.
ARGUMENTS = ["--no-sandbox", *(["--disable-features=LocalNetworkAccessChecks"] if os.environ.get("TAMPU_UI_DIST") else [])]
# The views that have an address, as the sources of the console name them.
VIEWS = re.findall(r'"([a-z]+)"', re.search(r"VIEWS = \[(.*?)\]", (ROOT / "ui/src/lib/address.svelte.ts").read_text(encoding="utf-8")).group(1))
PAGES = re.compile(rf"^http://[^/]*(/observatory)?/({'|'.join(VIEWS)}|icon.svg|assets/[^/]*)?(\?.*)?$")


def built(route):
    """Serves the files of a directory in place of those in the program, for work on the pages: TAMPU_UI_DIST=ui/dist."""
    path = route.request.url.split("?")[0].split("/", 3)[3]
    name = path[path.index("assets/"):] if "assets/" in path else "icon.svg" if path.endswith("icon.svg") else "index.html"
    if not (ROOT / os.environ["TAMPU_UI_DIST"] / name).is_file():
        # A redirect led to the page in the program, which names its own files.
        route.continue_()
        return
    policy = re.search(r'POLICY: &str = "(.*?)";', (ROOT / "crates/hub/src/console.rs").read_text(encoding="utf-8"), re.DOTALL)
    headers = {"content-security-policy": re.sub(r"\\\n\s*", "", policy.group(1))}
    route.fulfill(path=ROOT / os.environ["TAMPU_UI_DIST"] / name, headers={**headers, "content-type": {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}[name.rsplit(".", 1)[1]]})


class Console:
    """A page of the console, and what a person does with it."""

    def __init__(self, browser, site, **options):
        self.site = site
        # Colours that fade over would be measured half-way.
        self.context = browser.new_context(reduced_motion="reduce", **options)
        if os.environ.get("TAMPU_UI_DIST"):
            self.context.route(PAGES, built)
        self.page = self.context.new_page()
        self.faults = []
        self.page.on("console", lambda message: self.faults.append(f"{message.text} {message.location['url']}") if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def log_in(self, login="zoe"):
        self.page.goto(self.site)
        self.page.get_by_label("Login").fill(login)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("listbox", name="Log records")).to_be_visible(timeout=30000)

    def filter(self, line):
        field = self.page.get_by_role("combobox", name="Filter")
        field.fill(line)
        self.page.keyboard.press("Escape")
        self.page.get_by_role("button", name="Show", exact=True).click()

    def download(self, format):
        """A file of the rows of the window."""
        with self.page.expect_download() as download:
            self.page.get_by_label("Download").select_option(format)
        return pathlib.Path(download.value.path()).read_bytes()

    def rows(self):
        """All rows of the window, as the file that the page makes of them."""
        return [json.loads(line) for line in self.download("json").decode("utf-8").split("\n") if line]

    def messages(self):
        return [row.get("message", "LOSS") for row in self.rows()]

    def status(self, text, seconds=60):
        expect(self.page.locator(".state .status")).to_contain_text(re.compile(text), timeout=seconds * 1000)

    def shows(self, count, seconds=60):
        expect(self.page.locator(".state > span").nth(1)).to_have_text("1 row" if count == 1 else f"{count} rows", timeout=seconds * 1000)

    def axe(self, what):
        self.page.evaluate((ROOT / "ui/node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document).then((result) => result.violations.map((one) => [one.id, one.nodes.map((node) => [node.html.slice(0, 200), node.failureSummary])]))")
        for rule, nodes in found:
            print(f"  axe: {rule}: {nodes[:3]}")
        check(f"axe finds nothing: {what}", found == [])


# The colours of a picture of the page, each with the number of its pixels, and its size.
COLOURS = """async (image) => {
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const counts = {};
  new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer).forEach((one) => { counts[one] = (counts[one] ?? 0) + 1; });
  return [canvas.width, canvas.height, Object.values(counts).filter((count) => count > 20).length];
}"""


def snapshot_picture(page, name):
    """Waits until the editor has the picture of a snapshot, and returns its width, height and number of colours."""
    row = page.locator(".files li", has_text=name)
    expect(row).to_have_count(1, timeout=30000)
    expect(row).not_to_contain_text("sending", timeout=30000)
    expect(page.get_by_label("Text", exact=True)).to_have_value(re.compile(r"!\[[^\]]*\]\(attachment:[^)]*\.png\)$"), timeout=30000)
    page.get_by_role("button", name="Beside").click()
    picture = page.get_by_role("region", name="Preview").locator("img")
    expect(picture).to_be_visible(timeout=30000)
    return picture.evaluate(COLOURS)


@contextlib.contextmanager
def console_site(domain, *arguments, roles=False):
    """A hub whose logbook has the user zoe, and a browser: gives the place, the hub, the address and the browser.

    With `roles` the roles of the hub are processes below it.
    """
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "node", "chromium"], check=True)
    if not (ROOT / "ui/node_modules/axe-core").is_dir():
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=ROOT / "ui", check=True)
    place = Place(domain)
    try:
        hub = place.up("--book-listen", "127.0.0.1:0", *arguments, roles=roles)
        book = until("the address", lambda: next(pathlib.Path(place.directory).rglob("book.json"), None))
        site = json.loads(book.read_text(encoding="utf-8"))["url"] + "/"
        place.run("book", "users", "add", "zoe", "--full-name", "Zoe Miller", "--admin", input=f"{PASSWORD}\n")
        with sync_playwright() as playwright:
            program = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
            browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
            yield place, hub, site, browser
            browser.close()
    finally:
        place.close()
