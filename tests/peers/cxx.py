#!/usr/bin/env python3
"""The C library, the C++ header, the sink for spdlog and the appender for log4cplus: their examples are compiled, run, and killed beside a real hub."""

import os
import pathlib
import subprocess
import tempfile

from hub import Place, check, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINDING = ROOT / "bindings" / "c"
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.expanduser("~/.cache/tampu/target")
STRICT = ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{BINDING}/include", f"-L{TARGET}/debug", f"-Wl,-rpath,{TARGET}/debug"]
C = ["gcc", "-std=c11", *STRICT]
CXX = ["g++", "-std=c++17", *STRICT]
# Statements that must not compile, and what the compiler says to them.
WRONG = {
    'TAMPU_INFO(logger, "{} {}", 1);': "shows as many arguments",
    'TAMPU_INFO(logger, "{}", 1, 2);': "shows as many arguments",
    'TAMPU_INFO(logger, "}");': "no format text",
    'TAMPU_INFO(logger, "{:{}}", 1, 2);': "no format text",
    'TAMPU_INFO(logger, "{}", TAMPU_DATA("a", 1), 2);': "stands behind",
    'int number = 0; TAMPU_INFO(logger, "{}", &number);': "const void",
    'struct Mute {}; TAMPU_INFO(logger, "{}", Mute());': "LoggedAs",
}


def build():
    """Builds the C library, as the tests have it."""
    subprocess.run([str(ROOT / "scripts" / "build-unoptimised.sh"), "--quiet"], env={**os.environ, "CARGO_TARGET_DIR": TARGET}, check=True)


class Programs:
    """A directory of compiled programs."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="tampu-cxx-")

    def compile(self, compiler, source, *libraries):
        """Compiles a program without a warning."""
        program = os.path.join(self.directory.name, pathlib.Path(source).stem)
        subprocess.run([*compiler, str(source), "-ltampu_log", *libraries, "-o", program], check=True)
        return program

    def refuses(self, statement, why):
        """Whether the compiler refuses a statement and says why."""
        source = os.path.join(self.directory.name, "wrong.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write('#include "tampu_log.hpp"\nvoid call(const tampu::Logger &logger) {\n' + statement + "\n}\n")
        done = subprocess.run([*CXX, "-fsyntax-only", source], stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode != 0 and why in done.stderr


def run(place, program, *arguments):
    """Runs a program to its end, which must succeed; returns its output."""
    done = subprocess.run([program, *arguments], env=place.environment, check=True, timeout=120, stdout=subprocess.PIPE, text=True)
    return done.stdout


def line_of(source, text):
    """The number of the one line that has this text."""
    found = [number for number, line in enumerate(source.read_text().splitlines(), 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


def essence(record):
    """What a program has said, and where: without its time and its process."""
    data = {datum["name"]: datum["value"] for datum in record.get("data", [])}
    where = (os.path.basename(record.get("file", "")), record.get("line"), record.get("routine", ""))
    return (record["level"], record["logger"], record.get("source_object", ""), record["message"], data, *where)


def shown(place, process, expected, source):
    """Checks what is kept of an example, in order. `expected` has a piece of the source's text for the line."""
    until(f"the records of {process}", lambda: len(place.records(process)) >= len(expected))
    place_of = lambda text, routine: (source.name, line_of(source, text), routine) if text else ("", None, "")
    expected = [(*said, *place_of(text, routine)) for *said, text, routine in expected]
    found = [essence(record) for record in place.records(process)]
    for one, other in zip(found, expected):
        if one != other:
            print(f"  found    {one}\n  expected {other}")
    check(f"the records of {source.name}: level, logger, text, data, place", found == expected)


def hello(place, programs):
    source = BINDING / "examples" / "hello.c"
    run(place, programs.compile(C, source))
    shown(place, "CONTROL/DV01", [
        ("Notice", "CONTROL/DV01", "", "a text with {braces} and 100 % of itself", {}, "TAMPU_LOG_NOTICE", "main"),
        ("Info", "mount", "CONTROL/DV01/Mount/AzDrive", "az 269.900 el 45.000 of DV01", {}, "az %.3f", "main"),
    ], source)


