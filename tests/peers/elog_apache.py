#!/usr/bin/env python3
"""Debian's Apache, with the recipe of `examples/elog-apache.conf`, before a hub and elogd: who answers what, and posting under a prefix.

Real: Apache. A stand-in: elogd, which is in no registry; it answers with the request it got.
"""

import http.client
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from elog_programs import ElogCommand
from hub import Place, check, until

RECIPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "elog-apache.conf")
MODULES = "/usr/lib/apache2/modules"


class Elogd(http.server.BaseHTTPRequestHandler):
    """A stand-in: says what it was asked."""

    def do_GET(self):
        answer = f"elogd: {self.command} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def apache(place, name, port, defines, include):
    """Starts an Apache of its own; it ends with the place."""
    root = os.path.join(place.directory, name)
    os.makedirs(root)
    modules = ["mpm_event", "authz_core", "proxy", "proxy_http", "rewrite", "headers"]
    with open(os.path.join(root, "apache.conf"), "w", encoding="utf-8") as file:
        file.write(f'ServerRoot "{root}"\nServerName site\nListen 127.0.0.1:{port}\nPidFile "{root}/pid"\nErrorLog "{root}/error.log"\n')
        file.write("".join(f"LoadModule {module}_module {MODULES}/mod_{module}.so\n" for module in modules))
        file.write("User nobody\nGroup nogroup\n" if os.geteuid() == 0 else "")
        file.write("".join(f"Define {name} {value}\n" for name, value in defines.items()))
        file.write(include)
    program = shutil.which("apache2") or "/usr/sbin/apache2"
    process = subprocess.Popen([program, "-f", os.path.join(root, "apache.conf"), "-D", "FOREGROUND"])
    place.processes.append(process)
    apaches.append(process)

    def ready():
        if process.poll() is not None:
            sys.exit(f"FAILED: Apache ended: {open(os.path.join(root, 'error.log'), encoding='utf-8').read()}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until("Apache answers", ready)


def get(port, path, host="site"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("Location"), text


apaches = []
place = Place("elog-apache")
try:
    source = os.path.join(place.directory, "elog")
    day = os.path.join(source, "logbooks", "LHCb shift", "2008")
    os.makedirs(day)
    with open(os.path.join(source, "elogd.cfg"), "w", encoding="utf-8") as file:
        file.write("[global]\nport = 8080\n[LHCb shift]\nAttributes = Author, Subject\n")
    with open(os.path.join(day, "080910a.log"), "w", encoding="utf-8") as file:
        for number, author in enumerate(["Zoe", "Max"], 1):
            file.write(f"$@MID@$: {number}\nDate: Wed, 10 Sep 2008 00:2{number}:50 +0200\nAuthor: {author}\nSubject: HV trip\n")
            file.write(f"Attachment: \nEncoding: plain\n{'=' * 40}\nthe text of {author}\n")
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write('[book]\nlisten = "127.0.0.1:0"\nelog_prefix = "/elog"\nhosts = ["site"]\nproxies = ["127.0.0.1"]\nguests = "write"\n')
    place.run("book", "import-elog", os.path.join(source, "logbooks"), "--elog-config", os.path.join(source, "elogd.cfg"), "--data", place.data)
    place.up("--config", config)
    found = [os.path.join(folder, "book.json") for folder, _, files in os.walk(place.directory) if "book.json" in files]
    with open(found[0], encoding="utf-8") as file:
        tampu = json.load(file)["url"]
    elogd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elogd)
    threading.Thread(target=elogd.serve_forever, daemon=True).start()

    port = free_port()
    with open(RECIPE, encoding="utf-8") as file:
        apache(place, "both", port, {"ELOGD": f"http://127.0.0.1:{elogd.server_port}", "TAMPU": tampu}, file.read())
    for path in ["?mode=summary&Author=Zoe", "page1?subtext=HV", "?sort=Author", "last10?rsort=Subject", "past-3?reverse=1", "page-1?npp=5", "?cmd=Search&subtext=HV"]:
        status, place_of, text = get(port, "/elog/LHCb+shift/" + path)
        check(f"Tampu answers {path}: {status}", status == 200 and "elogd:" not in text and 'class="list' in text or status == 200 and path.startswith("past"))
    for path in ["LHCb+shift/", "LHCb+shift/12", "LHCb+shift/?cmd=New", "LHCb+shift/12?cmd=Edit", "LHCb+shift/page2", "", "LHCb+shift/?cmd=Searching&a=b", "LHCb+shift/1?cmd=download"]:
        status, _, text = get(port, "/elog/" + path)
        check(f"elogd answers {path or 'the list of logbooks'}", text == f"elogd: GET /{path}")
    text = get(port, "/elog/LHCb%20shift/?Author=Zoe&mode=summary")[2]
    check("a search finds what is there and nothing else", "Zoe" in text and "Max" not in text)
    check("blanks and signs of a search arrive", "HV trip" in get(port, "/elog/LHCb+shift/?Subject=HV+trip%24&mode=full")[2])
    check("styles are found from a page of a search", get(port, "/elog/elog.css")[0] == 200)
    posted = ElogCommand("127.0.0.1", port, "LHCb shift", subdir="elog")
    try:
        posted.submit({"Author": "Zoe"}, "x")
        sys.exit("FAILED: the stand-in took a post")
    except RuntimeError as told:
        check("a post goes to elogd", "elogd: POST /LHCb+shift/" in str(told))

    # All to Tampu.
    port = free_port()
    apache(place, "one", port, {}, f"ProxyPreserveHost On\nProxyPass /elog/ {tampu}/elog/\n")
    number = ElogCommand("127.0.0.1", port, "LHCb shift", subdir="elog").submit({"Author": "Kim", "Subject": "through Apache"}, "x")
    status, _, text = get(port, f"/elog/LHCb+shift/{number}")
    check("without elogd a post and a page go through Apache", status == 200 and "through Apache" in text)
    status, led, _ = get(port, "/elog/LHCb+shift?cmd=New")
    check(f"what leads elsewhere leads to the name for the world: {led}", led == "http://site/elog/LHCb+shift/?cmd=New")
finally:
    # Killed, an Apache leaves its children behind; asked to end, it takes them along.
    for process in apaches:
        process.terminate()
    for process in apaches:
        process.wait(timeout=60)
    place.close()
