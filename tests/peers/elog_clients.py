#!/usr/bin/env python3
"""ELOG's programs against a hub that has taken a site over: post, answer, change, read, search, delete, attachments; passwords.

Real: elog-mcp, a client of elogd from PyPI. py_elog too where it can be imported (`TAMPU_PY_ELOG` names a checkout): it is on no registry.
Ours, byte by byte like the original (`elog_programs.py`): the `elog` command, with its broken form, and py_elog.
"""

import asyncio
import importlib
import json
import os
import socket
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from elog_programs import ElogCommand, PyElog
from hub import Place, check, until

CONFIG = """[global]
Password file = users
[Shift log]
Attributes = Author, Type, System, Run number, Subject
Options Type = Routine, Problem
MOptions System = RICH1, HLT, Muon
Required Attributes = Author
Guest menu commands = List, Find
[Other]
Attributes = Author, Subject
"""
# ELOG's digest of the password below.
PASSWORD, DIGEST = "very secret", None


def refusal(act):
    """What a program tells its user when it is refused."""
    try:
        act()
    except (RuntimeError, ValueError) as error:
        return str(error)
    except Exception as error:  # py_elog's own
        return str(error)
    sys.exit("FAILED: it was not refused")


def digest(password):
    """As ELOG keeps a password."""
    from passlib.hash import sha256_crypt

    return sha256_crypt.using(salt="", rounds=5000).hash(password)[4:]


def as_the_command(host, port, user, secret):
    """The `elog` command."""
    book = ElogCommand(host, port, "Shift log", user, secret)
    values = {"Author": "Zoë", "Type": "Routine", "System": "RICH1 | HLT", "Run number": "80123", "Subject": "HV trip"}
    first = book.submit(values, "two\nlines", [("a plot.png", b"\x89PNG\r\n\r\n"), ("b.txt", b"text")])
    lines, text = book.retrieve(first)
    head = dict(lines)
    check("elog: posts", head["Author"] == "Zoë" and head["System"] == "RICH1 | HLT" and text.split() == ["two", "lines"])
    names = head["Attachment"].split(",")
    check("elog: attachments", [name[14:] for name in names] == ["a_plot.png", "b.txt"])
    changed = book.submit({"Subject": "HV trip, changed"}, edit=first)
    lines, text = book.retrieve(first)
    again = dict(lines)
    check("elog: changes, and keeps the date, the text and the files", changed == first and again["Subject"] == "HV trip, changed"
          and again["Date"] == head["Date"] and text.split() == ["two", "lines"] and again["Attachment"] == head["Attachment"])
    answer = book.submit({"Author": "Max"}, "an answer", reply=first)
    check("elog: answers", dict(book.retrieve(answer)[0])["In reply to"] == str(first)
          and dict(book.retrieve(first)[0])["Reply to"] == str(answer))
    alone = book.submit({"Author": "Max"}, files=[("c.dat", bytes(range(256)))])
    check("elog: a file without a text", dict(book.retrieve(alone)[0])["Attachment"].endswith("_c.dat"))
    told = refusal(lambda: book.submit({"Author": ""}, "x"))
    check(f"elog: is told what is missing: {told}", told == 'Error: Missing required attribute "Author"')
    told = refusal(lambda: book.submit({"Author": "x", "Type": "Coffee"}, "x"))
    check(f"elog: is told what is no option: {told}", told == 'Error: Non existing attribute option "Coffee"')
    wrong = ElogCommand(host, port, "Shift log", user, "x" * 43)
    told = refusal(lambda: wrong.submit(values, "x"))
    check(f"elog: is told of a wrong password: {told}", told == "Error: Invalid user name or password")
    return first, answer


def as_py_elog(make, name, files, download):
    """py_elog, ours or the real one."""
    book = make()
    number = book.post("grüße\nfrom py_elog", attributes={"Author": "Zoë", "Type": "Problem", "Subject": f"by {name}"}, attachments=files)
    text, attributes, attachments = book.read(number)
    check(f"{name}: posts and reads", text.splitlines()[0] == "grüße" and attributes["Subject"] == f"by {name}" and len(attachments) == 1)
    check(f"{name}: the attachment", download(attachments[0]) == b"bytes of a file")
    book.post("changed by " + name, msg_id=number, attributes={"Type": "Routine"})
    text, attributes, attachments = book.read(number)
    check(f"{name}: changes", text.startswith("changed") and attributes["Type"] == "Routine" and len([a for a in attachments if a]) == 1)
    answer = book.post("an answer", msg_id=number, reply=True, attributes={"Author": "Max"})
    check(f"{name}: answers", book.read(answer)[1]["In reply to"] == str(number))
    check(f"{name}: searches", book.search("changed by " + name) == [number] and number in book.search("Zo", scope="Author"))
    check(f"{name}: knows all numbers", {number, answer} <= set(book.get_message_ids()))
    book.delete(number)
    told = refusal(lambda: book.read(number))
    check(f"{name}: deletes: {told}", "does not exist" in told)
    told = refusal(lambda: book.read(answer))
    check(f"{name}: and the answer with it", "does not exist" in told)
    told = refusal(lambda: book.post("x", attributes={"Author": "x", "Type": "Coffee"}))
    check(f"{name}: is told what is wrong: {told}", "Attribute option Coffee not existing" in told)


