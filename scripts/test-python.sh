#!/usr/bin/env bash
# test-python.sh [ARGUMENTS of pytest]: the tests of the Python package, with the unoptimised build of package and program.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/venv.sh bindings/python/tests/requirements.txt)
PYTHONPATH=$(scripts/python-package.sh)
export PYTHONPATH
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider "$@" bindings/python/tests
