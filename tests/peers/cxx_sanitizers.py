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
    EXAMPLES / "bulk_recv.c": (C, []),
    EXAMPLES / "bulk_send.c": (C, []),
}
# Those that are the two ends of a transfer.
ENDS = [EXAMPLES / "bulk_recv.c", EXAMPLES / "bulk_send.c"]
# Bytes of the transfer: several blocks, and a part of one.
BYTES = 5_000_001
# A statement is never freed. If two threads meet at its first call, both describe it, and one description is never used. And of a
# session that a program closes as soon as it is open, zenoh sometimes keeps a few kilobytes, until the program ends.
LEAKS = "leak:store_call\nleak:zenoh\n"
# The library has no frame pointers, so the stack of an allocation is found by its tables.
WHOLE_STACKS = "fast_unwind_on_malloc=0:malloc_context_size=100"
RACES = "called_from_lib:libtampu_log.so\n"
THREADS = [PEERS / "cxx_formats.cpp", PEERS / "cxx_rings.cpp"]


def compiled(programs, source, sanitizer):
    """Compiles a program with a sanitizer; returns its path."""
    compiler, libraries = PROGRAMS[source]
    flags = [flag for flag in compiler if flag not in ("-O2", "-Werror")]
    return programs.compile([*flags, *SANITIZED, f"-fsanitize={sanitizer}"], source, *libraries)


def judge(source, sanitizer, code, errors):
    """The program ended with 0, and the sanitizer had nothing to say."""
    said = "Sanitizer" in errors or "runtime error" in errors
    if code != 0 or said:
        print(errors[:6000])
    check(f"{source.name} under -fsanitize={sanitizer}", code == 0 and not said)


def clean(place, programs, source, sanitizer, options):
    """Runs a program with a sanitizer."""
    program = compiled(programs, source, sanitizer)
    environment = {**place.environment, **options}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=300, check=False)
    judge(source, sanitizer, done.returncode, done.stderr)


def transfer(place, programs, sanitizer, options):
    """Both ends of a transfer with a sanitizer: the receiver compares each byte."""
    receives, sends = (compiled(programs, source, sanitizer) for source in ENDS)
    environment = {**place.environment, **options}
    receiver = subprocess.Popen([receives], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    place.processes.append(receiver)
    check("the receiver prints its target", receiver.stdout.readline().strip())
    sender = subprocess.run([sends, str(BYTES)], env=environment, capture_output=True, text=True, timeout=300, check=False)
    said, errors = receiver.communicate(timeout=60)
    check(f"the transfer is complete: {said.splitlines()[-1:]}", str(BYTES) in said)
    judge(ENDS[0], sanitizer, receiver.returncode, errors)
    judge(ENDS[1], sanitizer, sender.returncode, sender.stderr)


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
        transfer(place, programs, "address,undefined", leaks)
        for source in [source for source in PROGRAMS if source not in ENDS]:
            clean(place, programs, source, "address,undefined", leaks)
        for source in THREADS:
            clean(place, programs, source, "thread", races)
    finally:
        place.close()


if __name__ == "__main__":
    main()
