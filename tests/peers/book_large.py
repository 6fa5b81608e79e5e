#!/usr/bin/env python3
"""A file of 1 GB in the logbook: streamed in and out, through the hub, without being held in memory."""

import hashlib
import json
import os
import urllib.request

from hub import Place, check

SIZE = 1 << 30
# At both ends and in the middle something that cannot be anywhere else; between them the file system has holes.
MARKS = {0: b"the beginning", SIZE // 2 + 7: b"the middle", SIZE - 7: b"the end"}


def make(path):
    with open(path, "wb") as file:
        file.truncate(SIZE)
        for at, mark in MARKS.items():
            file.seek(at)
            file.write(mark)


def digest(file):
    """The SHA-256 of what a file or an answer has, and how long it is."""
    sha, length = hashlib.sha256(), 0
    while piece := file.read(1 << 20):
        sha.update(piece)
        length += len(piece)
    return sha.hexdigest(), length


def peak(process):
    """The most memory a process has had, bytes."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def main():
    print("book_large", flush=True)
    place = Place("booklarge")
    try:
        config = os.path.join(place.directory, "tampu.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write('[book]\nlisten = "127.0.0.1:0"\n')
        hub = place.up("--config", config, "--roles", "node,book")
        place.run("book", "make", "Shift", "-a", "Author")
        large = os.path.join(place.directory, "large.bin")
        make(large)
        with open(large, "rb") as file:
            expected = digest(file)
        post = place.start("book", "post", "Shift", "-a", "Author=Zoe", "-t", "with a large file", "--attachment", large)
        check("it is posted", post.wait(timeout=600) == 0)
        os.remove(large)

        found = [os.path.join(folder, "book.json") for folder, _, files in os.walk(place.directory) if "book.json" in files]
        with open(found[0], encoding="utf-8") as file:
            word = json.load(file)

        def get(path, **headers):
            request = urllib.request.Request(word["url"] + path, headers={"Authorization": "Bearer " + word["token"], **headers})
            return urllib.request.urlopen(request, timeout=600)

        with get("/api/v1/books/Shift/entries/1") as answer:
            [attached] = json.load(answer)["attachments"]
        check("it has its name and length", (attached["name"], attached["size"]) == ("large.bin", SIZE))
        path = "/api/v1/books/Shift/entries/1/attachments/0"
        with get(path) as answer:
            check("it comes back byte by byte", digest(answer) == expected)
        with get(path, Range="bytes=-7") as answer:
            check("its end alone", (answer.status, answer.read()) == (206, b"the end"))
        check(f"the hub has held {peak(hub) >> 20} MB at most", peak(hub) < 256 << 20)
        check("and ends in order", hub.terminate() is None and hub.wait(timeout=60) == 0)
    finally:
        place.close()


if __name__ == "__main__":
    main()
