"""What the tests of Java share: the modules of bindings/java, built once, and programs compiled against them."""

import glob
import os
import pathlib
import re
import subprocess

from hub import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINDING = ROOT / "bindings" / "java"
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.expanduser("~/.cache/tampu/target")
BUILD = os.path.join(TARGET, "java")
REPOSITORY = os.path.expanduser("~/.m2/repository")


def need():
    """Installs a compiler of Java 17 and Maven, or ends the test with the command that does."""
    subprocess.run([str(ROOT / "scripts" / "need.sh"), "java"], check=True)


def maven(*arguments):
    """Runs Maven in bindings/java; it must succeed, and say nothing."""
    command = ["mvn", "-q", "-B", "-ntp", f"-Dbuild.root={BUILD}", *arguments]
    done = subprocess.run(command, cwd=BINDING, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).strip()
    if done.returncode != 0 or said:
        print(said)
    check("Maven builds and tests the modules, and says nothing", done.returncode == 0 and not said)


def jars(*patterns):
    """The jar files of these patterns in Maven's repository, in the versions of bindings/java/pom.xml."""
    pom = (BINDING / "pom.xml").read_text()
    version = lambda name: re.search(rf"<{name}.version>(.*?)<", pom).group(1)
    found = []
    for pattern, name in patterns:
        found += glob.glob(f"{REPOSITORY}/{pattern}/{version(name)}/*{version(name)}.jar")
    return found


SLF4J = ("org/slf4j/slf4j-api", "slf4j")
LOGBACK = ("ch/qos/logback/logback-c*", "logback")
LOG4J = ("org/apache/logging/log4j/log4j-[ac]*", "log4j")


def ours(*modules):
    """The jar files of these modules."""
    return [path for module in modules for path in glob.glob(f"{BUILD}/{module}/{module}-*.jar")]


def compile(directory, sources, classpath):
    """Compiles programs without a warning."""
    # The classes of Log4j name annotations that are not beside them, which cannot be silenced.
    strict = [] if any("log4j-core" in path for path in classpath) else ["-Xlint:all,-processing", "-Werror"]
    command = ["javac", *strict, "-proc:none", "--release", "17", "-d", directory, "-cp", ":".join(classpath)]
    done = subprocess.run([*command, *map(str, sources)], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr)
    check(f"{', '.join(path.name for path in sources)} compiles", done.returncode == 0)


def command(classpath, name, *arguments, options=()):
    """The command that runs a compiled program, with little work before its main."""
    return ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", *options, "-cp", ":".join(classpath), name, *arguments]


def examples(page):
    """The programs of a page, by the name of their class."""
    fence = re.compile(r"^```java\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return {re.search(r"public class (\w+)", code).group(1): code for code in fence.findall(page.read_text()) if "public class" in code}
