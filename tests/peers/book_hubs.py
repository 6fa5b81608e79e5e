#!/usr/bin/env python3
"""Two hubs on one PostgreSQL: what one posts the other finds at once and tells to whoever waits, and each goes on without the other."""

import glob
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub import Place, check, until


def program(name):
    """A program of the server; Debian keeps them apart from others."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    return found[-1] if found else sys.exit(f"FAILED: there is no {name}: scripts/need.sh postgres installs PostgreSQL")


# PostgreSQL does not run as root.
somebody = ["--reuid", "postgres", "--regid", "postgres", "--init-groups"] if os.geteuid() == 0 else []
somebody = ["setpriv", "--pdeathsig", "INT", *somebody]

with tempfile.TemporaryDirectory(prefix="tampu-pg") as directory:
    os.chmod(directory, 0o777)
    data = os.path.join(directory, "data")
    made = [*somebody, program("initdb"), "-D", data, "--auth=trust", "--no-sync", "--username=tampu", "--encoding=UTF8", "--locale=C"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=directory)
    run = [*somebody, program("postgres"), "-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "fsync=off"]
    server = subprocess.Popen(run, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ready():
        """Whether it says that it takes connections."""
        told = os.path.join(data, "postmaster.pid")
        if not os.path.exists(told):
            return False
        with open(told, encoding="utf-8") as file:
            return "ready" in file.read()

    until("the server is up", ready)
    address = f"postgres://tampu@{directory.replace('/', '%2F')}/postgres"
    hubs = [Place("book-hubs"), Place("book-hubs")]
    try:
        urls = []
        for place in hubs:
            config = os.path.join(place.directory, "tampu.toml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f'roles = ["book"]\n[book]\nlisten = "127.0.0.1:0"\npostgres = "{address}"\n')
            place.up("--config", config)
            # The file with which a hub tells its owner's programs where its logbook is.
            [told] = until("the hub tells where its logbook is", lambda: glob.glob(f"{place.directory}/run/**/book.json", recursive=True))
            with open(told, encoding="utf-8") as file:
                urls.append(json.load(file))

        def ask(hub, path, body=None):
            """Asks a hub's API."""
            place = urls[hub]
            headers = {"Authorization": f"Bearer {place['token']}", "Content-Type": "application/json"}
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(place["url"] + "/api/v1" + path, data=data, headers=headers)
            return urllib.request.urlopen(request, timeout=60)

        hubs[0].run("book", "make", "Shift", "-a", "Author", "-a", "Subject")
        # Rights in a logbook that another hub makes hold after a second at the latest.
        until("the other hub knows the logbook", lambda: "Shift" in hubs[1].run("book", "list").stdout)
        posted = hubs[0].run("book", "post", "Shift", "-a", "Author=Zoe", "-a", "Subject=HV trip", "--text", "Channel 7 tripped, first.")
        found = hubs[1].run("book", "search", "tripped first", "--json").stdout
        check("what one hub posts the other finds at once", "Channel 7" in found)

        heard, begun = [], threading.Event()

        def listen():
            stream = ask(1, "/search/stream?q=second")
            begun.set()
            for line in stream:
                heard.append(line.decode())
                if "second" in heard[-1]:
                    return

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        check("the other hub pushes matches", begun.wait(60))
        hubs[0].run("book", "post", "Shift", "-a", "Author=Max", "-a", "Subject=Restart", "--text", "Restarted, second.")
        listening.join(60)
        check("a post on one is pushed by the other", not listening.is_alive() and any("second" in line for line in heard))

        hubs[0].close()
        hubs[1].run("book", "post", "Shift", "-a", "Author=Zoe", "-a", "Subject=Alone", "--text", "Third.")
        found = hubs[1].run("book", "list", "--json").stdout
        check("one goes on without the other, and no number was given twice", json.loads(found.splitlines()[0])["entries"] == 3)
    finally:
        for place in hubs:
            place.close()
        server.terminate()
        server.wait()
