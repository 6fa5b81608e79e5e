#!/usr/bin/env bash
# need.sh THING...: makes sure each thing is on this machine: installs it where that can be done without asking, else says
# in one line what is missing and the command that installs it. Things: rust, cc, cxx, spdlog, log4cplus, python, nats, rsyslog,
# netns, apache, chromium, cmake (with pkg-config), logger, valgrind, tango, pytango, iperf3, postgres, mdbook, systemd (its tools, no service), slapd, node,
# java (its compiler and Maven),
# oidc-provider (for Node.js), postfix (without a configuration of the system), pam (its library and a module), kerberos (its
# library, a KDC that is not started, curl), poppler (programs that read PDF).
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "need: $*" >&2; }
missing() { say "$1 is missing and could not be installed here."; say "Install it with:  $2"; exit 1; }

# The ways to become root without a question: being it, or a sudo that does not ask.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif sudo -n true 2>/dev/null; then sudo -n "$@"; else return 1; fi
}

updated=
debian() { # WHAT PACKAGE...
  local what=$1
  shift
  command -v apt-get >/dev/null || missing "$what" "your system's package manager (on Debian: apt-get install $*)"
  say "installing $what ($*)"
  if [ -z "$updated" ]; then
    as_root apt-get update -qq >&2 || missing "$what" "sudo apt-get update && sudo apt-get install -y $*"
    updated=yes
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2 ||
    missing "$what" "sudo apt-get install -y $*"
}

