"""The examples of the pages run beside a hub, and the package keeps its types."""

import pathlib
import re
import subprocess
import sys

import tampu

ROOT = pathlib.Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_pages_run(place):
    # The logbook that the examples write to.
    place.run("book", "make", "Shift", "-a", "Author", "-a", "Type=Routine,Problem,Fixed")
    count = 0
    for page in [ROOT / "docs" / "python.md", ROOT / "bindings" / "python" / "README.md"]:
        for code in FENCE.findall(page.read_text()):
            print(f"{page}:\n{code}")
            place.finish(code)
            count += 1
    assert count >= 5
    # The first example does as the page says.
    found = [record for record in place.records("CONTROL/DV01") if record["message"] == "antenna DV01 on source"]
    assert found and found[0]["data"] == [{"name": "elevation", "value": "62.5"}]


def test_the_package_has_its_types(tmp_path):
    assert (pathlib.Path(tampu.__file__).parent / "py.typed").exists()
    source = ROOT / "bindings" / "python" / "python" / "tampu"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(source)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


def test_the_library_has_what_its_types_say():
    import tampu._native as native

    stub = (ROOT / "bindings" / "python" / "python" / "tampu" / "_native.pyi").read_text()
    for name, body in re.findall(r"^class (\w+).*?:(.*?)(?=^class|\Z)", stub, re.MULTILINE | re.DOTALL):
        made = getattr(native, name)
        methods = {method for method in re.findall(r"def (\w+)\(", body) if not method.startswith("__")}
        have = {method for method in vars(made) if not method.startswith("__")}
        assert methods == have or name == "TampuError", (name, methods ^ have)
    public = {name for name in vars(native) if not name.startswith("_")}
    assert public == set(re.findall(r"^class (\w+)", stub, re.MULTILINE))
