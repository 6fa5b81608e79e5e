#!/usr/bin/env bash
# wheel.sh: the wheel and the source package of `tampu` for Python, optimised; prints their files. The wheel brings the program `tampu`.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
venv=$(scripts/venv.sh bindings/python/requirements.txt)
export PATH=$venv/bin:$PATH
cargo build --locked --release --package tampu-cli
# Maturin looks for the files of a wheel in a folder with the name of the module.
data=bindings/python/tampu._native.data
trap 'rm -rf "$data"' EXIT
install -D -m 755 "$target/release/tampu" "$data/scripts/tampu"
rm -rf "$target/wheels"
maturin build --locked --release --auditwheel skip --manifest-path bindings/python/Cargo.toml --out "$target/wheels"
rm -rf "$data"
maturin sdist --manifest-path bindings/python/Cargo.toml --out "$target/wheels"
ls -l "$target/wheels"
