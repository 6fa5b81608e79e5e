#!/usr/bin/env python3
"""The conformance kit: a driver in each language publishes and logs, each follows all others, and what arrives is compared.

It prints a matrix for events, for reads on demand, for logs and for bulk data: who publishes, who reads, and how much arrived as it was sent.
Then drivers are stopped and killed, and the hub is killed, while values are published and blocks are sent.
tests/conformance/README.md has the protocol of the drivers.
"""

import json
import pathlib
import struct
import sys

from hub import Place, check, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
import bulk  # noqa: E402
import cdr  # noqa: E402
import drivers  # noqa: E402
import faults  # noqa: E402
import kit  # noqa: E402
import skew  # noqa: E402
import values  # noqa: E402

LEVELS = ["Trace", "Delouse", "Debug", "Info", "Notice", "Warning", "Error", "Critical", "Alert", "Emergency"]
# The reader that has another implementation of CDR.
CDR = "cyclonedds"
KEYS = ["type", "format", "x", "y", "elements", "quality"]


class Values(kit.Kit):
    """Every value and every record, from each to each."""

    def events(self):
        """Every data type in every format, from each to each."""
        wrong = []
        readers = [*self.drivers, CDR]
        rows = {publisher: dict.fromkeys(readers, (0, 0)) for publisher in self.drivers}
        for publisher, driver in self.drivers.items():
            for wanted in values.FORMATS:
                some = [each for each in values.attributes(publisher) if each[2] == wanted]
                for reader, (right, total) in self.published(driver, wanted, some, wrong).items():
                    before = rows[publisher][reader]
                    rows[publisher][reader] = (before[0] + right, before[1] + total)
        shown = {publisher: {reader: f"{right}/{total}" for reader, (right, total) in cells.items()} for publisher, cells in rows.items()}
        kit.matrix("events: values that arrived exactly as they were pushed, in order", readers, shown)
        for line in wrong[:20]:
            print(f"    {line}")
        check("every value of every type and format arrived at every reader, once and in order", not wrong)

    def published(self, driver, wanted, some, wrong):
        """Has the attributes of one format published, read by all, and withdrawn; gives the counts of each reader."""
        expected = {}
        for name, data_type, shape in some:
            driver.call("declare", name=name, type=data_type, format=shape, labels=values.LABELS if data_type == "DevEnum" else [])
            expected[name] = [{"type": data_type, "format": shape, **push} for push in values.pushes(data_type, shape)]
            driver.send("push", name=name, **values.without_type(expected[name][0]))
        for reader in self.drivers.values():
            reader.call("follow", attributes=[f"{driver.source}/*/{wanted}"], kinds=["change"])
        foreign = cdr.Subscription(skew.gateway_of(self.place), [f"{driver.source}/*/{wanted}"])
        # A reader that has the first value follows the attribute: from here on it gets each event.
        for reader in self.drivers.values():
            missing = lambda: [name for name in expected if not reader.events[name]]
            reader.until("the first value of each attribute", lambda: not missing(), missing)
        await_foreign(foreign, lambda: all(foreign.events[name] for name in expected))
        for name, pushes in expected.items():
            for push in pushes[1:]:
                driver.send("push", name=name, **values.without_type(push))
        total = sum(len(pushes) for pushes in expected.values())
        counts = {}
        for reader in self.drivers.values():
            arrived = lambda: sum(len(kit.once(reader.events[name])) for name in expected)
            reader.until(f"{total} events of {driver.language}", lambda: arrived() >= total, arrived)
            counts[reader.language] = (sum(self.equal(reader, name, expected[name], wrong) for name in expected), total)
        await_foreign(foreign, lambda: sum(len(kit.once(foreign.events[name])) for name in expected) >= total)
        foreign.close()
        counts[CDR] = (self.read_by_cyclone(foreign, expected, wrong), total)
        for name in expected:
            driver.call("withdraw", name=name)
        for reader in self.drivers.values():
            here = lambda: [name for name in expected if not reader.told(name, "source left")]
            reader.until("that the attributes are withdrawn", lambda: not here(), here)
        return counts

    @staticmethod
    def read_by_cyclone(foreign, expected, wrong):
        """The number of events that another implementation of CDR reads as they were pushed."""
        right = 0
        for name, pushes in expected.items():
            got = [{key: event[key] for key in KEYS} for event in kit.once(foreign.events[name])]
            pushed = [{key: push[key] for key in KEYS} for push in pushes]
            right += sum(one == other for one, other in zip(got, pushed))
            if got != pushed:
                wrong.append(f"cyclonedds reads {name}: {str(got)[:300]} for {str(pushed)[:300]}")
        return right

    @staticmethod
    def equal(driver, name, expected, wrong):
        """The number of events that are as they must be."""
        got = kit.once(driver.events[name])
        right = 0
        for number, (event, push) in enumerate(zip(got, expected), 1):
            shown = {key: event.get(key) for key in KEYS}
            pushed = {key: push[key] for key in KEYS}
            good = shown == pushed and event["number"] == str(number) and event["missed"] == [] and event["errors"] == []
            good &= event["reason"] in (("first", "update", "resumed") if number == 1 else ("update", "resumed"))
            good &= event["source"] == f"{drivers_of(name)}/server"
            right += good
            if not good:
                wrong.append(f"{driver.language} reads {name}, number {number}: {str(event)[:300]} for {str(pushed)[:200]}")
        if len(got) != len(expected):
            wrong.append(f"{driver.language} reads {name}: {len(got)} events for {len(expected)}")
        return right

    def reads(self):
        """A question for a current value reaches the read callback in each language."""
        numbers = [0.5, -3.25, 1e9]
        wrong = []
        rows = {}
        for language, driver in self.drivers.items():
            name = f"{driver.source}/read/value"
            driver.call("readable", name=name, elements=[struct.pack(">d", number).hex() for number in numbers])
            until(f"the attribute of {language} is there", lambda: self.place.run("event", "list", name, check=False).stdout.count(name))
            found = [json.loads(self.place.run("event", "get", "--json", name).stdout) for _ in [*numbers, None]]
            right = [event.get("value") == number and not event["errors"] for event, number in zip(found, [*numbers, numbers[-1]])]
            rows[language] = {"tampu event get": f"{sum(right)}/{len(found)}"}
            if not all(right):
                wrong.append(f"{language}: {found}")
            driver.call("withdraw", name=name)
        kit.matrix("reads: current values that the callback gave, one a question", ["tampu event get"], rows)
        for line in wrong:
            print(f"    {line}")
        check("every question for a current value reached its program", not wrong)

    def logs(self):
        """Records of all levels with data, from each language that writes to each that reads."""
        writers = [language for language in self.drivers if drivers.LANGUAGES[language]["writes_logs"]]
        readers = [language for language in self.drivers if drivers.LANGUAGES[language]["reads_logs"]]
        expected = []
        for number, level in enumerate(LEVELS):
            data = {"word": ["", "déjà vu", 'a "word"'][number % 3], "count": str(number - 2**62), "ratio": str(number + 0.25),
                    "truth": ["true", "false"][number % 2]}  # fmt: skip
            expected.append({"level": level, "message": f"{level}: 日本 {{}} %s", "data": list(data.items())})
        for writer in writers:
            for record in expected:
                self.drivers[writer].send("log", level=record["level"], message=record["message"], **dict(record["data"]))
        wrong = []
        rows = {}
        for writer in writers:
            process = self.drivers[writer].source
            until(f"the records of {writer}", lambda: len(self.ours(process)) >= len(LEVELS))
            rows[writer] = {"tampu log": self.compare(writer, "tampu log", self.ours(process), expected, wrong)}
            for reader in readers:
                lines = self.drivers[reader].call("records", process=process, count=str(len(self.place.records(process))))
                found = [{**line, "data": list(zip(line["names"], line["values"]))} for line in lines if line["line"] == "record"]
                mine = [line for line in found if line["process"] == process and "日本" in line["message"]]
                rows[writer][reader] = self.compare(writer, reader, mine, expected, wrong)
        kit.matrix("logs: records that arrived exactly as they were logged", [*readers, "tampu log"], rows)
        for line in wrong[:20]:
            print(f"    {line}")
        check("every record of every level with its data was read by all, once and in order", not wrong)

    def ours(self, process):
        """The records of a driver as the command line has them."""
        found = [record for record in self.place.records(process) if "日本" in record["message"]]
        return [{**record, "data": [(datum["name"], datum["value"]) for datum in record.get("data", [])]} for record in found]

    @staticmethod
    def compare(writer, reader, found, expected, wrong):
        """The cell of a matrix."""
        shown = [{key: record[key] for key in ("level", "message", "data")} for record in found]
        right = sum(one == other for one, other in zip(shown, expected))
        if shown != expected:
            differing = next((pair for pair in zip(shown, expected) if pair[0] != pair[1]), None)
            wrong.append(f"{reader} reads {len(shown)} records of {writer}: {differing}")
        return f"{right}/{len(expected)}"


