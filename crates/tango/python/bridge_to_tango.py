"""Events to Tango: a device server with Tampu's attributes."""

import collections
import os
import shutil
import socket
import tempfile
import threading
import time

import numpy
import tango
import tango.server

from bridge_from_tango import SUBSCRIPTIONS
from bridge_lines import AT_END, INPUT_BOUND, OUTPUT, Bounded, Refused, failure
from bridge_values import (
    EVENT_TYPES, FORMATS, NUMBERS, QUALITIES, answered, failed, failures_of, kinds_of, nothing_of, plain_text, to_tango, value_of,
)  # fmt: skip

Last = collections.namedtuple("Last", "data seconds quality failures")
NOT_YET = Last(None, 0, None, [failure("Tampu_NoValueYet", "the attribute has not been published since the bridge began", "tampu")])


class Served:
    """An attribute of Tampu in a Tango device."""

    def __init__(self, config):
        parts = config["name"].split("/")
        if len(parts) != 4 or config["data_type"] not in [*NUMBERS, "DevString", "DevEncoded"] or config["format"] not in FORMATS:
            raise Refused("Tampu_BadConfig", f"{config['name']} ({config['data_type']}, {config['format']}) cannot be an attribute in Tango")
        if config["data_type"] == "DevEncoded" and config["format"] != "scalar":
            raise Refused("Tampu_BadConfig", f"{config['name']}: DevEncoded is always a scalar in Tango")
        self.config, self.device_name, self.attribute = config, "/".join(parts[:3]), parts[3]
        # Every device has a state already.
        self.built_in = self.attribute.lower() in ("state", "status")
        self.last = NOT_YET

    def read(self):
        """Returns the value for a client that reads."""
        last = self.last
        if last.failures:
            raise failed(last.failures)
        return last.data, last.seconds, last.quality

    def written(self, device):
        """Reports a value that a client wrote."""
        try:
            data = device.get_device_attr().get_w_attr_by_name(self.attribute).get_write_value()
            if self.config["format"] == "image" and self.config["data_type"] != "DevString":
                data = numpy.asarray(data)
            value = value_of(self.config["data_type"], self.config["format"], data)
            OUTPUT.count("written")
            OUTPUT.say({"written": {"attribute": self.config["name"], "time_ns": time.time_ns(), "value": value}}, self.config["name"])
        except Exception as why:
            OUTPUT.could_not_convert(self.config["name"], "written", why)
            raise

    def push(self, device, wish):
        """Keeps the value for readers and pushes it to subscribers."""
        kinds = kinds_of(wish.get("kinds", ["change"]))
        if "data_ready" in kinds:
            device.push_data_ready_event(self.attribute, int(wish["counter"]))
            kinds.remove("data_ready")
            if not kinds:
                return
        for kind in ("periodic", "configuration", "interface"):
            if kind in kinds:
                raise Refused("Tampu_NotPushable", f"Tango sends {kind} events itself; code cannot")
        if wish.get("failures"):
            last = Last(None, 0, None, wish["failures"])
            pushed = (failed(last.failures),)
        else:
            quality = tango.AttrQuality.values[QUALITIES.index(wish.get("quality", "valid"))]
            invalid = quality == tango.AttrQuality.ATTR_INVALID
            data = nothing_of(self.config) if invalid else to_tango(self.config, wish["value"])
            last = Last(data, wish.get("time_ns", time.time_ns()) / 1e9, quality, None)
            parts = data if self.config["data_type"] == "DevEncoded" else (data,)
            pushed = (*parts, last.seconds, last.quality)
            if wish.get("set_point") and self.config.get("writable", "read") in ("write", "read_write"):
                point = to_tango(self.config, wish["set_point"])
                device.get_device_attr().get_w_attr_by_name(self.attribute).set_write_value(point)
            if self.built_in and not invalid:
                (device.set_state if self.attribute.lower() == "state" else device.set_status)(data)
        if not wish.get("passing"):
            self.last = last
        for kind in kinds:
            if kind == "change":
                device.push_change_event(self.attribute, *pushed)
            elif kind == "archive":
                device.push_archive_event(self.attribute, *pushed)
            elif kind == "alarm":
                device.push_alarm_event(self.attribute, *pushed)
            elif kind == "user":
                device.push_event(self.attribute, [], [], *pushed)
        OUTPUT.count("pushed")

    def definition(self):
        """Returns the attribute in PyTango's form."""
        config, data_format = self.config, tango.AttrDataFormat.values[FORMATS.index(self.config["format"])]
        limits, criteria = config.get("limits") or {}, config.get("criteria") or {}
        change, archive = criteria.get("change") or {}, criteria.get("archive") or {}
        numeric = config["data_type"] not in ("DevBoolean", "DevString", "DevState", "DevEncoded", "DevEnum")
        options = {
            "label": plain_text(config.get("label") or self.attribute),
            "doc": plain_text(config.get("description") or ""),
            "unit": plain_text(config.get("unit") or ""),
        }
        if config["data_type"] == "DevEnum":
            options["enum_labels"] = [plain_text(label) for label in config["labels"]]
        if numeric:
            names = {
                "min_value": limits.get("min"), "max_value": limits.get("max"),
                "min_alarm": limits.get("alarm_low"), "max_alarm": limits.get("alarm_high"),
                "min_warning": limits.get("warning_low"), "max_warning": limits.get("warning_high"),
                "rel_change": change.get("rel"), "abs_change": change.get("abs"),
                "archive_rel_change": archive.get("rel"), "archive_abs_change": archive.get("abs"),
            }  # fmt: skip
            integer = "Float" not in config["data_type"] and "Double" not in config["data_type"]
            for name, number in names.items():
                if number is not None:
                    is_limit = not name.endswith("change")
                    options[name] = str(int(number) if is_limit and integer and float(number).is_integer() else number)
        if criteria.get("archive_period_ms"):
            options["archive_period"] = str(criteria["archive_period_ms"])
        if criteria.get("period_ms"):
            options["period"] = str(criteria["period_ms"])
        access = tango.AttrWriteType.READ_WRITE if config.get("writable", "read") in ("write", "read_write") else tango.AttrWriteType.READ
        return tango.server.attribute(
            name=self.attribute,
            dtype=tango.CmdArgType.names[config["data_type"]],
            dformat=data_format,
            # Tango requires a bound that Tampu does not have.
            max_dim_x=1 if config["format"] == "scalar" else config.get("max_x") or 2**24,
            max_dim_y=0 if config["format"] != "image" else config.get("max_y") or 2**24,
            access=access,
            fget=Bridged.read_served,
            **({"fset": Bridged.write_served} if access == tango.AttrWriteType.READ_WRITE else {}),
            **options,
        )


