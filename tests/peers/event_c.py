#!/usr/bin/env python3
"""Events from C and C++: every type and format, callbacks, queues, polls and bad input in one program, without a hub and beside one;
then the commands beside a server in C++, which is killed."""

import json
import os
import subprocess

from cxx import BINDING, C, CXX, ROOT, Programs, build
from hub import Place, check, until

KILLED = r"""
#include <chrono>
#include <cstdio>
#include <thread>

#include "tampu_event.hpp"

int main() {
    const tampu::event::Server server("vacuum");
    tampu::event::Config config;
    config.name = "sr/vacuum/c01-1/pressure";
    config.unit = "mbar";
    config.change_abs = "1e-12";
    const auto pressure = server.declare<double>(config);
    for (int step = 0;; ++step) {
        pressure.push(1e-9 * (1 + step));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}
"""

FOLLOWS = r"""
#include <cstdio>

#include "tampu_event.hpp"

int main() {
    const tampu::event::Client client("panel");
    const auto queue = client.queue({"sr/vacuum/*/pressure"}, 1000);
    for (bool over = false; !over;) {
        queue.next(60000, [&](const tampu::event::Event &event) {
            if (event.reason() == TAMPU_EVENT_UPDATE) {
                std::puts("update");
                std::fflush(stdout);
            }
            over = event.reason() == TAMPU_EVENT_SOURCE_DIED;
        });
    }
    std::puts("died");
    return 0;
}
"""


def run(place, program):
    """Runs a program to its end, which must succeed; gives its output."""
    done = subprocess.run([program], env=place.environment, stdout=subprocess.PIPE, text=True, timeout=300, check=False)
    if done.returncode != 0:
        print(done.stdout)
    check(f"{os.path.basename(program)} ends with 0", done.returncode == 0)
    return done.stdout


def examples(place, programs):
    """The examples show what their first lines say."""
    said = run(place, programs.compile(C, BINDING / "examples" / "pressure.c"))
    name = "sr/vacuum/c01-1/pressure"
    check(f"an example in C: {said.splitlines()}", said.splitlines() == [f"{name}: 1.2e-09 mbar", f"{name}: 1.4e-09 mbar"])
    said = run(place, programs.compile(CXX, BINDING / "examples" / "trend.cpp", "-pthread"))
    row = "corr/baseband/1/spectrum: 1024 channels, {} K in all"
    check(f"an example in C++: {said.splitlines()}", said.splitlines() == [row.format(1024), row.format(1025)])


def killed(place, programs):
    """A client in C++ and the commands see the events of a server in C++, and its death."""
    sources = {}
    for name, text in (("killed", KILLED), ("follows", FOLLOWS)):
        source = os.path.join(programs.directory.name, f"{name}.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        sources[name] = programs.compile(CXX, source, "-pthread")
    server = subprocess.Popen([sources["killed"]], env=place.environment)
    follower = subprocess.Popen([sources["follows"]], env=place.environment, stdout=subprocess.PIPE, text=True)
    place.processes += [server, follower]
    check("a client in C++ gets updates", follower.stdout.readline() == "update\n")
    lines = place.run("event", "list", "--json").stdout.splitlines()
    listed = [json.loads(line) for line in lines if "pressure" in line]
    check("the command lists the attribute", len(listed) == 1 and "mbar" in lines[0])
    server.kill()
    rest = follower.communicate(timeout=60)[0].splitlines()
    check("and is told that the server died", rest[-1] == "died" and follower.returncode == 0)


def main():
    print("event_c", flush=True)
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "cc", "cxx"], check=True)
    build()
    programs = Programs()
    places = [Place("alone"), Place("hub")]
    try:
        places[1].up()
        types = programs.compile(CXX, ROOT / "tests" / "peers" / "cxx_events.cpp", "-pthread")
        for place, where in zip(places, ("without a hub", "beside a hub")):
            said = run(place, types).splitlines()
            check(f"every type, order, polls, failures, {where}: {said[-1]}", said[-1].endswith(", failed 0"))
        examples(places[0], programs)
        killed(places[1], programs)
    finally:
        for place in places:
            place.close()


if __name__ == "__main__":
    main()
