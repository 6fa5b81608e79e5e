"""Conversion of values, times, configurations and errors between Tango and JSON."""

import base64
import itertools

import numpy
import tango

from bridge_lines import OUTPUT, Refused, failure

# Rows of numbers up to this length are written as JSON numbers, longer ones in base64.
PLAIN_ELEMENTS = 32
# Tampu's names of kinds, and Tango's if they differ.
KINDS = ("change", "alarm", "archive", "periodic", "user", "configuration", "data_ready", "interface")
ALIASES = {"attr_conf": "configuration", "intr_change": "interface", "interface_change": "interface"}
QUALITIES = ("valid", "invalid", "alarm", "changing", "warning")
SEVERITIES = ("warning", "error", "panic")
FORMATS = ("scalar", "spectrum", "image")
# Elements of a fixed size, as they lie in base64. States are Tango's numbers.
NUMBERS = {
    "DevBoolean": "u1", "DevUChar": "u1", "DevShort": "<i2", "DevUShort": "<u2", "DevLong": "<i4", "DevULong": "<u4",
    "DevLong64": "<i8", "DevULong64": "<u8", "DevFloat": "<f4", "DevDouble": "<f8", "DevState": "u1", "DevEnum": "<i2",
}  # fmt: skip

TANGO_NAMES = {"configuration": "ATTR_CONF_EVENT", "interface": "INTERFACE_CHANGE_EVENT"}
# Tango 9 has no alarm events.
EVENT_TYPES = {
    kind: getattr(tango.EventType, name)
    for kind in KINDS
    if hasattr(tango.EventType, name := TANGO_NAMES.get(kind, f"{kind.upper()}_EVENT"))
}
# Release of Tango's interface in this process. A server of an older release may be incompatible.
NEW_CLIENT = hasattr(tango, "EventSubMode")


def kinds_of(words):
    """Returns kinds by the names of Tampu or Tango, each once."""
    kinds = list(dict.fromkeys(ALIASES.get(word, word) for word in words))
    unknown = [kind for kind in kinds if kind not in EVENT_TYPES]
    if unknown:
        raise Refused("Tampu_UnknownKind", f"unknown kind of event '{unknown[0]}'; known are {', '.join(EVENT_TYPES)}")
    return kinds


def number_of(enumerated):
    """Returns the number of a Tango constant."""
    return int(enumerated)


def failures_of(errors):
    """Returns Tango's error stack, innermost first."""
    return [
        {"reason": e.reason, "description": e.desc, "origin": e.origin, "severity": SEVERITIES[min(int(e.severity), 2)]} for e in errors
    ]


def encoded(data):
    """Returns bytes as text for JSON."""
    return base64.b64encode(data).decode("ascii")


def value_of(data_type, data_format, data):
    """Returns a Tango value for JSON."""
    value = {"data_type": data_type, "format": data_format}
    if data_type == "DevEncoded":
        encoding, content = data
        content = content.encode("latin-1") if isinstance(content, str) else bytes(content)
        return {**value, "x": 1, "y": 0, "encoding": encoding, "base64": encoded(content)}
    if data_type == "DevString":
        rows = [data] if data_format == "scalar" else list(data)
        x, y = len(rows), 0
        if data_format == "image":
            x, y, rows = (len(rows[0]) if rows else 0), len(rows), list(itertools.chain.from_iterable(rows))
        return {**value, "x": x, "y": y, "data": rows}
    if data_type not in NUMBERS:
        raise Refused("Tampu_UnknownType", f"values of type {data_type} are not known here")
    if data_type == "DevState":
        data = numpy.vectorize(number_of, otypes=["u1"])(numpy.array(data, dtype=object)) if numpy.size(data) else []
    array = numpy.asarray(data, dtype=NUMBERS[data_type])
    shape = array.shape
    if data_format == "scalar":
        x, y = 1, 0
    elif data_format == "spectrum":
        x, y = array.size, 0
    else:
        x, y = (shape[1], shape[0]) if len(shape) == 2 and array.size else (0, 0)
    value.update(x=x, y=y)
    flat = array.ravel()
    # JSON has no infinities, and not every reader decodes floating point exactly.
    if flat.size > PLAIN_ELEMENTS or flat.dtype.kind == "f":
        value["base64"] = encoded(numpy.ascontiguousarray(flat).tobytes())
    elif data_type == "DevBoolean":
        value["data"] = [bool(one) for one in flat]
    else:
        value["data"] = flat.tolist()
    return value


def time_of(moment):
    """Returns a Tango time in ns."""
    return moment.tv_sec * 1_000_000_000 + moment.tv_usec * 1000 + moment.tv_nsec


def as_number(text):
    """Returns a limit, or None."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if numpy.isfinite(number) else None


def as_band(text):
    """Returns a threshold `low,high`, or None. Tango has `x` or `low,high` and may leave out the sign of `low`."""
    ends = [as_number(part) for part in (text or "").split(",")]
    return None if None in ends or len(ends) > 2 else f"{-abs(ends[0])},{abs(ends[-1])}"


def specified(text):
    """Returns a text, or an empty one for Tango's word for a missing text."""
    return "" if text in ("Not specified", "No label", "No unit", "No description") else text


