#!/usr/bin/env python3
"""What a log call costs in Java, beside Logback's own file appender in the same run. Arguments are options of `java`."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "peers"))
import javas  # noqa: E402
from hub import Place  # noqa: E402

javas.need()
javas.maven("-Pbench", "-DskipTests", "package")
path = javas.ours("tampu", "tampu-slf4j", "tampu-logback", "tampu-log4j", "tampu-bench")
path += javas.jars(javas.SLF4J, javas.LOGBACK, javas.LOG4J)
place = Place("benchjava")
try:
    # A node must read the rings; how fast it does so is not measured.
    place.up()
    command = ["java", *sys.argv[1:], "-cp", ":".join(path), "org.tampu.bench.BenchLog"]
    sys.exit(subprocess.run(command, env=place.environment, check=False).returncode)
finally:
    place.close()
