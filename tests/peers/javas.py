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


PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>site</groupId>
  <artifactId>program</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>{dependency}</dependencies>
  <build><plugins>{plugins}</plugins></build>
</project>
"""


def project(directory, page, name):
    """A module of Java in an empty directory of its own, which names our package as the page says: builds it with Maven, without a network, and
    returns the command that runs it."""
    root = pathlib.Path(directory, "project")
    sources = root / "src" / "main" / "java"
    (sources / "site").mkdir(parents=True)
    pom = (BINDING / "pom.xml").read_text()
    text = page.read_text()
    dependency = re.search(r"^```xml\n(<dependency>.*?)^```", text, re.MULTILINE | re.DOTALL).group(1)
    # The versions of Maven's own plugins that are here already.
    plugin = r"<plugin>\s*<artifactId>maven-(?:resources|compiler)-plugin</artifactId>\s*<version>.*?</version>"
    plugins = "".join(f"{found}</plugin>" for found in re.findall(plugin, pom))
    (root / "pom.xml").write_text(PROJECT.format(dependency=dependency, plugins=plugins))
    (sources / "module-info.java").write_text("module site { requires org.tampu; }")
    (sources / "site" / f"{name}.java").write_text("package site;\n\n" + examples(page)[name])
    done = subprocess.run(["mvn", "-q", "-B", "-o", "compile"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout)
    check("a project that names the dependency of the page builds", done.returncode == 0)
    jar = glob.glob(f"{REPOSITORY}/org/tampu/tampu/*/tampu-*.jar")
    check("the local repository has one jar of ours", len(jar) == 1)
    return ["java", "-Xshare:auto", "-p", f"{root / 'target' / 'classes'}:{jar[0]}", "-m", f"site/site.{name}"]


def command(classpath, name, *arguments, options=()):
    """The command that runs a compiled program, with little work before its main."""
    return ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", *options, "-cp", ":".join(classpath), name, *arguments]


def examples(page):
    """The programs of a page, by the name of their class."""
    fence = re.compile(r"^```java\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return {re.search(r"public class (\w+)", code).group(1): code for code in fence.findall(page.read_text()) if "public class" in code}
