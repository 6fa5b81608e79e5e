#!/usr/bin/env python3
"""Holds our LogBatch and our Event against Cyclone DDS: what we write, it reads and would write; a LogBatch that it writes, we read.

`conformance.py` has it read the events that the servers of all languages send.

Run by `make test-all`, with requirements.txt installed. `--write` makes the vector with appended members anew.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import idl  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / "testdata" / "vectors" / "log_batch"
LEVELS = {1: "Trace", 2: "Delouse", 3: "Debug", 4: "Info", 5: "Notice", 6: "Warning", 8: "Error", 9: "Critical", 10: "Alert", 11: "Emergency"}
ORIGIN = ["logger", "file", "routine", "host", "process", "thread", "context", "source_object", "array", "antenna", "uri", "run_id"]

# What a later release might append: to each appendable type, something of another size and alignment.
FUTURE = {"Record": "octet flavour; string remark;", "Origin": "sequence<octet> seal;", "LogBatch": "unsigned long long batch_number;"}

MODEL = idl.load("log")
# Members of an event that are absent if they are 0.
ABSENT = [("Event", "left_out"), ("Event", "age")]


def time_text(ns):
    import datetime

    seconds, rest = divmod(ns, 10**9)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def records(batch):
    """A batch's records as the JSON our codec makes of them."""
    strings = ["", *batch.strings]
    data = lambda values: [{"name": strings[datum.name], "value": datum.value} for datum in values]
    for record in batch.records:
        origin = batch.origins[record.origin]
        result = {"time": time_text(record.time), "level": LEVELS[record.level], "message": record.message}
        if origin.incarnation:
            life = batch.incarnations[origin.incarnation - 1]
            name = f"{life.boot:08x}-{life.pid:08x}-{life.start:016x}"
            result["id"] = {"incarnation": name, "ring": record.ring, "number": record.number}
        if record.priority is not None:
            result["priority"] = record.priority
        if origin.line is not None:
            result["line"] = origin.line
        texts = {field: strings[getattr(origin, field)] for field in ORIGIN}
        extras = record.extras
        if extras:
            texts |= {"stack_id": extras.stack_id, "log_id": extras.log_id}
            texts |= {"trace_id": bytes(extras.trace_id).hex(), "span_id": bytes(extras.span_id).hex()}
            if extras.received is not None:
                result["received"] = time_text(extras.received)
            if extras.stack_level is not None:
                result["stack_level"] = extras.stack_level
            if extras.archive:
                kinds = ["object", "parameter", "type"]
                result["archive"] = {kind: strings[getattr(extras.archive, kind)] for kind in kinds}
            if extras.attributes:
                result["attributes"] = data(extras.attributes)
        result |= {field: text for field, text in texts.items() if text}
        if origin.audiences:
            result["audiences"] = [strings[index] for index in origin.audiences]
        if record.data:
            result["data"] = data(record.data)
        yield result


def text(chance):
    letters = "abcdefghij klm<>&]\"é漢\n\t\\"
    return "".join(chance.choice(letters) for _ in range(chance.randrange(0, 30)))


def random_batch(model, chance, **future):
    """A batch with every shape of record. `future` are values for members appended to each type."""
    strings = [text(chance) for _ in range(chance.randrange(1, 20))]
    index = lambda: chance.randrange(0, len(strings) + 1)
    maybe = lambda value: value if chance.random() < 0.5 else None
    octets = lambda count: list(chance.randbytes(count)) if chance.random() < 0.5 else []
    data = lambda: [model.Datum(value=text(chance), name=index()) for _ in range(chance.randrange(0, 4))]
    lives = [model.Incarnation(chance.getrandbits(32), chance.getrandbits(32), chance.getrandbits(64)) for _ in range(chance.randrange(0, 3))]
    origins = [
        model.Origin(
            line=maybe(chance.getrandbits(32)),
            incarnation=chance.randrange(0, len(lives) + 1),
            **{field: index() for field in ORIGIN},
            audiences=[index() for _ in range(chance.randrange(0, 3))],
            **future.get("Origin", {}),
        )
        for _ in range(chance.randrange(1, 5))
    ]

    def extras():
        return model.Extras(
            received=maybe(chance.randrange(0, 2**62)),
            stack_level=maybe(chance.randrange(-5, 5)),
            stack_id=text(chance),
            log_id=text(chance),
            trace_id=octets(16),
            span_id=octets(8),
            archive=maybe(model.Archive(index(), index(), index())),
            attributes=data(),
        )

    made = [
        model.Record(
            time=chance.randrange(-(2**62), 2**62),
            number=chance.getrandbits(64),
            ring=chance.getrandbits(32),
            origin=chance.randrange(0, len(origins)),
            level=chance.choice(list(LEVELS)),
            priority=maybe(chance.randrange(0, 256)),
            extras=maybe(extras()),
            message=text(chance),
            data=data(),
            **future.get("Record", {}),
        )
        for _ in range(chance.randrange(1, 8))
    ]
    return model.LogBatch(records=made, incarnations=lives, strings=strings, origins=origins, **future.get("LogBatch", {}))


