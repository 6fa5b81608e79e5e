#!/usr/bin/env python3
"""No collector is there and the spool's disk fills up: the node says so and acknowledges nothing that is not on it; with room, and
then a collector, each record is there once."""

import json
import os

from hub import Load, Place, check, isolated, once_each, sh, until


def main():
    isolated()
    print("spool_disk_full", flush=True)
    disk = "/tmp/tampu-small-spool"
    os.makedirs(disk, exist_ok=True)
    sh(f"mount -t tmpfs -o size=1m tampu {disk}")
    place = Place("spool")
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'[spool]\ndir = "{disk}"\nafter_ms = 100\n')

    def spools():
        told = place.run("doctor", "--json", check=False).stdout.splitlines()
        return [finding for finding in map(json.loads, told) if finding["check"] == "spool"]

    try:
        place.up("--roles", "node", "--config", config)
        load = Load(place, "instrument", per_second=10_000, seconds=3, timeout="90s")
        until("the node tells that the disk is full", lambda: "is full" in place.said(), 60)
        check("the node tells that the disk is full, and where", disk in place.said())
        until("doctor fails and tells where", lambda: any(s["state"] == "fail" and disk in s["way_out"] for s in spools()), 60)
        sh(f"mount -o remount,size=64m {disk}")
        load.finish()
        check("the sender was told that all is on a disk", True)
        place.up("--roles", "collector")
        until("the spool is given back", lambda: all(s["state"] == "ok" for s in spools()), 60)
        check("each record is there once", once_each(place.messages("instrument"), load.expected))
    finally:
        place.close()
        sh(f"umount -l {disk}")
        os.rmdir(disk)


if __name__ == "__main__":
    main()
