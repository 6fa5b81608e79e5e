#!/usr/bin/env bash
# login-binary.sh: builds the program with the login methods that need libraries of the system (PAM, Kerberos), and prints its path.
# It stands beside the usual debug build, which stays as it is; both share what they are built of.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}
scripts/need.sh rust cc pam kerberos >&2
build=(cargo build --quiet --locked --features tampu-log/log,tampu-log/tracing)
"${build[@]}" --features tampu-cli/pam,tampu-cli/kerberos >&2
cp -f "$target/debug/tampu" "$target/debug/tampu-logins"
# The usual program returns to its place; it is not compiled again.
"${build[@]}" >&2
echo "$target/debug/tampu-logins"
