#!/usr/bin/env python3
"""Names and texts that others choose cannot drive the terminal of an operator, nor hide or turn what it shows."""

import re

from attacked import Site, check, seeded, until

BAD = "\x1b[2J\x1b]0;x\x07\x9b31m\u202e\u2066\u200b"
# Control characters of C0 and C1 but tab and newline, directions and invisible characters.
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def main():
    seeded("terminal")
    site = Site("terminal")
    try:
        site.begin()
        site.make_book("B", comment="a book " + BAD)
        # Characters that a name may not have are refused; the others must be made harmless.
        for name in ("Zoe " + BAD, "Zoe \u202e\u2066\u200b"):
            made = site.ask("/users", {"login": "zoe", "full_name": name, "password": "correct horse battery", "admin": True}, token=site.owner)
        check(f"a full name that turns the text is taken or refused: {made.status}", made.status in (201, 422))
        site.ask("/users", {"login": "zoe", "password": "correct horse battery", "admin": True}, token=site.owner)
        text = "text " + BAD
        number = site.must("/books/B/entries", {"text": text, "attributes": {"Author": "author " + BAD}})["id"]
        site.ask(f"/books/B/entries/{number}/attachments?name=%1B%5B2J%E2%80%AEx.txt", b"x", token=site.owner, headers={"If-Match": "*"})
        for more in ([], ["--source", "source " + BAD], ["--process", "process " + BAD], ["--logger", "logger " + BAD], ["--value", f"name={BAD}"], ["--value", f"n{BAD}=x"]):
            site.run("log", "send", *more, "message " + BAD, check=False)
        site.run("log", "send", "--process", "last", "the last one")
        until("the records are kept", lambda: site.messages("last"))
        commands = [["log", "query"], ["log", "query", "--limit", "0", "--oldest-first"], ["log", "stat"], ["log", "stat", "--loggers"], ["log", "levels"],
                    ["log", "export", "--format", "csv"], ["event", "list"], ["bulk", "stat"], ["doctor"], ["log", "archive", "status"],
                    ["book", "list"], ["book", "search"], ["book", "show", f"B/{number}"], ["book", "show", f"B/{number}", "--thread"],
                    ["book", "show", f"B/{number}", "--revisions"], ["book", "users", "list"], ["book", "users", "role"], ["book", "users", "token", "list", "zoe"],
                    ["book", "summary"], ["log", "levels", "set", "x" + BAD, "Debug"], ["book", "show", "B\x1b[2J/1"]]
        for command in commands:
            if command[:2] == ["log", "export"]:
                continue
            done = site.run(*command, check=False)
            found = RAW.findall(done.stdout) + RAW.findall(done.stderr)
            check(f"tampu {' '.join(command)!r}: {len(done.stdout)} characters, {found}", not found)
        check("the hub's own messages", not RAW.search(site.said()))
        site.alive()
    finally:
        site.close()


if __name__ == "__main__":
    main()
