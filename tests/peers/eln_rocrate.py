#!/usr/bin/env python3
"""Archives for electronic lab notebooks: rocrate, the RO-Crate library for Python, reads ours, and ours reads those of rocrate."""

import hashlib
import json
import os
import zipfile

from hub import Place, check
from rocrate.model.person import Person
from rocrate.rocrate import ROCrate


def digest(path):
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def ours(place):
    """An archive of Tampu's, read by rocrate and by Python's zipfile."""
    picture = os.path.join(place.directory, "trend plot ä.png")
    with open(picture, "wb") as file:
        file.write(os.urandom(100_000))
    data = ("--data", place.data)
    place.run("book", "make", "Shift", "-a", "Author", "-a", "Subject", "--tags", "Labels", *data)
    place.run("book", "post", "Shift", "-a", "Author=Zoe", "-a", "Subject=HV <trip>", "-a", "Labels=beam", "-t",
              "**tripped** ![p](attachment:trend%20plot%20%C3%A4.png)", "--attachment", picture, "--author", "zoe", *data)
    place.run("book", "reply", "Shift/1", "-a", "Author=Max", "-t", "the fuse", "--author", "max", *data)
    path = os.path.join(place.directory, "shift.eln")
    place.run("book", "export", "--format", "eln", "-o", path, *data)
    with zipfile.ZipFile(path) as archive:
        check("zipfile finds every member whole", archive.testzip() is None)
        roots = {name.split("/")[0] for name in archive.namelist()}
        check(f"the archive has one folder: {roots}", roots == {"shift"})
        folder = os.path.join(place.directory, "unpacked")
        archive.extractall(folder)
    crate = ROCrate(os.path.join(folder, "shift"))
    check("it is an RO-Crate 1.1", str(crate.version) == "1.1" and crate.root_dataset["datePublished"] is not None)
    # rocrate writes ids without "./", and adds files that it finds in the folder.
    parts = sorted(part.id for part in crate.root_dataset["hasPart"] if part.id.endswith("/"))
    check(f"its root lists the entries: {parts}", parts == ["Shift/1/", "Shift/2/"])
    entry, reply = crate.get("./Shift/1/"), crate.get("./Shift/2/")
    check("an entry has title, tags and author", entry["name"] == "HV <trip>" and entry["keywords"] == ["beam"] and entry["author"]["name"] == "zoe")
    check("its text is HTML that leads to its file", "<strong>tripped</strong>" in entry["text"] and 'src="./Shift/1/trend_plot_' in entry["text"])
    properties = {one["propertyID"]: one["value"] for one in entry["variableMeasured"]}
    check(f"its attributes are properties: {properties}", properties["Author"] == "Zoe")
    comments = entry["comment"] if isinstance(entry["comment"], list) else [entry["comment"]]
    check("its reply is a comment", [one.id for one in comments] == [reply.id] and reply["parentItem"].id == entry.id)
    for part in entry["hasPart"]:
        file = os.path.join(folder, "shift", part.id)
        check(f"{part['name']} has its size and digest", digest(file) == part["sha256"] and str(os.path.getsize(file)) == part["contentSize"])
    names = sorted(part["name"] for part in entry["hasPart"])
    check(f"the files keep their names: {names}", names == ["tampu-entry.json", "trend plot ä.png"])
    said = place.run("book", "import", path, "--book", "Copy", "--json", *data)
    check("the archive comes back", json.loads(said.stdout)["new"] == 2)


def theirs(place):
    """An archive that rocrate writes, read by Tampu."""
    folder = os.path.join(place.directory, "experiment")
    os.makedirs(folder)
    with open(os.path.join(folder, "data 1.csv"), "w", encoding="utf-8") as file:
        file.write("a,b\n1,2\n")
    crate = ROCrate()
    person = crate.add(Person(crate, "#ann", properties={"name": "Ann Example"}))
    dataset = crate.add_dataset(folder, dest_path="experiment/", properties={
        "name": "A trial", "text": "<p>It works: <b>yes</b></p>", "dateCreated": "2026-03-01T10:00:00+01:00", "keywords": "laser, cryo"})
    dataset["author"] = person
    file = crate.add_file(os.path.join(folder, "data 1.csv"), dest_path="experiment/data 1.csv", properties={"name": "data 1.csv"})
    dataset["hasPart"] = [file]
    written = os.path.join(place.directory, "written")
    crate.write(written)
    path = os.path.join(place.directory, "theirs.eln")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for parent, _, files in os.walk(written):
            for name in files:
                whole = os.path.join(parent, name)
                archive.write(whole, os.path.join("theirs", os.path.relpath(whole, written)))
    data = ("--data", place.data)
    said = json.loads(place.run("book", "import", path, "--book", "Lab", "--json", *data).stdout)
    check(f"its dataset becomes an entry: {said}", said["new"] == 1 and said["attachments"] == 1 and not said["faults"])
    shown = json.loads(place.run("book", "show", "Lab/1", "--json", *data).stdout)
    attributes = {one["name"]: one["values"] for one in shown["attributes"]}
    check(f"with author, title and tags: {attributes}",
          shown["by"] == "Ann Example" and attributes["Subject"] == ["A trial"] and attributes["Tags"] == ["laser", "cryo"])
    check("with its text, date and file", "<b>yes</b>" in shown["text"] and shown["date"].startswith("2026-03-01T09:00:00")
          and [one["name"] for one in shown["attachments"]] == ["data 1.csv"])
    check("the store is whole", place.run("book", "check", *data).returncode == 0)


def main():
    print("eln_rocrate", flush=True)
    place = Place("eln")
    try:
        ours(place)
        theirs(place)
    finally:
        place.close()


if __name__ == "__main__":
    main()
