#!/usr/bin/env python3
"""The tables of the paper on LHCb's ELOG (LHCb-PUB-2015-020), measured with Tampu: times of a search for the entries of one author.

Tables 1 and 2: one server, one client, logbooks of 1, 464, 11 332 and 76 270 entries. Table 3: several servers on the same logbook, each with
a client of its own, all at the same time: on one host, and on hosts that are network namespaces of their own. As in the paper, a client asks
for the page that a person sees: ELOG's list with `Author=`. The paper's values and those of elogd 3.1.5 stand in the tables; they are from
other machines.

    make bench-paper                                    # everything, about fifteen minutes
    scripts/bench-paper.py --entries 1,464 --samples 20 --instances 1,2 --json
"""

import argparse
import contextlib
import glob
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "peers"))

import hub
from hub import Place, isolated, sh, until

# Average, minimum and maximum in ms, and ms an entry as the paper prints it, by the number of entries.
PAPER = {
    "Table 1, files on NFS": {1: (10, 7, 34, 10.0), 464: (187, 159, 320, 0.403), 11332: (4573, 3812, 7220, 0.404), 76270: (47767, 44357, 69353, 0.707)},
    "Table 2, local files": {1: (8, 6, 30, 8.0), 464: (22, 20, 44, 0.047), 11332: (548, 319, 884, 0.048), 76270: (11951, 9834, 14512, 0.157)},
    "Table 3, several instances": {1: (13, 8, 223, 13.0), 464: (31, 27, 87, 0.067), 11332: (717, 395, 1465, 0.063), 76270: (13939, 10405, 20321, 0.183)},
}
# elogd 3.1.5 with the same kind of logbook, local files, measured beside Tampu in November 2026.
ELOGD = {20000: 753, 76270: 2650}
AUTHOR = "Zoe Quartz"
PEOPLE = ["Anna Almeida", "Boris Bauer", "Carla Costa", "Elena Eriksson", "Franz Novak", "Giulia Petrov", "Katya Olsen"]
SYSTEMS = ["VELO", "RICH1", "RICH2", "ECAL", "HCAL", "MUON", "HLT", "DAQ", "Cooling", "Magnet"]
PATH = "/elog/Shift/?Author=" + urllib.parse.quote_plus(AUTHOR)
FIRST_DAY = 1_221_004_800
A_DAY = 29


def write_site(directory, entries):
    """ELOG's files: reports of shifts, one of 200 by the author that is searched for."""
    chance = random.Random(entries)
    book = os.path.join(directory, "logbooks", "Shift")
    os.makedirs(book)
    with open(os.path.join(directory, "elogd.cfg"), "w", encoding="utf-8") as file:
        file.write("[Shift]\nAttributes = Author, Type, System, Subject\n")
    for first in range(1, entries + 1, A_DAY):
        day = time.gmtime(FIRST_DAY + (first - 1) // A_DAY * 86_400)
        folder = os.path.join(book, time.strftime("%Y", day))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, time.strftime("%y%m%da.log", day)), "w", encoding="utf-8") as file:
            for number in range(first, min(first + A_DAY, entries + 1)):
                author = AUTHOR if number == 1 or chance.randrange(200) == 0 else chance.choice(PEOPLE)
                system = chance.choice(SYSTEMS)
                minutes = (number - first) * 49
                date = time.strftime("%a, %d %b %Y ", day) + f"{minutes // 60:02}:{minutes % 60:02}:00 +0000"
                file.write(f"$@MID@$: {number}\nDate: {date}\nAuthor: {author}\nType: Routine\nSystem: {system}\n")
                file.write(f"Subject: {system} restart {chance.randrange(9999)}\nAttachment: \nEncoding: plain\n{'=' * 40}\n")
                for _ in range(chance.randrange(6, 14)):
                    file.write(f"{chance.choice(SYSTEMS)} HV tripped on channel {chance.randrange(1600)}, current was {chance.randrange(990)} uA.\n")


def search(url, token, samples):
    """The times of searches over one connection, in ms; each answer must have the author's entries."""
    place = urllib.parse.urlsplit(url)
    client = http.client.HTTPConnection(place.hostname, place.port, timeout=120)
    times = []
    for _ in range(samples):
        begun = time.perf_counter()
        client.request("GET", PATH, headers={"Authorization": "Bearer " + token})
        answer = client.getresponse()
        page = answer.read()
        times.append((time.perf_counter() - begun) * 1e3)
        if answer.status != 200 or AUTHOR.encode() not in page:
            raise ValueError(f"the search was answered with {answer.status}: {page[:300]}")
    return times


