"""Python types for Cyclone DDS out of spec/log.idl and spec/event.idl themselves.

Cyclone's wheel brings its IDL compiler, but as a program that does not run everywhere; our IDL needs a small part of the
language. What is not understood is an error, so the types are those of the file or none.
"""

import dataclasses
import keyword
import pathlib
import re
import types as python_types
import typing

from cyclonedds.idl import IdlStruct, IdlUnion, annotations, types

SPEC = pathlib.Path(__file__).resolve().parents[2] / "spec"

BASIC = {
    "boolean": bool,
    "octet": types.uint8,
    "short": types.int16,
    "unsigned short": types.uint16,
    "long": types.int32,
    "unsigned long": types.uint32,
    "long long": types.int64,
    "unsigned long long": types.uint64,
    "float": types.float32,
    "double": types.float64,
    "string": str,
}


def load(name, extra=None, without=()):
    """The types of `spec/<name>.idl` by name. `extra` is IDL put in before the end of a struct: {"Record": "octet flavour;"}.

    `without` has members that a struct has not, as in an earlier release: [("Event", "left_out")].
    """
    text = re.sub(r"//[^\n]*", "", (SPEC / f"{name}.idl").read_text())
    known = dict(BASIC)
    body = re.fullmatch(r"\s*module tampu \{(.*)\};\s*", text, re.S).group(1)
    place = 0
    token = re.compile(
        r"\s*(?:typedef ([\w ]+) (\w+);|@(final|appendable)\s+(?:struct|union) (\w+) (?:switch \(([\w ]+)\) )?\{(.*?)\};)", re.S
    )
    while body[place:].strip():
        found = token.match(body, place)
        assert found, f"not understood: {body[place:place + 60]!r}"
        place = found.end()
        target, alias, extensibility, made, switch, members = found.groups()
        if alias:
            known[alias] = known[target]
        elif switch:
            known[made] = union(made, extensibility, switch, members, known)
        else:
            lines = [line for line in members.split(";") if (made, line.split()[-1:] and line.split()[-1]) not in without]
            known[made] = struct(made, extensibility, ";".join(lines) + (extra or {}).get(made, ""), known)
    return python_types.SimpleNamespace(**{each: kind for each, kind in known.items() if " " not in each})


def made_class(base, name, extensibility, fields, **options):
    """A class of Cyclone's with these fields."""
    options["typename"] = f"tampu.{name}"
    made = python_types.new_class(name, (base,), options, lambda namespace: namespace.update(__annotations__=fields))
    made.__module__ = __name__
    return annotations.autoid("sequential")(getattr(annotations, extensibility)(made))


def struct(name, extensibility, members, known):
    fields = {}
    for member in members.split(";"):
        if not member.strip():
            continue
        found = re.fullmatch(r"\s*(@optional )?(.+?) (\w+)(?:\[(\d+)\])?\s*", member, re.S)
        optional, kind, field, length = found.groups()
        # A word of Python gets a line behind it; names do not travel.
        field += "_" if keyword.iskeyword(field) else ""
        kind = type_of(kind.strip(), known)
        kind = types.array[kind, int(length)] if length else kind
        fields[field] = typing.Optional[kind] if optional else kind
    return dataclasses.dataclass(made_class(IdlStruct, name, extensibility, fields))


def union(name, extensibility, switch, members, known):
    fields = {}
    for member in members.split(";"):
        if member.strip():
            number, kind, field = re.fullmatch(r"\s*case (\d+):\s+(.+?) (\w+)\s*", member, re.S).groups()
            fields[field] = types.case[[int(number)], type_of(kind.strip(), known)]
    return made_class(IdlUnion, name, extensibility, fields, discriminator=known[switch])


def type_of(kind, known):
    sequence = re.fullmatch(r"sequence<(.+?)(?:, (\d+))?>", kind)
    if not sequence:
        return known[kind]
    element, bound = sequence.groups()
    element = type_of(element, known)
    return types.sequence[element, int(bound)] if bound else types.sequence[element]
