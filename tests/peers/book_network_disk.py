#!/usr/bin/env python3
"""A logbook and a disk of the network: a real sshfs, whose files a program of OpenSSH serves. ELOG's files and their attachments are taken
over from it, exports and backups go to it, and a logbook's own directory there is refused with the reason and two ways out.

NFS itself needs a kernel with its client, which kernels of containers lack. Tests of `crates/logbook/src/store/sqlite/place.rs` hold its number
and those of other kinds.
"""

import contextlib
import glob
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub import Place, check, isolated, until

SFTP = "/usr/lib/openssh/sftp-server"


@contextlib.contextmanager
def sshfs(served, at):
    """Mounts a directory, served by sftp-server over a pair of sockets."""
    for program in (SFTP, shutil.which("sshfs")):
        if not program or not os.path.exists(program):
            sys.exit("FAILED: there is no sshfs or no sftp-server: scripts/need.sh sshfs installs them")
    ours, theirs = socket.socketpair()
    with subprocess.Popen([SFTP], stdin=theirs, stdout=theirs) as server:
        options = ["-f", "-o", "passive"]
        with subprocess.Popen(["sshfs", f":{served}", at, *options], stdin=ours, stdout=ours) as client:
            ours.close()
            theirs.close()
            try:
                until("the disk of the network is there", lambda: client.poll() is not None or os.path.ismount(at))
                check("the disk of the network is mounted", os.path.ismount(at))
                yield
            finally:
                subprocess.run(["umount", "--lazy", at], check=False)
                client.terminate()
                server.terminate()


def picture():
    """A picture of one point."""

    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = (1).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")


def write_elog(directory):
    """An ELOG of 60 entries, each with a file."""
    book = os.path.join(directory, "logbooks", "Shift", "2024")
    os.makedirs(book)
    with open(os.path.join(directory, "elogd.cfg"), "w", encoding="utf-8") as file:
        file.write("[Shift]\nAttributes = Author, Subject\n")
    with open(os.path.join(book, "240910a.log"), "w", encoding="utf-8") as file:
        for number in range(1, 61):
            name = f"240910_10{number % 60:02}00_plot{number}.png"
            with open(os.path.join(book, name), "wb") as plot:
                plot.write(picture() + number.to_bytes(4, "big"))
            file.write(f"$@MID@$: {number}\nDate: Tue, 10 Sep 2024 10:{number % 60:02}:00 +0000\nAuthor: Zoe\nSubject: entry {number}\n")
            file.write(f"Attachment: {name}\nEncoding: plain\n{'=' * 40}\nthe quench number {number}\n")


def main():
    isolated()
    print("book_network_disk: sshfs", flush=True)
    place = Place("netdisk")
    served, far = tempfile.mkdtemp(prefix="tampu-served-"), tempfile.mkdtemp(prefix="tampu-far-")
    try:
        write_elog(served)
        with sshfs(served, far):
            local = os.path.join(place.directory, "local")
            imported = place.run("book", "import-elog", f"{far}/logbooks", "--elog-config", f"{far}/elogd.cfg", "--data", local)
            check("ELOG's files are taken over from it", "60" in imported.stdout + imported.stderr)
            checked = place.run("book", "check", "--data", local)
            check(f"with all their attachments: {checked.stdout.strip()}", checked.returncode == 0)
            kept = [name for folder, _, names in os.walk(os.path.join(local, "netdisk", "book", "attachments")) for name in names if len(name) == 62]
            check("each of which is there", len(kept) == 60)

            exported = place.run("book", "export-elog", "-o", f"{far}/back", "--data", local)
            [day] = glob.glob(f"{served}/back/**/240910a.log", recursive=True)
            with open(day, encoding="utf-8") as file:
                check(f"they go back to it {exported.stderr.strip()}", file.read().count("the quench number") == 60)

            place.run("book", "backup", "-o", f"{far}/backup", "--data", local)
            back = os.path.join(place.directory, "restored")
            shutil.copytree(f"{far}/backup", os.path.join(back, "netdisk", "book"))
            checked = place.run("book", "check", "--data", back)
            check("a backup there is whole when it is copied back", "60" in place.run("book", "list", "--json", "--data", back).stdout)

            apart = os.path.join(back, "netdisk", "book", "attachments")
            shutil.copytree(apart, f"{far}/attachments")
            shutil.rmtree(apart)
            os.symlink(f"{far}/attachments", apart)
            plot = os.path.join(place.directory, "plot.png")
            with open(plot, "wb") as file:
                file.write(picture() + b"new")
            place.run("book", "post", "Shift", "-a", "Author=Zoe", "--text", "with a file", "--attachment", plot, "--data", back)
            checked = place.run("book", "check", "--data", back)
            kept = [name for folder, _, names in os.walk(f"{served}/attachments") for name in names if len(name) == 62]
            check("files of entries alone may be there, by a link or a mount", len(kept) == 61)

            refused = place.run("book", "make", "Other", "--data", f"{far}/book", check=False)
            told = refused.stderr
            check(f"a logbook's directory there is refused: {told.strip()}", refused.returncode != 0 and "FUSE" in told)
            check("with the ways out", "[book] postgres" in told and "[book] dir" in told)
            check("and nothing was made there", not os.path.exists(os.path.join(served, "book", "netdisk", "book", "book.db")))

            config = os.path.join(place.directory, "tampu.toml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f'roles = ["node", "book"]\n[book]\nlisten = "127.0.0.1:0"\ndir = "{far}/book"\n')
            hub = place.run("up", "--in-process", "--config", config, check=False)
            check("so is a hub's, which says why", hub.returncode != 0 and "FUSE" in hub.stderr and "[book] postgres" in hub.stderr)
    finally:
        place.close()
        shutil.rmtree(served, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(far)


if __name__ == "__main__":
    main()