has_cc() { command -v cc >/dev/null && printf 'int main(void){return 0;}' | cc -x c -o /dev/null - 2>/dev/null; }
has_cxx() { command -v c++ >/dev/null && printf '#include <vector>\nint main(){}' | c++ -x c++ -o /dev/null - 2>/dev/null; }
has_spdlog() { printf "#include <spdlog/spdlog.h>\nint main(){}" | c++ -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; }
has_log4cplus() { printf "#include <log4cplus/logger.h>\nint main(){}" | c++ -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; }
has_tango() { pkg-config --exists tango 2>/dev/null; }
has_postgres() { [ -x "$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1)" ] && command -v setpriv >/dev/null; }
# The tests and benches need 3.11, because their numpy does. The package itself runs with 3.10, the bridge to Tango with 3.9.
has_python() { python3 -c 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

need_rust() {
  local wanted have
  wanted=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
  if ! command -v cargo >/dev/null; then
    command -v curl >/dev/null || debian "curl, to fetch Rust" curl ca-certificates
    say "installing Rust $wanted with rustup into ${CARGO_HOME:-$HOME/.cargo}"
    local script
    script=$(mktemp)
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs -o "$script" &&
      sh "$script" -y --no-modify-path --profile minimal --default-toolchain "$wanted" >&2 || {
      rm -f "$script"
      missing "Rust $wanted" "the instructions at https://rustup.rs (or your system's cargo, if it is $wanted or later)"
    }
    rm -f "$script"
  fi
  # With rustup this call fetches the toolchain that rust-toolchain.toml names; without it the version must do.
  have=$(cargo --version 2>/dev/null | cut -d' ' -f2) ||
    missing "Rust $wanted" "rustup toolchain install $wanted --component clippy,rustfmt"
  [ "$(printf '%s\n' "$wanted" "$have" | sort -V | head -n 1)" = "$wanted" ] ||
    missing "Rust $wanted (found cargo $have)" "rustup toolchain install $wanted --component clippy,rustfmt"
}

for thing in "$@"; do
  case $thing in
    rust) need_rust ;;
    cc) has_cc || debian "a C compiler and linker" gcc libc6-dev ;;
    cxx) has_cxx || debian "a C++ compiler" g++ ;;
    cmake) command -v cmake >/dev/null || debian "CMake" cmake; command -v pkg-config >/dev/null || debian "pkg-config" pkg-config ;;
    spdlog) has_spdlog || debian "spdlog" libspdlog-dev ;;
    log4cplus) has_log4cplus || debian "log4cplus" liblog4cplus-dev ;;
    python) has_python || debian "Python with venv" python3 python3-venv
      has_python || missing "Python 3.11 with venv (found $(python3 --version 2>&1))" "a newer release of your system, or https://www.python.org" ;;
    tango) has_cxx || debian "a C++ compiler" g++; has_tango || debian "Tango's C++ library" libtango-dev pkg-config ;;
    # In the environment of the tests, which `scripts/venv.sh` names.
    pytango) scripts/need.sh python
      scripts/venv.sh benches/peers/requirements.txt >/dev/null || missing "PyTango" "a network that reaches pypi.org, or a wheel of PyTango 10" ;;
    java) command -v javac >/dev/null && javac --release 17 --version >/dev/null 2>&1 || debian "a compiler of Java 17" openjdk-17-jdk-headless
      command -v mvn >/dev/null || debian "Maven" maven ;;
    nats) command -v nats-server >/dev/null || debian "the NATS server" nats-server ;;
    # Its program lies where only root's search path leads.
    rsyslog) [ -x /usr/sbin/rsyslogd ] || command -v rsyslogd >/dev/null || debian "rsyslog" rsyslog ;;
    # A server of the tests' own; the one that Debian would start is not needed.
    postgres) has_postgres || debian "PostgreSQL" postgresql util-linux ;;
    netns) command -v ip >/dev/null || debian "ip, for network namespaces" iproute2 ;;
    faketime) command -v faketime >/dev/null || debian "faketime, which gives programs a wrong clock" faketime ;;
    iperf3) command -v iperf3 >/dev/null || debian "iperf3, which measures a network" iperf3 ;;
    # Built once, because Debian has no package of it; without its search and its server, which a site of files does not need.
    mdbook) [ -x "$HOME/.cache/tampu/tools/bin/mdbook" ] || command -v mdbook >/dev/null || {
        say "installing mdBook"
        cargo install --quiet --locked --no-default-features --root "$HOME/.cache/tampu/tools" mdbook@0.5.4 ||
          missing "mdBook" "cargo install mdbook"
      } ;;
    slapd) [ -x /usr/sbin/slapd ] || debian "slapd, an LDAP directory" slapd ;;
    # Without a configuration of its own, so that Debian starts none. A test brings one.
    postfix) [ -x /usr/sbin/postfix ] || {
        echo "postfix postfix/main_mailer_type select No configuration" | as_root debconf-set-selections || true
        debian "Postfix, a mail server" postfix openssl
      } ;;
    pam) [ -e /usr/include/security/pam_appl.h ] && compgen -G '/lib/*/security/pam_pwdfile.so' >/dev/null ||
        debian "PAM's library, and a module for tests" libpam0g-dev libpam-pwdfile openssl ;;
    # Debian starts no KDC without a realm.
    kerberos) [ -e /usr/include/gssapi/gssapi.h ] && [ -x /usr/sbin/krb5kdc ] && command -v kinit >/dev/null && command -v curl >/dev/null ||
        debian "Kerberos: its library, and a KDC for tests" libkrb5-dev krb5-kdc krb5-admin-server krb5-user curl ;;
    node) command -v npm >/dev/null || debian "Node.js" nodejs npm
      node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' ||
        missing "Node.js 20 (found $(node --version))" "the packages of https://nodejs.org" ;;
    # In a place of its own; tests/peers/login_oidc.py looks there.
    oidc-provider) scripts/need.sh node
      [ -d "$HOME/.cache/tampu/oidc-provider/node_modules/oidc-provider" ] || {
        say "installing oidc-provider from npm"
        npm install --silent --no-audit --no-fund --prefix "$HOME/.cache/tampu/oidc-provider" oidc-provider@8 >/dev/null ||
          missing "oidc-provider" "npm install --prefix ~/.cache/tampu/oidc-provider oidc-provider@8"
      } ;;
    poppler) command -v pdftotext >/dev/null && command -v pdftoppm >/dev/null || debian "programs that read PDF" poppler-utils ;;
    # A disk of the network, without a kernel's client of NFS.
    sshfs) command -v sshfs >/dev/null && [ -x /usr/lib/openssh/sftp-server ] || debian "sshfs and sftp-server" sshfs openssh-sftp-server ;;
    apache) [ -x /usr/sbin/apache2 ] || command -v apache2 >/dev/null || debian "Apache" apache2 ;;
    # A browser for the tests of pages.
    chromium) command -v chromium >/dev/null || debian "Chromium" chromium ;;
    logger) command -v logger >/dev/null || debian "logger, which speaks syslog" bsdutils ;;
    systemd) command -v systemd-analyze >/dev/null || debian "systemd-analyze, which judges a service" systemd ;;
    valgrind) command -v valgrind >/dev/null || debian "valgrind, which counts instructions" valgrind ;;
    *) say "unknown thing '$thing'"; exit 2 ;;
  esac
done
