"""The parts that the tests in this directory share: hubs under attack, callers with addresses of their own, and the memory of processes.

A test binds each attacker to an address of its own below 127.0.0.0/8, because the hub counts shares by address. A client that
must be answered has another address than the attackers.
"""

import contextlib
import glob
import http.client
import json
import os
import random
import sys
import threading
import time
import tomllib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))

from hub import TAMPU, Place, check, isolated, sh, until  # noqa: F401  (tests import them from here)

MIB = 1 << 20


def seeded(name):
    """Returns the generator of random numbers of a test and prints its seed; TAMPU_SEED repeats a run."""
    seed = int(os.environ.get("TAMPU_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"{name}: seed {seed}", flush=True)
    return random.Random(seed)


class Answer:
    """A response: status, headers in lower case, and bytes."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        """Returns the body as JSON."""
        return json.loads(self.body)

    def text(self):
        """Returns the body as text."""
        return self.body.decode("utf-8", "replace")


class Site(Place):
    """A hub with a logbook on a free port of loopback, and clients for it."""

    def __init__(self, domain, config="", book="", roles='["node", "collector", "book"]'):
        super().__init__(domain)
        self.config = os.path.join(self.directory, "tampu.toml")
        text = f'roles = {roles}\n{config}\n[book]\nlisten = "127.0.0.1:0"\n{book}\n'
        tomllib.loads(text)
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.config, 0o600)
        self.url = self.owner = self.hub = None
        self.port = 0

    def begin(self, *arguments):
        """Starts the hub and reads the address of its logbook."""
        self.hub = self.up("--config", self.config, *arguments, roles=True)
        self.find()
        return self.hub

    def find(self):
        """Reads the address of the logbook and the owner's token."""
        [told] = until("the hub says where its logbook is", lambda: glob.glob(f"{self.directory}/run/**/book.json", recursive=True))
        with open(told, encoding="utf-8") as file:
            word = json.load(file)
        self.url, self.owner = word["url"], word["token"]
        self.port = int(self.url.rsplit(":", 1)[1])

    def hub_said(self, beginning):
        """Returns the records of the hub's processes whose messages begin so, oldest first."""
        found = self.run("log", "query", "--contains", beginning, "--oldest-first", "--limit", "0", "--json").stdout.splitlines()
        return [record for record in map(json.loads, found) if record["message"].startswith(beginning)]

    def find_inputs(self):
        """Reads the ports of the syslog input from the hub's log."""
        def ports():
            told = [datum["value"] for record in self.hub_said("receiving ") for datum in record.get("data", []) if datum["name"] == "address"]
            found = {words.rsplit(" ", 1)[0]: int(words.rsplit(":", 1)[1]) for words in told}
            return found if {"syslog udp", "syslog tcp"} <= set(found) else None

        found = until("the hub says where its inputs are", ports)
        self.syslog, self.syslog_tcp = found["syslog udp"], found["syslog tcp"]

    def connection(self, source=None, timeout=60):
        """Opens a connection from an address of loopback."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout, source_address=(source, 0) if source else None)

    def ask(self, path, body=None, method=None, token=None, source=None, timeout=60, headers=None, port=None):
        """Sends a request on a connection of its own. A path without a leading `/elog` or `/api` is one of the API."""
        if not path.startswith(("/elog", "/api", "//")) and port is None:
            path = "/api/v1" + path
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(
            "127.0.0.1", port or self.port, timeout=timeout, source_address=(source, 0) if source else None
        )
        with contextlib.closing(connection):
            connection.request(method or ("GET" if body is None else "POST"), path, body=body, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def must(self, *arguments, **options):
        """Sends a request as the owner; it must succeed."""
        answer = self.ask(*arguments, token=options.pop("token", self.owner), **options)
        if answer.status >= 300:
            sys.exit(f"FAILED: {arguments[0]}: {answer.status} {answer.text()[:500]}")
        return answer.json() if answer.body else None

    def make_book(self, name="B", **more):
        """Makes a logbook with one attribute."""
        return self.must(f"/books/{name}", {"name": name, "attributes": [{"name": "Author", "kind": "text"}], **more}, "PUT")

    def make_user(self, login, password="correct horse battery", admin=False, may=None, books=None):
        """Makes a user and returns a token for them."""
        self.must("/users", {"login": login, "password": password, "admin": admin})
        return self.make_token(login, may or [], books)

    def make_token(self, login, may, books=None):
        """Makes a token with these rights for a user."""
        return self.must("/tokens", {"login": login, "comment": "attack", "may": may, "books": books or []})["secret"]

    def post(self, text="text", book="B", token=None, **more):
        """Posts an entry and returns its number."""
        return self.must(f"/books/{book}/entries", {"text": text, "attributes": {"Author": "x"}, **more}, token=token or self.owner)["id"]

    def alive(self):
        """Checks that the hub runs and answers."""
        check("the hub runs and answers", self.hub.poll() is None and self.ask("/whoami", token=self.owner).status == 200)


def tree(pid):
    """Returns the process and all its descendants."""
    found, rest = [], [pid]
    while rest:
        pid = rest.pop()
        found.append(pid)
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    rest += [int(child) for child in file.read().split()]
    return found


def memory(pid, field="VmHWM"):
    """Returns the largest value of a field of /proc/PID/status in a process tree, in MiB."""
    most = 0
    for one in tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{one}/status", encoding="ascii", errors="replace") as file:
                lines = [line.split() for line in file if line.startswith(field + ":")]
            most = max([most, *(int(words[1]) // 1024 for words in lines)])
    return most


def forget_peak(pid):
    """Sets the peak of the memory of a process tree to its present size."""
    for one in tree(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{one}/clear_refs", "w", encoding="ascii") as file:
                file.write("5")


class Pulse:
    """Another client that asks for `whoami` on a new connection each time, while an attack runs."""

    def __init__(self, site, path="/whoami", source="127.0.0.9", pause=0.05):
        self.site, self.path, self.source, self.pause = site, path, source, pause
        self.times, self.refused = [], []
        self.ended = threading.Event()

    def _beat(self):
        # The first request goes out at once: an attack may be over within one pause.
        while not self.times or not self.ended.wait(self.pause):
            begun = time.monotonic()
            try:
                status = self.site.ask(self.path, token=self.site.owner, source=self.source, timeout=120).status
                if status != 200:
                    self.refused.append(status)
            except OSError as error:
                self.refused.append(str(error))
            self.times.append(time.monotonic() - begun)

    def __enter__(self):
        self.thread = threading.Thread(target=self._beat, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def figures(self):
        """Returns the number of requests, p50 and p99 in ms as text. The figures are for people; no test asserts them."""
        times = sorted(self.times)
        p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        return f"{len(times)} requests, p50 {times[len(times) // 2] * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"

    def held(self, what):
        """Checks that each request was answered."""
        check(f"{what}: another client is answered each time ({self.figures()}; refused: {self.refused[:5]})", self.times and not self.refused)


def together(acts):
    """Runs functions at the same time and returns their results; an exception is a result too."""
    results = [None] * len(acts)

    def run(at, act):
        try:
            results[at] = act()
        except Exception as error:  # the caller looks at it
            results[at] = error

    threads = [threading.Thread(target=run, args=(at, act), daemon=True) for at, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def open_modes(directory, allowed=0):
    """Returns the paths below a directory that the group or others can reach."""
    found = []
    for folder, folders, files in os.walk(directory):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                mode = os.lstat(path).st_mode
                if not os.path.islink(path) and mode & 0o077 & ~allowed:
                    found.append(f"{oct(mode & 0o7777)} {path}")
    return found
