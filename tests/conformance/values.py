"""Values of every data type in every format that the conformance kit publishes, with the edges of each type."""

FORMATS = ["scalar", "spectrum", "image"]
QUALITIES = ["valid", "warning", "alarm", "changing"]
LABELS = ["zero", "one", "two", "thrée"]


def _limits(bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return [str(low), str(high), "1"]


# Floats by their bits: 1.5, NaN, both infinities, -0, the least and the greatest number.
EDGES = {
    "DevBoolean": ["true", "false"],
    "DevUChar": _limits(8, False),
    "DevShort": _limits(16, True),
    "DevUShort": _limits(16, False),
    "DevLong": _limits(32, True),
    "DevULong": _limits(32, False),
    "DevLong64": _limits(64, True),
    "DevULong64": _limits(64, False),
    "DevFloat": ["3fc00000", "7fc00000", "7f800000", "ff800000", "80000000", "00000001", "7f7fffff"],
    "DevDouble": ["3ff8000000000000", "7ff8000000000000", "7ff0000000000000", "fff0000000000000", "8000000000000000",
                  "0000000000000001", "7fefffffffffffff"],
    "DevString": ["text", "", "déjà vu", "日本 🔭", 'a "quote" \\ and\n\ta line', "long " * 1000],
    "DevState": ["ON", "UNKNOWN", "FAULT"],
    "DevEnum": ["0", "3", "1"],
}
ENCODED = [["JPEG_RGB24", "ffd8ff00"], ["RAW", ""], ["täxt", "c3a9"]]


def attributes(publisher):
    """The attributes of a publisher: name, type and format."""
    for data_type in [*EDGES, "DevEncoded"]:
        for shape in FORMATS[:1] if data_type == "DevEncoded" else FORMATS:
            yield f"conf/{publisher}/{data_type.lower()}/{shape}", data_type, shape


def pushes(data_type, shape):
    """What is pushed to an attribute, in order. Without kinds the criteria decide, by which the first value is an event."""
    if data_type == "DevEncoded":
        values = [(elements, 1, 0) for elements in ENCODED]
    elif shape == "scalar":
        values = [([element], 1, 0) for element in EDGES[data_type]]
    elif shape == "spectrum":
        values = [(elements, len(elements), 0) for elements in (EDGES[data_type], [], EDGES[data_type][:1])]
    else:
        row = EDGES[data_type]
        values = [(row + row[::-1], len(row), 2), ([], 0, 0), (row, 1, len(row))]
    for number, (elements, x, y) in enumerate(values):
        quality = QUALITIES[number % len(QUALITIES)]
        kinds = ["change"] if number else []
        yield {"elements": elements, "x": str(x), "y": str(y), "quality": quality, "kinds": kinds}


def without_type(push):
    """The members of the command `push`."""
    return {key: push[key] for key in ("elements", "x", "y", "quality", "kinds")}