def is_found(place, url, token):
    """Whether the search works. A hub knows a logbook that another process makes within a second."""
    code = "import sys; sys.argv[0] = 'bench-paper'; import runpy; runpy.run_path(sys.argv[1])['search'](sys.argv[2], sys.stdin.read(), 1)"
    command = [*place.prefix, sys.executable, "-c", code, os.path.abspath(__file__), url]
    return subprocess.run(command, input=token, text=True, stderr=subprocess.DEVNULL, check=False).returncode == 0


def at_once(hubs, samples):
    """Searches in all hubs at the same time, each by a process of its own beside it: the times, and the searches in a second."""
    clients = []
    for place, (url, token) in hubs:
        command = [*place.prefix, sys.executable, os.path.abspath(__file__), "--client", url, "--samples", str(samples)]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        # Others could read an argument.
        client.stdin.write(token + "\n")
        client.stdin.flush()
        clients.append(client)
    for client in clients:
        client.stdout.readline()
    begun = time.monotonic()
    for client in clients:
        client.stdin.write("go\n")
        client.stdin.flush()
    times = []
    for client in clients:
        times += json.loads(client.stdout.readline() or "[]")
    took = time.monotonic() - begun
    if any(client.wait() != 0 for client in clients) or len(times) != samples * len(hubs):
        sys.exit("a client failed")
    return times, len(times) / took


def be_client(url, samples):
    """Says that it is ready, waits for its start, and prints the times."""
    token = sys.stdin.readline().strip()
    search(url, token, min(samples, 3))
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(search(url, token, samples)), flush=True)


@contextlib.contextmanager
def database():
    """A PostgreSQL on a unix socket, which processes of all network namespaces reach."""

    def program(name):
        found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
        return found[-1] if found else sys.exit(f"there is no {name}: scripts/need.sh postgres installs PostgreSQL")

    somebody = ["--reuid", "postgres", "--regid", "postgres", "--init-groups"] if os.geteuid() == 0 else []
    somebody = ["setpriv", "--pdeathsig", "INT", *somebody]
    with tempfile.TemporaryDirectory(prefix="tampu-pg") as directory:
        os.chmod(directory, 0o777)
        data = os.path.join(directory, "data")
        made = [*somebody, program("initdb"), "-D", data, "--auth=trust", "--username=tampu", "--encoding=UTF8", "--locale=C"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=directory)
        run = [*somebody, program("postgres"), "-D", data, "-k", directory, "-c", "listen_addresses="]
        with subprocess.Popen(run, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            told = os.path.join(data, "postmaster.pid")

            def ready():
                if not os.path.exists(told):
                    return False
                with open(told, encoding="utf-8") as file:
                    return "ready" in file.read()

            try:
                until("the database is up", ready)
                yield f"postgres://tampu@{directory.replace('/', '%2F')}/postgres"
            finally:
                server.terminate()


def start(place, storage):
    """Starts a hub with the logbook alone; its address and the token of its owner."""
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f'roles = ["node", "book"]\n[book]\nlisten = "127.0.0.1:0"\n{storage}\n')
    place.up("--config", config)
    [told] = until("the hub has its address", lambda: glob.glob(f"{place.directory}/run/**/book.json", recursive=True))
    with open(told, encoding="utf-8") as file:
        told = json.load(file)
    return told["url"], told["token"]


class Site:
    """A logbook of some entries in a store, and the hubs that serve it."""

    def __init__(self, entries, setting, data):
        self.entries, self.data, self.places = entries, data, []
        self.storage = f'{setting} = "{data}"' if setting == "postgres" else f'{setting} = "{data}/paper/book"'

    def hub(self, netns=None):
        """Starts one more hub; the first one takes the entries over."""
        place = Place("paper", netns)
        self.places.append(place)
        told = start(place, self.storage)
        if len(self.places) == 1:
            with tempfile.TemporaryDirectory(prefix="tampu-elog") as elog:
                write_site(elog, self.entries)
                done = subprocess.run(
                    [*place.prefix, hub.TAMPU, "book", "import-elog", os.path.join(elog, "logbooks"), "--elog-config", os.path.join(elog, "elogd.cfg"), "--data", self.data],
                    env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                )
                if done.returncode != 0:
                    sys.exit(f"the import failed: {done.stdout}")
        until("the logbook is searched", lambda: is_found(place, *told))
        return place, told

    def close(self):
        """Ends the hubs."""
        for place in self.places:
            place.close()


def row(table, store, entries, instances, times, rate):
    """A row of a table."""
    average = sum(times) / len(times)
    return {
        "table": table, "store": store, "entries": entries, "instances": instances, "samples": len(times), "average": average,
        "min": min(times), "max": max(times), "ms_an_entry": average / entries, "searches_s": rate,
    }


def table_of_paper(table):
    """The name of the paper's table beside a row of ours."""
    return "Table 2, local files" if table == "one server" else "Table 3, several instances"


