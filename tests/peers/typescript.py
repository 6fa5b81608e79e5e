#!/usr/bin/env python3
"""The TypeScript package: its types, its tests with the vectors, a session with a real hub, and the programs of its pages."""

import json
import pathlib
import re
import subprocess
import tempfile

from far_life import kill
from hub import TAMPU, Place, check, once_each, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings" / "typescript"


def npm(*arguments):
    """Runs npm, quietly; gives its output."""
    done = subprocess.run(["npm", "--silent", *arguments], cwd=PACKAGE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    if done.returncode != 0:
        print(done.stdout[-4000:])
    check(f"npm {arguments[0]}", done.returncode == 0)
    return done.stdout


# Options of the compiler for programs that use the package.
STRICT = ["--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "nodenext", "--types", "node"]

# Pages with programs, and what these print, in their order.
PAGES = [PACKAGE / "README.md", ROOT / "docs" / "languages.md"]
SHOWN = ["obs/weather/2/wind 9.5", "Warning cable wrap", "lost: 0n", "sr/vacuum/g1/p 1e-9", "records: ", "served by true", "read on demand: sr/cryo/1/level", "lost: 0n"]


def installed(directory):
    """An empty program that has the package by `make typescript` and the line that it prints."""
    make = ["make", "-s", "-C", str(ROOT), "typescript", f"CARGO_TARGET_DIR={directory}/build"]
    line = subprocess.run(make, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1]
    program = pathlib.Path(directory, "program")
    program.mkdir()
    (program / "package.json").write_text('{"name": "program", "version": "1.0.0", "type": "module"}')
    subprocess.run([*line.split(), "--offline", "--silent", "--no-audit", "--no-fund"], cwd=program, check=True)
    found = sorted(path.name for path in (program / "node_modules").iterdir() if not path.name.startswith("."))
    check(f"'{line}' installs the package, and nothing besides: {found}", found == ["tampu"])
    package = program / "node_modules" / "tampu"
    size = sum(file.stat().st_size for file in package.rglob("*") if file.is_file())
    check(f"it has its types and no sources, {size} bytes", (package / "dist" / "index.d.ts").exists() and not (package / "src").exists())
    return program


def programs(place, socket):
    """The programs of the pages compile without a warning where the package is installed, and print what they promise."""
    fence = re.compile(r"^```ts\n(.*?)^```", re.MULTILINE | re.DOTALL)
    found = [code for page in PAGES for code in fence.findall(page.read_text())]
    check(f"{len(SHOWN)} programs in the pages", len(found) == len(SHOWN))
    place.run("log", "send", "--level", "warning", "--acknowledged", "kept", "cable wrap")
    with tempfile.TemporaryDirectory(prefix="tampu-ts-") as directory:
        program = installed(directory)
        names = [f"program{number}" for number in range(len(found))]
        for name, code in zip(names, found):
            (program / f"{name}.ts").write_text(code)
        # The compiler and the types of Node are those of the package's own tests.
        modules = PACKAGE / "node_modules"
        sources = [str(program / f"{name}.ts") for name in names]
        compiler = [str(modules / ".bin" / "tsc"), *STRICT, "--typeRoots", str(modules / "@types"), *sources]
        done = subprocess.run(compiler, cwd=program, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout)
        check("the programs of the pages compile", done.returncode == 0)
        for name, wanted in zip(names, SHOWN):
            environment = {**place.environment, "TAMPU_GATEWAY": str(socket)}
            done = subprocess.run(["node", program / f"{name}.js"], env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
            if wanted not in done.stdout:
                print(done.stdout)
            check(f"{name} prints '{wanted}'", done.returncode == 0 and wanted in done.stdout)


def session(place, way, address, token=""):
    """A session with the hub of this place."""
    environment = {**place.environment, "TAMPU_TS": str(PACKAGE / "build"), "TAMPU_TOKEN": token}
    program = ROOT / "tests" / "peers" / "typescript_session.mjs"
    done = subprocess.run(["node", program, address, TAMPU], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    print("".join(f"  {line}\n" for line in done.stdout.splitlines()), end="")
    check(f"a session with a real hub over {way}", done.returncode == 0 and done.stdout.endswith("done\n"))


def over_a_killed_hub(place, hub, socket):
    """A program logs while its hub is killed and started again: each record is in the archive once."""
    count = 30_000
    environment = {**place.environment, "TAMPU_TS": str(PACKAGE / "build")}
    program = ["node", ROOT / "tests" / "peers" / "typescript_logger.mjs", socket, str(count)]
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as logs:
        check("it logs", logs.stdout.readline() == "begun\n")
        kill(place, hub)
        place.up()
        said = logs.communicate(timeout=120)[0]
    check(f"it lost nothing over a killed hub: {said.strip()}", logs.returncode == 0 and said == "lost 0\n")
    check("each record is in the archive once", once_each(place.messages("ts/killed"), [f"record {number}" for number in range(count)]))


def main():
    print("typescript", flush=True)
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "node"], check=True)
    npm("ci", "--no-audit", "--no-fund", "--ignore-scripts")
    said = npm("test")
    check("its own tests", "# fail 0" in said and "# pass" in said)
    place = Place("ts")
    try:
        hub = place.up()
        socket = until("the gateway's socket", lambda: next(pathlib.Path(place.directory).rglob("gateway.sock"), None))
        # Before the sessions, whose warnings the first program would show.
        programs(place, socket)
        session(place, "the gateway's socket", socket)
        over_a_killed_hub(place, hub, socket)
    finally:
        place.close()
    place = Place("ts")
    try:
        place.up(roles=True)
        book = until("the logbook's address", lambda: next(pathlib.Path(place.directory).rglob("book.json"), None))
        book = json.loads(book.read_text())
        session(place, "WebSocket", book["url"], book["token"])
    finally:
        place.close()


if __name__ == "__main__":
    main()
