#!/usr/bin/env python3
"""Java programs through the gateway: events, searches, offers of bulk data, services, and logs without a node, also while the hub is killed."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import javas
from hub import Place, check, once_each, until

PAGE = javas.ROOT / "docs" / "java.md"


class Tests:
    """The programs, compiled."""

    def __init__(self, directory):
        self.directory = directory
        self.path = [directory, *javas.ours("tampu")]
        javas.compile(directory, [javas.ROOT / "tests" / "peers" / "java" / "Remote.java"], self.path)

    def start(self, place, *arguments, gateway=False, more=(), **options):
        """Starts Remote.java; with `gateway` it logs as on a host without a node. `more` is its further environment."""
        environment = {**place.environment, **dict(more)}
        if gateway:
            environment["TAMPU_GATEWAY"] = os.path.join(place.directory, "run", place.environment["TAMPU_DOMAIN"], "gateway.sock")
        command = javas.command(self.path, "Remote", *map(str, arguments))
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **options)
        place.processes.append(process)
        return process

    @staticmethod
    def end(process):
        """What a program said until its end."""
        said = process.communicate(timeout=180)[0].strip()
        if process.returncode != 0:
            print(said)
        check("the program ends well", process.returncode == 0)
        return said

    def page(self, name, change=lambda code: code):
        """Compiles a program of the page; returns the command that runs it."""
        below = os.path.join(self.directory, name)
        os.mkdir(below)
        source = pathlib.Path(below) / f"{name}.java"
        source.write_text(change(javas.examples(PAGE)[name]))
        javas.compile(below, [source], javas.ours("tampu"))
        return javas.command([below, *javas.ours("tampu")], name)

    def shows(self, place, name, wanted, *arguments, change=lambda code: code):
        """A program of the page runs, and shows this."""
        command = [*self.page(name, change), *arguments]
        done = subprocess.run(command, env=place.environment, cwd=place.directory, stdout=subprocess.PIPE, text=True, check=False, timeout=120)
        if done.returncode != 0 or wanted not in done.stdout:
            print(done.stdout)
        check(f"{name} runs and shows '{wanted}'", done.returncode == 0 and wanted in done.stdout)

    def pages(self, place):
        """The programs of the page run."""
        self.shows(place, "WithEvents", "sr/vacuum/g1/p DevDouble scalar [1.0E-9]")
        place.run("log", "send", "--level", "Warning", "--timeout", "30s", "cable wrap")
        self.shows(place, "WithSearch", "cable wrap")
        self.shows(place, "WithOffer", "correlator")
        self.book(place)
        self.bulk(place)

    def history(self):
        """The program about the history beside a hub that keeps some attributes."""
        place = Place("javahist")
        try:
            config = pathlib.Path(place.directory, "hub.toml")
            config.write_text('[events]\nkeep = ["sr/vacuum/*"]\n')
            place.up("--config", str(config))
            name = "sr/vacuum/g9/p"
            source = place.start("event", "pub", name, "--user", "--process", "gauge", stdin=subprocess.PIPE)
            until("the attribute is there", lambda: place.run("event", "list", name, check=False).stdout)
            source.stdin.write("1e-9\n2e-9\n")
            source.stdin.flush()
            kept = lambda: [json.loads(line) for line in place.run("event", "history", name, "-n", "0", "--json").stdout.splitlines()]
            until("the values are kept", lambda: sum("value" in event for event in kept()) >= 2)
            source.kill()
            until("the death is kept", lambda: any(event["reason"] == "source_died" for event in kept()))
            self.shows(place, "WithHistory", f"{name} source died \n{name} update DevDouble scalar [2.0E-9]")
        finally:
            place.close()

    def book(self, place):
        """The program about the logbook, with the address and a token of this hub."""
        place.run("book", "make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem")
        place.run("book", "users", "add", "robot", "--no-password", "--admin")
        token = place.run("book", "users", "token", "make", "robot", "--may", "read", "--may", "write", "--may", "edit-own").stdout.split()[0]
        address = re.search(r"the logbook's API is at (http://[0-9.:]+)/", place.said()).group(1)
        pathlib.Path(place.directory, "trip.png").write_bytes(b"a picture")
        self.shows(place, "WithBook", "Calibrated.", token, change=lambda code: code.replace("http://127.0.0.1:7449", address))

    def bulk(self, place):
        """The programs about bulk data, each beside the command at the other end."""
        dump = pathlib.Path(place.directory, "dump.bin")
        dump.write_bytes(os.urandom(1_000_000))
        receiver = subprocess.Popen(self.page("WithBulk"), env=place.environment, stdout=subprocess.PIPE, text=True)
        place.processes.append(receiver)
        place.run("bulk", "send", str(dump), "--stream", "raw", "--parameter", "uid://A002/X1")
        said = receiver.communicate(timeout=60)[0].splitlines()
        check(f"WithBulk shows a transfer: {said[:1]}, {said[-1:]}", receiver.returncode == 0 and "dump.bin" in said[0] and said[-1] == "complete: true")
        out = pathlib.Path(place.directory, "spectra")
        receiver = place.start("bulk", "recv", "--stream", "raw", "-o", str(out), "--limit", "2", stdout=subprocess.DEVNULL)
        self.shows(place, "SendBulk", "4000000", str(dump))
        check("the command has both transfers", receiver.wait(timeout=60) == 0)
        files = sorted(path.read_bytes() for path in out.rglob("*") if path.is_file())
        check("byte for byte", files == sorted([bytes(4_000_000), dump.read_bytes()]))

    def events(self, place):
        """Every data type in every format goes to a client in Java and back to one of the command line."""
        said = self.end(self.start(place, "types"))
        check(f"each value came as it was pushed: {said}", said.startswith("all of ") and said.endswith(" values are equal"))
        said = self.end(self.start(place, "flow", 20000))
        check(f"a publisher with demand: {said}", said == "20000 in order, 0 missed")
        said = self.end(self.start(place, "wrong"))
        check("wrong types and names raise errors that name attribute and type", said.splitlines() == [
            "a/b/c/d is of type DevDouble, not DevLong",
            "a/b/c/d is a scalar, not a spectrum",
            "bad",
        ])

    def control(self, place):
        """A sender of the command line is started, paced and paused from Java, and refuses with its reason."""
        small = pathlib.Path(place.directory) / "small"
        small.write_bytes(b"small")
        out = pathlib.Path(place.directory) / "received"
        receiver = place.start("bulk", "recv", "--stream", "java", "--output", str(out), "--limit", "1")
        sender = place.start("bulk", "send", str(small), "--stream", "java", "--control", "corr", "--on-start")
        said = self.end(self.start(place, "control")).splitlines()
        sender.terminate()
        check(f"a sender obeys Java: {said}", said[:3] == ["active false", "active true", "starts 1, failure null"])
        check("its refusals have a reason", said[3].startswith("failed ") and "'corr': no flow is sending; start it first" in said[3])
        check("a name that nobody offers", said[4].startswith("unanswered no program offers the control 'other'"))
        check("the file has arrived", receiver.wait(timeout=60) == 0 and (out / "small").read_bytes() == b"small")

    @staticmethod
    def command(place, *arguments):
        """The state after a command of `tampu bulk control`, or the reason of its refusal."""
        done = place.run("bulk", "control", *arguments, "--json", check=False)
        return json.loads(done.stdout.splitlines()[0]) if done.returncode == 0 else done.stderr

    def offers(self, place, hub):
        """A sender and a receiver in Java obey `tampu bulk control`, also beside a restarted hub."""
        program = self.start(place, "offer", place.environment["TAMPU_DOMAIN"], stdin=subprocess.PIPE)
        says = lambda line: check(f"Java says '{line}'", program.stdout.readline().strip() == line)
        command = lambda *arguments: self.command(place, *arguments)
        says("ready receiver false")

        def listed():
            return sorted(json.loads(line)["name"] for line in place.run("bulk", "control", "list", "--json").stdout.splitlines())

        until("the offers are listed", lambda: listed() == ["archive", "corr"])
        said = self.end(self.start(place, "ask")).splitlines()
        check(f"a service in Java answers in parts, and refuses: {said}", said[:2] == ["hello", "local"] and said[2].startswith("failed ") and said[2].endswith("nothing to say"))
        check("nothing runs: a stop is refused", "'corr': no flow is sending; start it first" in command("stop", "corr"))
        check("a receiver takes tcp only", "'archive': flow 'data' accepts tcp only, and not shm" in command("open", "archive", "--protocol", "shm"))
        opened = command("open", "archive", "--checksum", "on")
        check(f"it is opened: {opened}", opened["active"] and opened["starts"] == 1 and opened["source"] == "java/offers")
        check("once", "'archive': it is open already; close it first" in command("open", "archive"))
        started = command("start", "corr", "--parameter", "uid://A002/X1")
        check(f"a start: {started}", started["starts"] == 1 and started["kind"] == "sender" and started["failure"] is None)
        says("received 400000 complete=true")
        says("sent complete=true")
        until("the work has ended", lambda: not command("state", "corr")["active"])
        command("start", "corr", "none")
        until("a start that fails has its reason", lambda: command("state", "corr")["failure"] == "no file 'none' is offered")

        flow = lambda state: state["report"]["sender"]["flows"][0]
        check("a wrong flow", "'corr': there is no flow 'no'; name one of 'data'" in command("pace", "corr", "1KB", "--flow", "no"))
        check("paced", flow(command("pace", "corr", "20KB"))["throttle"] == 20e3)
        command("start", "corr")
        until("data is sent", lambda: flow(command("state", "corr"))["bytes"] > 0)
        check("a second start is refused", "is sending what an earlier start began" in command("start", "corr"))
        check("paused", flow(command("pause", "corr"))["paused"])
        before = flow(command("state", "corr"))["bytes"]
        command("pace", "corr", "none")
        check("nothing is sent meanwhile", flow(command("state", "corr"))["bytes"] <= before + 10_000)
        stopped = command("stop", "corr")
        check(f"a stop reaches a paused call: {stopped['failure']}", not stopped["active"])
        says("work CANCELLED")
        line = program.stdout.readline().strip()
        check(f"it ends in order: {line}", line.startswith("received ") and line.endswith("complete=true"))
        says("sent complete=true")

        hub.kill()
        hub.wait()
        hub = place.up()
        until("the offers are there beside the next hub", lambda: listed() == ["archive", "corr"])
        command("start", "corr")
        says("received 400000 complete=true")
        says("sent complete=true")
        check("it is closed", not command("close", "archive")["active"])
        # Work of the program's own can be stopped between two transfers.
        until("the work has ended", lambda: not command("state", "corr")["active"])
        program.stdin.write("work\n")
        program.stdin.flush()
        says("begun")
        check("work of its own", command("state", "corr")["active"])
        check("a stop between two transfers", isinstance(command("stop", "corr"), dict))
        program.stdin.close()
        says("ended")
        check("the program ends well", program.wait(timeout=60) == 0)
        until("the offers are gone", lambda: listed() == [])
        return hub

    def logs(self, place, hub):
        """Log records without a node: each once, although the hub is killed; a full queue counts and tells."""
        calls = 6000
        program = self.start(place, "log", "far/away", calls, gateway=True)
        until("some records", lambda: len(place.messages("far/away")) > 1000)
        hub.kill()
        hub.wait()
        time.sleep(0.5)
        hub = place.up()
        check("all are with the collector", self.end(program) == "flushed true lost 0")
        until("all records", lambda: len(place.messages("far/away")) >= calls)
        check("each is there once", once_each(place.messages("far/away"), [f"call 0 {number}" for number in range(calls)]))
        hub.kill()
        hub.wait()
        program = self.start(place, "fill", "far/full", 200_000, gateway=True)
        said = program.stdout.readline().split()
        check(f"a full queue drops and counts, and the calls never wait: {said}", said[0] == "lost" and 0 < int(said[1]) < 200_000)
        place.up()
        check("the rest is flushed", program.communicate(timeout=120)[0].strip() == "flushed true")
        lost = sum(int(datum["value"]) for record in place.warnings() if "records lost here" in record["message"]
                   for datum in record["data"] if datum["name"] == "lost")
        check("the loss is told", lost == int(said[1]))

    def far(self):
        """Log records by TLS, to a hub whose certificate the domain's own authority has signed."""
        place = Place("javafar")
        try:
            place.run("cert", "init", "--data", place.data, "--name", "127.0.0.1")
            certificates = os.path.join(place.data, place.environment["TAMPU_DOMAIN"], "cert")
            token = "0123456789abcdef0123456789abcdef"
            files = {
                "tokens": f"java {token}\n",
                "policy.toml": '[[allow]]\nwho = "token:java"\nmay = ["write"]\nwhat = "**"\n',
                "tampu.toml": f'[network]\ncertificates = "{certificates}"\n[access]\npolicy = "{place.directory}/policy.toml"\n'
                f'[gateway]\nlisten = "127.0.0.1:0"\ntokens = "{place.directory}/tokens"\n',
            }
            for name, content in files.items():
                pathlib.Path(place.directory, name).write_text(content)
                os.chmod(os.path.join(place.directory, name), 0o600)
            place.up("--config", os.path.join(place.directory, "tampu.toml"))
            found = lambda: [record for record in place.records("*") if "serves other hosts" in record["message"]]
            until("the gateway serves other hosts", found)
            address = next(datum["value"] for datum in found()[0]["data"] if datum["name"] == "address")
            more = {"TAMPU_GATEWAY": address, "TAMPU_GATEWAY_TOKEN": token, "TAMPU_CERTIFICATES": certificates}
            check("Java trusts the domain's authority", self.end(self.start(place, "log", "far/tls", 100, more=more)) == "flushed true lost 0")
            until("its records are in the archive", lambda: len(place.messages("far/tls")) >= 100)
        finally:
            place.close()


def main():
    print("java, gateway", flush=True)
    javas.need()
    javas.maven("package")
    with tempfile.TemporaryDirectory(prefix="tampu-java-") as directory:
        tests = Tests(directory)
        place = Place("javagate")
        try:
            hub = place.up()
            tests.pages(place)
            tests.history()
            tests.events(place)
            tests.control(place)
            hub = tests.offers(place, hub)
            tests.logs(place, hub)
            tests.far()
        finally:
            place.close()


if __name__ == "__main__":
    main()
