#!/usr/bin/env python3
"""Files to import that somebody else wrote: no entry is lost for an odd name, nothing is expanded or followed, and the memory stays bounded."""

import gzip
import json
import os
import resource
import subprocess
import sys

import loads
from attacked import TAMPU, Site, check, seeded

HEAD = "$@MID@$: {}\nDate: Wed, 10 Sep 2008 00:20:50 +0200\nAuthor: a\nEncoding: plain\n"


def entry(number, more="", text="text"):
    """Returns an entry of ELOG's with further lines in its head."""
    return f"{HEAD.format(number)}{more}{'=' * 40}\n{text}\n".encode()


def main():
    chance = seeded("elog_imports")
    site = Site("imports")
    try:
        def load(name, files, *more):
            """Imports a folder of files into a data directory of its own, and checks the store."""
            folder = os.path.join(site.directory, name)
            os.makedirs(os.path.join(folder, "L"))
            for file, body in files.items():
                with open(os.path.join(folder, "L", file), "wb") as out:
                    out.write(body)
            data = os.path.join(site.directory, "data-" + name)
            done = site.run("book", "import-elog", folder, "--data", data, *more, check=False)
            whole = site.run("book", "check", "--data", data, check=False)
            check(f"{name}: the import ends by itself ({done.returncode}), the store is whole: {whole.stdout.strip()[-80:]}",
                  done.returncode in (0, 1) and whole.returncode == 0)
            shown = site.run("book", "search", "--data", data, "--json", check=False).stdout
            return done, shown

        for at, name in enumerate(["a\tb.txt", "a\0b.txt", "a\x1b[2Jb.txt", "x/../../../etc/passwd", "\u202egpj.exe", "n" * 300]):
            _, shown = load(f"odd name {at}", {"080910a.log": entry(1, f"Attachment: 080910_002050_{name}\n", "the parent") + entry(2, "In reply to: 1\n", "the reply")})
            check(f"an odd name of an attachment {name[:12]!r} costs no entry", "the parent" in shown and "the reply" in shown)
        load("numbers", {"080910a.log": b"".join(entry(number) for number in [0, 18446744073709551615, 4294967296, 7, 7]) + entry(-1)})
        load("circle", {"080910a.log": entry(1, "In reply to: 2\n") + entry(2, "In reply to: 1\n") + entry(3, "In reply to: 3\n")})
        odd = os.path.join(site.directory, "odd files")
        os.makedirs(os.path.join(odd, "L"))
        os.mkfifo(os.path.join(odd, "L", "080910a.log"))
        os.mkdir(os.path.join(odd, "L", "080911a.log"))
        os.symlink("/dev/zero", os.path.join(odd, "L", "080912a.log"))
        os.symlink("/etc", os.path.join(odd, "etc"))
        done = site.run("book", "import-elog", odd, "--data", os.path.join(site.directory, "data-odd"), check=False)
        check(f"a fifo, a folder, a device and a link in place of files: {done.returncode}", done.returncode in (0, 1) and "root:" not in done.stdout + done.stderr)

        replies = b"".join(entry(number, "In reply to: 1\n" if number > 1 else "") for number in range(1, 5001))
        load("long thread", {"080910a.log": replies})
        for at in range(6):
            files = {}
            for day in range(5):
                body = bytearray(loads.elog_file(chance, range(day * 40 + 1, day * 40 + 41)))
                for _ in range(chance.randrange(60)):
                    body[chance.randrange(len(body))] = chance.randrange(256)
                files[f"08091{day}a.log"] = bytes(body)
            load(f"random faults {at}", files)

        # What people's files have: each case is reported with its file and line, and the rest of it is kept.
        cases = b"".join([
            entry(1, "Attachment: 080910_002050_a\tb.txt\n", "a name with a control character"),
            entry(2, "In reply to: 77\n", "a reply to nothing"),
            entry(3, "", "caf\u00e9").replace("caf\u00e9".encode(), b"caf\xe9 and \xc3\xa9"),
            entry(4, "", "a date to come").replace(b"2008", b"2190"),
            entry(5, "", "no date").replace(b"10 Sep 2008", b"32 Foo 2008"),
            entry(1, "", "a number a second time"),
            entry(6, "Subject: nul \0 byte\n", "a NUL in an attribute and \0 in a text"),
            entry(7, "Odd\x07name: kept\n", "a control character in a name"),
            entry(8).replace(b"Encoding: plain", b"Encoding: cuneiform"),
        ])
        done, shown = load("cases", {"080910a.log": cases}, "--errors", "100")
        file = os.path.join(site.directory, "cases", "L", "080910a.log")
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(file)]
        for about in ["entry 1: attachment", "entry 2: it replies to 77", "entry 5: invalid date", "entry 1 occurs a second time", "unknown encoding 'cuneiform'"]:
            check(f"reported with its line: {about}", any(about in line and ", line " in line for line in said))
        lines = {int(line.split(", line ")[1].split(",")[0]) for line in said if ", line " in line}
        starts = {number + 1 for number, line in enumerate(cases.split(b"\n")) if line.startswith(b"$@MID@$:")}
        check(f"the lines are those of the entries: {sorted(lines)}", lines and lines <= starts)
        for text in ["a name with a control", "a reply to nothing", "a date to come", "no date", "a control character in a name", "caf\u00e9 and"]:
            check(f"kept: {text}", text in json.dumps([json.loads(line) for line in shown.splitlines()], ensure_ascii=False))

        # One line of 1 GiB: the importer reads it by pieces, and keeps as much of it as an entry can have.
        name = os.path.join(site.directory, "huge")
        os.makedirs(os.path.join(name, "L"))
        with open(os.path.join(name, "L", "080910a.log"), "wb") as file:
            file.write(entry(1) + HEAD.format(2).encode() + b"=" * 40 + b"\n")
            for _ in range(1024):
                file.write(b"x" * (1 << 20))
            file.write(b"\n" + entry(3, "In reply to: 2\n"))
        data = os.path.join(site.directory, "data-huge")
        command = [TAMPU, "book", "import-elog", name, "--data", data]
        # An own process measures the importer, and not the commands before it.
        measure = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); " \
                  "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10, file=sys.stderr); sys.exit(done.returncode)"
        done = subprocess.run([sys.executable, "-c", measure, *command], env=site.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=600, check=False)
        most = int(done.stderr.rsplit("peak ", 1)[1])
        check(f"an entry of 1 GiB is cut in bounded memory ({most} MiB): {done.stderr.strip()[-300:]}",
              done.returncode == 0 and most <= 256 and "entry 2 has more than 24 MiB" in done.stderr and ", line 7," in done.stderr)
        kept = json.loads(site.run("book", "show", "L/2", "--data", data, "--json").stdout)
        reply = json.loads(site.run("book", "show", "L/3", "--data", data, "--json").stdout)
        check(f"its text has {len(kept['text'])} bytes, and its reply is a reply", len(kept["text"]) == 16 << 20 and reply["parent"] == 2)
        check("the store is whole", site.run("book", "check", "--data", data, check=False).returncode == 0)

        site.begin()
        site.make_user("zoe")
        laughs = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">' + "".join(
            f'<!ENTITY {chr(98 + at)} "{("&" + chr(97 + at) + ";") * 10}">' for at in range(12)) + ']><Log><Info TimeStamp="2026-01-01T00:00:00.000">&m;</Info></Log>'
        outside = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]><Log><Info TimeStamp="2026-01-01T00:00:00.000">&x;</Info></Log>'
        deep = '<Log><Header Name="x" Type="LOGFILE" />' + "<Info>" * 100_000 + "</Log>"
        bomb = ['<Log><Info TimeStamp="2026-01-01T00:00:00.000">', *["x" * (1 << 20)] * 300, "</Info></Log>"]
        for file, pieces in {"laughs.xml": [laughs], "outside.xml": [outside], "deep.xml": [deep], "bomb.xml.gz": bomb}.items():
            path = os.path.join(site.directory, file)
            # This process stays small: its children begin with its size.
            with gzip.open(path, "wb", 1) if file.endswith(".gz") else open(path, "wb") as out:
                for piece in pieces:
                    out.write(piece.encode())
            done = site.run("log", "import", path, check=False)
            found = site.run("log", "query", "--limit", "0", "--json").stdout
            check(f"{file}: {done.returncode}", "root:" not in found and "hahahahaha" not in found and len(found) < 1 << 20)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        check(f"in bounded memory ({most} MiB)", most < 400)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
