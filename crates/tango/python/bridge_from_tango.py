"""Events from Tango: subscriptions to attributes of Tango servers."""

import heapq
import itertools
import re
import threading
import time

import tango

from bridge_lines import OUTPUT, Refused, failure
from bridge_values import EVENT_TYPES, NEW_CLIENT, QUALITIES, config_of, failures_of, kinds_of, time_of, value_of

# Pauses in seconds before another search for a missing device, and before another request for events that an attribute does not send. Tango itself
# would ask for the second every 10 s, for each attribute and kind.
RETRY_S, RETRY_KIND_S = 3, 300
WORKERS = 4
# Errors by which Tango's event system reports a silent source; a device does not make them itself.
SILENCE = re.compile(
    r"API_(EventTimeout|CantConnect\w*|DeviceNotExported|ServerNotRunning|CorbaException|DeviceTimedOut|CommunicationFailed"
    r"|ZmqFailed|EventChannelNotExported|NotificationServiceFailed|BadConfigurationProperty|DeviceNotDefined|DeviceNotFound)$"
)
# Errors by which an attribute reports that it sends no events of a kind.
NOT_SENT = {
    "API_AttributePollingNotStarted", "API_EventPropertiesNotSet", "API_AttributeNotDataReadyEnabled", "API_EventSupported", "API_NotSupportedFeature",
}  # fmt: skip

# Neither fails if the device is missing. Before 10.1 the call waits for the device, which costs a thread's time.
PATIENT = {"sub_mode": tango.EventSubMode.AsyncRead} if NEW_CLIENT else {"stateless": True}


class Address:
    """Address of an attribute as Tango's clients write it, and its parts."""

    def __init__(self, text):
        path, mark, options = text.partition("#")
        device, _, self.attribute = path.rpartition("/")
        parts = path.split("//")[-1].split("/")
        if not self.attribute or len(parts) < 4:
            raise Refused("Tampu_BadName", f"invalid attribute '{text}': write domain/family/member/attribute, optionally with tango://HOST:PORT/ before it")
        self.text, self.device, self.name = text, device + mark + options, "/".join(parts[-4:])


class Listener:
    """Callback of Tango for the events of one attribute and kind."""

    def __init__(self, subscription, kind):
        self.subscription, self.kind = subscription, kind
        self.told, self.silent = False, False

    def __call__(self, event):
        try:
            self._take(event)
        # An error of one event does not end the subscription.
        except Exception as why:  # pylint: disable=broad-except
            OUTPUT.could_not_convert(self.subscription.address.text, "in", why)

    def _take(self, event):
        subscription = self.subscription
        if subscription.ended:
            return
        address = subscription.address
        line = {"attribute": address.text, "name": address.name, "kind": self.kind}
        line["received_ns"] = time_of(event.reception_date) or time.time_ns()
        if event.err:
            failures = failures_of(event.errors)
            reasons = {one["reason"] for one in failures}
            if "API_MissedEvents" in reasons:
                line["reason"] = "gap"
            else:
                line["reason"], silent = "error", any(SILENCE.match(reason) for reason in reasons)
                line["lost"] = silent
                self.silent = self.silent or silent
                if reasons & NOT_SENT:
                    SUBSCRIPTIONS.later(lambda: subscription.set_aside(self.kind))
            line["failures"] = failures
        elif self.kind == "configuration":
            # Never dropped: without it the attribute is not there at all.
            OUTPUT.say({"config": {"attribute": address.text, "config": config_of(address.name, event.attr_conf)}})
            if self._heard() != "update":
                SUBSCRIPTIONS.later(lambda: SUBSCRIPTIONS.look_at(address, subscription.proxy))
            return
        else:
            line["reason"] = self._heard()
            if self.kind == "data_ready":
                # An event without a counter reports that the subscription is active.
                if getattr(event, "ctr", None) is None or NEW_CLIENT and event.event_reason == tango.EventReason.SubSuccess:
                    return
                line["counter"] = event.ctr
            elif self.kind == "interface":
                line.update(
                    attributes=[one.name for one in event.att_list],
                    commands=[one.cmd_name for one in event.cmd_list],
                    started=bool(event.dev_started),
                )
            else:
                self._value(line, event.attr_value)
        if self.kind == "configuration" and not subscription.wants("configuration"):
            return
        OUTPUT.count("events")
        OUTPUT.say({"event": line}, address.text)

    def _heard(self):
        reason = "resumed" if self.silent else "update" if self.told else "first"
        self.told, self.silent = True, False
        return reason

    def _value(self, line, read):
        line["time_ns"], line["quality"] = time_of(read.time), QUALITIES[int(read.quality)]
        if read.quality == tango.AttrQuality.ATTR_INVALID:
            return
        data_type, data_format = read.type.name, read.data_format.name.lower()
        line["value"] = value_of(data_type, data_format, self._or_empty(data_format, read.value))
        if read.w_dim_x and read.w_value is not None:
            line["set_point"] = value_of(data_type, data_format, read.w_value)

    @staticmethod
    def _or_empty(data_format, data):
        if data is None:
            if data_format == "scalar":
                raise Refused("Tampu_NoValue", "there is no value, though the quality is not invalid")
            return []
        return data