def mount(place, programs):
    source = BINDING / "examples" / "mount.cpp"
    program = programs.compile(CXX, source)
    said = run(place, program)
    check("a C++ program is told that its records are kept", said.splitlines()[-1:] == ["kept"])
    who = ("mount", "CONTROL/DV01/Mount")
    report = lambda text: ("Debug", *who, text, {}, "az {:8.3f}", "report")
    status = ("Warning", *who, "status 0x002a of   DV01, true", {}, "status {:#06x}", "report")
    slewing = ("Info", *who, "slewing to 3C273 at (-57.5, 21.25)", {"scan": "7", "target": "3C273"}, "slewing", "slew")
    shown(place, "CONTROL/DV01", [
        slewing,
        report("az  269.900 el +1.25e-03 mode 2 tries 3"), status,
        report("az   -0.500 el +8.80e+01 mode 1 tries None"), status,
    ], source)
    return program


def spdlog(place, programs):
    source = BINDING / "examples" / "spdlog.cpp"
    run(place, programs.compile(CXX, source, "-lfmt"))
    shown(place, "CORR/CORRELATOR", [
        ("Info", "CORR/CORRELATOR", "", "integration 12 begins", {}, "", ""),
        ("Debug", "CORR/CORRELATOR", "", "quadrant 03 at 72.0 C", {}, "quadrant", "main"),
        ("Critical", "baseband", "", "no lock after 60 tries", {}, "", ""),
    ], source)


def log4cplus(place, programs):
    source = BINDING / "examples" / "log4cplus.cpp"
    run(place, programs.compile(CXX, source, "-llog4cplus"))
    shown(place, "CORR/CORRELATOR", [
        ("Info", "CORR/CORRELATOR", "", "integration 12 begins", {}, "integration", "int main()"),
        ("Critical", "corr.baseband", "", "no lock after 60 tries", {"quadrant": "3", "ndc": "lock loop"}, "no lock", "int main()"),
    ], source)


def formats(place, programs):
    """The same arguments through fmt in the program, and through us: the program prints what fmt gave."""
    program = programs.compile(CXX, ROOT / "tests" / "peers" / "cxx_formats.cpp", "-lfmt")
    # Several times: each ends in order, and none may be taken for dead.
    expected = [text for _ in range(10) for text in run(place, program).split("\x1e")[:-1]]
    until("the records of formats", lambda: len(place.records("formats")) >= len(expected))
    found = place.messages("formats")
    for one, other in zip(found, expected):
        if one != other:
            print(f"  found    {one!r}\n  expected {other!r}")
    if len(found) != len(expected):
        print(f"  {len(found)} found, {len(expected)} expected; the last ones found: {found[-3:]}")
    check(f"{len(expected)} texts as fmt gives them", found == expected and len(expected) > 50)


def rings(place, programs):
    """Every turn that a ring takes: the program says how many records of each kind there must be."""
    program = programs.compile(CXX, ROOT / "tests" / "peers" / "cxx_rings.cpp", "-pthread")
    said = subprocess.run([program], env=place.environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
    expected = {line.split()[0]: int(line.split()[1]) for line in said.splitlines()}
    check("none was lost", expected.pop("lost") == 0)

    def counted():
        kinds = [message.split()[1] for message in place.messages("rings") if message.startswith("kind ")]
        return {kind: kinds.count(kind) for kind in set(kinds)}

    until("the records of rings", lambda: counted() == expected)
    check(f"{sum(expected.values())} records of threads, nested, long, chained and of a child, each once", counted() == expected)


def killed(place, program):
    """One that is killed while no hub runs: what it said before is recovered when there is one again."""
    with subprocess.Popen([program, "die"], env=place.environment, stdout=subprocess.PIPE, text=True) as victim:
        check("it says that it has said all", victim.stdout.readline() == "said all\n")
        victim.kill()
    place.up()
    expected = [f"the last {number} of die" for number in range(1000)]
    ours = lambda: [record["message"] for record in place.records("CONTROL/DV01") if record.get("context") == "the end"]
    until("the records of the dead", lambda: len(ours()) >= len(expected))
    check("each record of a killed program is there once, in order", ours() == expected)


def main():
    print("cxx", flush=True)
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "cc", "cxx", "spdlog", "log4cplus"], check=True)
    build()
    programs = Programs()
    programs.compile(CXX, BINDING / "examples" / "call_cost.cpp")
    for statement, why in WRONG.items():
        check(f"refused: {statement}", programs.refuses(statement, why))
    places = {name: Place(name) for name in ("hello", "mount", "spdlog", "log4cplus", "formats", "rings", "killed")}
    try:
        examples = {"hello": hello, "mount": mount, "spdlog": spdlog, "log4cplus": log4cplus, "formats": formats, "rings": rings}
        for name, example in examples.items():
            places[name].up()
            program = example(places[name], programs) or None
            if name == "mount":
                killed(places["killed"], program)
    finally:
        for place in places.values():
            place.close()


if __name__ == "__main__":
    main()
