#!/usr/bin/env python3
"""Bulk data from C: the examples are compiled and send 100 MB to each other, by a target without the bus and found on the bus, and
to and from the commands."""

import json
import os
import pathlib
import re
import subprocess

from cxx import BINDING, C, CXX, ROOT, Programs, build
from hub import Place, check, until

BYTES = 100_000_000
# The largest transfer is longer than the window, and ends inside a block and a frame.
SIZES = (0, 1, BYTES)
RECEIVED = "received {}, 0 wrong, 0 lost, complete"


def receive(place, program, *arguments):
    """Starts a receiver; gives it and its target."""
    receiver = subprocess.Popen([program, *arguments], env=place.environment, stdout=subprocess.PIPE, text=True)
    place.processes.append(receiver)
    word, target = receiver.stdout.readline().split()
    assert word == "target", word
    return receiver, target


def transfer(place, programs, size, by_target):
    """One process sends, another compares."""
    send, recv = programs
    receiver, target = receive(place, recv, *(["alone"] if by_target else []))
    sent = subprocess.run(
        [send, str(size), *([target] if by_target else [])], env=place.environment, stdout=subprocess.PIPE, text=True, timeout=120, check=True
    ).stdout
    said = receiver.communicate(timeout=60)[0].splitlines()
    way = "by its target, over TCP" if by_target else "found on the bus"
    expected = ["start uid://A002/X1 from CORR/CORRELATOR", *(["data"] if size else []), RECEIVED.format(size)]
    if said != expected:
        print(f"  found {said}")
    check(f"{size} bytes to a receiver {way}", sent == f"sent {size} to 1 of 1\n" and said == expected and receiver.returncode == 0)


def to_the_command(place, send, size):
    """A hub and its command take what C sends; the hub has heard of the transfer."""
    out = os.path.join(place.directory, "taken")
    command = place.start("bulk", "recv", "--stream", "correlator", "--flow", "spectra", "--output", out, "--limit", "1")
    subprocess.run([send, str(size)], env=place.environment, check=True, timeout=120, stdout=subprocess.DEVNULL)
    check("the command ends with 0", command.wait(timeout=60) == 0)
    files = [file for file in pathlib.Path(out).rglob("*") if file.is_file()]
    block = lambda offset: bytes(((at * 0x9E3779B97F4A7C15) & (2**64 - 1)) >> 56 for at in range(offset, min(offset + 1000, size)))
    data = files[0].read_bytes() if len(files) == 1 else b""
    check("its file is as long and begins and ends so", len(data) == size and data[:1000] == block(0) and data[-1000:] == block(size - 1000))


