#!/usr/bin/env bash
# The tests that need more than Rust: foreign servers and peers, attacks, network namespaces, small disks, and a short run of each bench.
# Each executable in tests/peers/ and tests/attacks/ is one test that exits 0 when it passed. They get the debug build in TAMPU_BIN.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$HOME/.cache/tampu/target}

scripts/need-space.sh 20
scripts/need.sh rust cc cxx cmake spdlog log4cplus python nats rsyslog netns logger apache chromium tango postgres systemd slapd oidc-provider sshfs \
  pam kerberos postfix poppler faketime java node
venv=$(scripts/venv.sh tests/peers/requirements.txt tests/attacks/requirements.txt)

echo "== the tests that need root, namespaces and PostgreSQL, and those of the benches"
cargo test --locked --features tampu-log/log,tampu-log/tracing,tampu-cli/zmq --tests -- --ignored
cargo test --locked --package tampu-benches

# Unbuffered, so that the output of a test that is ended shows how far it came.
export TAMPU_BIN=$target/debug/tampu PATH="$venv/bin:$PATH" PYTHONUNBUFFERED=1
TAMPU_LOGIN_BIN=$(scripts/login-binary.sh)
export TAMPU_LOGIN_BIN
logs=$(mktemp -d)
# In seconds, several times what the longest test takes; `scripts/test-python.sh` may have to build.
limit=900
# The optimised build would take both cores for minutes. At the lowest priority it fits beside tests that mostly wait.
nice -n 19 scripts/build-optimised.sh --quiet >"$logs/optimised.build" 2>&1 &
optimised=$!

# Runs one test: a line when it passed, and the end of its output when it failed.
# One that hangs is ended like by Ctrl-C, so that Python prints the line it stood at and cleans up.
one() {
  local log=$logs/${1##*/} began=$SECONDS
  # What bash starts beside itself ignores Ctrl-C otherwise, and so would all programs of the test.
  if timeout --signal=INT --kill-after=60 "$limit" env --default-signal=INT,QUIT "$1" >"$log" 2>&1; then
    echo "$1" >>"$logs/passed.list"
    echo "ok $1 ($((SECONDS - began)) s)"
  else
    [ $((SECONDS - began)) -lt "$limit" ] || echo "it hung: ended after $limit s" >>"$log"
    echo "$1" >>"$logs/failed.list"
    printf '%s\n' "FAILED $1 ($((SECONDS - began)) s), its last lines:" "$(tail -n 40 "$log" | cut -c 1-300)"
  fi
}

# Two tests at a time. Those of other languages share what Maven and npm build, so they are one after the other; so do those of
# the console. Two need the machine for themselves: one counts what a slow link drops, in the other one Tango loses subscriptions.
builders=() others=() alone=()
for test in tests/peers/* tests/attacks/*; do
  [ -f "$test" ] && [ -x "$test" ] && [ "$test" != tests/peers/call_instructions ] || continue
  case $test in
    */tango_bridge_python.py | */slow_host.py) alone+=("$test") ;;
    *java* | *cxx* | *python* | *typescript* | */conformance.py | */bulk_c.py | */event_c.py) builders+=("$test") ;;
    *) others+=("$test") ;;
  esac
done
touch "$logs/passed.list" "$logs/failed.list"
for test in "${builders[@]}"; do one "$test"; done &
languages=$!
for test in "${others[@]}"; do one "$test"; done
wait "$languages"
for test in "${alone[@]}"; do one "$test"; done
echo "== Python"
one scripts/test-python.sh
echo "== what needs the optimised build"
wait "$optimised" || cat "$logs/optimised.build"
one tests/peers/call_instructions
one scripts/bench-smoke.py

mapfile -t failed <"$logs/failed.list"
passed=$(wc -l <"$logs/passed.list")
for test in "${failed[@]}"; do
  echo "failed: $test"
  tail -n 12 "$logs/${test##*/}" | cut -c 1-300
done
rm -r "$logs"
echo "$passed passed, ${#failed[@]} failed"
[ ${#failed[@]} = 0 ]