def await_foreign(foreign, condition):
    """Waits for events of the reader without our code."""
    with foreign.changed:
        if not foreign.changed.wait_for(lambda: foreign.failure or condition(), drivers.PATIENCE) or foreign.failure:
            check(f"Cyclone DDS reads every event: {foreign.failure}, {dict(foreign.events)}", False)


def drivers_of(name):
    """The source that publishes an attribute."""
    return "/".join(name.split("/")[:2])


def all_faults(all_drivers):
    """Kills and pauses while values are published."""
    faults.restart(all_drivers)
    faults.pauses(all_drivers)
    faults.kills(all_drivers)


# The parts of the kit in their order; arguments choose some of them.
PARTS = {"events": Values.events, "reads": Values.reads, "logs": Values.logs, "bulk": bulk.all_of, "skew": skew.all_of, "faults": all_faults}


def main():
    print("conformance", flush=True)
    chosen = sys.argv[1:] or list(PARTS)
    commands, directory = drivers.build()
    place = Place("conformance")
    try:
        hub = place.up()
        all_drivers = Values(place, hub, commands)
        for part in chosen:
            PARTS[part](all_drivers)
        for driver in all_drivers.drivers.values():
            check(f"{driver.language} ends well", driver.end() == 0)
    finally:
        place.close()
        directory.cleanup()


if __name__ == "__main__":
    main()
