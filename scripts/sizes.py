#!/usr/bin/env python3
"""Sizes of what is delivered: the console's files as browsers get them, the program, and the packages of the languages.

    sizes.py [--json] [PROGRAM ...]

Without a program those of the target directory are measured, as far as they are built: `make wheel`, `make java`,
`make typescript` and `make install-c` build the packages. A browser gets the brotli form of
a file, of the views that it opens. The first view is the page with the log: `make bench-console` measures it in a browser.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

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


def files_below(directory, *patterns):
    """The files of these patterns in their order."""
    return sorted(file for pattern in patterns for file in directory.glob(pattern))


def packages():
    """Yields names and sizes of the packages of the languages."""
    headers = files_below(ROOT / "bindings/c/include", "*.h", "*.hpp")
    for header in headers:
        yield f"C and C++, header {header.name}", header.stat().st_size
    yield "C and C++, all headers", sum(header.stat().st_size for header in headers)
    library = TARGET / "release/libtampu_log.so"
    if library.exists():
        yield "C and C++, libtampu_log.so", library.stat().st_size
        if size := stripped(library):
            yield "C and C++, libtampu_log.so, without symbols", size
    for jar in files_below(TARGET / "java", "tampu/tampu-[0-9]*.jar", "tampu-[ls]*/tampu-*-[0-9]*.jar"):
        yield f"Java, {jar.name}", jar.stat().st_size
    for package in files_below(TARGET / "npm", "tampu-*.tgz"):
        yield f"TypeScript, {package.name}", package.stat().st_size
    for package in files_below(TARGET / "wheels", "tampu-*.whl", "tampu-*.tar.gz"):
        yield f"Python, {package.name}", package.stat().st_size
        if package.suffix == ".whl":
            with zipfile.ZipFile(package) as wheel:
                yield f"Python, {package.name}, installed", sum(file.file_size for file in wheel.infolist())


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
    yield from packages()


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