def canonical(values):
    return [json.dumps(value, sort_keys=True) for value in values]


def check_vectors():
    for file in sorted(VECTORS.glob("v1-*.hex")):
        ours = bytes.fromhex(file.read_text())
        batch = MODEL.LogBatch.deserialize(ours)
        expected = [json.loads(line) for line in file.with_suffix(".json").read_text().splitlines()]
        assert canonical(records(batch)) == canonical(expected), f"{file.name}: Cyclone reads other records"
        theirs = batch.serialize(use_version_2=True)
        assert theirs == ours, f"{file.name}: Cyclone writes\n{theirs.hex()}\nwe write\n{ours.hex()}"
        print(f"{file.name}: Cyclone reads the same {len(expected)} records and writes the same {len(ours)} bytes")


def check_events():
    """It reads the vectors of events and writes them again, apart from the zeros that make the length a multiple of 4."""
    files = sorted((ROOT / "testdata" / "vectors" / "event").glob("v1-*.hex"))
    for file in files:
        ours = bytes.fromhex(file.read_text())
        # Members that are absent if they are 0 are not there for a reader that wants them always.
        model = idl.load("event", without=ABSENT[{"v1-age": 2, "v1-left-out": 1}.get(file.stem, 0) :])
        event = (model.Declaration if file.stem == "v1-declaration" else model.Event).deserialize(ours)
        theirs = event.serialize(use_version_2=True)
        end = len(theirs)
        assert theirs[:4] == ours[:4] and theirs[8:] == ours[8:end] and not ours[end:].strip(b"\0"), f"{file.name}: Cyclone writes\n{theirs.hex()}"
        assert len(ours) - end < 4 and int.from_bytes(ours[4:8], "little") == len(ours) - 8, f"{file.name}: {len(ours)} bytes for {end}"
    print(f"{len(files)} vectors of events: Cyclone reads them and writes the same")
    known = idl.load("event", without=ABSENT).Event
    failed = known.deserialize(bytes.fromhex((files[0].parent / "v1-error.hex").read_text()))
    assert [one.reason for one in failed.errors] == ["Io_Timeout", "Cryo_NoReading"] and failed.value.discriminator == 0
    chosen = known.deserialize(bytes.fromhex((files[0].parent / "v1-enum.hex").read_text()))
    print(f"  an event without a value has its {len(failed.errors)} errors, one with a set point has {chosen.set_point}")


def our_records(files):
    command = ["cargo", "run", "--quiet", "--locked", "--package", "tampu-types", "--example", "log_batch_json", "--", *files]
    output = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def check_random(model, what, **future):
    seed = int(os.environ.get("TAMPU_SEED", random.SystemRandom().getrandbits(32)))
    chance = random.Random(seed)
    batches = [random_batch(model, chance, **future) for _ in range(200)]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, batch in enumerate(batches):
            files.append(f"{folder}/{number}")
            pathlib.Path(files[-1]).write_bytes(batch.serialize(use_version_2=True))
        expected = [record for batch in batches for record in records(batch)]
        assert canonical(our_records(files)) == canonical(expected), f"TAMPU_SEED={seed}: we read other records"
    print(f"{len(expected)} records that Cyclone wrote, {what}: we read the same (TAMPU_SEED={seed})")


def future():
    values = {"Record": {"flavour": 7, "remark": "later"}, "Origin": {"seal": [1, 2, 3]}, "LogBatch": {"batch_number": 2**40}}
    return idl.load("log", FUTURE), values


def write_future():
    model, values = future()
    batch = random_batch(model, random.Random(3), **values)
    digits = batch.serialize(use_version_2=True).hex()
    file = VECTORS / "future-appended.hex"
    file.write_text("".join(digits[at : at + 64] + "\n" for at in range(0, len(digits), 64)))
    file.with_suffix(".json").write_text("".join(json.dumps(record) + "\n" for record in records(batch)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_future()
    else:
        check_vectors()
        check_events()
        check_random(MODEL, "of this release")
        model, values = future()
        check_random(model, "of a release with more members", **values)
