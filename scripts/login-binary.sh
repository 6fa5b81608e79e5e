#!/usr/bin/env bash
# login-binary.sh: builds the program with all optional features: the login methods that need libraries of the system (PAM, Kerberos),
# and PDF. It prints the path of the program.
# It stands beside the usual debug build, which stays as it is. The features change those of shared dependencies, so that about 300 crates
# are built for it once.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
scripts/need.sh rust cc pam kerberos >&2
# Without optimisation, a page would take seconds.
optimised=()
for crate in typst-library typst-layout typst-eval typst-realize typst-syntax typst-utils comemo rustybuzz ttf-parser krilla subsetter; do
  optimised+=(--config "profile.dev.package.$crate.opt-level=1")
done
scripts/build-unoptimised.sh --quiet --features tampu-cli/pam,tampu-cli/kerberos,tampu-cli/pdf "${optimised[@]}" >&2
cp -f "$target/debug/tampu" "$target/debug/tampu-logins"
# The usual program returns to its place; it is not compiled again.
scripts/build-unoptimised.sh --quiet >&2
echo "$target/debug/tampu-logins"
