#!/usr/bin/env bash
# python-package.sh [--release | TARGET...]: builds the package `tampu` of Python where the other build products are, and prints the directory
# that holds it, for PYTHONPATH. TARGET is what cargo shall build besides, as `--example NAME`.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
profile=debug
if [ "${1:-}" = --release ]; then
  profile=release
  # Each as `make release` and `make wheel` build it.
  cargo build --locked --release --package tampu-cli >&2
  cargo build --locked --release --package tampu-python >&2
else
  scripts/build-unoptimised.sh "$@" >&2
fi
package=$target/$profile/python
rm -rf "$package/tampu"
mkdir -p "$package/tampu"
ln -s "$PWD"/bindings/python/python/tampu/* "$package/tampu/"
ln -sf "$target/$profile/libtampu_python.so" "$package/tampu/_native.abi3.so"
echo "$package"
