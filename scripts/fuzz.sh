#!/usr/bin/env bash
# fuzz.sh [TARGET...]: runs every fuzz target (or those named), on the corpus in fuzz/corpus and the seeds in fuzz/seeds.
#   FUZZ_SECONDS  time of each target (60, or unlimited if FUZZ_RUNS is given)
#   FUZZ_RUNS     inputs of each target, such as 10000000; with both a target ends at whichever comes first
#   FUZZ_KEEP=1   afterwards the corpus is reduced to the fewest inputs of at most 4 KiB that reach the same code, and stays in
#                 fuzz/corpus for a commit; without it new inputs are kept beside the build products
#   FUZZ_TABLE    a file that gets a line for each target: name, inputs, seconds, edges reached, findings
# A finding does not stop the others: its input is in fuzz/artifacts, and the exit code is 1.
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
limits=() what=()
if [ -n "${FUZZ_RUNS:-}" ]; then limits+=("-runs=$FUZZ_RUNS") what+=("$FUZZ_RUNS inputs"); fi
if [ -n "${FUZZ_SECONDS:-}" ] || [ -z "${FUZZ_RUNS:-}" ]; then
  limits+=("-max_total_time=${FUZZ_SECONDS:-60}") what+=("${FUZZ_SECONDS:-60} s")
fi
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(cargo fuzz list)
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: there are no targets" >&2; exit 1; }

# Prints the last number that follows $1 in the log, or 0.
figure() { grep -oE "$1 *[0-9]+" "$log" | tail -1 | grep -oE '[0-9]+$' || echo 0; }

log=$(mktemp)
fewest=$(mktemp -d)
trap 'rm -rf "$log" "$fewest"' EXIT
found=()
for target in "${targets[@]}"; do
  echo "== fuzzing $target: ${what[*]/%/,}"
  gathered=$build/fuzz-corpus/$target
  mkdir -p "$gathered" "fuzz/corpus/$target" "fuzz/seeds/$target"
  started=$SECONDS finding=none
  if ! cargo fuzz run "$target" "$gathered" "fuzz/corpus/$target" "fuzz/seeds/$target" -- "${limits[@]}" -timeout=10 \
    -rss_limit_mb=2048 -print_final_stats=1 2>&1 | tee "$log"; then
    finding=$(grep -oE 'fuzz/artifacts/[^ ]+' "$log" | tail -1) || finding="did not run"
    found+=("$target")
  fi
  line="$target $(figure 'stat::number_of_executed_units:') $((SECONDS - started)) $(figure 'cov:') $finding"
  echo "fuzz: $line"
  [ -z "${FUZZ_TABLE:-}" ] || echo "$line" >>"$FUZZ_TABLE"
  if [ "${FUZZ_KEEP:-0}" = 1 ]; then
    cargo fuzz run "$target" "$fewest" "$gathered" "fuzz/corpus/$target" -- -merge=1 -max_len=4096 2>/dev/null ||
      echo "fuzz: the corpus of $target could not be reduced" >&2
    if [ -n "$(ls -A "$fewest")" ]; then
      find "fuzz/corpus/$target" -type f -delete
      find "$fewest" -type f -exec mv -t "fuzz/corpus/$target" {} +
    fi
    echo "fuzz: $target keeps $(find "fuzz/corpus/$target" -type f | wc -l) inputs"
  fi
done
find fuzz/corpus fuzz/seeds -type d -empty -delete
[ ${#found[@]} = 0 ] || { echo "fuzz: found in ${found[*]}" >&2; exit 1; }
echo "fuzz: ${#targets[@]} targets, nothing found"
