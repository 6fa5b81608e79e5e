"""The package in an environment that has nothing else: it needs no other package, and its programs run."""

import pathlib
import subprocess
import textwrap
import venv

import tampu

PACKAGE = pathlib.Path(tampu.__file__).absolute().parent

PROGRAM = """
import importlib.util
import logging
import time

import tampu.book, tampu.bulk, tampu.event, tampu.log, tampu.logging

for absent in ("numpy", "pyarrow", "pytest", "opentelemetry", "structlog"):
    assert importlib.util.find_spec(absent) is None, absent

handler = tampu.logging.Handler("py/clean")
logging.basicConfig(level=logging.INFO, handlers=[handler])
logging.info("the mount is at %d degrees", 45)
assert handler.wait(60)
with tampu.event.Server("py/clean-server") as server, tampu.event.Client("py/clean-client") as client:
    server.declare("t/clean/py/angle", float).push(45.0)
    with client.subscribe("t/clean/py/angle") as events:
        print("event", next(iter(events)).value)
deadline = time.monotonic() + 60
while not (found := tampu.log.query("degrees", fields={"process": ["py/clean"]}, columns=["level", "message"]).rows()):
    assert time.monotonic() < deadline
print("record", found[0]["level"], found[0]["message"])
"""


def test_the_package_needs_nothing_else(place, tmp_path):
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "tampu").symlink_to(PACKAGE, target_is_directory=True)
    # -I: no directory of the checkout, and none of PYTHONPATH.
    command = [environment / "bin" / "python", "-I", "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, env=place.environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["event 45.0", "record Info the mount is at 45 degrees"]
