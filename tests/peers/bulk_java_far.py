#!/usr/bin/env python3
"""Bulk data of Java between two hosts, each in a network namespace, whose certificates prove them: passes, rules, encryption, a cut wire.

A receiver in Java gives passes to a sender in Java and to `tampu bulk send`; a sender in Java has those of `tampu bulk recv`. The rules of
the receiver's hub refuse a stream by its name. Nobody on the wire can read the data.
"""

import os
import shutil
import tempfile
import time

import javas
from bulk_java import Program, digest
from bulk_network import SECRET, content, ended, receive
from cable_cut import certify, key_file
from hub import check, isolated, until
from hub import Place as Host
from wire import Wire, address

SIZE = 4 << 20
RATE = 4 << 20
CUT = 24 << 20
DENIED = '[[deny]]\nwho = "host:host0"\nmay = ["send"]\nwhat = "bulk/denied"\n'


class Receiver(Program):
    """Bulk.java on a host, at its address in the network."""

    def __init__(self, place, host, classpath, stream):
        self.path = os.path.join(place.directory, f"java-{stream}")
        super().__init__(place, classpath, "Bulk", place.environment["TAMPU_DOMAIN"], stream, self.path, address(host))
        self.line(f"ready at {address(host)}:")

    def has(self, path):
        """A transfer of this file has arrived whole."""
        self.line("start")
        size = os.path.getsize(path)
        self.line(f"end complete=true stopped=true bytes={size} causes=[]")
        check(f"{os.path.basename(path)} is as it was", digest(self.path) == digest(path))


class Sender(Program):
    """BulkSend.java on a host."""

    def __init__(self, place, classpath, stream, rate=0):
        super().__init__(place, classpath, "BulkSend", place.environment["TAMPU_DOMAIN"], stream, "1", str(rate), "60")

    def begin(self, path):
        """Sends a file."""
        self.process.stdin.write(f"{path} {os.path.basename(path)}\n")
        self.process.stdin.flush()

    def sent(self, path):
        """The file has arrived."""
        self.line(f"sent bytes={os.path.getsize(path)} complete=true")
        self.line("to ")

    def end(self):
        """Ends it in order."""
        self.process.stdin.close()
        check("the sender in Java ends in order", self.process.wait(60) == 0)


def to_java(archive, antenna, classpath, stream):
    """A receiver in Java has what the command and a sender in Java send from another host."""
    receiver = Receiver(archive, "a", classpath, stream)
    path = content(antenna, f"{stream}-command", SIZE)
    said = ended(antenna.run("bulk", "send", path, "--stream", stream, "--json").stdout)
    check("the command on another host sends to Java", said["complete"])
    receiver.has(path)
    path = content(antenna, f"{stream}-java", SIZE)
    sender = Sender(antenna, classpath, stream)
    sender.begin(path)
    sender.sent(path)
    receiver.has(path)
    sender.end()
    receiver.process.kill()


def from_java(wire, archive, antenna, classpath, stream):
    """The command has what a sender in Java sends from another host, also over a wire that is cut meanwhile."""
    out = receive(archive, "a", stream)
    path = content(antenna, f"{stream}-java", SIZE)
    sender = Sender(antenna, classpath, stream, RATE)
    sender.begin(path)
    sender.sent(path)
    check("the command has it", digest(os.path.join(out, os.path.basename(path))) == digest(path))
    path = content(antenna, f"{stream}-cut", CUT)
    before = wire.sent["b"]
    sender.begin(path)
    until("some of it is on the wire", lambda: wire.sent["b"] > before + CUT // 4)
    wire.up = False
    time.sleep(5)  # the cut itself
    wire.up = True
    sender.sent(path)
    check("after a cut of 5 s it is whole", digest(os.path.join(out, os.path.basename(path))) == digest(path))
    sender.end()


def denied(archive, antenna, classpath):
    """A rule of the receiver's host keeps the other host's senders from a stream, whatever their language."""
    receiver = Receiver(archive, "a", classpath, "denied")
    path = content(antenna, "denied", 1 << 10)
    done = antenna.run("bulk", "send", path, "--stream", "denied", "--wait", "5s", check=False)
    check(f"the command is refused: {done.stderr.strip()[-200:]}", done.returncode != 0 and "host0" in done.stderr and "denied" in done.stderr)
    sender = Sender(antenna, classpath, "denied")
    sender.begin(path)
    line = sender.line("failed ")
    check("a sender in Java is refused, and told why", "host0" in line and "denied" in line)
    sender.end()
    here = content(archive, "here", 1 << 10)
    said = ended(archive.run("bulk", "send", here, "--stream", "denied", "--json").stdout)
    check("the receiver's own host may send", said["complete"])
    receiver.has(here)
    receiver.process.kill()


def main():
    isolated()
    print("bulk_java_far", flush=True)
    javas.need()
    javas.maven("package", "-DskipTests", "-pl", "tampu")
    directory = tempfile.mkdtemp(prefix="tampu-java-")
    programs = [javas.ROOT / "tests" / "peers" / "java" / name for name in ("Bulk.java", "BulkSend.java")]
    classpath = [directory, *javas.ours("tampu")]
    javas.compile(directory, programs, classpath)
    seed = int(os.environ.get("TAMPU_SEED") or time.time())
    print(f"  TAMPU_SEED={seed}", flush=True)
    wire = Wire(seed, "ab")
    wire.secrets = [SECRET]
    archive, antenna = (Host("javafar", netns=host) for host in "ab")
    try:
        key = "a key of the site"
        certify((archive, address("a")), (antenna, address("b")))
        policy = os.path.join(archive.directory, "policy.toml")
        with open(policy, "w", encoding="utf-8") as file:
            file.write(DENIED)
        config = os.path.join(archive.directory, "tampu.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'[access]\npolicy = "{policy}"\n')
        roles = ("--roles", "node")
        archive.up(*roles, "--config", config, "--lan", f"{address('a')}:7447", "--key-file", key_file(archive, key))
        antenna.up(*roles, "--peer", f"{address('a')}:7447", "--key-file", key_file(antenna, key))
        to_java(archive, antenna, classpath, "tojava")
        from_java(wire, archive, antenna, classpath, "fromjava")
        denied(archive, antenna, classpath)
        check("nobody on the wire has read a byte", wire.readable == 0)
    finally:
        for place in (archive, antenna):
            place.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