class Bridged(tango.server.Device):
    """A device with attributes of Tampu."""

    served = {}

    def init_device(self):
        super().init_device()
        self.set_state(tango.DevState.ON)
        self.set_status("Attributes of Tampu.")
        SERVER.devices[self.get_name().lower()] = self

    def read_served(self, attr):
        """Handles access to any of the attributes."""
        name = f"{self.get_name()}/{attr.get_name()}"
        return (SERVER.gone.get(name.lower()) or SERVER.find(name)).read()

    def write_served(self, attr):
        """Handles access to any of the attributes."""
        name = f"{self.get_name()}/{attr.get_name()}"
        if name.lower() in SERVER.gone:
            raise failed(SERVER.gone[name.lower()].last.failures)
        SERVER.find(name).written(self)


class Server:
    """The device server of this process. There is at most one, and its devices are known when it starts."""

    def __init__(self):
        self.wish, self.asked = None, threading.Event()
        self.attributes, self.gone, self.devices = {}, {}, {}
        self.pushes, self.up = Bounded(INPUT_BOUND), threading.Event()
        # Pushes of each attribute without room since the last one with room. Only the thread that reads stdin uses it.
        self.missed = collections.Counter()
        # Directory of the device list until Tango has read it.
        self.place = None

    def find(self, name):
        """Returns a served attribute."""
        try:
            return self.attributes[name.lower()]
        except KeyError:
            raise Refused("Tampu_NotServed", f"'{name}' is not served") from None

    def serve(self, request, wish):
        """`{"devices": [{"device", "attributes"}]}`, or those two for one device."""
        if self.wish is not None:
            raise Refused("Tampu_AlreadyServing", "a process can be one device server; start another")
        wish = {"devices": [wish], **wish} if "device" in wish else wish
        names, served = {device["device"].lower() for device in wish["devices"]}, []
        for config in (config for device in wish["devices"] for config in device["attributes"]):
            try:
                one = Served(config)
                if one.device_name.lower() not in names:
                    raise Refused("Tampu_BadConfig", f"{config['name']} belongs to no served device")
                served.append(one)
            except Refused as why:
                OUTPUT.error(why.failure, attribute=config["name"])
        self.attributes = {one.config["name"].lower(): one for one in served}
        self.wish = {**wish, "id": request}
        self.asked.set()

    def run(self):
        """Runs the device server until it ends."""
        wish = self.wish
        names, server, instance = [one["device"] for one in wish["devices"]], "TampuBridge", wish.get("instance", "tampu")
        database = bool(wish.get("database"))
        arguments, address = [server, instance], None
        # A class for each device: in Tango attributes of one name are of one type in all devices of a class.
        classes = {name: Bridged if database else type(f"Tampu{n}", (Bridged,), {}) for n, name in enumerate(names, 1)}
        try:
            if database:
                for other in with_database(server, instance, names):
                    names.remove(other)
                    self.attributes = {name: one for name, one in self.attributes.items() if one.device_name.lower() != other.lower()}
                if not names:
                    raise Refused("Tampu_OtherServer", "all devices are other servers' in the database")
            else:
                host, port = wish.get("host", "127.0.0.1"), wish.get("port") or free_port(wish.get("host", "127.0.0.1"))
                address = f"{host}:{port}"
                # A directory, because Tango rewrites its file when an attribute is configured. Without the directory it cannot.
                self.place = tempfile.mkdtemp(prefix="tampu-tango-devices-")
                path = os.path.join(self.place, "devices")
                with open(path, "w", encoding="ascii") as devices:
                    devices.writelines(f'{server}/{instance}/DEVICE/{one.__name__}: "{name}"\n' for name, one in classes.items())
                arguments += ["-ORBendPoint", f"giop:tcp:{address}", f"-file={path}"]

            def begun():
                self._begun(address, names)

            tango.server.run(tuple(dict.fromkeys(classes.values())), args=arguments, post_init_callback=begun, raises=True)
        except tango.DevFailed as why:
            OUTPUT.error(failures_of(why.args)[0], request=wish["id"])
        except Refused as why:
            OUTPUT.error(why.failure, request=wish["id"])
        except Exception as why:  # pylint: disable=broad-except
            OUTPUT.error(failure("Tampu_CannotServe", f"{type(why).__name__}: {why}"), request=wish["id"])
        finally:
            self.clear()

    def clear(self):
        """Removes the files. Any thread may call it at any time."""
        if self.place:
            shutil.rmtree(self.place, ignore_errors=True)

    def _begun(self, address, names):
        # Tango has read the file, and from here on this process may be killed at any moment. Tango would read the file again only when a client
        # restarts the server. That ends this process, and its parent starts anew with all attributes, which Tango itself would not restore.
        self.clear()
        for one in list(self.attributes.values()):
            try:
                self._add(one)
            except (tango.DevFailed, Refused, TypeError, ValueError, KeyError) as why:
                del self.attributes[one.config["name"].lower()]
                what = failures_of(why.args)[0] if isinstance(why, tango.DevFailed) else getattr(why, "failure", None) or failure("Tampu_BadConfig", why)
                OUTPUT.error(what, attribute=one.config["name"])
        urls = [f"tango://{address}/{name}#dbase=no" if address else name for name in names]
        attributes = [one.config["name"] for one in self.attributes.values()]
        OUTPUT.say({"serving": {"address": address, "devices": urls, "attributes": attributes}}, request=self.wish["id"])
        self.up.set()

    def _add(self, one):
        device = self.devices[one.device_name.lower()]
        if not one.built_in:
            device.add_attribute(one.definition())
        for kind in ("change", "archive", "alarm"):
            if kind in EVENT_TYPES:
                getattr(device, f"set_{kind}_event")(one.attribute, True, False)
        if not one.built_in:
            device.set_data_ready_event(one.attribute, True)
        if one.config.get("polled_ms"):
            # Tango sends periodic events of polled attributes only. A request for polling has no effect before the server runs.
            self.pushes.put(("poll", None, one.config["name"]), 0)

    def poll(self, _request, name):
        """Makes Tango poll an attribute once the server runs."""
        if tango.Util.instance().is_svr_starting():
            SUBSCRIPTIONS.later(lambda: self.pushes.put(("poll", None, name), 0), 0.1)
            return
        one = self.find(name)
        self.devices[one.device_name.lower()].poll_attribute(one.attribute, int(one.config["polled_ms"]))

    def add(self, request, config):
        """Adds an attribute to a served device."""
        one = Served(config)
        if one.device_name.lower() not in self.devices:
            raise Refused("Tampu_NotServed", f"the device '{one.device_name}' is not served; devices are known when the server begins")
        if config["name"].lower() in self.attributes:
            raise Refused("Tampu_BadConfig", f"'{config['name']}' is served already")
        key = config["name"].lower()
        before = self.gone.get(key)
        if before and any(before.config.get(what) != config.get(what) for what in ("data_type", "format", "writable", "max_x", "max_y")):
            raise Refused("Tampu_BadConfig", f"'{config['name']}' was served before as something else; that takes another bridge")
        self.attributes[key] = one
        try:
            if not before:
                self._add(one)
        except Exception:
            del self.attributes[key]
            raise
        self.gone.pop(key, None)
        OUTPUT.say({"added": {"attribute": config["name"]}}, request=request)

    def remove(self, request, name):
        """Ends the service of an attribute; readers get an error.

        In Tango it stays. PyTango 10.3 can take an attribute away, but crashes when a client follows the device's interface.
        """
        self.find(name)
        what = [failure("Tampu_Gone", "Tampu no longer has this attribute", "tampu")]
        self.push(None, {"attribute": name, "kinds": ["change"], "failures": what})
        self.gone[name.lower()] = self.attributes.pop(name.lower())
        OUTPUT.say({"removed": {"attribute": name}}, request=request)

    def configure(self, request, config):
        """Changes label, unit, description or limits; Tango notifies its clients."""
        one = self.find(config["name"])
        attribute = self.devices[one.device_name.lower()].get_device_attr().get_attr_by_name(one.attribute)
        properties, limits = attribute.get_properties(), config.get("limits") or {}
        for key, name in (("label", "label"), ("unit", "unit"), ("description", "description")):
            if config.get(key) is not None:
                setattr(properties, name, plain_text(config[key]))
        for key, name in (
            ("min", "min_value"), ("max", "max_value"), ("alarm_low", "min_alarm"), ("alarm_high", "max_alarm"),
            ("warning_low", "min_warning"), ("warning_high", "max_warning"),
        ):  # fmt: skip
            if key in limits:
                setattr(properties, name, "NaN" if limits[key] is None else str(limits[key]))
        attribute.set_properties(properties)
        one.config = {**one.config, **config}
        OUTPUT.say({"configured": {"attribute": config["name"]}}, request=request)

    def push(self, _request, wish):
        """Handles the request `{"attribute", "kinds", ...}`."""
        one = self.find(wish["attribute"])
        try:
            one.push(self.devices[one.device_name.lower()], wish)
        except tango.DevFailed as why:
            OUTPUT.could_not_convert(one.config["name"], "out", Refused(why.args[0].reason, why.args[0].desc))
        except (Refused, KeyError, IndexError, TypeError, ValueError, OverflowError) as why:
            OUTPUT.could_not_convert(one.config["name"], "out", why)

    def offer(self, request, wish, size):
        """Queues a push, which may be dropped. Before the next push with room, the clients get an event that some were missed."""
        name, before = wish.get("attribute", "") if isinstance(wish, dict) else "", []
        if self.missed[name]:
            what = {**failure("API_MissedEvents", f"{self.missed[name]} events found no room on the way", "tampu"), "severity": "warning"}
            kinds = [kind for kind in ("change", "alarm", "archive", "user") if kind in EVENT_TYPES]
            before.append(("push", None, {"attribute": name, "kinds": kinds, "passing": True, "failures": [what]}))
        if self.pushes.put(("push", request, wish), size, name, before):
            self.missed.pop(name, None)
        else:
            self.missed[name] += 1

    def run_pushes(self):
        """Pushes the queued events in order; the work of a thread."""
        self.up.wait()
        with tango.EnsureOmniThread():
            while True:
                (verb, request, wish), dropped = self.pushes.take()
                for attribute, count in dropped.items():
                    OUTPUT.count("dropped_out", count)
                    OUTPUT.say({"dropped": {"attribute": attribute, "direction": "out", "count": count}})
                answered(lambda verb=verb, request=request, wish=wish: getattr(self, verb)(request, wish), request)


def with_database(server, instance, names):
    """Registers the devices in the database. Returns the devices that belong to another server."""
    database, refused = tango.Database(), []
    for name in names:
        try:
            owner = database.get_device_info(name).ds_full_name
        except tango.DevFailed:
            owner = ""  # the database does not know it
        if owner and owner.lower() != f"{server}/{instance}".lower():
            # A registration here would take the device away from its server.
            what = f"{name} is a device of {owner} in the database; a name belongs to one server"
            OUTPUT.error(failure("Tampu_OtherServer", what), attribute=f"{name}/*")
            refused.append(name)
            continue
        info = tango.DbDevInfo()
        info.server, info._class, info.name = f"{server}/{instance}", "Bridged", name  # pylint: disable=protected-access
        database.add_device(info)
    return refused


def free_port(host):
    """Returns a free port."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


SERVER = Server()
AT_END.append(SERVER.clear)
