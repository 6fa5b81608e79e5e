#!/usr/bin/env bash
# build-unoptimised.sh [TARGET...]: builds programs and libraries as `make test` has built them, in one go, and what cargo shall build besides,
# as `--example NAME`. A part built alone would have its dependencies with other features, and compile all of them again. So would
# a build without a test, which brings in what tests need, and macros built for their own sake. The benches bring foreign software.
set -euo pipefail
cd "$(dirname "$0")/.."
# For libzmq.
scripts/need.sh cxx >&2
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
cargo build --locked --features tampu-log/log,tampu-log/tracing,tampu-cli/zmq --workspace --exclude tampu-benches --exclude tampu-macros --lib --bins \
  --test structure "$@"
