#!/usr/bin/env bash
# Builds everything that is measured or killed, optimised, in one go: each part alone would have its dependencies with
# other features, and build all of them again.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
cargo build --locked --release --package tampu-cli --package tampu-benches --package tampu-log \
  --bins --example crash_test --example call_instructions "$@"
