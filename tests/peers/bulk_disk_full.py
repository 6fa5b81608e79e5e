#!/usr/bin/env python3
"""A receiver's disk fills up: it says so, its sender is told and stops, the next file that fits arrives, and with room `--continue` sends
the rest."""

import hashlib
import json
import os
import subprocess

from hub import Place, check, isolated, sh, until


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    isolated()
    print("bulk_disk_full", flush=True)
    sh("ip link set lo up")
    disk = "/tmp/tampu-small-bulk"
    os.makedirs(disk, exist_ok=True)
    sh(f"mount -t tmpfs -o size=8m tampu {disk}")
    place = Place("bulkdisk")
    big, small = (os.path.join(place.directory, name) for name in ("big", "small"))
    for path, size in ((big, 40 << 20), (small, 10_000)):
        with open(path, "wb") as file:
            file.write(os.urandom(size))
    try:
        place.up("--roles", "node")
        told = os.path.join(place.directory, "recv.err")
        with open(told, "w", encoding="utf-8") as err:
            receiver = place.start("bulk", "recv", "--stream", "s", "--output", disk, "--json", stdout=subprocess.PIPE, stderr=err)
        until("the receiver is up", lambda: "listening" in receiver.stdout.readline())
        sent = place.run("bulk", "send", big, "--stream", "s", "--throttle", "20MB", check=False)
        print("  the sender was told:", sent.stderr.strip())
        check("the sender fails and is told why", sent.returncode == 1 and "No space left" in sent.stderr)
        with open(told, encoding="utf-8") as err:
            check("the receiver says why", "No space left" in err.read())
        check("nothing has the name of a complete file", not os.path.exists(os.path.join(disk, "big")))
        sh(f"mount -o remount,size=64m {disk}")
        place.run("bulk", "send", small, "--stream", "s")
        check("another file arrives", digest(os.path.join(disk, "small")) == digest(small))
        again = place.run("bulk", "send", big, "--stream", "s", "--continue", "--json")
        ended = [event for event in map(json.loads, again.stdout.splitlines()) if event["event"] == "ended"][0]
        print(f"  {ended['had']} bytes were there, {ended['bytes']} were sent")
        check("only the rest is sent", ended["had"] > 4 << 20 and ended["had"] + ended["bytes"] == 40 << 20)
        check("the file is as it was", digest(os.path.join(disk, "big")) == digest(big))
    finally:
        place.close()
        sh(f"umount -l {disk}")
        os.rmdir(disk)


if __name__ == "__main__":
    main()
