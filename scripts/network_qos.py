"""What settings of `[[topic]]` do between hosts: one server, two clients on two other hosts, over links of one rate.

Each row changes one setting (`TAMPU_QOS`) and runs twice: pushing events of 92 bytes as fast as it can, and 1000 a second for the delay.
"""

import importlib

TITLES = "| setting | events/s | wire bytes a byte | CPU server, client | delay p50, us | lost |"
# Settings that matter on one host alone, or while a client is stopped, stand in that table.
LEFT_OUT = {"pool", "keep", "wait_period_ms", "max_wait_ms", "cache"}


def rows():
    """Returns the changed setting of each row with its value; the defaults stand first and last."""
    changed = [(name, value) for name, values in importlib.import_module("bench-qos").ROWS if name not in LEFT_OUT for value in values]
    return [(None, None), *changed, (None, None)]


def settings(directory, name, value):
    """Writes the settings of a row; returns the file."""
    return importlib.import_module("bench-qos").file_of(directory, {name: value} if name else {})


def line(row):
    """Returns a row of the table."""
    return (
        f"| {row['setting']} | {row['events_per_s'] / 1e6:.2f} M | {row['wire_per_payload']:.2f} "
        f"| {row['cpu_server']:.2f}, {row['cpu_client']:.2f} | {row['latency_us_p50']:.0f} | {row['lost']} |"
    )