class Subscription:
    """An attribute with subscriptions to some kinds of events."""

    def __init__(self, address, kinds):
        self.address, self.kinds, self.ended = address, kinds, False
        self.proxy, self.ids = None, []
        self.lock = threading.Lock()

    def wants(self, kind):
        """Returns whether events of this kind were requested."""
        return kind in self.kinds

    def begin(self, proxy):
        """Subscribes to the missing kinds; Tango itself retries from then on."""
        with self.lock:
            if self.ended:
                return
            self.proxy, begun = proxy, {kind for kind, _ in self.ids}
            # The configuration comes first, because values are decoded with it.
            for kind in ["configuration", *self.kinds]:
                if kind in begun:
                    continue
                begun.add(kind)
                listener = Listener(self, kind)
                if kind == "interface":
                    number = proxy.subscribe_event(EVENT_TYPES[kind], listener, **PATIENT)
                else:
                    number = proxy.subscribe_event(self.address.attribute, EVENT_TYPES[kind], listener, **PATIENT)
                self.ids.append((kind, number))

    def set_aside(self, kind):
        """Ends the subscription to a kind that the attribute does not send, and retries much later."""
        with self.lock:
            number = next((number for one, number in self.ids if one == kind), None)
            if self.ended or number is None:
                return
            self.ids.remove((kind, number))
            self.proxy.unsubscribe_event(number)
        SUBSCRIPTIONS.later(lambda: self.begin(self.proxy), RETRY_KIND_S)

    def end(self):
        """Ends all subscriptions of the attribute."""
        with self.lock:
            self.ended = True
            for _, number in self.ids:
                try:
                    self.proxy.unsubscribe_event(number)
                except tango.DevFailed as why:
                    OUTPUT.error(failures_of(why.args)[0], attribute=self.address.text)
            self.ids.clear()