def config_of(name, info):
    """Returns the configuration of an attribute."""
    alarms, events = info.alarms, info.events
    data_type = tango.CmdArgType.values[info.data_type].name if isinstance(info.data_type, int) else str(info.data_type)
    period = as_number(events.arch_event.archive_period)
    return {
        "name": name,
        "data_type": data_type,
        "format": info.data_format.name.lower(),
        "max_x": info.max_dim_x,
        "max_y": info.max_dim_y,
        "writable": {"READ": "read", "READ_WITH_WRITE": "read_with_write", "WRITE": "write"}.get(info.writable.name, "read_write"),
        "label": specified(info.label),
        "description": specified(info.description),
        "unit": specified(info.unit),
        "labels": list(info.enum_labels),
        "limits": {
            "min": as_number(info.min_value),
            "max": as_number(info.max_value),
            "alarm_low": as_number(alarms.min_alarm),
            "alarm_high": as_number(alarms.max_alarm),
            "warning_low": as_number(alarms.min_warning),
            "warning_high": as_number(alarms.max_warning),
        },
        "criteria": {
            "change": {"rel": as_band(events.ch_event.rel_change), "abs": as_band(events.ch_event.abs_change)},
            "archive": {"rel": as_band(events.arch_event.archive_rel_change), "abs": as_band(events.arch_event.archive_abs_change)},
            "archive_period_ms": None if period is None else max(int(period), 0),
            "period_ms": int(as_number(events.per_event.period) or 1000),
        },
        "polled_ms": None,
    }


def plain_text(text):
    """Returns a text that Tango can carry: Latin-1 without zero bytes."""
    if "\0" in text:
        raise Refused("Tampu_NotConvertible", "a text has an octet 0, with which Tango ends texts")
    try:
        text.encode("latin-1")
    except UnicodeEncodeError as why:
        raise Refused("Tampu_NotConvertible", f"{text[why.start]!r} is not in Latin-1, and Tango's texts are") from why
    return text


def to_tango(config, value):
    """Returns a value for Tango: a scalar, an array, or (format, bytes)."""
    data_type, data_format = config["data_type"], config["format"]
    for key, expected in (("data_type", data_type), ("format", data_format)):
        if value.get(key, expected) != expected:
            raise Refused("Tampu_WrongValue", f"{config['name']} is {expected}, not {value[key]}")
    if data_type == "DevEncoded":
        return plain_text(value["encoding"]), base64.b64decode(value["base64"], validate=True)
    if data_type == "DevString":
        elements = [plain_text(text) for text in value["data"]]
    elif "base64" in value:
        elements = numpy.frombuffer(base64.b64decode(value["base64"], validate=True), dtype=NUMBERS[data_type])
    else:
        elements = numpy.array(value["data"], dtype=NUMBERS[data_type])
    count = {"scalar": 1, "spectrum": value.get("x", len(elements))}.get(data_format, value.get("x", 0) * value.get("y", 0))
    if count != len(elements):
        raise Refused("Tampu_WrongValue", f"{config['name']}: {len(elements)} elements, where its shape says {count}")
    if data_type == "DevEnum" and len(elements) and not (min(elements) >= 0 and max(elements) < len(config.get("labels", []))):
        raise Refused("Tampu_WrongValue", f"{config['name']} has {len(config.get('labels', []))} labels")
    if data_type == "DevState":
        # The table itself rejects an index beyond the last one.
        elements = [tango.DevState.values[int(number)] for number in elements]
    elif data_type == "DevBoolean":
        elements = elements.astype(bool)
    if data_format == "image":
        x, y = value["x"], value["y"]
        if isinstance(elements, list):
            return [elements[row * x : (row + 1) * x] for row in range(y)]
        return elements.reshape((y, x))
    if data_format == "scalar":
        return elements[0].item() if hasattr(elements[0], "item") else elements[0]
    return elements


def nothing_of(config):
    """Returns a placeholder for a missing value."""
    if config["data_type"] == "DevEncoded":
        return "", b""
    zero = {"DevString": "", "DevState": tango.DevState.UNKNOWN, "DevBoolean": False}.get(config["data_type"], 0)
    return {"scalar": zero, "spectrum": [zero], "image": [[zero]]}[config["format"]]


def failed(failures):
    """Returns Tango's exception for an error stack."""
    stack = []
    for one in failures:
        error = tango.DevError()
        error.reason, error.desc = one.get("reason", ""), one.get("description", "")
        error.origin = one.get("origin", "")
        error.severity = tango.ErrSeverity.values[SEVERITIES.index(one.get("severity", "error"))]
        stack.append(error)
    return tango.DevFailed(*stack)


def answered(do, request):
    """Runs a request, and reports its error."""
    try:
        do()
    except Refused as why:
        OUTPUT.error(why.failure, request=request)
    except tango.DevFailed as why:
        OUTPUT.error(failures_of(why.args)[0], request=request)
    except Exception as why:  # pylint: disable=broad-except
        OUTPUT.error(failure("Tampu_BadRequest", f"{type(why).__name__}: {why}"), request=request)
