#!/usr/bin/env python3
"""The logbook's disk fills up: who posts is told, through the API and in ELOG's dialect, and nothing is changed by what failed; reading goes
on; with room again so does writing, and everything there is whole."""

import json
import os
import urllib.error
import urllib.request

from elog_programs import ElogCommand
from hub import Place, check, isolated, sh, until


def main():
    isolated()
    print("book_disk_full", flush=True)
    sh("ip link set lo up")
    disk = "/tmp/tampu-small-book"
    os.makedirs(disk, exist_ok=True)
    sh(f"mount -t tmpfs -o size=16m tampu {disk}")
    place = Place("bookdisk")
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'[book]\nlisten = "127.0.0.1:0"\ndir = "{disk}/book"\nguests = "write"\n')
    try:
        hub = place.up("--config", config, "--roles", "node,book")
        found = [os.path.join(folder, "book.json") for folder, _, files in os.walk(place.directory) if "book.json" in files]
        with open(found[0], encoding="utf-8") as file:
            word = json.load(file)

        def ask(path, body=None, method=None, kind="application/json"):
            """The status, and what was said."""
            headers = {"Authorization": "Bearer " + word["token"], "Content-Type": kind}
            request = urllib.request.Request(word["url"] + "/api/v1" + path, data=body, headers=headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as refused:
                return refused.code, json.loads(refused.read())

        def post(text):
            return ask("/books/Shift/entries", json.dumps({"text": text, "attributes": {"Author": "Zoe"}}).encode())

        def text(number):
            return ask(f"/books/Shift/entries/{number}")[1]["text"]

        book = {"name": "Shift", "attributes": [{"name": "Author", "kind": "text"}]}
        check("a logbook is made", ask("/books/Shift", json.dumps(book).encode(), "PUT")[0] == 201)
        check("an entry is posted", post("the first")[0] == 201)

        large = os.urandom(1 << 20)
        posted, told = [], None
        for _ in range(100):
            status, told = ask("/uploads", large + os.urandom(8), kind="application/octet-stream")
            if status != 201:
                break
        check(f"an upload that finds no room is refused: {told}", status == 507 and told["type"].endswith(":disk-full"))
        check("nothing of the disk's places is told", disk not in json.dumps(told))
        # What is given back when a journal is begun anew may have room for a few more.
        for number in range(10_000):
            status, told = post(f"{number} " + "words of many kinds " * 2000)
            if status != 201:
                break
            posted.append((told["id"], number))
        check(f"a post that finds no room is refused: {told}", status == 507 and told["type"].endswith(":disk-full"))
        check("what is there is read", text(1) == "the first")
        check("and found", any(hit["entry"]["id"] == 1 for hit in ask("/search?q=first")[1]["hits"]))
        host, port = word["url"].removeprefix("http://").split(":")
        elog = ElogCommand(host, int(port), "Shift", subdir="elog")
        told = ""
        for number in range(10_000, 10_100):
            try:
                posted.append((elog.submit({"Author": "Max"}, f"{number} " + "words of many kinds " * 20_000), number))
            except RuntimeError as refused:
                told = str(refused)
                break
        check("ELOG's program is told, too", "507 Insufficient Storage" in told)
        before = ask("/search?limit=1")[1]["count"]["exactly"]

        sh(f"mount -o remount,size=128m {disk}")
        check("with room it is posted", post("the last")[0] == 201)
        check("and a file taken in", ask("/uploads", large, kind="application/octet-stream")[0] == 201)
        check("what failed has left nothing", ask("/search?limit=1")[1]["count"]["exactly"] == before + 1 == len(posted) + 2)
        check("what was acknowledged is whole", all(text(at).startswith(f"{number} words") for at, number in posted))
        hub.terminate()
        check("the hub ends in order", hub.wait(timeout=60) == 0)
        said = place.run("book", "check", "--data", disk + "/book").stdout
        check(f"and so is everything else: {said.strip()}", "everything is as it should be" in said)
    finally:
        place.close()
        sh(f"umount -l {disk}")
        os.rmdir(disk)


if __name__ == "__main__":
    main()
