"""Bulk data from each language to each. Every block is counted and compared, also while programs are stopped and killed."""

import ctypes
import errno
import os
import pathlib
import signal
import socket
import tempfile

from hub import check

import drivers
from kit import matrix

# Lengths of the blocks of each transfer: none, empty ones, around the length of a frame, and beyond it.
TRANSFERS = [[], [0], [1], [7, 0, 8191, 0], [262_143, 262_144, 262_145, 1_048_577, 3_000_000], [1000] * 300]
# A transfer that takes about a second, so that something can happen meanwhile.
SLOW, RATE = [65_536] * 32, "2e6"
BREAKS = 3
# Most transfers until all programs have met again beside another hub.
TURNS = 20
PIDFD_GETFD = 438


class Streams:
    """A stream for each sender, which all receive into directories of their own."""

    def __init__(self, kit, purpose, rate="0"):
        self.kit = kit
        self.purpose = purpose
        self.rate = rate
        self.languages = [language for language in kit.drivers if drivers.LANGUAGES[language]["bulk"]]
        self.directory = tempfile.TemporaryDirectory(prefix="tampu-bulk-")
        # Address of each receiver, by the language of the sender and its own.
        self.ports = {}
        self.sent = {}
        # Languages whose receivers may report a frame that they had as torn, and the number of those that did for each transfer.
        self.torn_at = ()
        self.torn = {}
        self.wrong = []
        for reader in self.languages:
            self.receives(reader)
        for sender in self.languages:
            self.sends(sender)

    def name(self, sender):
        """The stream of a sender."""
        return f"{self.purpose}-{sender}"

    def place(self, sender, reader):
        """The directory of what a reader receives."""
        return pathlib.Path(self.directory.name, sender, reader)

    def receives(self, reader):
        """Opens the receivers of a driver."""
        for sender in self.languages:
            place = self.place(sender, reader)
            place.mkdir(parents=True, exist_ok=True)
            lines = self.kit.drivers[reader].call("receive", name=self.name(sender), directory=str(place))
            target = next(line["target"] for line in lines if line["line"] == "receiver")
            self.ports[sender, reader] = int(target.split("/")[0].rpartition(":")[2])

    def sends(self, sender):
        """Opens the sender of a driver."""
        self.kit.drivers[sender].call("sender", name=self.name(sender), receivers=str(len(self.languages)), rate=self.rate)

    def begin(self, sender, parameter, lengths):
        """Has a sender begin a transfer of random bytes in blocks of these lengths; nobody waits for it."""
        content = os.urandom(sum(lengths))
        file = pathlib.Path(self.directory.name, f"{sender}-{parameter}")
        file.write_bytes(content)
        self.sent[sender, parameter] = (lengths, content)
        blocks = [str(length) for length in lengths]
        self.kit.drivers[sender].send("transfer", name=self.name(sender), parameter=parameter, file=str(file), blocks=blocks)

    def blocks(self, sender, reader, parameter):
        """The blocks of a transfer that a reader has reported."""
        return self.kit.drivers[reader].bulk_lines("block", self.name(sender), parameter)

    def await_blocks(self, sender, reader, parameter, count):
        """Waits until a reader has so many blocks."""
        driver = self.kit.drivers[reader]
        here = lambda: len(self.blocks(sender, reader, parameter))
        driver.until(f"{count} blocks of {sender}, transfer {parameter}", lambda: here() >= count, here)

    def await_line(self, kind, language, sender, parameter):
        """Waits for the end at a receiver, or for the report of the sender."""
        driver = self.kit.drivers[language]
        lines = lambda: driver.bulk_lines(kind, self.name(sender), parameter)
        driver.until(f"'{kind}' of {sender}, transfer {parameter}", lines)
        return lines()[-1]

    def reported(self, sender, parameter, complete):
        """Waits for the sender's report, and notes one that is not as it must be."""
        report = self.await_line("sent", sender, sender, parameter)
        total = sum(self.sent[sender, parameter][0])
        shown = (int(report["receivers"]), int(report["complete"]), int(report["bytes"]))
        if shown != (len(self.languages), complete, total) or bool(report["why"]) != (complete < len(self.languages)):
            self.wrong.append(f"{sender} reports of {parameter}: {report}, and {complete} receivers have {total} bytes")

    def compare(self, sender, reader, parameter):
        """Waits for the end of a transfer at a reader; returns the number of its blocks that arrived as they were sent."""
        end = self.await_line("end", reader, sender, parameter)
        lengths, content = self.sent[sender, parameter]
        got = (self.place(sender, reader) / parameter).read_bytes()
        blocks = [(int(line["offset"]), int(line["length"])) for line in self.blocks(sender, reader, parameter)]
        right, begin = 0, 0
        for length, block in zip(lengths, blocks):
            right += block == (begin, length) and got[begin : begin + length] == content[begin : begin + length]
            begin += length
        torn = reader in self.torn_at and end["complete"] == "false"
        self.torn[sender, parameter] = self.torn.get((sender, parameter), 0) + torn
        good = (end["complete"], end["stopped"], int(end["bytes"])) == ("false" if torn else "true", "true", len(content))
        if not good or right != len(lengths) or len(blocks) != len(lengths) or got != content:
            self.wrong.append(f"{reader} has {right} of {len(lengths)} blocks of {sender}, transfer {parameter}; {len(blocks)} came: {end}")
        return right

    def finish(self, parameter, notes=lambda sender, reader: ""):
        """Waits for the ends of a transfer of all senders at all readers; returns the cells of the matrix."""
        rows = {
            sender: {
                reader: f"{self.compare(sender, reader, parameter)}/{len(self.sent[sender, parameter][0])}{notes(sender, reader)}"
                for reader in self.languages
            }
            for sender in self.languages
        }  # fmt: skip
        for sender in self.languages:
            self.reported(sender, parameter, len(self.languages) - self.torn.get((sender, parameter), 0))
        return rows

    def close(self, title, rows, what):
        """Prints the matrix, checks that nothing was wrong, and closes the streams."""
        matrix(f"bulk data, {title}", self.languages, rows)
        for line in self.wrong[:20]:
            print(f"    {line}")
        check(what, not self.wrong)
        for sender in self.languages:
            for language in self.languages:
                self.kit.drivers[language].call("close", name=self.name(sender))
        self.directory.cleanup()


