#!/usr/bin/env python3
"""Prometheus's own parser reads the metrics of a hub, and the counts are those of what was sent."""

import os
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub import Place, check, until
from prometheus_client.parser import text_string_to_metric_families

place = Place("metrics-peer")
try:
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write('[metrics]\nenabled = true\nlisten = "127.0.0.1:0"\n[syslog]\nenabled = true\nudp = "off"\ntcp = "127.0.0.1:0"\n')
    place.up("--config", config)

    def address():
        for record in place.records(f"hub@{os.uname().nodename}"):
            if record["message"].startswith("metrics are at "):
                return record["message"].split()[-1]
        return None

    page = until("its address is told", address)

    def families():
        with urllib.request.urlopen(page, timeout=10) as answer:
            check_type = answer.headers["Content-Type"]
            text = answer.read().decode()
        assert check_type.startswith("text/plain; version=0.0.4"), check_type
        return {family.name: family for family in text_string_to_metric_families(text)}

    place.run("log", "send", "one", "-p", 'odd "name" \\ 1')
    found = families()
    check("every family has help and samples of its own", all(family.documentation for family in found.values()))

    def of(family, **labels):
        samples = [sample.value for sample in families()[family].samples if labels.items() <= sample.labels.items()]
        return samples[0] if samples else None

    until("the sender is counted", lambda: of("tampu_source_records", source='odd "name" \\ 1') == 1)
    check("the sum holds it", of("tampu_collector_records") >= 1)
    buckets = [sample for sample in families()["tampu_collector_durable_seconds"].samples if sample.name.endswith("_bucket")]
    values = [sample.value for sample in buckets]
    check("the histogram grows to its count", values == sorted(values) and buckets[-1].labels["le"] == "+Inf" and values[-1] > 0)
    check("inputs are told", of("tampu_input_messages", input="syslog") == 0)
    check("the bus is told", of("tampu_bus_participants") >= 3)
finally:
    place.close()