async def as_elog_mcp(url, user, first):
    """elog-mcp, as it is."""
    from elog_mcp.client import ElogClient, EntryNotFound
    from elog_mcp.config import Settings

    client = ElogClient(Settings(url=url, user=user, password=PASSWORD))
    try:
        books = {book.name: book.description for book in await client.list_logbooks()}
        # It takes ELOG's `+` for itself, as it does with elogd.
        check(f"elog-mcp: finds the logbooks: {sorted(books)}", {"Shift+log", "Other"} <= set(books))
        entry = await client.get_entry("Shift log", first)
        check("elog-mcp: reads an entry", entry.attributes["Run_number"] == "80123" and len(entry.attachments) == 2)
        file = await client.get_attachment("Shift log", entry.attachments[1])
        check("elog-mcp: reads an attachment", file.size == 4 and file.mime == "text/plain")
        found = await client.search(text="an answer", logbook="Shift log")
        check("elog-mcp: searches for words", found.total == 1 and not found.warnings and found.entries[0].in_reply_to == first)
        found = await client.search(attributes={"Run number": "80123"}, date_from="2020-01-01", logbook="Shift log")
        check(f"elog-mcp: searches by attribute and date: {[entry.id for entry in found.entries]} {found.warnings}", first in [entry.id for entry in found.entries])
        recent = await client.get_recent_entries("Shift log", 2)
        check("elog-mcp: the newest", len(recent.entries) == 2 and not recent.warnings)
        try:
            await client.get_entry("Shift log", 99999)
            sys.exit("FAILED: elog-mcp found what is not there")
        except (EntryNotFound, Exception) as error:  # noqa: B014 - elogd says so with 200, which it reads as another fault
            print(f"  ok: elog-mcp: what is not there is not: {type(error).__name__}", flush=True)
    finally:
        await client.aclose()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def real_py_elog():
    """The real one, if somebody has it."""
    place = os.environ.get("TAMPU_PY_ELOG")
    if not place:
        print("  TAMPU_PY_ELOG is not set: py_elog is ours alone", flush=True)
        return None
    sys.path.insert(0, place)
    return importlib.import_module("elog.logbook").Logbook


place = Place("elog-clients")
try:
    source = os.path.join(place.directory, "elog")
    os.makedirs(os.path.join(source, "logbooks"))
    with open(os.path.join(source, "elogd.cfg"), "w", encoding="utf-8") as file:
        file.write(CONFIG)
    config, port = os.path.join(place.directory, "tampu.toml"), free_port()
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'[book]\nlisten = "127.0.0.1:0"\nelog_listen = "127.0.0.1:{port}"\naccept_elog_hashes = true\npassword_in_address = true\nguests = "none"\n')
    place.run("book", "import-elog", os.path.join(source, "logbooks"), "--elog-config", os.path.join(source, "elogd.cfg"), "--data", place.data)
    place.up("--config", config)

    found = [os.path.join(folder, "book.json") for folder, _, files in os.walk(place.directory) if "book.json" in files]
    with open(found[0], encoding="utf-8") as file:
        hub = json.load(file)

    def api(method, path, value):
        body = json.dumps(value).encode()
        headers = {"Authorization": f"Bearer {hub['token']}", "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(hub["url"] + "/api/v1" + path, body, headers, method=method), timeout=30) as answer:
            return answer.read()

    # Before there are users the token of the owner administers.
    DIGEST = digest(PASSWORD)
    api("POST", "/users", {"login": "zoe", "full_name": "Zoë Quartz", "password": PASSWORD, "admin": True})
    host = "127.0.0.1"
    first, answer = as_the_command(host, port, "zoe", DIGEST)
    ours = PyElog(host, port, "Shift log", "zoe", DIGEST)
    as_py_elog(lambda: ours, "py_elog, ours", [("my file.txt", b"bytes of a file")], ours.download)
    if logbook := real_py_elog():
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "my file.txt")
            with open(path, "wb") as file:
                file.write(b"bytes of a file")
            make = lambda: logbook(f"http://{host}:{port}/Shift log/", user="zoe", password=PASSWORD)
            under = lambda url: ours.download("/Shift log/" + url.rsplit("/", 1)[-1])
            as_py_elog(make, "py_elog, real", [path], under)
    guest = PyElog(host, port, "Shift log")
    told = refusal(lambda: guest.post("x", attributes={"Author": "nobody"}))
    check(f"a guest does not post: {told}", "password" in told)
    asyncio.run(as_elog_mcp(f"http://{host}:{port}", "zoe", first))
    # Under a prefix, as behind a proxy.
    url = hub["url"].split("//")[1].split(":")
    below = ElogCommand(url[0], int(url[1]), "Other", "zoe", DIGEST, subdir="elog")
    number = below.submit({"Author": "Zoë", "Subject": "under a prefix"}, "text")
    check("elog: under a prefix", dict(below.retrieve(number)[0])["Subject"] == "under a prefix")
    until("the hub says nothing of failures", lambda: "fail" not in place.said())
finally:
    place.close()
