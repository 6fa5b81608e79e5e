"""Python types for Cyclone DDS out of spec/log.idl itself.

Cyclone's wheel brings its IDL compiler, but as a program that does not run everywhere; our IDL needs a small part of the
language. What is not understood is an error, so the types are those of the file or none.
"""

import dataclasses
import pathlib
import re
import types as python_types
import typing

from cyclonedds.idl import IdlStruct, annotations, types

FILE = pathlib.Path(__file__).resolve().parents[2] / "spec" / "log.idl"

BASIC = {
    "octet": types.uint8,
    "long": types.int32,
    "unsigned long": types.uint32,
    "long long": types.int64,
    "unsigned long long": types.uint64,
    "string": str,
}


def load(extra=""):
    """The types of the file by name. `extra` is IDL put in before the last struct's end of each name: {"Record": "..."}."""
    text = re.sub(r"//[^\n]*", "", FILE.read_text())
    known = dict(BASIC)
    body = re.fullmatch(r"\s*module tampu \{(.*)\};\s*", text, re.S).group(1)
    place = 0
    token = re.compile(r"\s*(?:typedef ([\w ]+) (\w+);|@(final|appendable)\s+struct (\w+) \{(.*?)\};)", re.S)
    while body[place:].strip():
        found = token.match(body, place)
        assert found, f"not understood: {body[place:place + 60]!r}"
        place = found.end()
        target, alias, extensibility, name, members = found.groups()
        if alias:
            known[alias] = known[target]
        else:
            members += (extra or {}).get(name, "")
            known[name] = struct(name, extensibility, members, known)
    return python_types.SimpleNamespace(**{name: kind for name, kind in known.items() if " " not in name})


def struct(name, extensibility, members, known):
    fields = {}
    for member in members.split(";"):
        if not member.strip():
            continue
        found = re.fullmatch(r"\s*(@optional )?(.+?) (\w+)\s*", member, re.S)
        optional, kind, field = found.groups()
        kind = type_of(kind.strip(), known)
        fields[field] = typing.Optional[kind] if optional else kind
    made = python_types.new_class(
        name, (IdlStruct,), {"typename": f"tampu.{name}"}, lambda namespace: namespace.update(__annotations__=fields)
    )
    made.__module__ = __name__
    made = getattr(annotations, extensibility)(made)
    made = annotations.autoid("sequential")(made)
    return dataclasses.dataclass(made)


def type_of(kind, known):
    sequence = re.fullmatch(r"sequence<(.+?)(?:, (\d+))?>", kind)
    if not sequence:
        return known[kind]
    element, bound = sequence.groups()
    element = type_of(element, known)
    return types.sequence[element, int(bound)] if bound else types.sequence[element]
