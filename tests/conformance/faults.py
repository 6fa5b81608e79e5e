"""What readers get while a program is stopped or killed, and while the hub is killed: each publisher, each reader."""

import signal

from hub import check

import drivers
from kit import matrix, once

# Values that each publisher pushes while a reader is stopped.
PUSHES = 200


def name_of(kit, publisher, purpose):
    """The attribute that a publisher has for a purpose."""
    return f"{kit.drivers[publisher].source}/{purpose}/count"


def declare(kit, publisher, name, element):
    """Declares an attribute and pushes its first value."""
    kit.drivers[publisher].call("declare", name=name, type="DevLong64", format="scalar", labels=[])
    push(kit, publisher, name, element)


def push(kit, publisher, name, element):
    """Pushes a value as a change."""
    kit.drivers[publisher].send("push", name=name, elements=[str(element)], x="1", y="0", quality="valid", kinds=["change"])


def has(reader, name, element):
    """Returns whether a value has arrived."""
    return any(event.get("elements") == [str(element)] for event in reader.events[name])


def awaits(reader, publisher, name, element):
    """Waits for a value."""
    shown = lambda: (reader.events[name][-3:], reader.notices[name])
    reader.until(f"value {element} of {publisher}", lambda: has(reader, name, element), shown)


def everybody_follows(kit, purpose):
    """Has each driver declare an attribute, and all follow all; gives the names by publisher."""
    names = {publisher: name_of(kit, publisher, purpose) for publisher in kit.drivers}
    for publisher, name in names.items():
        declare(kit, publisher, name, 0)
    for reader in kit.drivers.values():
        reader.call("follow", attributes=list(names.values()), kinds=["change"])
    for reader in kit.drivers.values():
        for publisher, name in names.items():
            awaits(reader, publisher, name, 0)
    return names


def account(events, wrong, who, lives=False):
    """Values that came and values that were told as missing. What is neither, or came twice or out of order, is wrong.

    With `lives` the source may have begun anew, with numbers of their own: an unknown number is missing before its first event.
    """
    missing = 0
    for before, event in zip(events, events[1:]):
        jump = int(event["number"]) - int(before["number"]) - 1
        told = event["missed"]
        # A value that comes as the current one may be counted among the events that were missed.
        most = jump + (event["reason"] == "resumed")
        exactly = len(told) == 2 and jump <= int(told[1]) - int(told[0]) <= most
        if lives and told == ["unknown"]:
            continue
        if jump < 0 or (jump > 0 and not exactly and told != ["unknown"]) or (jump == 0 and told and not exactly):
            wrong.append(f"{who}: number {event['number']} after {before['number']}, missed {told}")
        missing += max(jump, 0)
    return len(events), missing


def pauses(kit):
    """Each reader is stopped in its turn: the others get every value, and it gets them, or hears of the gap, when it goes on."""
    names = everybody_follows(kit, "paused")
    wrong = []
    rows = {publisher: {publisher: "-"} for publisher in kit.drivers}
    last = 0
    for stopped, reader in kit.drivers.items():
        publishers = [language for language in kit.drivers if language != stopped]
        before = {publisher: len(once(reader.events[names[publisher]])) - 1 for publisher in publishers}
        reader.process.send_signal(signal.SIGSTOP)
        for number in range(last + 1, last + PUSHES + 1):
            for publisher in publishers:
                push(kit, publisher, names[publisher], number)
        last += PUSHES
        for publisher in publishers:
            for other in publishers:
                awaits(kit.drivers[other], publisher, names[publisher], last)
        reader.process.send_signal(signal.SIGCONT)
        for publisher in publishers:
            awaits(reader, publisher, names[publisher], last)
            events = once(reader.events[names[publisher]])[before[publisher]:]
            came, missing = account(events, wrong, f"{stopped} reads {publisher}")
            rows[publisher][stopped] = f"{came - 1}+{missing}"
    for publisher, name in names.items():
        for language, reader in kit.drivers.items():
            account(once(reader.events[name]), wrong, f"{language} reads {publisher}")
    matrix(f"SIGSTOP of the reader: of {PUSHES} values, those that came afterwards + those told as missing", list(kit.drivers), rows)
    for line in wrong[:20]:
        print(f"    {line}")
    check("a stopped reader costs the others nothing, and hears of each value that it does not get", not wrong)
    for publisher, name in names.items():
        kit.drivers[publisher].call("withdraw", name=name)


def kills(kit):
    """Each publisher is killed and started again: all others are told of its death and then get values of the next life."""
    rows = {}
    for publisher in list(kit.drivers):
        name = name_of(kit, publisher, "killed")
        readers = [reader for language, reader in kit.drivers.items() if language != publisher]
        declare(kit, publisher, name, 0)
        for reader in readers:
            reader.call("follow", attributes=[name], kinds=["change"])
        for reader in readers:
            awaits(reader, publisher, name, 0)
        kit.drivers[publisher].kill()
        for reader in readers:
            reader.until(f"that {publisher} died", lambda: reader.told(name, "source died"), lambda: reader.notices[name], 90)
        kit.start(publisher)
        kit.ready(publisher)
        declare(kit, publisher, name, 1)
        for reader in readers:
            awaits(reader, publisher, name, 1)
        rows[publisher] = {reader.language: "told" for reader in readers} | {publisher: "-"}
    matrix("kill -9 of the publisher: its death is told, and values of the next life come", list(kit.drivers), rows)


def restart(kit):
    """The hub is killed: programs on the bus go on without it. With the next hub all get values from all again.

    A program behind the gateway has to be told of what it missed meanwhile, in the life that goes on and in another one.
    """
    names = everybody_follows(kit, "restarted")
    native = [language for language in kit.drivers if not drivers.LANGUAGES[language]["gateway"]]
    kit.hub.kill()
    kit.hub.wait()
    for publisher in native:
        push(kit, publisher, names[publisher], 1)
    rows = {publisher: dict.fromkeys(kit.drivers, "") for publisher in kit.drivers}
    for publisher in native:
        for reader in native:
            awaits(kit.drivers[reader], publisher, names[publisher], 1)
            rows[publisher][reader] = "without, "
    kit.hub = kit.place.up()
    for publisher, name in names.items():
        push(kit, publisher, name, 2)
    for publisher, name in names.items():
        for reader in kit.drivers.values():
            awaits(reader, publisher, name, 2)
            rows[publisher][reader.language] += "after"
    wrong = []
    for publisher, name in names.items():
        for language, reader in kit.drivers.items():
            account(once(reader.events[name]), wrong, f"{language} reads {publisher}", lives=publisher not in native)
            if publisher not in native and not any(event["missed"] == ["unknown"] for event in reader.events[name]):
                wrong.append(f"{language} reads {publisher}: nothing says that events of the life before may be missing")
    for line in wrong[:20]:
        print(f"    {line}")
    check("every value came, or was told as missing", not wrong)
    matrix("kill -9 of the hub: values that came without it, and after the next one started", list(kit.drivers), rows)
