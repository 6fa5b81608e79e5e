"""What the tests in this directory share: hubs and commands as a person starts them, in places of their own.

A test that needs namespaces calls `isolated()` first: it starts itself again in a network and mount namespace of its own, so
that whatever it mounts and connects is gone when it ends, however it ends. As root that needs nothing; else the kernel must
allow user namespaces. Nothing here is skipped: what cannot be had is a failure.
"""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid

TAMPU = os.environ.get("TAMPU_BIN") or os.path.join(
    os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target")), "debug", "tampu"
)

# What a hub says once all its roles work.
UP = "' is up: "


def isolated():
    """Goes on in a network and mount namespace of its own."""
    if os.environ.get("TAMPU_ISOLATED"):
        return
    unshare = ["unshare", "--net", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    os.environ["TAMPU_ISOLATED"] = "yes"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def sh(command):
    """Runs a shell command that must succeed."""
    subprocess.run(command, shell=True, check=True)


def until(what, condition, seconds=30):
    """Waits for the thing itself."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what}: not within {seconds} s")
        time.sleep(0.02)
    return value


def check(what, good):
    """Says what held, or ends the test."""
    if not good:
        sys.exit(f"FAILED: {what}")
    print(f"  ok: {what}", flush=True)


class Place:
    """A host: a run-time directory, a data directory, and the network namespace its processes live in."""

    def __init__(self, domain, netns=None, data=None):
        self.directory = tempfile.mkdtemp(prefix="tampu-test-")
        self.log = os.path.join(self.directory, "hub.log")
        open(self.log, "w", encoding="utf-8").close()
        self.data = data or os.path.join(self.directory, "data")
        self.prefix = []
        if netns:
            # A host of its own has a boot id of its own; by it processes know whether they share a kernel and its memory.
            boot = os.path.join(self.directory, "boot_id")
            with open(boot, "w", encoding="utf-8") as file:
                file.write(str(uuid.uuid4()) + "\n")
            mounted = f'mount --bind {boot} /proc/sys/kernel/random/boot_id && exec "$@"'
            self.prefix = ["ip", "netns", "exec", netns, "sh", "-c", mounted, "sh"]
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TAMPU_")},
            "TAMPU_RUN_DIR": os.path.join(self.directory, "run"),
            "TAMPU_DOMAIN": domain,
        }
        # The program of this host; without one, that of all.
        self.program = None
        self.processes = []
        # However the test ends: a check that fails leaves no hub behind.
        atexit.register(self.close)

    def start(self, *arguments, **options):
        """Starts a command; it is killed with the place."""
        process = subprocess.Popen([*self.prefix, self.program or TAMPU, *arguments], env=self.environment, text=True, **options)
        self.processes.append(process)
        return process

    def up(self, *arguments, roles=False):
        """Starts a hub; returns once its roles work. They are in its process, or with `roles` in processes below it."""
        before = self.said().count(UP)
        if not roles:
            arguments = ("--in-process", *arguments)
        with open(self.log, "a", encoding="utf-8") as log:
            hub = self.start("up", "--data", self.data, *arguments, stdout=log, stderr=log)

        def ready():
            if hub.poll() is not None:
                sys.exit(f"FAILED: the hub ended: {self.said()}")
            return self.said().count(UP) > before

        until("the hub is up", ready)
        return hub

    def said(self):
        """What this place's hubs have said on standard error."""
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def run(self, *arguments, check=True, **options):
        """Runs a command to its end."""
        done = subprocess.run(
            [*self.prefix, self.program or TAMPU, *arguments],
            env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False, **options,
        )
        if check and done.returncode != 0:
            sys.exit(f"FAILED: tampu {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
        return done

    def warnings(self):
        """All records of the level warning and above, newest first, as the collector has them."""
        found = self.run("log", "query", "--level", "warning", "--limit", "0", "--json")
        return [json.loads(line) for line in found.stdout.splitlines()]

    def records(self, process):
        """All records of a process, oldest first, as the collector has them."""
        found = self.run("log", "query", "--process", process, "--oldest-first", "--limit", "0", "--json")
        return [json.loads(line) for line in found.stdout.splitlines()]

    def messages(self, process):
        """Their texts."""
        return [record["message"] for record in self.records(process)]

    def close(self):
        """Ends what still runs, and removes the directories."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class Load:
    """Numbered records, sent through standard input of one `tampu log send` at a steady pace."""

    def __init__(self, place, process, per_second, seconds, timeout="60s"):
        self.expected = [f"record {number}" for number in range(int(per_second * seconds))]
        self.sender = place.start(
            "log", "send", "--process", process, "--timeout", timeout, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.thread = threading.Thread(target=self._write, args=(per_second,))
        self.thread.start()

    def _write(self, per_second):
        begun = time.monotonic()
        try:
            for number, text in enumerate(self.expected):
                time.sleep(max(0.0, begun + number / per_second - time.monotonic()))
                self.sender.stdin.write(text + "\n")
                if number % 20 == 0:
                    self.sender.stdin.flush()
            self.sender.stdin.close()
        except BrokenPipeError:
            pass

    def finish(self):
        """Waits for the end; the sender confirms that all was delivered."""
        self.thread.join()
        said = self.sender.stderr.read()
        if self.sender.wait(timeout=120) != 0:
            sys.exit(f"FAILED: the sender was not confirmed: {said}")


def once_each(got, expected):
    """Says what is missing or there twice."""
    missing = set(expected) - set(got)
    print(f"  {len(got)} records for {len(expected)} sent, {len(missing)} missing, {len(got) - len(set(got))} twice", flush=True)
    return sorted(got) == sorted(expected)
