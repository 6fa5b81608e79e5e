#!/usr/bin/env python3
"""All loads at once, with random faults, while writers log numbered records: none is lost or doubled, memory stays bounded, all workers live.

`--minutes N` (0.2; `make soak` takes 30), `--rate N` records a second of all writers together (2000; by hand 50 000 with a release
binary in TAMPU_BIN), `--seed N`. Faults: processes of the hub are killed and stopped, files of the run-time directory are cut, sockets
stay silent, and as root a small disk of the spool fills up.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import loads
from attacked import MIB, Site, check, isolated, memory, seeded, sh, tree, until

WRITERS = 4
# Loads whose sense is to break ELOG imports need a command each; the others run all the time.
CONFIG = """[syslog]
enabled = true
udp = "127.0.0.1:0"
tcp = "127.0.0.1:0"
[metrics]
enabled = true
listen = "127.0.0.1:0"
[quota]
records_per_s = 0
bytes_per_s = 0
[spool]
dir = "%s"
after_ms = 500
total_mb = 8192
per_source_mb = 4096
"""


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.2)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    if given.seed is not None:
        os.environ["TAMPU_SEED"] = str(given.seed)
    return given


class Writer:
    """A process that logs numbered records at a rate, through the standard input of `tampu log send`."""

    def __init__(self, site, name, rate):
        self.name, self.rate, self.sent = name, rate, 0
        self.ended = threading.Event()
        self.said = tempfile.TemporaryFile("w+")
        self.process = site.start("log", "send", "--process", name, "--timeout", "600s", stdin=subprocess.PIPE, stderr=self.said)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        begun = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            while not self.ended.wait(0.02):
                due = int((time.monotonic() - begun) * self.rate)
                if due > self.sent:
                    self.process.stdin.write("".join(f"{number}\n" for number in range(self.sent, due)))
                    self.process.stdin.flush()
                    self.sent = due
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def finish(self):
        """Ends the records and waits until all of them are acknowledged."""
        self.ended.set()
        self.thread.join()
        code = self.process.wait(timeout=900)
        self.said.seek(0)
        check(f"{self.name}: all {self.sent} records were acknowledged {self.said.read()[-200:]}", code == 0)


def counted(site, writer):
    """Reads all records of a writer back and returns the numbers of missing and of doubled ones."""
    seen = bytearray(writer.sent)
    doubled = strange = 0
    command = ["log", "query", "--process", writer.name, "--oldest-first", "--limit", "0", "--json"]
    query = site.start(*command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    mark = '"message":"'
    for line in query.stdout:
        at = line.find(mark) + len(mark)
        text = line[at : line.find('"', at)]
        if not text.isdigit() or int(text) >= writer.sent:
            strange += 1
            continue
        doubled += seen[int(text)]
        seen[int(text)] = 1
    query.wait()
    return writer.sent - sum(seen), doubled, strange


class Faults:
    """Faults at random moments: each is an act that puts things right again itself, or leaves that to the supervisor."""

    def __init__(self, site, chance, spool):
        self.site, self.chance, self.spool = site, chance, spool
        self.counts = {}

    def once(self):
        """Makes one fault."""
        fault = self.chance.choice([self.kill, self.stop, self.cut, self.fill])
        if fault() is not False:
            self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1

    def parts(self):
        """Returns the processes of the hub: those of its roles if it has some, else itself."""
        below = tree(self.site.hub.pid)[1:]
        return below or [self.site.hub.pid]

    def kill(self):
        """Kills a process of the hub. Without a supervisor above it the hub is started again, as an operator's service manager does."""
        victim = self.chance.choice(self.parts())
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        if victim == self.site.hub.pid:
            self.site.hub.wait()
            again(self.site)

    def stop(self):
        """Stops a process of the hub for a while, as a debugger or a frozen disk does."""
        victim = self.chance.choice(self.parts())
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGSTOP)
            time.sleep(self.chance.uniform(0.2, 2))
            os.kill(victim, signal.SIGCONT)

    def cut(self):
        """Cuts a file of a process that has ended from the run-time directory, or leaves garbage there."""
        run = os.path.join(self.site.environment["TAMPU_RUN_DIR"], "soak")
        with contextlib.suppress(OSError):
            with open(os.path.join(run, f"garbage-{self.chance.randrange(10**6)}"), "wb") as file:
                file.write(self.chance.randbytes(self.chance.randrange(10_000)))
        # A process of its own whose files are cut while it lives: it may end, the hub may not.
        victim = self.site.start("log", "send", "--process", "victim", "--timeout", "5s", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with contextlib.suppress(BrokenPipeError, OSError):
            victim.stdin.write("x\n" * 1000)
            victim.stdin.flush()
            time.sleep(0.3)
            for folder, _, names in os.walk(run):
                for name in names:
                    path = os.path.join(folder, name)
                    if str(victim.pid) in path[len(run):]:
                        os.truncate(path, self.chance.choice([0, 1, 4096]))
            victim.stdin.write("y\n" * 1000)
            victim.stdin.flush()
        victim.kill()
        victim.wait()
        self.site.processes.remove(victim)

    def fill(self):
        """Fills the small disk of the logbook's uploads and frees it again; only where one could be mounted."""
        if not self.spool:
            return False
        with contextlib.suppress(OSError), open(os.path.join(self.spool, "filler"), "wb") as file:
            while True:
                file.write(b"\0" * MIB)
                file.flush()
        time.sleep(self.chance.uniform(0.2, 2))
        os.remove(os.path.join(self.spool, "filler"))
        return True


def answers(site):
    """True if the logbook answers another client. A role that was restarted may have another port."""
    try:
        site.find()
        return site.ask("/whoami", token=site.owner, source="127.0.0.9", timeout=30).status == 200
    except (OSError, ValueError):
        return False


def again(site):
    """Starts the hub again after it was killed."""
    told = os.path.join(site.environment["TAMPU_RUN_DIR"], "soak", "book.json")
    with contextlib.suppress(FileNotFoundError):
        os.remove(told)
    site.hub = site.up("--config", site.config, roles=True)
    site.find()


def metric(site, name):
    """Returns the samples of a metric as the page has them."""
    [*_, address] = [record["message"].split()[-1] for record in site.hub_said("metrics are at ")]
    with urllib.request.urlopen(address, timeout=30) as answer:
        return [line for line in answer.read().decode().splitlines() if line.startswith(name) and not line.startswith("#")]


def main():
    given = arguments()
    if os.geteuid() == 0:
        isolated()
        sh("ip link set lo up")
    chance = seeded("soak")
    disk = None
    if os.geteuid() == 0:
        disk = tempfile.mkdtemp(prefix="tampu-soak-disk-")
        sh(f"mount -t tmpfs -o size=64m tampu {disk}")
    with tempfile.TemporaryDirectory(prefix="tampu-soak-spool-") as spool:
        site = Site("soak", config=CONFIG % spool, book=f'dir = "{disk}/book"\nmin_free_mb = 8' if disk else "")
        try:
            run(given, chance, site, Faults(site, chance, disk))
        finally:
            site.close()
            if disk:
                sh(f"umount -l {disk}")
                os.rmdir(disk)


def run(given, chance, site, faults):
    """The soak itself."""
    site.begin()
    site.find_inputs()
    site.make_book()
    site.make_user("zoe")
    loads.fill(site, 2000, chance)
    site.bombs = [site.post(text[:50_000], encoding=kind) for kind, text in loads.markup_bombs()]
    before = memory(site.hub.pid, "VmRSS")
    ended, peak, answered, refused = threading.Event(), 0, 0, 0
    attackers = [threading.Thread(target=forgiving, args=(load, site, ended, chance), daemon=True) for load in loads.LOADS.values()]
    writers = [Writer(site, f"writer-{at}", given.rate // WRITERS) for at in range(WRITERS)]
    for attacker in attackers:
        attacker.start()
    end = time.monotonic() + given.minutes * 60
    while time.monotonic() < end:
        time.sleep(chance.uniform(1, 5))
        faults.once()
        peak = max(peak, memory(site.hub.pid))
        if answers(site):
            answered += 1
        else:
            refused += 1
    ended.set()
    for attacker in attackers:
        attacker.join(120)
    for writer in writers:
        writer.finish()
    print(f"  faults: {faults.counts}; whoami after them: {answered} answered, {refused} not", flush=True)
    for writer in writers:
        until(f"{writer.name} is in the archive", lambda writer=writer: not site.run("log", "archive", "status", check=False).returncode, 60)
        lost, doubled, strange = until_whole(site, writer)
        check(f"{writer.name}: {writer.sent} records, {lost} lost, {doubled} doubled, {strange} strange", lost == doubled == strange == 0)
    check(f"memory stays bounded ({before} MiB before, peak {peak} MiB)", peak < 2048)
    check("the page of metrics names the workers", metric(site, "tampu_workers"))
    dead = [line for line in metric(site, "tampu_worker_panics_total") if not line.endswith(" 0")]
    check(f"all workers live: {dead}", not dead)
    check(f"other clients were answered ({answered} times)", answered > 0)
    until("the hub answers", lambda: site.hub.poll() is None and answers(site), 60)
    site.hub.terminate()
    check("the hub ends in order", site.hub.wait(120) == 0)
    done = site.run("log", "archive", "check", "--data", site.data, check=False)
    check(f"the archive is whole: {done.stdout.strip()[-60:]}", done.returncode == 0)


def forgiving(load, site, ended, chance):
    """Runs a load again and again; the hub may be dead at any moment."""
    while not ended.is_set():
        try:
            load(site, ended, chance)
        except (Exception, SystemExit):
            ended.wait(1)


def until_whole(site, writer):
    """Reads a writer's records back until none is missing; the spool may still be given back."""
    end = time.monotonic() + 300
    while True:
        found = counted(site, writer)
        if found[0] == 0 or time.monotonic() > end:
            return found
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
