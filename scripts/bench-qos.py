#!/usr/bin/env python3
"""What each setting of `[[topic]]` does to the events of one server with two clients on one host.

    bench-qos.py [--seconds 2] [--only cache,linger_us] [--json]

Each row changes one setting (`TAMPU_QOS`) and runs three times: pushing as fast as it can (rate, processor time an event), pushing 1000
a second (delay), and pushing 40 000 a second of 1900 bytes while one client is stopped for 1 s (delay, what the stopped client missed,
memory of the server). In the third run the server waits for its clients as a site's programs do by default, 100 ms in each second; the
measurement's own default is to wait for 10 s. The defaults stand first and last, which shows how steady the machine was.
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time

TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target"))
TAMPU = os.environ.get("TAMPU_BIN", os.path.join(TARGET, "release", "tampu"))
TITLES = "| setting | events/s | CPU us an event | delay p50, p99, us | with a stopped client: rate kept | told as missed | server's memory, MiB |"
# Events a second in the run with a stopped client: in 1 s more than the default cache holds.
STOPPED_RATE = 40_000
ROWS = [
    ("credit", ["65536", "16777216"]),
    ("max_wait_ms", ["0", "1000"]),
    ("wait_period_ms", ["100"]),
    ("cache", ["1048576", "268435456"]),
    ("keep", ["0", "67108864"]),
    ("linger_us", ["0", "5000", "50000"]),
    ("batch", ["1", "4096", "1048576"]),
    ("pool", ["1048576"]),
    ("direct", ["true"]),
    ("urgent", ["true"]),
]


def children(pid):
    """Returns the processes below a process, with their command lines."""
    found = {}
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/cmdline", "rb") as line:
                    found[int(child)] = line.read().replace(b"\0", b" ").decode()
    except OSError:
        pass
    return found


def peak(pid):
    """Returns the most memory that a process had, MiB; nothing once it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None


class Run:
    """One measurement, and a look at its processes meanwhile."""

    def __init__(self, settings, *arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TAMPU_")}
        environment["TAMPU_QOS"] = settings
        self.process = subprocess.Popen(
            [TAMPU, "perf", "event", "--clients", "2", "--json", *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def part(self, words):
        """Waits for a process of the measurement whose command line has these words."""
        while self.process.poll() is None:
            for pid, line in children(self.process.pid).items():
                if words in line:
                    return pid
            time.sleep(0.01)
        return None

    def stop_a_client(self, seconds):
        """Stops one client for a second in the middle; returns the server's peak of memory."""
        server, client = self.part("part publisher"), self.part("part subscriber")
        time.sleep(seconds / 3)
        os.kill(client, signal.SIGSTOP)
        time.sleep(1)
        os.kill(client, signal.SIGCONT)
        most = 0
        while (now := peak(server)) is not None:
            most = max(most, now)
            time.sleep(0.02)
        return most

    def figures(self):
        """Waits for the end and returns what it printed."""
        out, problems = self.process.communicate()
        if self.process.returncode:
            raise SystemExit(f"bench-qos: a measurement failed: {problems.strip()}")
        return json.loads(out)


def file_of(directory, settings):
    """Writes settings of all events' topics into a file; returns its path."""
    path = os.path.join(directory, "qos.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write('[[topic]]\ntopics = "event/*"\n' + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    return path


def measured(setting, value, seconds, directory):
    """Returns the figures of one row."""
    changed = {setting: value} if setting else {}
    settings, length = file_of(directory, changed), f"{seconds}s"
    fast = Run(settings, "--size", "92", "--for", length).figures()
    slow = Run(settings, "--size", "92", "--for", length, "--rate", "1000").figures()
    settings = file_of(directory, {"max_wait_ms": "100", "wait_period_ms": "1000"} | changed)
    stopped = Run(settings, "--size", "1900", "--for", f"{seconds + 2}s", "--rate", str(STOPPED_RATE))
    memory = stopped.stop_a_client(seconds)
    stopped = stopped.figures()
    used = fast["cpu_s"]
    return {
        "setting": f"{setting} = {value}" if setting else "defaults",
        "events_per_s": fast["events_per_s"],
        "cpu_us_an_event": 1e6 * (used["server"] + used["node"] + sum(used["clients"])) / max(fast["pushed"], 1),
        "delay_us": [slow["latency_us_p50"], slow["latency_us_p99"]],
        "stopped_rate_kept": stopped["pushed_per_s"] / STOPPED_RATE,
        "told": stopped["told"],
        "pushed": stopped["pushed"],
        "lost_untold": sum(run["lost"] - run["told"] for run in (fast, slow, stopped)),
        "server_mib": memory,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=2, help="length of each measurement")
    parser.add_argument("--only", help="these settings, separated by commas")
    parser.add_argument("--json", action="store_true", help="write JSON objects, one a line")
    given = parser.parse_args()
    chosen = [(name, values) for name, values in ROWS if not given.only or name in given.only.split(",")]
    rows = [(None, None), *((name, value) for name, values in chosen for value in values), (None, None)]
    if not given.json:
        print(TITLES + "\n" + "|-" * (TITLES.count("|") - 1) + "|", flush=True)
    with tempfile.TemporaryDirectory(prefix="tampu-qos-") as directory:
        for name, value in rows:
            row = measured(name, value, given.seconds, directory)
            if given.json:
                print(json.dumps(row), flush=True)
                continue
            p50, p99 = row["delay_us"]
            print(
                f"| {row['setting']} | {row['events_per_s'] / 1e6:.2f} M | {row['cpu_us_an_event']:.2f} | {p50:.0f}, {p99:.0f} "
                f"| {row['stopped_rate_kept']:.2f} | {row['told']:.0f} of {row['pushed']:.0f} | {row['server_mib']:.0f} |",
                flush=True,
            )
            if row["lost_untold"]:
                raise SystemExit(f"bench-qos: {row['lost_untold']:.0f} events were lost without a word")


if __name__ == "__main__":
    main()
