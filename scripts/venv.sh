#!/usr/bin/env bash
# venv.sh REQUIREMENTS...: a Python environment beside the build products that has what these files ask for; prints its directory.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}

# The interpreter named by `python3` may change; an environment made for another one is made anew.
venv=$target/venv-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  rm -rf "$venv"
  python3 -m venv "$venv" >&2
fi
for requirements in "$@"; do
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements" >&2
done
echo "$venv"
