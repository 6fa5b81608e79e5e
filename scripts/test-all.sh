#!/usr/bin/env bash
# The tests that need more than Rust: foreign servers and peers, attacks, network namespaces, small disks, and a short run of each bench.
# Each executable in tests/peers/ and tests/attacks/ is one test that exits 0 when it passed. They get the debug build in TAMPU_BIN.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}

scripts/need.sh rust cc cxx spdlog python nats rsyslog netns logger apache tango postgres systemd
venv=$(scripts/venv.sh tests/peers/requirements.txt tests/attacks/requirements.txt)

echo "== the tests that need root, namespaces and PostgreSQL, and those of the benches"
cargo test --locked --tests -- --ignored
cargo test --locked --package tampu-benches

export TAMPU_BIN=$target/debug/tampu PATH="$venv/bin:$PATH"
passed=0 failed=()
for test in tests/peers/* tests/attacks/*; do
  [ -f "$test" ] && [ -x "$test" ] || continue
  echo "== $test"
  if "$test"; then passed=$((passed + 1)); else failed+=("$test"); fi
done

echo "== short benches"
for bench in scripts/bench-smoke.py; do
  if "$bench"; then passed=$((passed + 1)); else failed+=("$bench"); fi
done

[ ${#failed[@]} = 0 ] || printf 'failed: %s\n' "${failed[@]}"
echo "$passed passed, ${#failed[@]} failed"
[ ${#failed[@]} = 0 ]
