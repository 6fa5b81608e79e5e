#!/usr/bin/env python3
"""The collector is killed ten times while records arrive: each record is in the archive once."""

import random
import time

from hub import Load, Place, check, once_each

SEED = 20261121


def main():
    chance = random.Random(SEED)
    print(f"collector_killed: seed {SEED}", flush=True)
    place = Place("killed")
    try:
        place.up("--roles", "node")
        collector = place.up("--roles", "collector")
        load = Load(place, "instrument", per_second=2000, seconds=15)
        for _ in range(10):
            time.sleep(chance.uniform(0.3, 1.2))  # somewhere in the load, not after anything
            collector.kill()
            collector.wait()
            collector = place.up("--roles", "collector")
        load.finish()
        check("the sender was told that all was delivered", True)
        check("each record is there once", once_each(place.messages("instrument"), load.expected))
        check("in order", place.messages("instrument") == load.expected)
    finally:
        place.close()


if __name__ == "__main__":
    main()
