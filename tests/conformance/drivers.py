"""The drivers of the conformance kit, as processes: README.md has their protocol."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "conformance"
sys.path.insert(0, str(ROOT / "tests" / "peers"))
import cxx  # noqa: E402
import javas  # noqa: E402
import typescript  # noqa: E402

# The languages whose programs send and receive bulk data, write and read records (docs/languages.md), and those that need the gateway.
LANGUAGES = {
    "rust": {"bulk": True, "writes_logs": True, "reads_logs": True, "gateway": False},
    "cpp": {"bulk": True, "writes_logs": True, "reads_logs": False, "gateway": False},
    "python": {"bulk": True, "writes_logs": True, "reads_logs": True, "gateway": False},
    "java": {"bulk": True, "writes_logs": True, "reads_logs": True, "gateway": True},
    "typescript": {"bulk": False, "writes_logs": True, "reads_logs": True, "gateway": True},
}
PATIENCE = 60


def build():
    """Builds the drivers; returns the command of each language, and the directory that has them."""
    directory = tempfile.TemporaryDirectory(prefix="tampu-conformance-")
    for thing in (["cc", "cxx"], ["java"], ["node"]):
        subprocess.run([str(ROOT / "scripts" / "need.sh"), *thing], check=True)
    environment = {**os.environ, "CARGO_TARGET_DIR": cxx.TARGET}
    arguments = [str(ROOT / "scripts" / "python-package.sh"), "--example", "conformance"]
    package = subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    program = os.path.join(directory.name, "driver")
    subprocess.run([*cxx.CXX, "-O0", str(HERE / "driver.cpp"), "-ltampu_log", "-pthread", "-o", program], check=True)
    javas.maven("package", "-DskipTests", "-pl", "tampu")
    classes = [directory.name, *javas.ours("tampu")]
    javas.compile(directory.name, [HERE / "Driver.java", HERE / "DriverBulk.java"], classes)
    node = typescript.PACKAGE / "build" / "conformance"
    node.mkdir(parents=True, exist_ok=True)
    (node / "driver.ts").write_text((HERE / "driver.ts").read_text())
    typescript.npm("ci", "--no-audit", "--no-fund", "--ignore-scripts")
    typescript.npm("run", "build")
    typescript.npm("exec", "--", "tsc", *typescript.STRICT, str(node / "driver.ts"))
    commands = {
        "rust": [os.path.join(cxx.TARGET, "debug", "examples", "conformance")],
        "cpp": [program],
        "python": ["env", f"PYTHONPATH={package}", sys.executable, str(HERE / "driver.py")],
        "java": javas.command(classes, "Driver"),
        "typescript": ["node", str(node / "driver.js")],
    }
    return commands, directory


class Driver:
    """A running driver. Its lines are kept in their order."""

    def __init__(self, place, language, command):
        self.language = language
        self.source = f"conf/{language}"
        gateway = os.path.join(place.directory, "run", place.environment["TAMPU_DOMAIN"], "gateway.sock")
        environment = {**place.environment, "TAMPU_LOG_LEVEL": "Trace"}
        if language == "typescript":
            environment["TAMPU_GATEWAY"] = gateway
        self.process = subprocess.Popen(
            [*command, self.source], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        place.processes.append(self.process)
        self.changed = threading.Condition()
        self.lines = []
        # Events with a reading, and notices without one, by the name of their attribute.
        self.events = collections.defaultdict(list)
        self.notices = collections.defaultdict(list)
        # Missing events that the next event of an attribute follows.
        self.gaps = {}
        # Lines about bulk data, by the name of their stream and their parameter.
        self.bulk = collections.defaultdict(list)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for text in self.process.stdout:
            line = json.loads(text)
            with self.changed:
                if line["line"] == "event":
                    # A gap stands before the event that it is told for; many programs want both together.
                    gap = self.gaps.pop(line["name"], [])
                    if "number" not in line:
                        self.gaps[line["name"]] = line["missed"] or gap
                    elif not line["missed"]:
                        line["missed"] = gap
                    (self.events if "number" in line else self.notices)[line["name"]].append(line)
                elif line["line"] in ("block", "end", "sent"):
                    self.bulk[line["name"], line["parameter"]].append(line)
                else:
                    self.lines.append(line)
                self.changed.notify_all()

    def send(self, do, **members):
        """Sends a command, without waiting."""
        self.process.stdin.write(json.dumps({"do": do, **members}, ensure_ascii=False) + "\n")
        self.process.stdin.flush()

    def until(self, what, condition, detail=lambda: "", patience=PATIENCE):
        """Waits until a condition on the lines holds; it is asked again after each line. `detail` says what is missing."""
        end = time.monotonic() + patience
        with self.changed:
            while not (value := condition()):
                failed = [line for line in self.lines if line["line"] == "error"]
                if failed or not self.changed.wait(end - time.monotonic()):
                    sys.exit(f"FAILED: {self.language}: {what}: {failed or f'not within {patience} s'} {detail()}")
        return value

    def told(self, name, reason):
        """Returns whether a notice of this reason has come for an attribute."""
        return any(notice["reason"] == reason for notice in self.notices[name])

    def bulk_lines(self, kind, stream, parameter):
        """The lines of a kind about a transfer."""
        return [line for line in self.bulk[stream, parameter] if line["line"] == kind]

    def call(self, do, **members):
        """Sends a command and waits for its end; returns the lines that came before it."""
        with self.changed:
            self.lines = [line for line in self.lines if line["line"] == "error"]
        self.send(do, **members)
        self.until(f"the end of {do} {members.get('name', '')}", lambda: any(line["line"] == "done" for line in self.lines))
        return [line for line in self.lines if line["line"] != "done"]

    def kill(self):
        """Kills the driver, as `kill -9`."""
        self.process.kill()
        self.process.wait()

    def end(self):
        """Ends the driver in order; returns its exit code."""
        self.send("end")
        self.process.stdin.close()
        return self.process.wait(timeout=PATIENCE)
