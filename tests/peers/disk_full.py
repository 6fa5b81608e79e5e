#!/usr/bin/env python3
"""The archive's disk fills up: the collector says so and loses nothing; when there is room again it goes on by itself."""

import os

from hub import Load, Place, check, isolated, once_each, sh, until


def main():
    isolated()
    print("disk_full", flush=True)
    disk = "/tmp/tampu-small-disk"
    os.makedirs(disk, exist_ok=True)
    sh(f"mount -t tmpfs -o size=2m tampu {disk}")
    place = Place("small", data=disk)
    try:
        place.up()
        load = Load(place, "instrument", per_second=10_000, seconds=4, timeout="90s")
        until("the hub tells that the disk is full", lambda: "is full" in place.said(), 60)
        check("the hub tells that the disk is full, and where", disk in place.said())
        check("what is there is still found", len(place.messages("instrument")) > 0)
        sh(f"mount -o remount,size=64m {disk}")
        load.finish()
        check("each record is there once", once_each(place.messages("instrument"), load.expected))
    finally:
        place.close()
        sh(f"umount -l {disk}")
        os.rmdir(disk)


if __name__ == "__main__":
    main()
