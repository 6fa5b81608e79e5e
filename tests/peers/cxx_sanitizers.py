#!/usr/bin/env python3
"""Programs in C and C++ under the compiler's sanitizers beside a real hub: AddressSanitizer with its search for leaks and
UndefinedBehaviorSanitizer for all, ThreadSanitizer for the records that C++'s header writes into the rings of threads.

The library is not instrumented. What ThreadSanitizer sees of it is left out, and so it does not see what the library orders either:
callbacks come in the library's threads, and it would call each of them a race."""

import pathlib
import subprocess

from cxx import BINDING, C, CXX, ROOT, Programs, build
from hub import Place, check

SANITIZED = ["-g", "-O1", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-pthread"]
EXAMPLES = BINDING / "examples"
PEERS = ROOT / "tests" / "peers"
# Each program with its compiler and libraries. GCC warns about its own library under a sanitizer, so warnings are no errors here.
PROGRAMS = {
    EXAMPLES / "hello.c": (C, []),
    EXAMPLES / "mount.cpp": (CXX, []),
    EXAMPLES / "spdlog.cpp": (CXX, ["-lfmt"]),
    EXAMPLES / "log4cplus.cpp": (CXX, ["-llog4cplus"]),
    EXAMPLES / "pressure.c": (C, []),
    EXAMPLES / "trend.cpp": (CXX, []),
    EXAMPLES / "recorder.cpp": (CXX, []),
    PEERS / "cxx_formats.cpp": (CXX, ["-lfmt"]),
    PEERS / "cxx_rings.cpp": (CXX, []),
    PEERS / "cxx_events.cpp": (CXX, []),
}
# A statement is never freed. If two threads meet at its first call, both describe it, and one description is never used. And of a
# session that a program closes as soon as it is open, zenoh sometimes keeps a few kilobytes, until the program ends.
LEAKS = "leak:store_call\nleak:zenoh\n"
# The library has no frame pointers, so the stack of an allocation is found by its tables.
WHOLE_STACKS = "fast_unwind_on_malloc=0:malloc_context_size=100"
RACES = "called_from_lib:libtampu_log.so\n"
THREADS = [PEERS / "cxx_formats.cpp", PEERS / "cxx_rings.cpp"]


def clean(place, programs, source, sanitizer, options):
    """Compiles a program with a sanitizer and runs it: it ends with 0, and the sanitizer has nothing to say."""
    compiler, libraries = PROGRAMS[source]
    flags = [flag for flag in compiler if flag not in ("-O2", "-Werror")]
    program = programs.compile([*flags, *SANITIZED, f"-fsanitize={sanitizer}"], source, *libraries)
    environment = {**place.environment, **options}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=300, check=False)
    said = "Sanitizer" in done.stderr or "runtime error" in done.stderr
    if done.returncode != 0 or said:
        print(done.stderr[:6000])
    check(f"{source.name} under -fsanitize={sanitizer}", done.returncode == 0 and not said)


def main():
    print("cxx_sanitizers", flush=True)
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "cc", "cxx", "spdlog", "log4cplus"], check=True)
    build()
    programs = Programs()
    suppressions = {}
    for name, text in (("leaks", LEAKS), ("races", RACES)):
        suppressions[name] = pathlib.Path(programs.directory.name, name)
        suppressions[name].write_text(text)
    leaks = {"ASAN_OPTIONS": WHOLE_STACKS, "LSAN_OPTIONS": f"suppressions={suppressions['leaks']}:print_suppressions=0"}
    races = {"TSAN_OPTIONS": f"suppressions={suppressions['races']}"}
    place = Place("sanitizers")
    try:
        place.up()
        for source in PROGRAMS:
            clean(place, programs, source, "address,undefined", leaks)
        for source in THREADS:
            clean(place, programs, source, "thread", races)
    finally:
        place.close()


if __name__ == "__main__":
    main()
