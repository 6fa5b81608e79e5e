#!/usr/bin/env bash
# bench-python.sh [MILLIONS]: the benches of the Python package, with optimised builds of package and program. The answer of the archive has
# so many million rows (1).
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(scripts/venv.sh bindings/python/tests/requirements.txt)
PYTHONPATH=$(scripts/python-package.sh --release)
export PYTHONPATH
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
export TAMPU_BIN=$target/release/tampu
cargo build --locked --release --package tampu-archive --example archive_speed
missed=0
for bench in log_call events "question ${1:-1}"; do
  read -r name arguments <<<"$bench"
  echo "== $name"
  "$venv/bin/python" "bindings/python/benches/$name.py" $arguments || missed=1
done
exit $missed
