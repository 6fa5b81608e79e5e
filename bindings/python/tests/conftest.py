"""What the tests share: a real hub for each module, and programs of Python beside it."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[3] / "tests" / "peers"))

import hub as peers  # noqa: E402


class Programs(peers.Place):
    """A host with a hub, and programs of Python on it."""

    def __init__(self, domain, *arguments):
        super().__init__(domain)
        self.environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        self.up(*arguments)

    def python(self, source, *arguments, **options):
        """Starts a program."""
        command = [sys.executable, "-c", textwrap.dedent(source), *arguments]
        return subprocess.Popen(command, env=self.environment, text=True, **options)

    def finish(self, source, *arguments, code=0):
        """Runs a program to its end; returns what it said."""
        program = self.python(source, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = program.communicate(timeout=120)
        assert program.returncode == code, f"exit code {program.returncode}: {out}{err}"
        return out + err

    def wait_for(self, process, count):
        """All records that a process has logged, once there are that many; without those that the node adds at its death."""
        return peers.until(f"{count} records of {process}", lambda: self.enough(process, count))

    def enough(self, process, count):
        found = [record for record in self.records(process) if " died (process " not in record["message"]]
        return found if len(found) >= count else None


@pytest.fixture(scope="module")
def place(request):
    """A hub of its own for the tests of a file."""
    made = Programs("py" + request.module.__name__[-20:].replace("_", "-"))
    # The tests open logs in their own process, too.
    before = dict(os.environ)
    os.environ.update({name: value for name, value in made.environment.items() if name.startswith("TAMPU_")})
    yield made
    os.environ.clear()
    os.environ.update(before)
    made.close()
