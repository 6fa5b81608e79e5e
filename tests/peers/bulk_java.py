#!/usr/bin/env python3
"""A receiver of bulk data in Java beside `tampu bulk send`: whole transfers, refusals, and ends that are killed."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import javas
from hub import Place, check, until


class Receiver:
    """Bulk.java, running."""

    def __init__(self, place, classpath, stream, path):
        command = javas.command(classpath, "Bulk", place.environment["TAMPU_DOMAIN"], stream, path)
        self.process = subprocess.Popen(command, env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        place.processes.append(self.process)
        self.address = self.line("ready at ").removeprefix("ready at ").strip()

    def line(self, beginning):
        """The next line, which begins so."""
        line = self.process.stdout.readline()
        check(f"Java says '{beginning}...': {line.strip()}", line.startswith(beginning))
        return line


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


def main():
    javas.need()
    javas.maven("-pl", "tampu", "package")
    directory = tempfile.mkdtemp(prefix="tampu-test-")
    classpath = [directory, *javas.ours("tampu")]
    javas.compile(directory, [javas.ROOT / "tests" / "peers" / "java" / "Bulk.java"], classpath)
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

        refused = place.run("bulk", "send", dump, "--stream", "java", "--parameter", "refuse", check=False)
        receiver.line("start")
        receiver.line("end complete=false")
        check("a refusal reaches the sender with its reason", refused.returncode != 0 and "the disk of Java is full" in refused.stderr)

        other = place.run("bulk", "send", dump, "--stream", "java", "--protocol", "udp", "--wait", "1s", check=False)
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
    finally:
        place.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
