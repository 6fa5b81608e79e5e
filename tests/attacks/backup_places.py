#!/usr/bin/env python3
"""A member of the network that has the key cannot make the hub write where the configuration names no place."""

import os
import re

from attacked import Place, Site, check, open_modes, seeded, until


def contents(directory):
    """Returns the paths and sizes of all files below a directory."""
    return sorted((os.path.join(folder, name), os.path.getsize(os.path.join(folder, name)))
                  for folder, _, names in os.walk(directory) for name in names)


def main():
    seeded("backup_places")
    site = Site("backups")
    member = Place("backups")
    try:
        key = os.path.join(site.directory, "domain.key")
        allowed = os.path.join(site.directory, "allowed")
        os.mkdir(allowed, mode=0o700)
        with open(key, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("0123456789abcdef0123456789abcdef")
        with open(site.config, "a", encoding="utf-8") as file:
            file.write(f'\n[collector]\nbackups = ["{allowed}"]\n')
        site.begin("--lan", "127.0.0.1:0", "--key-file", key)
        site.run("log", "send", "--process", "instrument", "kept")
        until("the record is kept", lambda: site.messages("instrument"))
        [address] = until("the hub says where it listens", lambda: set(re.findall(r"\b127\.0\.0\.1:(\d+)\b(?!/)", lan(site))))

        def remote(*arguments):
            return member.run("--hub", f"127.0.0.1:{address}", "--domain", "backups", "--key-file", key, *arguments, check=False)

        until("the member is let in", lambda: remote("log", "query", "--limit", "1").returncode == 0)
        for kind in ("log", "event"):
            evil = os.path.join(site.directory, "evil-" + kind)
            done = remote(kind, "archive", "backup", "-o", evil)
            check(f"{kind}: another place is refused: {done.stderr.strip()[:160]}", done.returncode != 0 and not os.path.exists(evil))
            done = remote(kind, "archive", "backup", "-o", os.path.join(allowed, "..", "evil-" + kind))
            check(f"{kind}: and with dots", done.returncode != 0 and not os.path.exists(evil))
            os.symlink(site.directory, os.path.join(allowed, "link-" + kind))
            done = remote(kind, "archive", "backup", "-o", os.path.join(allowed, "link-" + kind, "evil-" + kind))
            check(f"{kind}: and through a link", done.returncode != 0 and not os.path.exists(evil))
        # A directory of somebody else's, with files of an archive's names, below an allowed place.
        other = Site("backups")
        try:
            other.begin()
            other.run("log", "send", "--process", "instrument", "of another archive")
            until("the other's record is kept", lambda: other.messages("instrument"))
            other.run("log", "archive", "compact")
            other.run("log", "archive", "backup", "-o", os.path.join(allowed, "older"))
        finally:
            other.close()
        before = contents(os.path.join(allowed, "older"))
        done = remote("log", "archive", "backup", "-o", os.path.join(allowed, "older"))
        check(f"a backup of another archive is not touched: {done.stderr.strip()[:160]}",
              done.returncode != 0 and contents(os.path.join(allowed, "older")) == before and before)
        done = remote("log", "archive", "backup", "-o", os.path.join(allowed, "mine"))
        made = contents(os.path.join(allowed, "mine"))
        check(f"the place that is configured: {done.returncode} {done.stderr.strip()[:160]}", done.returncode != 0 or bool(made))
        check("nothing there is open to others", not open_modes(allowed))
        wrong = os.path.join(site.directory, "wrong.key")
        with open(wrong, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("f" * 32)
        done = member.run("--hub", f"127.0.0.1:{address}", "--domain", "backups", "--key-file", wrong, "log", "query", "--limit", "1", check=False)
        check("a member with a wrong key is refused", done.returncode != 0)
        site.alive()
    finally:
        member.close()
        site.close()


def lan(site):
    """Returns the hub's lines about the network."""
    return "\n".join(line for line in site.said().splitlines() if "http" not in line)


if __name__ == "__main__":
    main()
