#!/usr/bin/env python3
"""Sizes of what is delivered: the console's files as browsers get them, and the program.

    sizes.py [--json] [PROGRAM ...]

Without a program those of the target directory are measured, as far as they are built. A browser gets the brotli form of
a file, of the views that it opens. The first view is the page with the log: `make bench-console` measures it in a browser.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", os.path.expanduser("~/.cache/tampu/target")))


def stripped(program):
    """Size of a program without symbols; None without the tool."""
    with tempfile.NamedTemporaryFile(prefix="tampu-size-") as copy:
        try:
            subprocess.run(["strip", "-o", copy.name, str(program)], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return os.path.getsize(copy.name)


def rows(programs):
    """Yields names and sizes in bytes."""
    files = [file for file in (ROOT / "ui/dist").rglob("*") if file.is_file()]
    plain = [file for file in files if file.suffix not in (".br", ".gz")]
    small = lambda file: next((other for other in [file.with_name(file.name + ".br")] if other.exists()), file)
    yield "console, all views, brotli", sum(small(file).stat().st_size for file in plain)
    yield "console, all views, not compressed", sum(file.stat().st_size for file in plain)
    yield "console, largest file, brotli", max(small(file).stat().st_size for file in plain)
    yield "console in the program, in all forms", sum(file.stat().st_size for file in files)
    for program in programs:
        yield f"{program}", program.stat().st_size
        if size := stripped(program):
            yield f"{program}, without symbols", size


def main():
    """Prints a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", type=pathlib.Path, metavar="PROGRAM")
    parser.add_argument("--json", action="store_true", help="a JSON object a row")
    arguments = parser.parse_args()
    built = [TARGET / profile / "tampu" for profile in ("release", "debug")]
    for name, size in rows(arguments.programs or [program for program in built if program.exists()]):
        print(json.dumps({"name": name, "bytes": size}) if arguments.json else f"{name:60} {size:>12,} bytes {size / 1e6:9.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
