#!/usr/bin/env python3
"""Bulk data in Java beside `tampu bulk`, in both directions and among themselves: whole transfers, refusals, ends that are killed."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import javas
from hub import Place, check, until


# The sizes around frames of 256 KiB, and one that is longer than the sender's window.
SIZES = [0, 1, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 20_000_003]
# A heap that a sender must not need more than, and what it sends with it.
HEAP, LARGE = "-Xmx64m", 1 << 30


def digest(path):
    """The hash of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            found.update(part)
    return found.hexdigest()


class Program:
    """A program in Java that says what happens."""

    def __init__(self, place, classpath, *arguments):
        # On a host of its own, with a network of its own.
        command = [*place.prefix, *javas.command(classpath, *arguments, options=(HEAP,))]
        self.process = subprocess.Popen(command, env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        place.processes.append(self.process)

    def line(self, beginning):
        """The next line, which begins so."""
        line = self.process.stdout.readline()
        check(f"Java says '{beginning}...': {line.strip()}", line.startswith(beginning))
        return line


class Receiver(Program):
    """Bulk.java, running."""

    def __init__(self, place, classpath, stream, path):
        super().__init__(place, classpath, "Bulk", place.environment["TAMPU_DOMAIN"], stream, path)
        self.address = self.line("ready at ").removeprefix("ready at ").strip()


class Sender(Program):
    """BulkSend.java, running."""

    def __init__(self, place, classpath, stream, receivers, rate=0):
        super().__init__(place, classpath, "BulkSend", place.environment["TAMPU_DOMAIN"], stream, str(receivers), str(rate))

    def begin(self, path, name):
        """Sends a file."""
        self.process.stdin.write(f"{path} {name}\n")
        self.process.stdin.flush()

    def send(self, path, name):
        """Sends a file, which must arrive whole."""
        self.begin(path, name)
        self.line(f"sent bytes={os.path.getsize(path)} complete=true")
        self.line("to ")

    def end(self):
        """Ends it in order."""
        self.process.stdin.close()
        check("the sender in Java ends in order", self.process.wait(60) == 0)


def sends(place, classpath, directory):
    """A sender in Java beside `tampu bulk recv` and a receiver in Java."""
    below = os.path.join(directory, "files")
    os.mkdir(below)
    files = [os.path.join(below, f"{size}.bin") for size in SIZES]
    for path, size in zip(files, SIZES):
        with open(path, "wb") as file:
            file.write(os.urandom(size))
    large = os.path.join(below, "large.bin")
    with open(large, "wb") as file:
        block = os.urandom(1 << 20)
        for number in range(LARGE >> 20):
            file.write(number.to_bytes(8, "little") + block[8:])
    kept = os.path.join(directory, "kept")
    receiving = place.start("bulk", "recv", "--stream", "torust", "-o", kept, "--limit", str(len(files) + 1), stdout=subprocess.DEVNULL)
    sender = Sender(place, classpath, "torust", 1)
    for path in [*files, large]:
        name = f"run7/{os.path.basename(path)}"
        sender.send(path, name)
        check(f"{name} arrives at `tampu bulk recv` by its hash", digest(os.path.join(kept, name)) == digest(path))
    check("the receiver ends after its transfers", receiving.wait(60) == 0)
    sender.end()

    got = os.path.join(directory, "got-java.bin")
    receiver = Receiver(place, classpath, "tojava", got)
    sender = Sender(place, classpath, "tojava", 1)
    for path in [*files, large]:
        sender.send(path, "any")
        receiver.line("start")
        receiver.line(f"end complete=true stopped=true bytes={os.path.getsize(path)} causes=[]")
        check(f"{os.path.basename(path)} arrives from Java at Java by its hash", digest(got) == digest(path))
    sender.begin(files[-1], "refuse")
    receiver.line("start")
    sender.line("sent bytes=20000003 complete=false")
    sender.line("to java/receiver: REFUSED cut=null the disk of Java is full")
    receiver.line("end complete=false")
    sender.end()
    receiver.process.stdin.close()
    check("the receiver in Java ends in order", receiver.process.wait(60) == 0)

    first, second = (Receiver(place, classpath, "killed", os.path.join(directory, f"killed-{number}")) for number in (1, 2))
    sender = Sender(place, classpath, "killed", 2, rate=10e6)
    sender.begin(files[-1], "any")
    first.line("start")
    second.line("start")
    until("data has arrived", lambda: os.path.getsize(os.path.join(directory, "killed-1")) > 1_000_000)
    first.process.kill()
    first.process.wait()
    sender.line("sent bytes=20000003 complete=false")
    said = sorted(sender.line("to java/receiver: ") for _ in range(2))
    check(f"the other receiver has everything: {said}", said[0] == "to java/receiver: COMPLETE cut=null \n" and ": GONE cut=" in said[1])
    second.line("end complete=true")
    check("it arrived by its hash", digest(os.path.join(directory, "killed-2")) == digest(files[-1]))
    second.process.kill()
    second.process.wait()
    sender.begin(files[0], "any")
    sender.line("failed NO_RECEIVER: flow 'data' needs 2 receivers and has 0")
    sender.end()


def told(place, stream):
    """The transfers of a stream that have ended, as the hub knows them: outcome, bytes, receivers, reasons."""
    known = place.run("bulk", "stat", "--past", "--json", "--stream", stream).stdout.splitlines()
    return [(one["outcome"], one["bytes"], one["receivers"], "; ".join(one["why"])) for one in map(json.loads, known) if one["ended"]]


def reports(place):
    """The hub knows what `sends` has sent."""
    sizes = [*SIZES, LARGE]
    until("the reports of transfers to `tampu bulk recv`", lambda: len(told(place, "torust")) == len(sizes))
    check("the hub knows each transfer as complete", told(place, "torust") == [("complete", size, 1, "") for size in sizes])
    until("the reports of transfers to Java", lambda: len(told(place, "tojava")) == len(sizes) + 1)
    refused = told(place, "tojava")[-1]
    check(f"the hub knows why a transfer was refused: {refused}", refused == ("incomplete", SIZES[-1], 1, "java/receiver: the disk of Java is full"))
    until("the report of the transfer whose receiver was killed", lambda: told(place, "killed"))
    killed = told(place, "killed")[0]
    check(f"the hub knows that a receiver was killed: {killed}", killed[:3] == ("incomplete", SIZES[-1], 2) and killed[3].startswith("java/receiver: "))


def broken_off(place, classpath, path):
    """A sender in Java that is killed: the hub knows that its transfer is broken off."""
    place.start("bulk", "recv", "--stream", "dies", "-o", os.path.join(os.path.dirname(path), "dies"), stdout=subprocess.DEVNULL)
    sender = Sender(place, classpath, "dies", 1, rate=1e6)
    sender.begin(path, "any")
    under_way = lambda: '"under_way"' in place.run("bulk", "stat", "--past", "--json", "--stream", "dies").stdout
    until("the hub knows the transfer", under_way)
    sender.process.kill()
    sender.process.wait()
    # Its session lives for a minute, in which another program might resume it.
    until("the end of its session", lambda: told(place, "dies"), 120)
    check(f"a killed sender's transfer is broken off: {told(place, 'dies')}", told(place, "dies")[0][0] == "broken_off")


def protected(place, classpath, dump, receiver):
    """The other end demands protection."""
    for level in ("authenticated", "encrypted"):
        sent = place.run("bulk", "send", dump, "--stream", "java", "--protection", level)
        check(f"`tampu bulk send --protection {level}` sends to Java", sent.returncode == 0)
        receiver.line("start")
        receiver.line(f"end complete=true stopped=true bytes={os.path.getsize(dump)} causes=[]")
        kept = os.path.join(os.path.dirname(dump), level)
        receiving = place.start(
            "bulk", "recv", "--stream", level, "-o", kept, "--limit", "1", "--protection", level, stdout=subprocess.DEVNULL
        )
        sender = Sender(place, classpath, level, 1)
        sender.send(dump, "protected.bin")
        check(f"Java sends to `tampu bulk recv --protection {level}`", receiving.wait(60) == 0)
        check("the file arrives by its hash", digest(os.path.join(kept, "protected.bin")) == digest(dump))
        sender.end()


def page(place, directory, dump):
    """The program of the page runs."""
    below = os.path.join(directory, "page")
    os.mkdir(below)
    source = pathlib.Path(below) / "WithBulk.java"
    source.write_text(javas.examples(javas.ROOT / "docs" / "java.md")["WithBulk"])
    classpath = [below, *javas.ours("tampu")]
    javas.compile(below, [source], classpath)
    program = subprocess.Popen(javas.command(classpath, "WithBulk"), env=place.environment, stdout=subprocess.PIPE, text=True)
    place.processes.append(program)
    place.run("bulk", "send", dump, "--stream", "raw")
    said = program.communicate(timeout=60)[0]
    check("the program of the page gets a transfer", program.returncode == 0 and said.endswith("complete: true\n"))
    source = pathlib.Path(below) / "SendBulk.java"
    source.write_text(javas.examples(javas.ROOT / "docs" / "java.md")["SendBulk"])
    javas.compile(below, [source], classpath)
    kept = os.path.join(below, "kept")
    receiving = place.start("bulk", "recv", "--stream", "raw", "-o", kept, "--limit", "2", stdout=subprocess.DEVNULL)
    until("the receiver is announced", lambda: '"raw"' in place.run("bulk", "stat", "--json").stdout)
    sent = subprocess.run(javas.command(classpath, "SendBulk", dump), env=place.environment, timeout=60, check=False)
    check("the sender of the page has sent", sent.returncode == 0 and receiving.wait(60) == 0)
    check("its file arrives by its hash", digest(os.path.join(kept, os.path.basename(dump))) == digest(dump))


def main():
    javas.need()
    javas.maven("-pl", "tampu", "package")
    directory = tempfile.mkdtemp(prefix="tampu-test-")
    classpath = [directory, *javas.ours("tampu")]
    javas.compile(directory, [javas.ROOT / "tests" / "peers" / "java" / f"{name}.java" for name in ("Bulk", "BulkSend")], classpath)
    place = Place("bulkjava")
    try:
        place.up()
        content = os.urandom(20_000_003)
        dump, got = os.path.join(directory, "dump.bin"), os.path.join(directory, "got.bin")
        with open(dump, "wb") as file:
            file.write(content)
        page(place, directory, dump)
        receiver = Receiver(place, classpath, "java", got)
        for number in (1, 2):
            place.run("bulk", "send", dump, "--stream", "java", "--parameter", f"uid://A/X{number}")
            check("the parameter arrives", f"uid://A/X{number}" in receiver.line("start 1 of tampu-bulk-send"))
            receiver.line(f"end complete=true stopped=true bytes={len(content)} causes=[]")
            with open(got, "rb") as file:
                check("the file arrives byte for byte", file.read() == content)
        sent = place.run("bulk", "send", dump, "--stream", "java", "--checksum", "on", "--protocol", "tcp")
        check("checksums are made and found right", sent.returncode == 0)
        receiver.line("start")
        receiver.line("end complete=true")

        protected(place, classpath, dump, receiver)

        refused = place.run("bulk", "send", dump, "--stream", "java", "--parameter", "refuse", check=False)
        receiver.line("start")
        receiver.line("end complete=false")
        check("a refusal reaches the sender with its reason", refused.returncode != 0 and "the disk of Java is full" in refused.stderr)

        other = place.run("bulk", "send", dump, "--stream", "java", "--protocol", "udp", check=False)
        check("another transport falls back to the connection", other.returncode == 0)
        receiver.line("start")
        receiver.line("end complete=true")

        sender = place.start("bulk", "send", dump, "--stream", "java", "--throttle", "5MB", stderr=subprocess.DEVNULL)
        receiver.line("start")
        until("data has arrived", lambda: os.path.getsize(got) > 1_000_000)
        sender.kill()
        sender.wait()
        receiver.line("lost ")
        receiver.line("end complete=false stopped=false")

        sender = place.start(
            "bulk", "send", dump, "--stream", "java", "--throttle", "5MB", "--patience", "1s", stderr=subprocess.PIPE
        )
        receiver.line("start")
        receiver.process.kill()
        receiver.process.wait()
        said = sender.communicate(timeout=120)[1]
        check(f"the sender of a killed receiver fails and names it: {said.strip()[-200:]}", sender.returncode != 0 and receiver.address in said)
        sends(place, classpath, directory)
        reports(place)
        broken_off(place, classpath, dump)
    finally:
        place.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
