#!/usr/bin/env python3
"""The systemd unit of examples/ leaves the hub little: systemd's own figure for its exposure is below 2.5 of 10."""

import os
import re
import subprocess

from attacked import check, seeded

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/tampu.service")


def main():
    seeded("unit")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", UNIT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    check(f"systemd-analyze judges the unit: {done.stderr.strip()[:200]}", found)
    check(f"its exposure is {found[1]} of 10", float(found[1]) < 2.5)
    check("systemd knows each line of it", "ignoring" not in done.stderr)
    with open(UNIT, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for wanted in ("UMask=0077", "StateDirectoryMode=0700", "RuntimeDirectoryMode=0700", "NoNewPrivileges=yes", "CapabilityBoundingSet="):
        check(wanted, wanted in lines)


if __name__ == "__main__":
    main()
