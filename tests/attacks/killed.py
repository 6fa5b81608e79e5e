#!/usr/bin/env python3
"""A hub is killed at random moments while records, entries, attachments and an import arrive: nothing that was acknowledged is lost or there twice."""

import json
import os
import threading
import time

import loads
from attacked import Site, check, seeded, tree, until
from hub import Load, once_each

KILLS = int(os.environ.get("KILLS", "4"))


def main():
    chance = seeded("killed")
    site = Site("killed", roles='["collector", "book"]')
    node = Site("killed", roles='["node"]')
    try:
        # The node lives on, as on a host whose collector is killed.
        site.environment["TAMPU_RUN_DIR"] = node.environment["TAMPU_RUN_DIR"]
        node.up("--config", node.config, "--roles", "node")
        start(site, node)
        site.make_book()
        site.make_user("zoe")
        load = Load(site, "instrument", per_second=1000, seconds=4 + KILLS * 2)
        ended, posted, files = threading.Event(), [], []

        def post():
            number = 0
            while not ended.is_set():
                number += 1
                try:
                    answer = site.ask("/books/B/entries", {"text": f"entry {number}", "attributes": {"Author": "x"}}, token=site.owner, timeout=20)
                    if answer.status == 201:
                        posted.append((answer.json()["id"], f"entry {number}"))
                        body = f"file {number}".encode() * 1000
                        if loads.attach(site, posted[-1][0], "a.bin", body).status == 201:
                            files.append((posted[-1][0], body))
                except Exception:  # the hub is dead at this moment
                    time.sleep(0.05)

        poster = threading.Thread(target=post, daemon=True)
        poster.start()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.3, 1.5))  # somewhere in the load, not after anything
            for pid in tree(site.hub.pid)[::-1]:
                os.kill(pid, 9)
            site.hub.wait()
            start(site, node)
        ended.set()
        poster.join()
        load.finish()
        until("all records are in the archive", lambda: len(site.messages("instrument")) >= len(load.expected), 60)
        check(f"{KILLS} kills: each record is there once", once_each(site.messages("instrument"), load.expected))
        exported = map(json.loads, site.run("book", "export", "--format", "json").stdout.splitlines())
        there = {entry["id"]: entry["text"] for entry in exported}
        check(f"each of {len(posted)} acknowledged entries is there", posted and all(there.get(number) == text for number, text in posted))
        check("none is there twice", len(set(number for number, _ in posted)) == len(posted))
        check(f"each of {len(files)} acknowledged attachments is there", all(site.ask(f"/books/B/entries/{number}/attachments/0").body == body for number, body in files))
        site.hub.terminate()
        check("the hub ends in order", site.hub.wait(60) == 0)
        for command in (["log", "archive", "check"], ["book", "check"]):
            done = site.run(*command, "--data", site.data, check=False)
            check(f"tampu {' '.join(command)}: {done.stdout.strip()[-60:]}", done.returncode == 0)
    finally:
        site.close()
        node.close()


def start(site, node):
    """Starts collector and logbook beside the node."""
    for old in (os.path.join(node.directory, "run", "killed", "book.json"),):
        if os.path.exists(old):
            os.remove(old)
    site.hub = site.up("--config", site.config, roles=True)
    told = os.path.join(node.directory, "run", "killed", "book.json")
    until("the hub says where its logbook is", lambda: os.path.exists(told))
    with open(told, encoding="utf-8") as file:
        word = json.load(file)
    site.url, site.owner = word["url"], word["token"]
    site.port = int(site.url.rsplit(":", 1)[1])


if __name__ == "__main__":
    main()
