#!/usr/bin/env python3
"""Logs of Java programs: read by the node while they live, recovered when they were killed, also from another pid namespace.

KILLS is the number of processes that are killed while they log; 200 for the table in benches/RESULTS.md.
"""

import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import javas
from hub import Place, check, until

KILLS = int(os.environ.get("KILLS", "12"))
THREADS = 2
PAGE = javas.ROOT / "docs" / "java.md"


def numbers(place, source, thread=0):
    """The numbers of the calls that are kept, in the order of the archive."""
    said = [message.split() for message in place.messages(source) if message.startswith("call ")]
    return [int(number) for _, of, number in said if int(of) == thread]


def died(place, source):
    """The reports of this process's death."""
    return [record for record in place.warnings() if f"{source} died" in record["message"]]


def rings(place):
    """The directories of log rings that Java programs made."""
    below = pathlib.Path(place.directory, "run", place.environment["TAMPU_DOMAIN"], "rings")
    return [source.parent for source in below.glob("*/source") if "drainer none" in source.read_text()]


class Tests:
    """The programs, compiled."""

    def __init__(self, directory):
        self.directory = directory
        self.base = [directory, *javas.ours("tampu")]
        javas.compile(directory, [javas.ROOT / "tests" / "peers" / "java" / "Program.java"], self.base)

    def program(self, *arguments, prefix=(), options=()):
        """The command of Program.java."""
        return [*prefix, *javas.command(self.base, "Program", *map(str, arguments), options=options)]

    def run(self, place, *arguments):
        """Runs it to its end, and returns what it said."""
        done = subprocess.run(self.program(*arguments), env=place.environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
        return done.stdout.strip()

    def start(self, place, *arguments, prefix=()):
        """Starts it; it is killed with the place."""
        process = subprocess.Popen(self.program(*arguments, prefix=prefix), env=place.environment)
        place.processes.append(process)
        return process

    def pages(self, place):
        """The programs of the page for users run, and what they log arrives as the page says."""
        adapters = {"slf4j": ("tampu-slf4j", [javas.SLF4J]), "logback": ("tampu-logback", [javas.SLF4J, javas.LOGBACK]),
                    "log4j": ("tampu-log4j", [javas.LOG4J])}
        expected = {
            "Direct": ([], {"Info": "antenna DV01 at az 269.9", "Warning": "cable wrap"}),
            "WithJul": ([], {"Info": "antenna DV01 at az 269.9", "Error": "no data"}),
            "WithSlf4j": (["slf4j"], {"Info": "antenna DV01 at az 269.9", "Warning": "cable wrap"}),
            "WithLogback": (["logback"], {"Info": "antenna DV01 at az 269.9", "Error": "slew failed"}),
            "WithLog4j": (["log4j"], {"Info": "antenna DV01 at az 269.9", "Error": "slew failed"}),
        }
        programs = javas.examples(PAGE)
        check("the page has a program of each kind", set(expected) <= set(programs))
        for name in programs.keys() - expected.keys():
            source = pathlib.Path(self.directory) / f"{name}.java"
            source.write_text(programs[name])
            javas.compile(self.directory, [source], javas.ours("tampu"))
        for name, (wanted, records) in expected.items():
            code = programs[name]
            below = os.path.join(self.directory, name)
            os.mkdir(below)
            source = pathlib.Path(below) / f"{name}.java"
            source.write_text(code)
            path = [below, *javas.ours("tampu")]
            for adapter in wanted:
                module, foreign = adapters[adapter]
                path += javas.ours(module) + javas.jars(*foreign)
            javas.compile(below, [source], path)
            options = [f"-Dtampu.source=page/{name}"]
            done = subprocess.run(javas.command(path, name, options=options), env=place.environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120)
            if done.returncode != 0 or done.stdout:
                print(done.stdout)
            check(f"{name} runs and says nothing on its own output", done.returncode == 0 and not done.stdout)
            source_name = f"page/{name}"
            found = lambda: {record["level"]: record["message"] for record in reversed(place.records(source_name))}
            until(f"the records of {name}", lambda: records.items() <= found().items())
            self.details(name, place.records(source_name))
        deaths = [record["message"] for record in place.warnings() if " died " in record["message"]]
        check(f"the ends of these programs are no deaths {deaths}", not deaths)

    def project(self, place):
        """A module that names our package as the page says logs as the page says."""
        command = javas.project(self.directory, PAGE, "Direct")
        before = len(place.records("page/Direct"))
        done = subprocess.run(command, env=place.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120)
        if done.returncode != 0 or done.stdout:
            print(done.stdout)
        check("it runs as a module and says nothing", done.returncode == 0 and not done.stdout)
        found = lambda: {record["level"]: record["message"] for record in place.records("page/Direct")[before:]}
        wanted = {"Info": "antenna DV01 at az 269.9", "Warning": "cable wrap"}
        until("its records", lambda: wanted.items() <= found().items())

    @staticmethod
    def details(name, records):
        """Fields that the page promises."""
        data = lambda record: {datum["name"]: datum["value"] for datum in record.get("data", [])}
        if name == "WithSlf4j":
            warning = [record for record in records if record["level"] == "Warning"][0]
            check("slf4j: context and pairs are values, a marker is an audience, the place is known",
                  data(warning) == {"scan": "7", "elevation": "62.5"} and warning["audiences"] == ["Operator"]
                  and warning["file"] == "WithSlf4j.java" and warning["routine"] == "WithSlf4j.main")
        if name in ("WithLogback", "WithLog4j"):
            chain = [record for record in records if record.get("stack_id")]
            levels = [record["stack_level"] for record in chain]
            check(f"{name}: an exception with a cause is an error chain",
                  levels == [0, 1, 2] and len({record["stack_id"] for record in chain}) == 1
                  and chain[2]["message"] == "java.io.IOException: no route" and "at " in data(chain[1])["stack"]
                  and data(chain[0]) == {"scan": "7"})
        if name == "WithJul":
            notice = [record for record in records if record["level"] == "Notice"][0]
            check("java.util.logging: ACS's properties are fields, other maps are values",
                  notice["source_object"] == "CONTROL/DV01/Mount" and notice["line"] == 52 and notice["antenna"] == "DV01"
                  and data(notice) == {"elevation": "62.5", "LoggedParameter": "again"})

    def ends(self, place):
        """Programs that end at once, in order or not."""
        check("a flush waits until all is kept", self.run(place, "some", "end/flush", 500, "flush") == "flushed true")
        check("what was flushed is there", sorted(numbers(place, "end/flush")) == list(range(500)))
        for end in ("order", "halt"):
            self.run(place, "some", f"end/{end}", 500, end)
            until(f"the records of {end}", lambda: len(numbers(place, f"end/{end}")) >= 500)
        until("their rings are gone", lambda: not rings(place))
        for end in ("flush", "order", "halt"):
            check(f"each call before the end '{end}' is there once", sorted(numbers(place, f"end/{end}")) == list(range(500)))
        until("a halt is reported as a death", lambda: died(place, "end/halt"))
        check("an end in order is not", not died(place, "end/flush") and not died(place, "end/order"))

    def book(self, place):
        """The client of the logbook: entries, replies, files, searches, and a change that comes too late."""
        place.run("book", "make", "Shift log", "-a", "Author", "-a", "Type=Problem,Routine", "-a", "System", "-a", "Subject")
        place.run("book", "users", "add", "robot", "--no-password", "--admin")
        token = place.run("book", "users", "token", "make", "robot", "--may", "read", "--may", "write", "--may", "edit-own").stdout.split()[0]
        address = re.search(r"the logbook's API is at (http://[0-9.:]+)/", place.said()).group(1)
        file = os.path.join(self.directory, "trip.png")
        pathlib.Path(file).write_bytes(bytes(range(256)) * 1000)
        said = self.run(place, "book", "book", address, file, token)
        check(f"a logbook is written, read and searched, and nobody overwrites a change: {said}", said == "-1 2 1 again\n412 true")

    def threads(self, place):
        """Rings of ended threads are used again, and threads beyond the limit share one."""
        said = self.run(place, "threads", "many", 300)
        check("all of 300 threads by turns and 300 at once are kept", said == "flushed true lost 0")
        check("each once", sorted(numbers(place, "many")) == list(range(600)))
        ids = {record["id"]["ring"] for record in place.records("many") if record["message"].startswith("call ")}
        first = {record["id"]["ring"] for record in place.records("many") if record["thread"].startswith("one-")}
        check(f"300 threads by turns used {len(first)} rings, 300 at once {len(ids)}", len(first) <= 3 and len(ids) <= 257)
        names = {record["thread"] for record in place.records("many")}
        check("each record names its thread", len(names) == 600)

    def fills(self, place):
        """Nobody reads: what finds no room is counted, and told in the log when there is a reader."""
        lost = int(self.run(place, "fill", "full", 2000).split()[1])
        check(f"a ring of 16 KiB has room for some of 2000 calls, {lost} are lost", 500 < lost < 2000)
        place.up()
        until("the records", lambda: len(numbers(place, "full")) >= 2000 - lost)
        told = lambda: sum(int(datum["value"]) for record in place.warnings() if "records lost here" in record["message"]
                           for datum in record["data"] if datum["name"] == "lost")
        until("the loss is told", told)
        check("as many are told as the program counted", told() == lost)
        check("the others are there once", len(set(numbers(place, "full"))) == len(numbers(place, "full")) == 2000 - lost)

    def lives(self, place, name, prefix=()):
        """The node reads the rings while the process lives, does not take it for dead, and recovers what is left."""
        counts = os.path.join(self.directory, f"counts-{name}")
        source = f"lives/{name}"
        process = self.start(place, "calls", source, counts, 1, prefix=prefix)
        until("records of the living", lambda: len(numbers(place, source)) > 1000)
        # Long enough for several looks of the node at all rings.
        begun = len(numbers(place, source))
        until("more of them", lambda: len(numbers(place, source)) > begun + 1500)
        check(f"{name}: the node reads the rings of a living process, and reports no death",
              not died(place, source) and process.poll() is None)
        self.kill(process, prefix)
        until("its death is reported", lambda: died(place, source))
        self.judge(place, source, counts, 1)

    @staticmethod
    def kill(process, prefix):
        """Kills the program itself: below `unshare` it is a child."""
        pid = process.pid
        if prefix:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
                pid = int(children.read().split()[0])
        os.kill(pid, signal.SIGKILL)
        process.wait()

    @staticmethod
    def judge(place, source, counts, threads, tell=True):
        """Compares what is kept with what has returned. Returns produced, lost, doubled."""
        with open(counts, "rb") as file:
            returned = struct.unpack(f"={threads}q", file.read(8 * threads))
        lost = doubled = 0
        for thread in range(threads):
            found = numbers(place, source, thread)
            # The call under way at the kill may have arrived.
            expected = set(range(returned[thread]))
            lost += len(expected - set(found))
            doubled += len(found) - len(set(found))
            if set(found) - expected - {returned[thread]}:
                check(f"{source}: calls that were never made", False)
            # One thread's calls come in their order.
        if tell:
            check(f"{source}: {sum(returned)} calls, {lost} lost, {doubled} doubled", lost == doubled == 0 and sum(returned) > 0)
        return sum(returned), lost, doubled

    def one_kill(self, place, number, seed):
        """Starts a program, kills it at a random moment, and counts."""
        counts = os.path.join(self.directory, f"kill-{number}")
        source = f"kill/{number}"
        process = self.start(place, "calls", source, counts, THREADS)
        until("it logs", lambda: os.path.exists(counts) and os.path.getsize(counts) == 8 * THREADS and any(open(counts, "rb").read()))
        time.sleep(random.Random(seed).uniform(0, 1.5))
        process.kill()
        process.wait()
        until(f"the death of {source} is reported", lambda: died(place, source), seconds=60)
        return self.judge(place, source, counts, THREADS, tell=False)

    def kills(self, place):
        """Many processes are killed while they log."""
        seed = int(os.environ.get("SEED", time.time()))
        print(f"  seed {seed}", flush=True)
        with ThreadPoolExecutor(3) as pool:
            counted = list(pool.map(lambda number: self.one_kill(place, number, seed + number), range(KILLS)))
        produced, lost, doubled = (sum(part) for part in zip(*counted))
        recovered = sum(int(datum["value"]) for record in place.warnings() if " died (process" in record["message"]
                        for datum in record["data"] if datum["name"] == "recovered")
        told = [record for record in place.warnings() if "records lost here" in record["message"]]
        print(f"  {KILLS} kills: {produced} calls returned, {recovered} of the records recovered after the death, {lost} lost, {doubled} doubled")
        check("nothing is lost and nothing doubled", lost == doubled == 0 and not told)


def main():
    print("java", flush=True)
    javas.need()
    javas.maven("install")
    with tempfile.TemporaryDirectory(prefix="tampu-java-") as directory:
        tests = Tests(directory)
        place, full = Place("java"), Place("javafull")
        try:
            place.up()
            tests.pages(place)
            tests.project(place)
            tests.ends(place)
            tests.book(place)
            tests.threads(place)
            tests.fills(full)
            tests.lives(place, "same namespace")
            unshare = ("unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "--pid", "--fork", "--kill-child")
            # There the program has number 1, which another process has here.
            tests.lives(place, "another pid namespace", (*unshare, "--mount-proc"))
            # And there it has a number that no process has here.
            unused = 'echo $(($(cat /proc/sys/kernel/pid_max) - 100)) >/proc/sys/kernel/ns_last_pid; "$@" & wait'
            tests.lives(place, "a number without a process", (*unshare, "--mount-proc", "sh", "-c", unused, "sh"))
            tests.kills(place)
        finally:
            place.close()
            full.close()


if __name__ == "__main__":
    main()