def refused(place, programs):
    """A sender that shows another token, and one whose receiver is not there."""
    send, recv = programs
    receiver, target = receive(place, recv, "alone")
    wrong = target.rsplit("/", 1)[0] + "/" + "0" * 32
    for what, given, why in (("another token", wrong, "the token or the domain is another"), ("no target", "nowhere", "invalid target")):
        done = subprocess.run([send, "1", given, "1000"], env=place.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
        check(f"{what}: told, and no transfer: {done.stderr.strip()}", done.returncode == 1 and why in done.stderr)
    receiver.kill()
    check("the receiver has taken nothing", receiver.communicate()[0] == "")


def killed(place, programs):
    """A sender that dies inside a transfer: the receiver's stop comes, and says that it is not complete."""
    send, recv = programs
    receiver, target = receive(place, recv, "alone")
    sender = subprocess.Popen([send, str(10**12), target], env=place.environment)
    place.processes.append(sender)
    while receiver.stdout.readline() != "data\n":
        assert sender.poll() is None and receiver.poll() is None, "both run until data is under way"
    sender.kill()
    said = receiver.communicate(timeout=60)[0].splitlines()
    check(f"the sender was killed: {said[-1]}", said[-1].endswith("incomplete") and " 0 wrong" in said[-1] and receiver.returncode == 1)


def several_flows(place, programs):
    """The example in C++: two flows of one stream, blocks that are lent, sending at an interval, a callback that gives up."""
    done = subprocess.run([programs.compile(CXX, BINDING / "examples" / "recorder.cpp")], env=place.environment, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
    said = done.stdout.splitlines()
    total = 10 << 20
    expected = [
        "spectra: start uid://A002/X1 from CORR/CORRELATOR", f"spectra: {total} bytes, complete", f"{total} bytes to 1 of 1",
        "metadata: start header from CORR/CORRELATOR", "metadata: 12 bytes, complete", "metadata: start refused from CORR/CORRELATOR",
    ]
    if said[:6] != expected or "no more, please" not in done.stdout:
        print(f"  found {said}")
    check("an example in C++: two flows", done.returncode == 0 and said[:6] == expected and "no more, please" in done.stdout)


GIVES_UP = """
#include "tampu_bulk.h"
int main(void) {
    tampu_bulk_participant *me = tampu_bulk_join("CORR/GIVES-UP");
    tampu_bulk_sender *sender = tampu_bulk_sender_open(me, "correlator", "spectra", 0, 0);
    int wrong = tampu_bulk_sender_follow(sender) != 0 || tampu_bulk_sender_wait(sender, 1, 30000) != 1;
    wrong |= tampu_bulk_start(sender, "first", 5) != 0 || tampu_bulk_send(sender, "data", 4) != 0 || tampu_bulk_reset(sender) != 0;
    wrong |= tampu_bulk_start(sender, "second", 6) != 0;
    tampu_bulk_sender_close(sender);
    tampu_bulk_leave(me);
    return wrong;
}
"""


def given_up(place, compiled, recv):
    """Transfers that are reset, or closed under way, have ended for the hub too."""
    source = os.path.join(compiled.directory.name, "gives_up.c")
    pathlib.Path(source).write_text(GIVES_UP)
    receiver, _ = receive(place, recv)
    subprocess.run([compiled.compile(C, source)], env=place.environment, check=True, timeout=120)
    receiver.kill()

    def heard():
        lines = place.run("bulk", "stat", "--past", "--json", check=False).stdout.splitlines()
        found = {one["parameter"]: one for one in map(json.loads, lines) if one["source"] == "CORR/GIVES-UP"}
        if len(found) < 2 or any(one["outcome"] == "under_way" for one in found.values()):
            return None
        return [(found[name]["outcome"], found[name]["why"][0].split(": ")[-1]) for name in ("first", "second")]

    told = until("the hub has heard of both", heard)
    check(f"what is reset or closed under way is over: {told}", told == [("incomplete", "it was reset"), ("incomplete", "it was closed")])


OBEYS = """
#include <cstdio>
#include <string>
#include "tampu_bulk.hpp"
using namespace tampu::bulk;
struct Counts : Callback {
    unsigned long bytes = 0;
    void start(const Start &) override { bytes = 0; }
    void data(const Piece &piece) override { bytes += piece.length; }
    void stop(const End &end) override { std::printf("stop %lu %s\\n", bytes, end.complete ? "complete" : "incomplete"); }
};
int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const auto me = Participant::join("CORR/OBEYS");
    Sender sender(me, "obedient", {{"spectra"}});
    sender.follow();
    const ControlledFlow controlled(sender.flow("spectra"), "corr", [](Flow &flow, const StartOrder &order) {
        std::printf("start %s file '%s'\\n", order.parameter.c_str(), order.file.c_str());
        if (!order.file.empty()) {
            throw std::runtime_error("no file is offered");
        }
        const std::string block(100000, 'x');
        flow.start(order.parameter);
        for (int count = 0; order.parameter == "forever" || count < 10; ++count) {
            flow.send(block.data(), block.size());
        }
        flow.stop();
    });
    Counts counts;
    tampu_bulk_handler handler = {};
    handler.context = &counts;
    handler.data = [](void *context, const tampu_bulk_piece *piece) { return static_cast<Counts *>(context)->data(*piece), 0; };
    handler.stop = [](void *context, const tampu_bulk_end *end) { return static_cast<Counts *>(context)->stop(*end), 0; };
    tampu_bulk_control *receiver =
        tampu_bulk_control_receiver(me.get(), "taker", "obedient", "spectra", nullptr, nullptr, &handler, sizeof handler);
    std::puts(receiver == nullptr ? tampu_bulk_last_error() : "offered");
    std::getchar();
    return tampu_bulk_control_end(receiver);
}
"""
COMMANDS = """
#include <stdio.h>
#include "tampu_bulk.h"
static void told(const char *what, int result) {
    printf("%s %d %s\\n", what, result, result != 0 ? tampu_bulk_last_error() : "");
}
int main(void) {
    tampu_bulk_participant *me = tampu_bulk_join("OPERATOR");
    int found = 1;
    while (found != 0) {
        found = tampu_bulk_control_open(me, "taker", 60000);
    }
    told("pace", tampu_bulk_control_pace(me, "corr", "spectra", 1e9, 60000));
    told("wrong pace", tampu_bulk_control_pace(me, "corr", NULL, 5, 60000));
    told("pause", tampu_bulk_control_pause(me, "corr", NULL, 60000));
    told("start", tampu_bulk_control_start(me, "corr", NULL, "uid://A002/X1", NULL, 60000));
    told("again", tampu_bulk_control_start(me, "corr", NULL, NULL, NULL, 60000));
    told("resume", tampu_bulk_control_resume(me, "corr", "", 60000));
    told("nobody", tampu_bulk_control_stop(me, "other", NULL, 1000));
    char *state = tampu_bulk_control_ask(me, "taker", NULL, 60000);
    printf("state %s\\n", state);
    tampu_bulk_control_free(state);
    told("unreadable", tampu_bulk_control_ask(me, "taker", "{\\"explode\\":{}}", 60000) == NULL);
    tampu_bulk_leave(me);
    return 0;
}
"""


def controlled(place, compiled):
    """A sender and a receiver in C++ obey a program in C and the command."""
    paths = []
    for name, code, language in (("obeys.cpp", OBEYS, CXX), ("commands.c", COMMANDS, C)):
        source = os.path.join(compiled.directory.name, name)
        pathlib.Path(source).write_text(code)
        paths.append(compiled.compile(language, source))
    obeys = subprocess.Popen([paths[0]], env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    place.processes.append(obeys)
    check("a sender and a receiver are offered", obeys.stdout.readline() == "offered\n")
    threads = {int(task.name): task.joinpath("status").read_text() for task in pathlib.Path(f"/proc/{obeys.pid}/task").iterdir()}
    blocked = {tid: bool(int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16) & 1 << 12) for tid, status in threads.items()}
    own = blocked.pop(obeys.pid)
    check(f"the {len(blocked)} threads of the library block SIGPIPE, and its own does not", len(blocked) > 5 and all(blocked.values()) and not own)
    said = subprocess.run([paths[1]], env=place.environment, stdout=subprocess.PIPE, text=True, timeout=120, check=False).stdout.splitlines()
    for at, (begin, within) in enumerate((
        ("pace 0", ""), ("wrong pace -1 ", "invalid rate of 5 bytes/s"), ("pause 0", ""), ("start 0", ""),
        ("again -1 ", "flow 'spectra' is sending what an earlier start began"), ("resume 0", ""),
        ("nobody 1 ", "no program offers the control 'other'; there are 'corr', 'taker'"), ("state {", '"kind":"receiver"'),
        ("unreadable 1 ", "unknown variant `explode`"),
    )):
        line = said[at] if at < len(said) else "-"
        check(f"a command from C: {line[:90]}", line.startswith(begin) and within in line)
    check("the start has arrived", obeys.stdout.readline() == "start uid://A002/X1 file ''\n")
    check("its data, too", obeys.stdout.readline() == "stop 1000000 complete\n")

    def state(*arguments):
        return json.loads(place.run("bulk", "control", *arguments, "--json").stdout)

    until("the start has ended", lambda: not state("state", "corr")["active"])
    state("start", "corr", "x.bin")
    check("a file is named", obeys.stdout.readline() == "start  file 'x.bin'\n")
    until("the exception is the failure", lambda: state("state", "corr")["failure"] == "no file is offered")
    state("start", "corr", "--parameter", "forever")
    check("another start", obeys.stdout.readline() == "start forever file ''\n")
    until("data flows", lambda: state("state", "corr")["report"]["sender"]["flows"][0]["bytes"] > 1_000_000)
    stopped = state("stop", "corr")
    check(f"it is stopped: {stopped['failure']}", not stopped["active"] and "was stopped by a command" in stopped["failure"])
    check("what was open is given up", obeys.stdout.readline().endswith(" incomplete\n"))
    check("the receiver is closed and opened", not state("close", "taker")["active"] and state("open", "taker", "--checksum", "on")["active"])
    denied = place.run("bulk", "control", "open", "taker", check=False)
    check("and open once", denied.returncode == 1 and "it is open already; close it first" in denied.stderr)
    obeys.communicate("\n", timeout=60)
    check(f"it ends well: {obeys.returncode}", obeys.returncode == 0)


WORKS = """
#include <cstdio>
#include "tampu_bulk.hpp"
using namespace tampu::bulk;
int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    Sender sender(Participant::join("CORR/WORKS"), "working", {{"spectra"}});
    sender.follow();
    sender.flow("spectra").wait(1, 60000);
    const ControlledFlow controlled(sender.flow("spectra"), "plain");
    std::puts("offered");
    std::getchar();
    {
        const Work work = controlled.begin_work();
        sender.flow("spectra").start("one");
        sender.flow("spectra").stop();
        std::puts("between");
        std::getchar();
        try {
            sender.flow("spectra").start("two");
            std::puts("started");
        } catch (const std::exception &why) {
            std::puts(why.what());
        }
    }
    sender.flow("spectra").start("three");
    sender.flow("spectra").stop();
    std::puts("goes on");
    std::getchar();
    return 0;
}
"""


def stopped_between(place, compiled):
    """A sender that nobody starts is stopped between two transfers, if it has noted its work."""
    source = os.path.join(compiled.directory.name, "works.cpp")
    pathlib.Path(source).write_text(WORKS)
    taken = os.path.join(compiled.directory.name, "taken")
    place.start("bulk", "recv", "--stream", "working", "--flow", "spectra", "-o", taken, stdout=subprocess.DEVNULL)
    works = subprocess.Popen([compiled.compile(CXX, source)], env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    place.processes.append(works)
    line = lambda: works.stdout.readline().strip()
    stop = lambda: place.run("bulk", "control", "stop", "plain", check=False)

    def on():
        works.stdin.write("\n")
        works.stdin.flush()

    check("a sender without a function for starts is offered", line() == "offered")
    refused = until("the offer is found", lambda: (done := stop()).returncode != 3 and done)
    check("without work a stop is refused", "no flow is sending; start it first" in refused.stderr)
    on()
    check("one transfer has ended", line() == "between")
    check("work between two transfers is stopped", stop().returncode == 0)
    on()
    said = line()
    check(f"the next start fails: {said}", "was stopped by a command" in said)
    check("after the work transfers begin again", line() == "goes on")
    check("and a stop is refused again", "no flow is sending; start it first" in stop().stderr)
    works.communicate("\n", timeout=60)
    check(f"it ends well: {works.returncode}", works.returncode == 0)


CONFIGURED = """
[collector]
keep_days = 9
[[bulk.flow]]
stream = "correlator"
flow = "spectra"
direction = "recv"
endpoint = "127.0.0.2:0"
[[bulk.flow]]
stream = "correlator"
flow = "spectra"
direction = "send"
protocol = "multicast"
receivers = 2
"""
OPENS = """
#include <cstdio>
#include "tampu_bulk.hpp"
int main() {
    try {
        const tampu::bulk::Sender sender(tampu::bulk::Participant::alone("demo", "CORR/OPENS"), "correlator", {{"spectra"}});
    } catch (const tampu::Failure &why) {
        std::puts(why.what());
        return 1;
    }
}
"""


def configured(place, compiled, programs):
    """The settings of the site: the call beats the environment, which beats the file; errors name the file and the place."""
    send, recv = programs
    file = os.path.join(place.directory, "flows.toml")
    pathlib.Path(file).write_text(CONFIGURED)
    plain = place.environment
    site = {**plain, "TAMPU_CONFIG": file}

    def run(program, *arguments, **more):
        return subprocess.run([program, *arguments], env={**site, **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)

    try:
        place.environment = {**site, "TAMPU_BULK_LISTEN": "127.0.0.3:0"}
        receiver, target = receive(place, recv, "alone")
        check(f"a receiver is where the environment says: {target}", target.startswith("127.0.0.3:"))
        receiver.kill()
        place.environment = site
        receiver, target = receive(place, recv, "alone")
        check(f"and else where the file says: {target}", target.startswith("127.0.0.2:"))
    finally:
        place.environment = plain
    done = run(send, "1", target)
    check(f"a sender waits for the receivers of the file: {done.stderr.strip()}", done.returncode == 1 and "needs 2 receivers and has 1" in done.stderr)
    done = run(send, "1", target, TAMPU_BULK_RECEIVERS="1", TAMPU_BULK_PROTOCOL="udp")
    check("the environment beats the file, and the call's TCP beats both", done.stdout == "sent 1 to 1 of 1\n")
    check("the receiver has it", receiver.communicate(timeout=60)[0].splitlines()[-1] == RECEIVED.format(1))
    source = os.path.join(compiled.directory.name, "opens.cpp")
    pathlib.Path(source).write_text(OPENS)
    opens = compiled.compile(CXX, source)
    done = run(opens)
    check(f"a group that is missing: {done.stdout.strip()}", done.returncode == 1 and "no multicast group is set" in done.stdout)
    check("in C++ the environment beats the file", run(opens, TAMPU_BULK_PROTOCOL="tcp").returncode == 0)
    for text, why in (
        ('\n[[bulk.flow]]\nstream = "correlator"\nprotokol = "tcp"\n', f"the configuration {file}, line 4: unknown field `protokol`"),
        ('[[bulk.flow]]\nstream = "s"\nthrottle_mb = 0\n', f"the configuration {file}, [[bulk.flow]] of s#data: throttle_mb: invalid rate"),
    ):
        pathlib.Path(file).write_text(text)
        for program, arguments in ((opens, ()), (recv, ("alone",)), (send, ("1", target))):
            done = run(program, *arguments)
            check(f"{os.path.basename(program)}: {why}", done.returncode == 1 and why in done.stdout + done.stderr)
    os.remove(file)
    done = run(opens)
    check(f"a file that is missing: {done.stdout.strip()}", done.returncode == 1 and f"{file}: No such file" in done.stdout and "unset it" in done.stdout)


def main():
    print("bulk_c", flush=True)
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "cc", "cxx"], check=True)
    build()
    compiled = Programs()
    programs = [compiled.compile(C, BINDING / "examples" / name) for name in ("bulk_send.c", "bulk_recv.c")]
    header = os.path.join(compiled.directory.name, "header.cpp")
    pathlib.Path(header).write_text('#include "tampu_bulk.h"\nint main() { return tampu_bulk_last_error()[0]; }\n')
    subprocess.run([compiled.compile(CXX, header)], check=True)
    check("the header is C++'s too", True)
    place = Place("bulkc")
    try:
        for size in SIZES:
            transfer(place, programs, size, by_target=True)
        refused(place, programs)
        configured(place, compiled, programs)
        killed(place, programs)
        transfer(place, programs, BYTES, by_target=False)
        several_flows(place, compiled)
        place.up()
        transfer(place, programs, BYTES, by_target=False)
        to_the_command(place, programs[0], 3_000_001)
        heard = lambda: place.run("bulk", "stat", "--past", "--json", check=False).stdout
        until("the hub has heard of the transfers", lambda: heard().count("uid://A002/X1") >= 2)
        check("the hub has heard of the transfers", True)
        given_up(place, compiled, programs[1])
        controlled(place, compiled)
        stopped_between(place, compiled)
    finally:
        place.close()


if __name__ == "__main__":
    main()
