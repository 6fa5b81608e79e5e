#!/usr/bin/env python3
"""The pages of the console: types, tests without a page, and that `ui/dist` is what its sources build."""

import pathlib
import subprocess

from hub import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
UI = ROOT / "ui"


def run(*command):
    """Runs a command of the package; gives its output."""
    done = subprocess.run(command, cwd=UI, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False)
    if done.returncode != 0:
        print(done.stdout[-4000:])
    check(" ".join(command), done.returncode == 0)
    return done.stdout


def main():
    print("console files", flush=True)
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "node"], check=True)
    run("npm", "ci", "--no-audit", "--no-fund", "--silent")
    run("npm", "run", "--silent", "check")
    said = run("npm", "test", "--silent")
    check("its tests ran", "# fail 0" in said and "# pass 0" not in said)
    run("node", "scripts/compare.mjs")
    print("passed")


if __name__ == "__main__":
    main()
