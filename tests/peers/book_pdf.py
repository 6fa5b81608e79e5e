#!/usr/bin/env python3
"""Entries as PDF, read by poppler: text in all encodings, tables, pictures, hostile texts, threads and searches, hidden attributes,
layouts of a site, and the bounds."""

import os
import re
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import hub
from hub import Place, check
from logins import PASSWORD, LoginSite, with_login_features, write

HOSTILE = '#import "x.typ" #read("/etc/passwd") ] \\ $x$ *a* _b_ @c <d> #{ while true {} } "q" ' + "\u202e" + "/* // `"
LAYOUT = """#import "/tampu.typ": layout as usual
#let layout(data, body) = {
  set page(paper: "a5", header: [#image("/logo.png", height: 6mm) Shift log of the lab, #data.entries.len() entries], numbering: "1")
  set text(font: "DejaVu Sans Mono", size: 8pt)
  body
}
"""


def png(width, height, color):
    rows = b"".join(b"\0" + bytes(color) * width for _ in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def poppler(program, *arguments):
    done = subprocess.run([program, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    check(f"{program} reads it ({done.stderr.strip()[:80]})", done.returncode == 0)
    return done.stdout


def text_of(path):
    """The text without the places where a line may end."""
    return re.sub(r"[ \n\f]+", " ", poppler("pdftotext", "-raw", path, "-").replace("\u200b", ""))


def pages_of(path):
    return int(re.search(r"Pages: +(\d+)", poppler("pdfinfo", path))[1])


def colors_of(path, folder):
    """The colors of the first page, as a set of (red, green, blue) in steps of 51, because readers round."""
    poppler("pdftoppm", "-r", "50", "-f", "1", "-l", "1", path, os.path.join(folder, "page"))
    [name] = [name for name in os.listdir(folder) if name.startswith("page")]
    with open(os.path.join(folder, name), "rb") as file:
        data = file.read().split(b"\n", 3)[3]
    os.remove(os.path.join(folder, name))
    return {tuple(51 * round(part / 51) for part in data[at : at + 3]) for at in range(0, len(data) - 2, 3)}


class PdfSite(LoginSite):
    """A hub with roles of their own, and what it answers as PDF."""

    def fetch(self, path, headers=None):
        """Status, headers and bytes of an answer."""
        request = urllib.request.Request(f"{self.url}{path}", headers={"Authorization": f"Bearer {self.token}"} if headers is None else headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def pdf(self, path, headers=None):
        """Fetches a PDF into a file; its path."""
        status, head, data = self.fetch(path, headers)
        check(f"{path} is a PDF ({status})", status == 200 and head["Content-Type"] == "application/pdf" and data.startswith(b"%PDF-"))
        made = os.path.join(self.directory, "made.pdf")
        with open(made, "wb") as file:
            file.write(data)
        return made

    def post(self, entry):
        status, _, answer = self.ask("POST", "/api/v1/books/Shift/entries", entry, {"Authorization": f"Bearer {self.token}"})
        check(f"posted ({status} {answer if status != 201 else ''})", status == 201)
        return answer["id"]


def texts(site):
    """Texts of all encodings become text of the PDF."""
    said = "**Tripped** at `08:15`: Zöe, Ångström, Ελληνικά, Кириллица.\n\n|sector|volts|\n|-|-|\n|seven|1800|\n\n- one\n  1. below\n\n> quoted\n\n[x](https://a.b/c)"
    at = site.post({"attributes": {"Subject": "HV trip of Zöe"}, "encoding": "markdown", "text": said, "links": ["run:80123"]})
    path = site.pdf(f"/api/v1/books/Shift/entries/{at}/pdf")
    text = text_of(path)
    for words in ["HV trip of Zöe", "Tripped at 08:15: Zöe, Ångström, Ελληνικά, Кириллица.", "sector volts", "seven 1800", "one", "1. below", "quoted", "run:80123"]:
        check(f"it has '{words}'", words in text)
    check("marks are not shown", "**" not in text and "|-" not in text)
    info = poppler("pdfinfo", path)
    check("the file has title and program", re.search(rf"Title: +Shift/{at}: HV trip of Zöe", info) and re.search("Creator: +Tampu", info) and "Pages:           1\n" in info)
    with open(path, "rb") as file:
        check("a link leads to its address", b"https://a.b/c" in file.read())
    for encoding, source, words in [
        ("elcode", "[b]bold[/b] [color=red]red[/color]\n[TABLE]a|-b[/TABLE]", "bold red"),
        ("html", "<h2>Head</h2><p>tripped <i>again</i> &amp; again</p><script>alert(1)</script>", "Head tripped again & again"),
        ("plain", "two\n   lines <b>", "two lines <b>"),
    ]:
        at = site.post({"encoding": encoding, "text": source})
        text = text_of(site.pdf(f"/api/v1/books/Shift/entries/{at}/pdf"))
        check(f"{encoding}: '{words}'", words in text and "alert" not in text)
    at = site.post({"encoding": "plain", "text": "中文"})
    text = text_of(site.pdf(f"/api/v1/books/Shift/entries/{at}/pdf"))
    check("characters without a font are named", "U+4E2D U+6587" in text and "pdf_files" in text)


def hostile(site):
    """No text is source, and none takes the hub's time or memory."""
    for encoding in ["plain", "markdown", "html", "elcode"]:
        at = site.post({"attributes": {"Subject": HOSTILE[:70], "Author": HOSTILE}, "encoding": encoding, "text": HOSTILE})
        text = text_of(site.pdf(f"/api/v1/books/Shift/entries/{at}/pdf"))
        check(f"{encoding}: hostile text is shown as text", '#import "x.typ" #read("/etc/passwd") ]' in text and "root:" not in text)
    for name, encoding, source in [
        ("nested lists", "html", "<ul><li>x" * 10_000),
        ("lists to the bound of the renderer", "html", "<ul><li>x" * 100),
        ("quotations", "markdown", ">" * 200 + " x"),
        ("spans of cells", "html", "<table>" + "<tr><td rowspan=900 colspan=900>a<td rowspan=3>b" * 50 + "</table>"),
        ("one word", "plain", "x" * 300_000),
        ("1 MB of words", "plain", "the high voltage of sector seven tripped\n" * 24_000),
    ]:
        at = site.post({"encoding": encoding, "text": source})
        begun = time.monotonic()
        pages = pages_of(site.pdf(f"/api/v1/books/Shift/entries/{at}/pdf"))
        print(f"  {name}: {pages} pages, {time.monotonic() - begun:.1f} s", flush=True)
    for name, source in [("2 MB", "0123456789abcdef " * 130_000), ("60 000 lines", "\n" * 60_000)]:
        at = site.post({"encoding": "plain", "text": source + "x"})
        status, _, data = site.fetch(f"/api/v1/books/Shift/entries/{at}/pdf")
        check(f"{name} are refused with the bound ({data[:120]})", status == 413 and b"a PDF holds at most" in data)


def pictures(site):
    """Pictures are shown once, and what is no picture is listed."""
    bomb = bytearray(png(8, 8, (0, 0, 255)))
    bomb[16:24] = struct.pack(">II", 60_000, 60_000)
    files = [("blue.png", png(300, 200, (0, 0, 255))), ("green.png", png(2600, 40, (0, 255, 0))), ("bomb.png", bytes(bomb)), ("data.csv", b"a,b\n")]
    owner = {"Authorization": f"Bearer {site.token}"}
    at = site.post({"encoding": "markdown", "text": "see ![trip](attachment:blue.png)"})
    for name, data in files:
        request = urllib.request.Request(
            f"{site.url}/api/v1/books/Shift/entries/{at}/attachments?name={name}", data, {**owner, "Content-Type": "application/octet-stream"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            check(f"{name} is attached", answer.status == 201)
    path = site.pdf(f"/api/v1/books/Shift/entries/{at}/pdf")
    text, colors = text_of(path), colors_of(path, site.directory)
    check("both pictures are shown", (0, 0, 255) in colors and (0, 255, 0) in colors)
    check("files are listed with size and digest", "data.csv, 4 bytes" in text and "SHA-256 " in text)
    check("a picture that is too large is named", re.search("bomb.png.*not shown", text))
    listed = [line for line in poppler("pdfimages", "-list", path).splitlines() if " image " in line]
    check(f"each picture stands once, reduced ({len(listed)})", len(listed) == 2 and all(int(line.split()[3]) <= 1200 for line in listed))


def threads_and_searches(site):
    """A thread, a search and a book."""
    first = site.post({"attributes": {"Subject": "the trip"}, "text": "first of the thread"})
    reply = site.post({"parent": first, "text": "second of the thread"})
    text = text_of(site.pdf(f"/api/v1/books/Shift/entries/{reply}/pdf?thread=true"))
    check("a thread begins with its first entry", 0 < text.index("first of the thread") < text.index("second of the thread") and f"Reply to {first}" in text)
    text = text_of(site.pdf("/api/v1/search/export?format=pdf&book=Shift&q=second"))
    check("a search has its query and what it found", "second of the thread" in text and "first of the thread" not in text)
    text = text_of(site.pdf("/api/v1/search/export?format=pdf&book=Shift&q=second&thread=true"))
    check("with threads it has the others", "second of the thread" in text and "first of the thread" in text)
    text = text_of(site.pdf("/api/v1/search/export?format=pdf&book=Shift&q=nothinghasthisword"))
    check("a search without results says so", "No entries" in text)
    made = os.path.join(site.directory, "book.pdf")
    site.run("book", "export", "second", "--book", "Shift", "--format", "pdf", "--thread", "-o", made)
    check("the command has it from the hub", "first of the thread" in text_of(made))
    return reply


def access(site, entry):
    """A PDF shows what its reader may see, on ELOG's pages too."""
    owner = {"Authorization": f"Bearer {site.token}"}
    site.ask("POST", "/api/v1/users", {"login": "reader", "password": PASSWORD}, owner)
    attributes = [{"name": "Author", "kind": "text"}, {"name": "Phone", "kind": "text"}]
    elog = [["Show attributes", "Author"], ["List display", "ID, Author"]]
    site.ask("PUT", "/api/v1/books/Hidden", {"name": "Hidden", "attributes": attributes, "elog": elog}, owner)
    site.ask("PUT", "/api/v1/books/Hidden/access", {"grants": [{"to": "user:reader", "may": ["read"]}]}, owner)
    status, _, made = site.ask("POST", "/api/v1/books/Hidden/entries", {"attributes": {"Author": "Ann", "Phone": "70707"}, "text": "x"}, owner)
    check(f"posted ({status})", status == 201)
    _, reader, _ = site.log_in("reader", PASSWORD)
    path = f"/api/v1/books/Hidden/entries/{made['id']}/pdf"
    for address in [path, path + "?thread=true", "/api/v1/search/export?format=pdf&book=Hidden", f"/elog/Hidden/{made['id']}?mode=PDF", f"/elog/Hidden/{made['id']}?mode=PDF&thread=1"]:
        text = text_of(site.pdf(address, reader))
        check(f"{address}: a hidden attribute stays hidden", "Ann" in text and "70707" not in text)
    check("the owner sees it", "70707" in text_of(site.pdf(path)))
    status, _, data = site.fetch(f"/api/v1/books/Shift/entries/{entry}/pdf", reader)
    check(f"a closed logbook stays closed ({status})", status == 404 and not data.startswith(b"%PDF"))
    status, _, data = site.fetch(f"/api/v1/books/Shift/entries/{entry}/pdf", {})
    check(f"and to guests ({status})", status in (401, 404))
    status, _, page = site.fetch(f"/elog/Hidden/{made['id']}", reader)
    check("the page of an entry leads to its PDF", status == 200 and f'href="{made["id"]}?mode=PDF"'.encode() in page)


def layouts(binary):
    """A layout with a logo; layouts with errors."""
    site = PdfSite("pdf-layout")
    try:
        folder = os.path.join(site.directory, "layout")
        os.mkdir(folder)
        logo, layout = os.path.join(folder, "logo.png"), write(os.path.join(folder, "site.typ"), LAYOUT)
        with open(logo, "wb") as file:
            file.write(png(60, 60, (255, 0, 0)))
        site.begin(f'pdf_layout = "{layout}"\npdf_files = ["{logo}"]\n')
        at = site.post({"attributes": {"Subject": "with a layout"}, "text": "of a site"})
        path = site.pdf(f"/api/v1/books/Shift/entries/{at}/pdf")
        check("the layout's head is on the page", "Shift log of the lab, 1 entries" in text_of(path) and (255, 0, 0) in colors_of(path, site.directory))
        check("the page has the layout's size", re.search(r"Page size: +419\.\d+ x 595", poppler("pdfinfo", path)))
        for name, broken, expected in [
            ("syntax", "#let layout(data, body) = {\n  set page(\n", "line"),
            ("unknown name", "#let layout(data, body) = {\n  body\n  nothing-of-this-name\n}\n", "line 3: unknown variable"),
            ("no function", "#let other = 1\n", "layout"),
            ("a file elsewhere", '#let layout(data, body) = {\n  image("/../../etc/passwd")\n  body\n}\n', "line 2"),
            ("a package", '#import "@preview/x:0.1.0": y\n#let layout(data, body) = body\n', "line 1: "),
            ("without an end", "#let layout(data, body) = {\n  while true { }\n  body\n}\n", "line 2: "),
        ]:
            write(layout, broken)
            config = write(os.path.join(site.directory, "broken.toml"), f'[book]\nlisten = "127.0.0.1:0"\npdf_layout = "{layout}"\n[collector]\nmin_free_gb = 0\n')
            done = subprocess.run(
                [binary, "up", "--in-process", "--data", os.path.join(site.directory, "other"), "--config", config],
                env={**site.environment, "TAMPU_DOMAIN": "broken"}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
            )
            check(f"{name}: the hub does not start, and says where ({done.stderr.strip()[-160:]})", done.returncode != 0 and layout in done.stderr and expected in done.stderr)
    finally:
        site.close()


def commands():
    """A directory of logbooks without a hub; a program without the feature."""
    place = Place("pdf-command")
    data = ("--data", place.data)
    place.run("book", "make", "Shift", "-a", "Author", "-a", "Subject", *data)
    picture = os.path.join(place.directory, "blue.png")
    with open(picture, "wb") as file:
        file.write(png(300, 200, (0, 0, 255)))
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-a", "Subject=HV trip", "-t", "**tripped** ![p](attachment:blue.png)", "--attachment", picture, *data)
    place.run("book", "reply", "Shift/1", "-a", "Author=Max", "-t", "the fuse", *data)
    made, layout = os.path.join(place.directory, "a.pdf"), write(os.path.join(place.directory, "own.typ"), LAYOUT)
    said = place.run("book", "export", "fuse", "--format", "pdf", "--thread", "-o", made, *data)
    check(f"the command says what it wrote: {said.stdout.strip()}", said.stdout == "2 entries, 1 page\n" and "tripped" in text_of(made))
    check("its file is private", os.stat(made).st_mode & 0o777 == 0o600)
    os.rename(picture, os.path.join(place.directory, "logo.png"))
    place.run("book", "export", "--format", "pdf", "--layout", layout, "--layout-file", os.path.join(place.directory, "logo.png"), "-o", made, *data)
    check("with a layout", "Shift log of the lab, 2 entries" in text_of(made))
    failed = place.run("book", "export", "--format", "pdf", "--layout", layout, "-o", made, *data, check=False)
    check(f"a logo that is not named is an error with its line: {failed.stderr.strip()}", failed.returncode == 2 and "own.typ, line 3: " in failed.stderr)
    usual = os.environ.get("TAMPU_BIN")
    if usual:
        failed = subprocess.run([usual, "book", "export", "--format", "pdf", "-o", made, *data], env=place.environment, text=True, stderr=subprocess.PIPE, timeout=60, check=False)
        check(f"without the feature the command says so: {failed.stderr.strip()}", failed.returncode == 2 and "the feature 'pdf'" in failed.stderr)
    place.close()


def main():
    hub.TAMPU = with_login_features()
    commands()
    site = PdfSite("book-pdf")
    try:
        site.begin("")
        owner = {"Authorization": f"Bearer {site.token}"}
        site.ask("PUT", "/api/v1/books/Shift", {"name": "Shift", "attributes": [{"name": "Author", "kind": "text"}, {"name": "Subject", "kind": "text"}]}, owner)
        texts(site)
        pictures(site)
        access(site, threads_and_searches(site))
        hostile(site)
        resident = max(memory_of(process) for process in processes_of(site))
        print(f"  the largest process of the hub had {resident} MiB", flush=True)
        check("it is bounded", resident < 1200)
    finally:
        site.close()
    layouts(hub.TAMPU)


def processes_of(site):
    """The processes of the hub, which are the groups of its start."""
    [parent] = [process.pid for process in site.processes if process.poll() is None]
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], text=True, stdout=subprocess.PIPE, check=True)
    return [int(pid) for pid in found.stdout.split()]


def memory_of(pid):
    """The most memory that a process had, in MiB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) >> 10


main()
