#!/usr/bin/env python3
"""Hubs in odd places: two on one data directory, no HOME, a directory that cannot be written, an unknown zone, a port that is taken, a first visitor by a forwarder."""

import contextlib
import os
import socket
import subprocess
import threading

from attacked import Site, Place, check, seeded, until


def main():
    seeded("starts")
    site = Site("starts")
    second = Place("starts", data=site.data)
    try:
        site.begin()
        site.make_book()
        # A second hub on the same data ends, and the first goes on.
        other = second.start("up", "--data", site.data, "--book-listen", "127.0.0.1:0", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, said = other.communicate(timeout=60)
        check(f"a second hub on one data directory ends with a reason: {said.strip()[-160:]}", other.returncode not in (0, None) and "in use" in said + "in use" * ("lock" in said or "open" in said))
        site.alive()
        forwarded(site)
        site.make_user("zoe")
        check("with users, nobody is the owner for being here", site.ask("/users").status in (401, 403))
        site.alive()
        site.hub.terminate()
        check("the hub ends in order", site.hub.wait(60) == 0)

        for name, change, good in [("no HOME and no directory of data", {"HOME": None, "XDG_DATA_HOME": None}, True),
                                   ("an unknown zone", {"TZ": "Nowhere/../../etc/passwd"}, True), ("a HOME that is no directory", {"HOME": "/dev/null"}, True)]:
            place = Place("odd")
            try:
                for key, value in change.items():
                    place.environment.pop(key, None)
                    if value is not None:
                        place.environment[key] = value
                place.up("--book-listen", "127.0.0.1:0")
                place.run("log", "send", "--process", "instrument", "kept")
                until("the record is kept", lambda: place.messages("instrument") == ["kept"])
                check(f"{name}: the hub works", good)
            finally:
                place.close()
        for name, data in {"a data directory that is a file": "/dev/null", "one below a file": "/dev/null/x", "one that nobody can write": "/proc/1/tampu"}.items():
            place = Place("odd", data=data)
            try:
                done = place.run("up", "--data", data, "--book-listen", "127.0.0.1:0", check=False)
                check(f"{name}: {done.returncode}, {done.stderr.strip()[-140:]}", done.returncode not in (0, 101) and data.split("/x")[0] in done.stderr and "panicked" not in done.stderr)
            finally:
                place.close()
    finally:
        second.close()
        site.close()


def forwarded(site):
    """Before there are users, a visitor whom a forwarder of the hub's user brings administers nothing."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source, target):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def relay():
        with contextlib.suppress(OSError):
            while True:
                visitor = listener.accept()[0]
                hub = socket.create_connection(("127.0.0.1", site.port))
                for pair in ((visitor, hub), (hub, visitor)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=relay, daemon=True).start()

    def ask(path, body=None, method=None, host="127.0.0.1"):
        headers = {"Host": host, "Connection": "close"}
        return site.ask("/api/v1" + path, body, method, port=listener.getsockname()[1], headers=headers).status

    check("a foreign name of the host is refused", ask("/whoami", host="control.example.org:9000") == 421)
    made = ask("/users", {"login": "eve", "password": "correct horse battery", "admin": True})
    rights = ask("/books/B/access", {"grants": [{"to": "guests", "may": ["admin"]}]}, "PUT")
    book = ask("/books/Eve", {"name": "Eve", "attributes": []}, "PUT")
    listener.close()
    check(f"a stranger by a forwarder makes no user, no rights, no logbook: {made}, {rights}, {book}", {made, rights, book} <= {401, 403})


if __name__ == "__main__":
    main()
