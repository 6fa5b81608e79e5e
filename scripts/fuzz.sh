#!/usr/bin/env bash
# fuzz.sh [TARGET...]: runs every fuzz target (or those named), on the corpus in fuzz/corpus and the seeds in fuzz/seeds.
#   FUZZ_SECONDS  time of each target (60), unless FUZZ_RUNS is given
#   FUZZ_RUNS     inputs of each target, such as 10000000, however long that takes
#   FUZZ_KEEP=1   afterwards the corpus is reduced to the fewest inputs of at most 4 KiB that reach the same code, and stays in
#                 fuzz/corpus for a commit; without it new inputs are kept beside the build products
# The pinned toolchain is told to allow the sanitizer's flags, so no nightly is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh rust cxx
build=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
tools=$build/tools
export PATH="$tools/bin:$PATH" RUSTC_BOOTSTRAP=1
if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "fuzz: installing cargo-fuzz into $tools (once)" >&2
  cargo install --locked --quiet --root "$tools" --target-dir "$tools/build" cargo-fuzz
  rm -rf "$tools/build"
fi
if [ -n "${FUZZ_RUNS:-}" ]; then limit=-runs=$FUZZ_RUNS what="$FUZZ_RUNS inputs"; else limit=-max_total_time=${FUZZ_SECONDS:-60} what="${FUZZ_SECONDS:-60} s"; fi
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo fuzz list)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: there are no targets" >&2; exit 1; }
for target in "${targets[@]}"; do
  echo "== fuzzing $target: $what"
  gathered=$build/fuzz-corpus/$target
  mkdir -p "$gathered" "fuzz/corpus/$target"
  cargo fuzz run "$target" "$gathered" "fuzz/corpus/$target" "fuzz/seeds/$target" -- "$limit" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
  if [ "${FUZZ_KEEP:-0}" = 1 ]; then
    fewest=$(mktemp -d)
    cargo fuzz run "$target" "$fewest" "$gathered" "fuzz/corpus/$target" -- -merge=1 -max_len=4096 2>/dev/null
    find "fuzz/corpus/$target" -type f -delete
    find "$fewest" -type f -exec cp -t "fuzz/corpus/$target" {} +
    rm -rf "$fewest"
    echo "fuzz: $target keeps $(find "fuzz/corpus/$target" -type f | wc -l) inputs"
  fi
done
find fuzz/corpus -type d -empty -delete
echo "fuzz: ${#targets[@]} targets, nothing found"
