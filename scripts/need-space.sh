#!/usr/bin/env bash
# need-space.sh GB: makes sure that builds and tests have room. GB is what the build products take from nothing; those that are
# there count. 4 GB more stay for the tests: a hub writes nothing on a disk with less than 2 GB free (`min_free_gb`), and tests
# would fail one after the other without a word of the disk.
set -euo pipefail
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
mkdir -p "$target"
free=$(df --output=avail -BG "$target" | tail -n 1 | tr -dc 0-9)
built=$(du -s -BG "$target" | tr -dc '0-9\t' | cut -f 1)
wanted=$(($1 > built ? $1 - built + 4 : 4))
[ "$free" -ge "$wanted" ] || {
  echo "need: $wanted GB must be free below $target for the builds and the tests, and $free GB are." >&2
  echo "need: make room there (rm -r $target removes the build products), or name another place in CARGO_TARGET_DIR." >&2
  exit 1
}
