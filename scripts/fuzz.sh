#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]: runs every fuzz target (or those named) for that long, on the corpus it has gathered so far.
# The pinned toolchain is told to allow the sanitizer's flags, so no nightly is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?how many seconds for each target}
shift
scripts/need.sh rust cxx
tools=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}/tools
export PATH="$tools/bin:$PATH" RUSTC_BOOTSTRAP=1
if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "fuzz: installing cargo-fuzz into $tools (once)" >&2
  cargo install --locked --quiet --root "$tools" --target-dir "$tools/build" cargo-fuzz
  rm -rf "$tools/build"
fi
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo fuzz list)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: there are no targets" >&2; exit 1; }
for target in "${targets[@]}"; do
  echo "== fuzzing $target for $seconds s"
  mkdir -p "fuzz/corpus/$target"
  cargo fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
done
echo "fuzz: ${#targets[@]} targets, nothing found"
