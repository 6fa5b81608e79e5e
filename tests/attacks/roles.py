#!/usr/bin/env python3
"""Roles are processes: each is killed and comes back by itself, and the collector keeps records whatever happens to the logbook or an input."""

import os
import signal
import time

from attacked import Site, check, seeded, tree, until
from hub import Load, once_each


def role(site, name):
    """Returns the process of a role, or nothing while there is none."""
    for pid in tree(site.hub.pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[1:3] == [b"role", name.encode()]:
            return pid
    return None


def niceness(pid):
    """Returns the nice value of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[16])


def answers(site):
    """True if the logbook answers; a role that was restarted may have another port."""
    try:
        site.find()
        return site.ask("/whoami", token=site.owner).status == 200
    except (OSError, ValueError):
        return False


def main():
    chance = seeded("roles")
    site = Site("roles", config='[syslog]\nenabled = true\nudp = "127.0.0.1:0"\ntcp = "127.0.0.1:0"')
    try:
        site.begin()
        site.make_book()
        site.make_user("zoe")
        names = ["node", "collector", "book", "inputs"]
        check(f"each role is a process: {[role(site, name) for name in names]}", all(role(site, name) for name in names))
        behind = {name: niceness(role(site, name)) - niceness(site.hub.pid) for name in names}
        check(f"the exposed roles stand behind the others: {behind}", behind == {"node": 0, "collector": 0, "book": 5, "inputs": 5})
        # While the logbook and the inputs are stopped or dead, records are kept.
        for name in ("book", "inputs"):
            os.kill(role(site, name), signal.SIGSTOP)
        site.run("log", "send", "--process", "meanwhile", "the logbook hangs")
        until("a record is kept while logbook and inputs hang", lambda: site.messages("meanwhile") == ["the logbook hangs"])
        check("a record is kept while logbook and inputs hang", True)
        for name in ("book", "inputs"):
            os.kill(role(site, name), signal.SIGCONT)
        until("the logbook answers again", lambda: answers(site), 60)

        load = Load(site, "instrument", per_second=500, seconds=12)
        until("the sender is connected", lambda: site.messages("instrument"))
        for name in names * 2:
            pid = role(site, name)
            if pid is None:  # it comes back from the last kill
                pid = until(f"the role {name} is there", lambda name=name: role(site, name), 60)
            os.kill(pid, signal.SIGKILL)
            until(f"the role {name} comes back", lambda name=name, pid=pid: role(site, name) not in (None, pid), 60)
            time.sleep(chance.uniform(0, 0.5))  # somewhere in the load, not after anything
        check("each role comes back when it is killed, twice", site.hub.poll() is None)
        load.finish()
        until("all records are in the archive", lambda: len(site.messages("instrument")) >= len(load.expected), 60)
        check("each record is there once", once_each(site.messages("instrument"), load.expected))
        until("the logbook answers again", lambda: answers(site), 60)
        for name in names:
            told = [text for text in site.messages("hub@*") if text.startswith(f"the role {name} ") and "SIGKILL" in text]
            check(f"the end of the role {name} is in the log: {told[:1]}", told)
        site.hub.terminate()
        check("the hub ends in order, with all its processes", site.hub.wait(60) == 0 and not role(site, "book"))
    finally:
        site.close()


if __name__ == "__main__":
    main()
