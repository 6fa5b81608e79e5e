#!/usr/bin/env bash
# The benches of the Python package, with optimised builds of package and program.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/venv.sh bindings/python/tests/requirements.txt)
PYTHONPATH=$(scripts/python-package.sh --release)
export PYTHONPATH
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
export TAMPU_BIN=$target/release/tampu
"$venv/bin/python" bindings/python/benches/log_call.py && "$venv/bin/python" bindings/python/benches/events.py