def values(kit):
    """Transfers with blocks of all lengths, from all senders at once."""
    streams = Streams(kit, "values")
    counts = dict.fromkeys(((sender, reader) for sender in streams.languages for reader in streams.languages), 0)
    total = sum(map(len, TRANSFERS))
    for number, lengths in enumerate(TRANSFERS):
        parameter = f"{number} déjà vu"
        for sender in streams.languages:
            streams.begin(sender, parameter, lengths)
        for sender in streams.languages:
            streams.reported(sender, parameter, len(streams.languages))
            for reader in streams.languages:
                counts[sender, reader] += streams.compare(sender, reader, parameter)
    rows = {sender: {reader: f"{counts[sender, reader]}/{total}" for reader in streams.languages} for sender in streams.languages}
    streams.close("blocks that arrived as they were sent, in order", rows, "every block of every transfer arrived at every receiver, once and in order")


def pauses(kit):
    """Each program is stopped in its turn while the others send: they get everything meanwhile, and it does when it goes on."""
    streams = Streams(kit, "paused", RATE)
    rows = {sender: {sender: "-"} for sender in streams.languages}
    for stopped in streams.languages:
        others = [language for language in streams.languages if language != stopped]
        parameter = f"stopped {stopped}"
        for sender in others:
            streams.begin(sender, parameter, SLOW)
        for sender in others:
            streams.await_blocks(sender, stopped, parameter, 1)
        kit.drivers[stopped].process.send_signal(signal.SIGSTOP)
        for sender in others:
            for reader in others:
                streams.await_blocks(sender, reader, parameter, len(SLOW))
        kit.drivers[stopped].process.send_signal(signal.SIGCONT)
        for sender in others:
            streams.reported(sender, parameter, len(streams.languages))
            for reader in streams.languages:
                right = streams.compare(sender, reader, parameter)
                if reader == stopped:
                    rows[sender][reader] = f"{right}/{len(SLOW)}"
    streams.close("SIGSTOP of the receiver: blocks that it has in the end", rows, "a stopped receiver keeps no block from the others, and misses none")


def kills(kit):
    """Each program is killed while all send to all. The others get everything; what it sent ends as broken; its next life takes part."""
    streams = Streams(kit, "killed", RATE)
    rows = {sender: {sender: "-"} for sender in streams.languages}
    for victim in streams.languages:
        others = [language for language in streams.languages if language != victim]
        parameter, after = f"killed {victim}", f"after {victim}"
        for sender in streams.languages:
            streams.begin(sender, parameter, SLOW)
        for other in others:
            streams.await_blocks(other, victim, parameter, 1)
            streams.await_blocks(victim, other, parameter, 1)
        kit.drivers[victim].kill()
        for sender in others:
            streams.reported(sender, parameter, len(others))
            for reader in others:
                streams.compare(sender, reader, parameter)
        for reader in others:
            end = streams.await_line("end", reader, victim, parameter)
            if (end["complete"], end["stopped"]) != ("false", "false"):
                streams.wrong.append(f"{reader} says of what the dead {victim} sent: {end}")
        kit.start(victim)
        kit.ready(victim)
        streams.receives(victim)
        streams.sends(victim)
        for sender in streams.languages:
            streams.begin(sender, after, SLOW)
        for sender, cells in streams.finish(after).items():
            if sender != victim:
                rows[sender][victim] = cells[victim]
    streams.close("kill -9 of the receiver, which also sends: blocks that its next life has", rows,
                  "the others got every block, what a dead program sent ended as broken, and its next life got every block")  # fmt: skip