def tell(rows):
    """Prints our rows beside the paper's."""
    print("| | entries | servers | samples | average, ms | min | max | ms an entry | searches/s |")
    print("|-|-|-|-|-|-|-|-|-|")
    for one in rows:
        paper, entries = table_of_paper(one["table"]), one["entries"]
        print(
            f"| Tampu, {one['store']}, {one['table']} | {entries} | {one['instances']} | {one['samples']} | {one['average']:.2f} | {one['min']:.2f} | "
            f"{one['max']:.2f} | {one['average'] / entries:.6f} | {one['searches_s']:.0f} |"
        )
    for name, values in PAPER.items():
        for entries, (average, least, most, each) in values.items():
            print(f"| paper: {name} | {entries} | 1 | 300 | {average} | {least} | {most} | {each:.3f} | |")
    for entries, average in ELOGD.items():
        print(f"| elogd 3.1.5, local files | {entries} | 1 | 300 | {average} | | | {average / entries:.3f} | |")
    print()
    for one in rows:
        beside = PAPER[table_of_paper(one["table"])].get(one["entries"])
        if beside:
            times = beside[0] / one["average"]
            print(f"{one['store']}, {one['table']}, {one['entries']} entries, {one['instances']} servers: {times:.1f} times the paper's speed")
    print("\nThe paper's figures and elogd's are from other machines. The load of this one meanwhile:", " ".join(f"{load:.1f}" for load in os.getloadavg()))


def measure(options):
    """All rows."""
    rows = []

    def add(*values):
        rows.append(row(*values))
        print(json.dumps(rows[-1]), file=sys.stdout if options.json else sys.stderr, flush=True)

    for store in options.only:
        with database() if store == "postgres" else contextlib.nullcontext() as address, tempfile.TemporaryDirectory(prefix="tampu-book") as shared:
            for entries in options.entries:
                # A database has a schema for each domain, and a directory is one of its own.
                site = Site(entries, "postgres", address) if address else Site(entries, "dir", f"{shared}/{entries}")
                try:
                    hubs = [site.hub()]
                    add("one server", store, entries, 1, *at_once(hubs, options.samples))
                    for instances in options.instances:
                        if instances == 1 or entries != max(options.entries) and not options.all_sizes:
                            continue
                        while len(hubs) < instances:
                            hubs.append(site.hub())
                        add("servers on one host", store, entries, instances, *at_once(hubs[:instances], options.samples))
                    if address and options.hosts > 1 and (entries == max(options.entries) or options.all_sizes):
                        far = []
                        for number in range(options.hosts):
                            sh(f"ip netns add host{number} && ip -n host{number} link set lo up")
                            far.append(site.hub(f"host{number}"))
                        add("servers on hosts of their own", store, entries, options.hosts, *at_once(far, options.samples))
                finally:
                    site.close()
                    for number in range(options.hosts):
                        subprocess.run(["ip", "netns", "delete", f"host{number}"], stderr=subprocess.DEVNULL, check=False)
                if address:
                    sh(f"psql -q -h {urllib.parse.unquote(urllib.parse.urlsplit(address).hostname or '')} -U tampu postgres -c 'SET client_min_messages = warning' -c 'DROP SCHEMA tampu_book_paper CASCADE'")
    return rows


def numbers(text):
    """A list of numbers above 0."""
    found = [int(part) for part in text.split(",")]
    if min(found) < 1:
        raise argparse.ArgumentTypeError("numbers above 0")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--entries", type=numbers, default=[1, 464, 11332, 76270], help="numbers of entries")
    parser.add_argument("--samples", type=int, default=300, help="searches of each client")
    parser.add_argument("--instances", type=numbers, default=[1, 2, 4, 8], help="numbers of servers on one host")
    parser.add_argument("--hosts", type=int, default=3, help="number of hosts with a server each, on one PostgreSQL")
    parser.add_argument("--only", type=lambda text: text.split(","), default=["sqlite", "postgres"], help="stores: sqlite, postgres")
    parser.add_argument("--all-sizes", action="store_true", help="several servers for every size, not for the largest alone")
    parser.add_argument("--tampu", default=None, help="the program to measure; without it the optimised one")
    parser.add_argument("--json", action="store_true", help="one JSON object a row on standard output")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        return be_client(options.client, options.samples)
    target = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target"))
    hub.TAMPU = options.tampu or os.path.join(target, "release", "tampu")
    if not os.path.exists(hub.TAMPU):
        sys.exit(f"there is no {hub.TAMPU}: 'scripts/build-optimised.sh' builds it, or name it with --tampu")
    isolated()
    # `ip netns` keeps its names below /run, so that two runs do not meet.
    sh("ip link set lo up && mount -t tmpfs tampu /run && mkdir -p /run/netns")
    rows = measure(options)
    if not options.json:
        tell(rows)
    return None


if __name__ == "__main__":
    main()
