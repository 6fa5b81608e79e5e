#!/usr/bin/env python3
"""Nothing that Tampu writes can be read by another account of the host, although the shell's umask would allow it."""

import os

from attacked import Site, check, open_modes, seeded, until


def main():
    seeded("private_files")
    os.umask(0o022)
    site = Site("modes")
    try:
        # A directory that an earlier umask left open is closed at the start.
        os.makedirs(os.path.join(site.data, "modes"), mode=0o755)
        site.begin()
        site.make_book()
        site.make_user("zoe", admin=True)
        number = site.post("secret")
        site.must(f"/books/B/entries/{number}/attachments?name=a.txt", b"bytes", headers={"If-Match": "*", "Content-Type": "text/plain"})
        site.run("log", "send", "--process", "instrument", "secret")
        until("the record is kept", lambda: site.messages("instrument"))
        site.run("log", "archive", "compact")
        backup = os.path.join(site.directory, "backups")
        os.mkdir(backup, mode=0o700)
        site.run("log", "archive", "backup", "-o", os.path.join(backup, "log"))
        site.run("event", "archive", "backup", "-o", os.path.join(backup, "event"))
        site.run("book", "backup", "-o", os.path.join(backup, "book"))
        site.run("book", "export-elog", "-o", os.path.join(backup, "elog"))
        site.run("book", "export", "--format", "csv", "-o", os.path.join(backup, "book.csv"))
        site.run("log", "export", "--format", "json", "-o", os.path.join(backup, "log.json"))
        site.run("book", "show", f"B/{number}", "-o", os.path.join(backup, "saved"))
        made = [path for place in (site.data, backup, os.path.join(site.directory, "run")) for _, _, files in os.walk(place) for path in files]
        check(f"data, run-time files, backups and exports were made: {len(made)} files", len(made) > 15)
        for place in (site.data, backup, os.path.join(site.directory, "run")):
            found = open_modes(place)
            check(f"none of {os.path.basename(place)} is open to the group or to others: {found[:5]}", not found)
        # The last line of defence of the data: its top directory.
        check("the directory of the domain is closed", os.stat(os.path.join(site.data, "modes")).st_mode & 0o077 == 0)
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
