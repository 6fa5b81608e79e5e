#!/usr/bin/env python3
"""Somebody on the wire between two hosts sees no record, name, key or password, and gets nowhere by passing bytes on or by a certificate of another domain."""

import contextlib
import os
import re
import socket
import threading

from attacked import Place, Site, check, seeded, until

MARK = "a text that nobody on the wire may read"


class Wire:
    """A relay to an address that keeps all bytes which pass in both directions."""

    def __init__(self, port):
        self.port, self.seen = port, bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.port))
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source, target):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                self.seen += piece
                target.sendall(piece)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def secret(path, text):
    """Writes a file that only its user reads."""
    with open(path, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(text)
    return path


def main():
    seeded("on_the_wire")
    site, other, stranger = Site("wire"), Place("wire"), Place("wire")
    try:
        key = "0123456789abcdef0123456789abcdef"
        secret(os.path.join(site.directory, "key"), key)
        site.run("cert", "init", "--domain", "wire", "--name", "127.0.0.1", "--data", site.data)
        site.run("cert", "host", "other", "--domain", "wire", "--name", "127.0.0.1", "--data", site.data)
        site.begin("--lan", "127.0.0.1:0", "--key-file", os.path.join(site.directory, "key"))
        port = lan(site)
        wire = Wire(port)
        mine = os.path.join(site.data, "wire", "authority", "hosts", "other")

        def far(place, certificates, *arguments):
            place.environment["TAMPU_CERTIFICATES"] = certificates
            return place.run("--hub", f"127.0.0.1:{wire.at}", "--domain", "wire", "--key-file", os.path.join(site.directory, "key"), *arguments, check=False)

        until("another host reaches the hub", lambda: far(other, mine, "log", "send", "--process", "instrument", MARK).returncode == 0, 60)
        until("its record is kept", lambda: MARK in site.messages("instrument"))
        until("it reads through the wire", lambda: MARK in far(other, mine, "log", "query", "--process", "instrument", "--json").stdout)
        check("it writes and reads through the wire", True)
        seen = bytes(wire.seen)
        check(f"{len(seen)} bytes were seen on the wire", len(seen) > 1000)
        for text in (MARK, "nobody on the wire", "instrument", key, "log/query"):
            check(f"'{text[:20]}' is not among them", text.encode() not in seen)

        # The key alone is not enough, nor is a certificate of another authority.
        stranger.run("cert", "init", "--domain", "wire", "--name", "127.0.0.1", "--data", os.path.join(stranger.directory, "evil"))
        evil = os.path.join(stranger.directory, "evil", "wire", "cert")
        done = far(stranger, evil, "log", "query", "--limit", "1")
        check(f"a certificate of another authority is refused: {done.stderr.strip()[:120]}", done.returncode != 0)
        empty = os.path.join(stranger.directory, "none")
        os.mkdir(empty)
        done = far(stranger, empty, "log", "query", "--limit", "1")
        check(f"the key without a certificate is refused: {done.stderr.strip()[:120]}", done.returncode != 0)
        # A raw client that speaks no TLS gets no word.
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionError, TimeoutError):
                got = raw.recv(4096)
                check("a client without TLS gets nothing of the domain", b"wire" not in got)
    finally:
        stranger.close()
        other.close()
        site.close()


def lan(site):
    """Returns the port at which other hosts reach the hub."""
    lines = [line for line in site.said().splitlines() if "http" not in line]
    return int(until("the hub says where it listens", lambda: re.findall(r"\b127\.0\.0\.1:(\d+)\b", "\n".join(lines)))[0])


if __name__ == "__main__":
    main()
