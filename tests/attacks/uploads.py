#!/usr/bin/env python3
"""Uploads cannot fill the disk: a sender's files without an entry have a limit, free space is kept, and what is refused leaves nothing."""

import os

from attacked import Pulse, Site, check, isolated, seeded, sh, together


def files(directory):
    """Returns the bytes of all files below a directory."""
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(directory) for name in names)


def main():
    isolated()
    seeded("uploads")
    sh("ip link set lo up")
    disk = "/tmp/tampu-small-uploads"
    os.makedirs(disk, exist_ok=True)
    sh(f"mount -t tmpfs -o size=128m tampu {disk}")
    site = Site("uploads", book=f'dir = "{disk}/book"\nwaiting_mb = 20\nattachment_mb = 20\nguests = "write"')
    try:
        site.begin()
        site.make_book()
        writer = site.make_user("zoe")
        second = site.make_user("max")
        kind = {"Content-Type": "application/octet-stream"}

        def upload(token, size):
            return site.ask("/uploads", os.urandom(size), token=token, headers=kind)

        with Pulse(site) as pulse:
            answers = [upload(writer, 4 << 20) for _ in range(8)]
        pulse.held("uploads")
        statuses = [answer.status for answer in answers]
        check(f"one sender's files without an entry have a limit: {statuses}", statuses.count(201) == 5 and set(statuses[5:]) == {409})
        check(f"it names the way out: {answers[-1].text()[:160]}", "post the entries" in answers[-1].text())
        before = files(disk)
        check("what was refused leaves nothing", before < 30 << 20)
        check("another sender is not held up", upload(second, 1 << 20).status == 201)
        # A body that ends early leaves nothing.
        for _ in range(3):
            connection = site.connection()
            connection.putrequest("POST", "/api/v1/uploads")
            for name, value in {"Authorization": f"Bearer {second}", "Content-Length": str(8 << 20), **kind}.items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.send(os.urandom(2 << 20))
            connection.close()
        large = together([lambda: upload(second, 18 << 20) for _ in range(8)])
        statuses = [getattr(answer, "status", str(answer)) for answer in large]
        check(f"many large ones at once: {statuses}", set(statuses) <= {201, 409, 413, 429, 503, 507} and statuses.count(201) <= 1)
        free = os.statvfs(disk)
        check(f"the disk keeps room for entries ({free.f_bavail * free.f_frsize >> 20} MiB of 128 free)", free.f_bavail * free.f_frsize > 6 << 20)
        check("and entries are taken", site.post("there is room", token=writer) > 0)
        number = site.post("with a file", token=writer, attachments=[{"name": "a", "sha": answers[0].json()["sha"]}])
        check("a file that an entry has no longer counts", number and upload(writer, 1 << 20).status == 201)
        site.alive()
    finally:
        site.close()
        sh(f"umount -l {disk}")
        os.rmdir(disk)


if __name__ == "__main__":
    main()
