#!/usr/bin/env python3
"""util-linux's `logger` speaks to a hub: both RFCs, over UDP and over TCP with both ways of framing."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub import Place, check, sh, until

place = Place("syslog-peer")
try:
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write('[syslog]\nenabled = true\nudp = "127.0.0.1:0"\ntcp = "127.0.0.1:0"\n')
    place.up("--config", config)

    def addresses():
        records = [record for name in (f"hub@{os.uname().nodename}",) for record in place.records(name)]
        told = [record for record in records if record["message"].startswith("receiving ")]
        data = [datum["value"] for record in told for datum in record.get("data", []) if datum["name"] == "address"]
        return dict(value.rsplit(" ", 1) for value in data)

    until("both addresses are told", lambda: len(addresses()) == 2)
    ports = {name: address.rsplit(":", 1)[1] for name, address in addresses().items()}
    base = "logger --server 127.0.0.1 --priority daemon.err"
    udp, tcp = f"{base} --udp --port {ports['syslog udp']}", f"{base} --tcp --port {ports['syslog tcp']}"
    sh(f"{udp} --rfc3164 --tag peer-old 'over UDP as RFC 3164'")
    sh(f"{udp} --rfc5424 --tag peer-new --msgid ID1 --sd-id zoo@32473 --sd-param 'tiger=\"hungry\"' 'over UDP as RFC 5424'")
    sh(f"{tcp} --rfc5424 --octet-count --tag peer-counted 'over TCP, counted'")
    sh(f"{tcp} --rfc3164 --tag peer-lines 'over TCP, by line'")
    for process, message in [
        ("peer-old", "over UDP as RFC 3164"),
        ("peer-new", "over UDP as RFC 5424"),
        ("peer-counted", "over TCP, counted"),
        ("peer-lines", "over TCP, by line"),
    ]:
        until(f"{process} is kept", lambda: place.messages(process))
        record = place.records(process)[0]
        check(f"{process}: '{message}'", record["message"] == message and record["level"] == "Error")
        data = {datum["name"]: datum["value"] for datum in record["data"]}
        check(f"{process}: its facility", data["facility"] == "daemon" and "syslog_fault" not in data)
        check(f"{process}: its host", record["host"].split(".")[0] == os.uname().nodename.split(".")[0])
        check(f"{process}: once", len(place.messages(process)) == 1)
        if process == "peer-new":
            check("structured data", data["zoo@32473.tiger"] == "hungry" and data["msgid"] == "ID1")
            check("time quality", "timeQuality.tzKnown" in data)
finally:
    place.close()
