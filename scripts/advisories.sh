#!/usr/bin/env bash
# Looks for known vulnerabilities among the dependencies, with cargo-deny and the RustSec advisory database.
# The database is fetched from GitHub; TAMPU_ADVISORY_DB=DIR names a copy (a clone of RustSec/advisory-db) for machines that
# cannot reach it. Where neither is to be had Cargo.lock is compared with advisories.toml, which may not be older than 180 days;
# with STRICT=1 that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
database=https://github.com/RustSec/advisory-db
copy=${TAMPU_ADVISORY_DB:-}
# Days.
oldest=180
tools=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}/tools

if [ -n "$copy" ]; then
  git -C "$copy" rev-parse HEAD >/dev/null || { echo "advisories: TAMPU_ADVISORY_DB=$copy is not a clone of $database" >&2; exit 1; }
elif ! GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote --exit-code "$database" HEAD >/dev/null 2>&1; then
  checked=$(sed -n 's/^checked = "\(.*\)"$/\1/p' advisories.toml)
  age=$((($(date +%s) - $(date -d "$checked" +%s)) / 86400))
  cat >&2 <<TXT
==================================================================================================
  The database of advisories at $database cannot be reached from here.
  Cargo.lock was compared with advisories.toml instead, which was checked $age days ago, and is no complete copy.
  To ask the database: run \`make check\` on a machine that reaches it, or bring a clone of it here and run
      TAMPU_ADVISORY_DB=/path/to/advisory-db make check
  STRICT=1 makes this a failure.
==================================================================================================
TXT
  [ "$age" -le "$oldest" ] || { echo "advisories: advisories.toml is older than $oldest days: its head says how to renew it" >&2; exit 1; }
  cargo test --locked --quiet --package tampu-types --test structure no_dependency_has_a_known_advisory
  [ "${STRICT:-0}" = 0 ] || exit 1
  exit 0
fi

if ! cargo deny --version >/dev/null 2>&1 && ! PATH="$tools/bin:$PATH" cargo deny --version >/dev/null 2>&1; then
  echo "advisories: installing cargo-deny into $tools (once; some three minutes on 2 cores)" >&2
  cargo install --locked --quiet --root "$tools" --target-dir "$tools/build" cargo-deny
  rm -rf "$tools/build"
fi
export PATH="$tools/bin:$PATH"
if [ -n "$copy" ]; then
  # cargo-deny reads a clone below a directory of clones, named by the database's last path part and a hash of its address;
  # redirecting git lets it make that clone from the copy.
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.$copy.insteadOf" GIT_CONFIG_VALUE_0="$database"
fi
cargo deny --locked check advisories licenses sources