def break_connections(pid, port):
    """Breaks the connections of a process at this port of its own; returns their number."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if int(words[1].rpartition(":")[2], 16) == port and words[3] == "01":
                inodes.add(words[9])
    process, broken = os.pidfd_open(pid), 0
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{number}")
            except FileNotFoundError:
                continue
            if target[:8] == "socket:[" and target[8:-1] in inodes:
                copy = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, process, int(number), 0)
                if copy < 0 and ctypes.get_errno() == errno.EBADF:
                    # The driver has closed it meanwhile.
                    continue
                if copy < 0:
                    raise OSError(ctypes.get_errno(), "no copy of a driver's socket")
                with socket.socket(fileno=copy) as connection:
                    try:
                        connection.shutdown(socket.SHUT_RDWR)
                        # Another descriptor of this socket is the same connection.
                        inodes.remove(target[8:-1])
                        broken += 1
                    except OSError as why:
                        # The sender has broken it already, as after a break at its other end.
                        if why.errno != errno.ENOTCONN:
                            raise
    finally:
        os.close(process)
    return broken


def reconnects(kit):
    """All connections are broken, three times, while all send to all. Every block arrives.

    A receiver of shared memory that has a frame when its connection breaks may report it as lost, cause 7: it cannot know
    whether the memory was used again meanwhile. Both ends must then say so.
    """
    streams = Streams(kit, "broken", RATE)
    streams.torn_at = ("rust", "cpp", "python")
    pairs = [(sender, reader) for sender in streams.languages for reader in streams.languages]
    for sender in streams.languages:
        streams.begin(sender, "broken", SLOW)
    broken = dict.fromkeys(pairs, 0)
    for turn in range(BREAKS):
        for sender, reader in pairs:
            streams.await_blocks(sender, reader, "broken", 1 + 8 * turn)
        for sender, reader in pairs:
            broken[sender, reader] += break_connections(kit.drivers[reader].process.pid, streams.ports[sender, reader])
    rows = streams.finish("broken", lambda sender, reader: f", {broken[sender, reader]} broken")
    streams.wrong += [f"no connection of {sender} to {reader} was broken" for (sender, reader), count in broken.items() if not count]
    streams.close("broken connections: blocks that arrived, and how many connections were broken meanwhile", rows,
                  "a broken connection loses no block and doubles none")  # fmt: skip


def restart(kit):
    """The hub is killed while all send to all. With the next hub all send again, until all have a transfer from all.

    The next hub announces receivers of clients of the gateway in a life of their own, and the one before ends some time later.
    Transfers that begin meanwhile may miss such a receiver.
    """
    streams = Streams(kit, "restarted", RATE)
    for sender in streams.languages:
        streams.begin(sender, "without", SLOW)
    for sender in streams.languages:
        for reader in streams.languages:
            streams.await_blocks(sender, reader, "without", 1)
    kit.hub.kill()
    kit.hub.wait()
    without = streams.finish("without")
    kit.hub = kit.place.up()
    for turn in range(TURNS):
        after = f"after {turn}"
        for sender in streams.languages:
            streams.begin(sender, after, SLOW)
        reports = [streams.await_line("sent", sender, sender, after) for sender in streams.languages]
        if all(int(report["complete"]) == len(streams.languages) for report in reports):
            break
        print(f"  not all have the transfer '{after}': {[report['why'] for report in reports]}")
    after = streams.finish(after)
    rows = {sender: {reader: f"{cell}, {after[sender][reader]}" for reader, cell in cells.items()} for sender, cells in without.items()}
    streams.close("kill -9 of the hub: blocks that came without it, and after the next one started", rows,
                  "bulk data needs no hub once its ends are connected, and goes on beside the next one")  # fmt: skip


def all_of(kit):
    """All of the above."""
    values(kit)
    pauses(kit)
    reconnects(kit)
    restart(kit)
    kills(kit)
