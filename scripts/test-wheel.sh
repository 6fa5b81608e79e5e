#!/usr/bin/env bash
# test-wheel.sh [ARGUMENTS of pytest]: installs the wheel that wheel.sh has built into a new environment of Python, and runs the
# tests of the package there: with the installed modules and the installed program, without anything of the checkout's package.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place"
export PATH=$place/bin:$PATH TAMPU_BIN=$place/bin/tampu
unset PYTHONPATH
pip() { python -m pip --disable-pip-version-check "$@"; }
# Alone, so that a dependency of the package would be missing here and not come with those of the tests.
pip install --quiet --no-index "$target"/wheels/tampu-*.whl
python -c 'import tampu.event, tampu.logging'
tampu --version
pip install --quiet --requirement bindings/python/tests/requirements.txt
python -m pytest -q -p no:cacheprovider "$@" bindings/python/tests
