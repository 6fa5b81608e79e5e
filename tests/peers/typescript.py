#!/usr/bin/env python3
"""The TypeScript package: its types, its tests with the vectors, and a session with a real hub over the gateway's socket."""

import os
import pathlib
import subprocess

from hub import TAMPU, Place, check, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bindings" / "typescript"


def npm(*arguments):
    """Runs npm, quietly; gives its output."""
    done = subprocess.run(["npm", "--silent", *arguments], cwd=PACKAGE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    if done.returncode != 0:
        print(done.stdout[-4000:])
    check(f"npm {arguments[0]}", done.returncode == 0)
    return done.stdout


def main():
    print("typescript", flush=True)
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "node"], check=True)
    npm("ci", "--no-audit", "--no-fund", "--ignore-scripts")
    said = npm("test")
    check("its own tests", "# fail 0" in said and "# pass" in said)
    place = Place("ts")
    try:
        place.up()
        socket = until("the gateway's socket", lambda: next(pathlib.Path(place.directory).rglob("gateway.sock"), None))
        environment = {**place.environment, "TAMPU_TS": str(PACKAGE / "build")}
        program = ROOT / "tests" / "peers" / "typescript_session.mjs"
        done = subprocess.run(["node", program, socket, TAMPU], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        print("".join(f"  {line}\n" for line in done.stdout.splitlines()), end="")
        check("a session with a real hub", done.returncode == 0 and done.stdout.endswith("done\n"))
    finally:
        place.close()


if __name__ == "__main__":
    main()
