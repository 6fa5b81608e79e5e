#!/usr/bin/env python3
"""The C library, installed into an empty place: programs of the pages for users find it by pkg-config and by CMake, run, and show what
the pages say."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

from cxx import ROOT, TARGET
from hub import Place, check, until

STRICT = ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = {"c": ["gcc", "-std=c11"], "cpp": ["g++", "-std=c++17"]}
# The programs of the pages in their order.
PAGES = {
    "docs/logs.md": ["cpp", "c"],
    "docs/events.md": ["cpp"],
    "docs/bulk.md": ["cpp", "c"],
}
CMAKE = """cmake_minimum_required(VERSION 3.16)
project(installed CXX)
find_package(tampu {version} REQUIRED)
add_executable(mount mount.cpp)
target_link_libraries(mount PRIVATE tampu::tampu)
"""


class Installed:
    """`make install-c` in an empty directory, and programs that use what it has put there."""

    def __init__(self, directory):
        self.directory = directory
        self.prefix = os.path.join(directory, "prefix")
        # As on a host that has nothing of a checkout.
        self.environment = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "CPATH", "LIBRARY_PATH")}
        self.environment["PKG_CONFIG_PATH"] = os.path.join(self.prefix, "lib", "pkgconfig")
        make = ["make", "-s", "-C", str(ROOT), "install-c", f"PREFIX={self.prefix}", "PROFILE=debug", f"CARGO_TARGET_DIR={TARGET}"]
        subprocess.run(make, check=True)

    def pkg_config(self, *arguments):
        """What pkg-config says of the library."""
        done = subprocess.run(["pkg-config", *arguments, "tampu"], env=self.environment, check=True, stdout=subprocess.PIPE, text=True)
        return shlex.split(done.stdout)

    def compile(self, page, number, language, code):
        """Compiles a program as the page of the languages says."""
        program = os.path.join(self.directory, f"{pathlib.Path(page).stem}{number}")
        source = f"{program}.{language}"
        pathlib.Path(source).write_text(code)
        flags = self.pkg_config("--cflags", "--libs")
        subprocess.run([*COMPILERS[language], *STRICT, source, "-o", program, *flags], env=self.environment, check=True)
        return program

    def by_cmake(self, code, version):
        """Builds a program with CMake; returns what CMake did last, and the program."""
        below = pathlib.Path(self.directory, f"cmake-{version}")
        below.mkdir()
        (below / "mount.cpp").write_text(code)
        (below / "CMakeLists.txt").write_text(CMAKE.format(version=version))
        for step in (["-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}"], ["--build", "build"]):
            done = subprocess.run(["cmake", *step], cwd=below, env=self.environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                break
        return done, below / "build" / "mount"


def programs():
    """The programs of the pages: page, number, language and code."""
    fence = re.compile(r"^```(c|cpp)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    pages = {str(page.relative_to(ROOT)): fence.findall(page.read_text()) for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}
    found = {page: [language for language, _ in codes] for page, codes in pages.items() if codes}
    check(f"the programs of the pages are those of this test: {found}", found == PAGES)
    return [(page, number, language, code) for page in PAGES for number, (language, code) in enumerate(pages[page])]


def run(place, program):
    """Runs a program to its end; returns its output."""
    done = subprocess.run([program], env=place.environment, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
    check(f"{os.path.basename(program)} ends with 0", done.returncode == 0)
    return done.stdout


def logged(place, program, data):
    """A program logs the record of the page."""
    before = len(place.records("CONTROL/DV01"))
    said = run(place, program)
    record = until("its record", lambda: place.records("CONTROL/DV01")[before:])[0]
    shown = {datum["name"]: datum["value"] for datum in record.get("data", [])}
    check(
        f"{os.path.basename(program)} shows: {record['level']} {record['message']} {shown}",
        (said, record["level"], record["message"], shown) == ("", "Info", "antenna DV01 at az 269.900", data),
    )


def controlled(place, program):
    """The sender of the page about bulk data is started by a command, and its spectra arrive."""
    out = os.path.join(place.directory, "spectra")
    receiver = place.start("bulk", "recv", "--stream", "correlator", "--flow", "spectra", "-o", out, "--limit", "1", stdout=subprocess.DEVNULL)
    sender = subprocess.Popen([program], env=place.environment)
    place.processes.append(sender)
    control = lambda *words: place.run("bulk", "control", *words, "--json", check=False)

    def connected():
        state = control("state", "correlator")
        return state.returncode == 0 and json.loads(state.stdout)["report"]["sender"]["flows"][0]["receivers"]

    until("the sender has its receiver", connected)
    started = control("start", "correlator", "--parameter", "uid://A002/X1")
    check("the command starts it", json.loads(started.stdout)["starts"] == 1)
    check("the receiver has a transfer", receiver.wait(timeout=120) == 0)
    sizes = [path.stat().st_size for path in pathlib.Path(out).rglob("*") if path.is_file()]
    check(f"its spectra have arrived: {sizes}", sizes == [60 << 20])
    sender.kill()


def main():
    print("cxx_installed", flush=True)
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "cc", "cxx", "cmake"], check=True)
    with tempfile.TemporaryDirectory(prefix="tampu-installed-") as directory:
        installed = Installed(directory)
        place = Place("installed")
        try:
            place.up()
            version = installed.pkg_config("--modversion")[0]
            told = place.run("--version").stdout.split()[1]
            check(f"pkg-config knows the version of the program: {version}", version == told)
            codes = {}
            for page, number, language, code in programs():
                codes[page, number] = code
                program = installed.compile(page, number, language, code)
                if page == "docs/logs.md":
                    logged(place, program, {"elevation": "62.5"} if language == "cpp" else {})
                elif page == "docs/events.md":
                    shown = run(place, program)
                    check(f"the example of {page} shows: {shown.strip()}", shown == "sr/vacuum/c01-1/pressure: 1.2e-09\n")
                elif language == "cpp":
                    controlled(place, program)
                else:
                    check("the flow of the page opens", run(place, program) == "")
            done, program = installed.by_cmake(codes["docs/logs.md", 0], version)
            if done.returncode != 0:
                print(done.stdout, done.stderr)
            check("CMake finds the package and builds", done.returncode == 0)
            logged(place, str(program), {"elevation": "62.5"})
            done, _ = installed.by_cmake(codes["docs/logs.md", 0], "99.0")
            check("CMake refuses a later version, and names the installed one", done.returncode != 0 and version in done.stderr)
        finally:
            place.close()


if __name__ == "__main__":
    main()