class Subscriptions:
    """All followed attributes, and the threads that subscribe to them."""

    def __init__(self):
        self.all, self.lock, self.proxies, self.old = {}, threading.Lock(), {}, set()
        self.tasks, self.count, self.changed = [], itertools.count(), threading.Condition()
        for number in range(WORKERS):
            threading.Thread(target=self._work, name=f"worker {number}", daemon=True).start()

    def later(self, task, seconds=0.0):
        """Queues the task for a worker thread."""
        with self.changed:
            heapq.heappush(self.tasks, (time.monotonic() + seconds, next(self.count), task))
            self.changed.notify()

    def _next(self):
        with self.changed:
            while not self.tasks or self.tasks[0][0] > time.monotonic():
                self.changed.wait(max(self.tasks[0][0] - time.monotonic(), 0) if self.tasks else None)
            return heapq.heappop(self.tasks)[2]

    def _work(self):
        with tango.EnsureOmniThread():
            while True:
                task = self._next()
                try:
                    task()
                except Exception as why:  # pylint: disable=broad-except
                    OUTPUT.error(failure("Tampu_Unexpected", f"{type(why).__name__}: {why}"))

    def _proxy(self, device):
        with self.lock:
            lock, kept = self.proxies.setdefault(device, (threading.Lock(), []))
        # One thread at a time waits for a device that may not be there.
        with lock:
            if not kept:
                kept.append(tango.DeviceProxy(device))
            return kept[0]

    def subscribe(self, request, wish):
        """Handles the request `{"attribute": ..., "kinds": [...]}`."""
        address = Address(wish["attribute"])
        kinds = kinds_of(wish.get("kinds", ["change"]))
        subscription = Subscription(address, kinds)
        with self.lock:
            before = self.all.get(address.text.lower())
            self.all[address.text.lower()] = subscription
        said = []

        def task():
            if before:
                before.end()
            try:
                subscription.begin(self._proxy(address.device))
            except tango.DevFailed as why:
                if not said:
                    said.append(True)
                    line = {"attribute": address.text, "name": address.name, "kind": (kinds or ["configuration"])[0]}
                    line.update(received_ns=time.time_ns(), reason="error", lost=True, failures=failures_of(why.args))
                    OUTPUT.say({"event": line}, address.text)
                if not subscription.ended:
                    self.later(task, RETRY_S)

        self.later(task)
        OUTPUT.say({"subscribed": {"attribute": address.text, "name": address.name, "kinds": kinds}}, request=request)

    def unsubscribe(self, request, wish):
        """Handles the request `{"attribute": ...}`."""
        text = wish["attribute"]
        with self.lock:
            subscription = self.all.pop(text.lower(), None)
        if subscription is None:
            raise Refused("Tampu_NotSubscribed", f"'{text}' is not subscribed to")

        def task():
            subscription.end()
            OUTPUT.say({"unsubscribed": {"attribute": text}}, request=request)

        self.later(task)

    def look_at(self, address, proxy):
        """Reports a source of an incompatible release, once for each device."""
        try:
            release = proxy.get_idl_version()
        except tango.DevFailed:
            return
        with self.lock:
            told = address.device in self.old
            self.old.add(address.device)
        if NEW_CLIENT and release < 6 and not told:
            why = f"a server of Tango 9, and this is Tango {tango.constants.TgLibVers}: every other event is lost on the way; use PyTango 9.5 for this source"
            OUTPUT.error({**failure("Tampu_OldServer", why), "severity": "warning"}, attribute=address.text)

    def list(self, request, pattern):
        """Lists the attributes that match a pattern, from the database or from one device."""

        def task():
            try:
                path, mark, options = pattern.partition("#")
                if mark:
                    # The address names the server of one device.
                    device, _, last = path.rpartition("/")
                    devices, behind = [device], mark + options
                else:
                    parts = (path.split("/") + ["*"] * 4)[:4]
                    devices, behind, last = tango.Database().get_device_exported("/".join(parts[:3])), "", parts[3]
                wanted = re.compile(re.escape(last).replace(r"\*", ".*").replace(r"\?", "."), re.IGNORECASE)
                found, silent = [], []
                for device in devices:
                    try:
                        proxy = self._proxy(device + behind)
                        if not ours(proxy):
                            found += [f"{device}/{name}{behind}" for name in proxy.get_attribute_list() if wanted.fullmatch(name)]
                    except tango.DevFailed:
                        silent.append(device + behind)
                OUTPUT.say({"listed": {"pattern": pattern, "attributes": found, "silent": silent}}, request=request)
            except tango.DevFailed as why:
                OUTPUT.error(failures_of(why.args)[0], request=request, pattern=pattern)

        self.later(task)


def ours(proxy):
    """Returns whether a device belongs to a bridge. Its attributes came from Tampu and do not go back."""
    return proxy.info().server_id.lower().startswith("tampubridge/")


SUBSCRIPTIONS = Subscriptions()
