# Everything a person types. A newcomer needs two of these: `make run` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Build products live outside the clone, so that every clone on this machine shares them and a clone stays small.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/tampu/target
# A rustup that was just installed is not yet on the caller's PATH.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
# The lock file is part of the repository: a build that would change it fails instead.
CARGO_FLAGS ?= --locked
# Parts of the product that are off by default; one set of features for all of `make test`, so that nothing is built twice.
FEATURES := --features tampu-log/log,tampu-log/tracing,tampu-cli/zmq
# How long each fuzz target runs: in seconds, or in inputs (FUZZ_RUNS=10000000). FUZZ_KEEP=1 keeps the smallest corpus.
export FUZZ_SECONDS ?= 60
export FUZZ_RUNS FUZZ_KEEP

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

.PHONY: run
run: build ## build, start a hub and a simulated observatory, show the live log
	@"$(CARGO_TARGET_DIR)/debug/tampu" up --demo --domain demo

.PHONY: build
build: need ## build the product once, unoptimised
	@cargo build $(CARGO_FLAGS)

.PHONY: release
release: need ## build the optimised `tampu`
	@cargo build $(CARGO_FLAGS) --release --package tampu-cli
	@echo "built: $(CARGO_TARGET_DIR)/release/tampu"

# Where `make install` puts things: /usr/local for root, else the user's own directories. DESTDIR is for packages.
PREFIX ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)
SHARE = $(DESTDIR)$(PREFIX)/share

.PHONY: install
install: release ## build and install `tampu`, manual pages, completions, the C library, examples of configuration and service (PREFIX)
	@install -D -m 755 "$(CARGO_TARGET_DIR)/release/tampu" "$(DESTDIR)$(PREFIX)/bin/tampu"
	@install -d "$(SHARE)/man/man1" "$(SHARE)/bash-completion/completions" "$(SHARE)/zsh/site-functions" "$(SHARE)/fish/vendor_completions.d"
	@"$(CARGO_TARGET_DIR)/release/tampu" man --output "$(SHARE)/man/man1"
	@"$(CARGO_TARGET_DIR)/release/tampu" completions bash > "$(SHARE)/bash-completion/completions/tampu"
	@"$(CARGO_TARGET_DIR)/release/tampu" completions zsh > "$(SHARE)/zsh/site-functions/_tampu"
	@"$(CARGO_TARGET_DIR)/release/tampu" completions fish > "$(SHARE)/fish/vendor_completions.d/tampu.fish"
	@$(MAKE) install-c
	@install -D -m 644 examples/tampu.service "$(SHARE)/doc/tampu/tampu.service"
	@install -D -m 644 crates/hub/tampu.toml "$(SHARE)/doc/tampu/tampu.toml.example"
	@echo "installed: $(PREFIX)/bin/tampu; configuration example: $(PREFIX)/share/doc/tampu/tampu.toml.example"
	@case ":$(PATH):" in *":$(PREFIX)/bin:"*) ;; *) echo "add $(PREFIX)/bin to PATH";; esac

# The build that is installed: `debug` is the one of `make test`.
PROFILE ?= release

.PHONY: install-c
install-c: need ## build and install the C library with its headers, for pkg-config and CMake (PREFIX, PROFILE=debug)
	@if [ "$(PROFILE)" = debug ]; then scripts/build-unoptimised.sh; else cargo build $(CARGO_FLAGS) --release --package tampu-c; fi
	@install -D -m 755 "$(CARGO_TARGET_DIR)/$(PROFILE)/libtampu_log.so" "$(DESTDIR)$(PREFIX)/lib/libtampu_log.so"
	@install -d "$(DESTDIR)$(PREFIX)/include"
	@install -m 644 bindings/c/include/* "$(DESTDIR)$(PREFIX)/include"
	@for file in bindings/c/packages/*; do \
		install -d "$(DESTDIR)$(PREFIX)/lib/pkgconfig" "$(DESTDIR)$(PREFIX)/lib/cmake/tampu"; \
		case "$$file" in *.pc) folder=pkgconfig;; *) folder=cmake/tampu;; esac; \
		sed -e 's|@PREFIX@|$(PREFIX)|' -e "s|@VERSION@|$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)|" \
			"$$file" > "$(DESTDIR)$(PREFIX)/lib/$$folder/$${file##*/}"; done
	@echo "installed: $(PREFIX)/lib/libtampu_log.so, headers, tampu.pc, tampu-config.cmake"

.PHONY: java
java: ## build and test the modules for Java, and put them into Maven's local repository
	@scripts/need.sh java
	@mvn -q -B -ntp -f bindings/java/pom.xml -Dbuild.root="$(CARGO_TARGET_DIR)/java" install
	@echo "installed in Maven's local repository: org.tampu:tampu, tampu-slf4j, tampu-logback, tampu-log4j"

.PHONY: typescript
typescript: ## build the package for TypeScript, a file that npm installs
	@scripts/need.sh node
	@mkdir -p "$(CARGO_TARGET_DIR)/npm"
	@cd bindings/typescript && npm ci --ignore-scripts --no-audit --no-fund --silent && \
		npm pack --silent --pack-destination "$(CARGO_TARGET_DIR)/npm" >/dev/null
	@echo "npm install $(CARGO_TARGET_DIR)/npm/tampu-$$(node -p 'require("./bindings/typescript/package.json").version').tgz"

.PHONY: wheel
wheel: need ## build the Python package, optimised, with the command `tampu` in it
	@scripts/need.sh python
	@scripts/wheel.sh

.PHONY: python
python: wheel ## build the Python package, and test it in a new environment that has the wheel only
	@scripts/test-wheel.sh $(ARGS)

.PHONY: test
test: need ## every test that needs no foreign server (10 minutes from nothing on 2 cores)
	@scripts/need-space.sh 12
	@scripts/need.sh cxx
	@cargo test $(CARGO_FLAGS) $(FEATURES)
	@echo "make test: all passed. Not part of it: tests beside foreign servers and peers, network cuts and full disks (make test-all)."

.PHONY: test-all
test-all: test ## make test, then real servers, peers, network cuts, full disks and short benches; installs what they need
	@scripts/test-all.sh

.PHONY: check
check: need ## formatting, clippy, licences, advisories, the shape of the workspace
	@scripts/need.sh cxx
	@cargo fmt --all --check
	@cargo clippy $(CARGO_FLAGS) $(FEATURES) --workspace --all-targets -- -D warnings
	@cargo test $(CARGO_FLAGS) --package tampu-types --test structure --test circles --test english --test spec
	@cargo check $(CARGO_FLAGS) --manifest-path fuzz/Cargo.toml --all-targets
	@scripts/advisories.sh

.PHONY: docs
docs: need ## build the site of docs/ and spec/ with mdBook (installs it)
	@scripts/docs.sh

.PHONY: reference
reference: need ## write the pages anew that are made from the program: commands, bounds, options of ELOG
	@TAMPU_WRITE_SPEC=1 cargo test $(CARGO_FLAGS) -q --package tampu-cli --test cli documents::the_reference
	@TAMPU_WRITE_SPEC=1 cargo test $(CARGO_FLAGS) -q --package tampu-elog --lib options::tests::the_reference
	@TAMPU_WRITE_SPEC=1 cargo test $(CARGO_FLAGS) -q --package tampu-hub --test bounds --test book_http

.PHONY: bench
bench: bench-bus bench-log bench-call bench-event bench-bulk bench-book bench-http bench-gateway ## all benches

.PHONY: bench-bus
bench-bus: bench-build ## the bus beside raw zenoh, raw ZeroMQ and a raw socket loop
	@"$(CARGO_TARGET_DIR)/release/bench-bus" $(ARGS)

.PHONY: bench-log
bench-log: bench-build ## logs end to end, with 0 to 10 clients, beside NATS and rsyslog
	@scripts/need.sh nats rsyslog
	@"$(CARGO_TARGET_DIR)/release/bench-log" $(ARGS)

.PHONY: bench-call
bench-call: bench-build bench-spdlog ## what a log call costs, beside ACS's figures and other loggers
	@scripts/need.sh netns || :
	@"$(CARGO_TARGET_DIR)/release/bench-call" --network $(ARGS)

.PHONY: bench-bulk
bench-bulk: bench-build ## bulk data beside a raw loop, iperf3, ZeroMQ and a question a block; draws the paper's figures 5 to 7
	@scripts/need.sh iperf3
	@"$(CARGO_TARGET_DIR)/release/bench-bulk" --figures "$(CARGO_TARGET_DIR)/bench-bulk" $(ARGS)

.PHONY: bench-paper
bench-paper: bench-build ## the tables of the paper on LHCb's ELOG, also with several servers (ARGS="--entries 1,464" for less)
	@scripts/need.sh postgres netns
	@scripts/bench-paper.py $(ARGS)

.PHONY: bench-book
bench-book: bench-build ## the logbook over HTTP, in SQLite and PostgreSQL, at the sizes of LHCb's table (ARGS=--million for more)
	@scripts/need.sh postgres
	@"$(CARGO_TARGET_DIR)/release/bench-book" $(ARGS)

.PHONY: bench-http
bench-http: bench-build ## the cost of TLS: the logbook's entries, pages and attachments over http and https by turns
	@"$(CARGO_TARGET_DIR)/release/bench-http" $(ARGS)

.PHONY: bench-java
bench-java: build ## what a log call costs in Java, beside Logback's file appender (ARGS="OPTIONS OF JAVA")
	@scripts/need.sh python
	@TAMPU_BIN="$(CARGO_TARGET_DIR)/debug/tampu" scripts/bench-java.py $(ARGS)

.PHONY: bench-clients
bench-clients: bench-build ## events of programs in C++ and Java beside those in Rust, and JeroMQ beside Java, also for bulk data
	@cargo build $(CARGO_FLAGS) --release --package tampu-c
	@scripts/bench-clients.py $(ARGS)

.PHONY: bench-gateway
bench-gateway: bench-build ## sessions of the gateway beside the bus: rates, delays, and the cost of idle sessions
	@"$(CARGO_TARGET_DIR)/release/bench-gateway" $(ARGS)

.PHONY: bench-console
bench-console: bench-build ## all figures of the console with their goals: pages over 10 M records, live data, load, sizes (ARGS="--only load")
	@scripts/need.sh python node chromium
	@cargo build $(CARGO_FLAGS) --release --package tampu-archive --example archive_speed
	@TAMPU_BIN="$(CARGO_TARGET_DIR)/release/tampu" $$(scripts/venv.sh tests/peers/requirements.txt)/bin/python scripts/bench-console.py $(ARGS)

.PHONY: bench-console-pages
bench-console-pages: bench-build ## answers of the hub to the console over an archive of a chosen size (ARGS="--millions 10")
	@cargo build $(CARGO_FLAGS) --release --package tampu-archive --example archive_speed
	@scripts/bench-console-pages.py $(ARGS)

.PHONY: bench-console-load
bench-console-load: bench-build ## the console's first view, 100 000 records/s, fat records, 20 consoles on one hub (ARGS="follow --seconds 20")
	@scripts/need.sh python node chromium
	@TAMPU_BIN="$(CARGO_TARGET_DIR)/release/tampu" $$(scripts/venv.sh tests/peers/requirements.txt)/bin/python scripts/bench-console-load.py $(ARGS)

.PHONY: bench-console-live
bench-console-live: bench-build ## processor time of a browser that shows live attributes (ARGS="--attributes 50 --hertz 10")
	@scripts/need.sh python node chromium
	@TAMPU_BIN="$(CARGO_TARGET_DIR)/release/tampu" $$(scripts/venv.sh tests/peers/requirements.txt)/bin/python scripts/bench-console-live.py $(ARGS)

.PHONY: sizes
sizes: ## sizes of the console's files, and of programs and packages that are built: headers, wheel, jars
	@scripts/sizes.py $(ARGS)

# spdlog is C++ and has its own program; bench-call looks for it beside itself.
.PHONY: bench-spdlog
bench-spdlog:
	@scripts/need.sh cxx spdlog
	@mkdir -p "$(CARGO_TARGET_DIR)/release"
	@g++ -O2 -std=c++17 -DSPDLOG_SHARED_LIB -DSPDLOG_COMPILED_LIB -DSPDLOG_FMT_EXTERNAL -Wall -Wextra \
		-o "$(CARGO_TARGET_DIR)/release/bench-spdlog" benches/peers/spdlog.cpp -lspdlog -lfmt -pthread

.PHONY: bench-event
bench-event: bench-build bench-tango ## the paper's table of events: Tampu beside Tango in C++ and Python, libzmq and zenoh
	@scripts/need.sh pytango
	@"$(CARGO_TARGET_DIR)/release/bench-event" --python "$$(scripts/venv.sh)/bin/python" $(ARGS)

.PHONY: bench-network
bench-network: bench-build bench-tango ## the papers' tables between hosts (network namespaces, links held to a rate): events beside Tango; ARGS=--logs: logs beside NATS
	@scripts/need.sh netns nats
	@scripts/bench-network.py $(ARGS)

.PHONY: bench-qos
bench-qos: bench-build ## what each setting of [[topic]] does to rate, delay, processor time, memory and loss of events
	@scripts/bench-qos.py $(ARGS)

.PHONY: bench-event-tango
bench-event-tango: bench-tango ## the events of real Tango, by its C++ library and by PyTango
	@scripts/need.sh pytango
	@"$$(scripts/venv.sh)/bin/python" benches/peers/tango_table.py $(ARGS)

# Tango's peer is C++ and has its own program beside the other benches.
.PHONY: bench-tango
bench-tango:
	@scripts/need.sh cxx tango
	@mkdir -p "$(CARGO_TARGET_DIR)/release"
	@g++ -O3 -std=c++17 -Wall -Wextra $$(pkg-config --cflags tango | sed 's/-I/-isystem /g') \
		-o "$(CARGO_TARGET_DIR)/release/bench-tango" benches/peers/tango_event.cpp $$(pkg-config --libs tango) -pthread

.PHONY: bench-build
bench-build: need
	@scripts/need.sh cxx
	@scripts/build-optimised.sh

# How many processes are killed.
KILLS ?= 200

.PHONY: kill-test
kill-test: KILLS = 100
kill-test: need ## kill node and collector under load, KILLS times (100), and count what the archive has of the records
	@scripts/build-optimised.sh --example kill_test
	@"$(CARGO_TARGET_DIR)/release/examples/kill_test" --kills $(KILLS)

.PHONY: crash-test
crash-test: need ## kill processes that log, KILLS times (200), and count what the archive has of their calls
	@scripts/need.sh cxx
	@scripts/build-optimised.sh
	@"$(CARGO_TARGET_DIR)/release/examples/crash_test" --kills $(KILLS)

.PHONY: event-faults
event-faults: KILLS = 1000
event-faults: need ## kill the source of events KILLS times (1000), stop it, stop and slow its subscribers, and count the events
	@scripts/need.sh cxx
	@scripts/build-optimised.sh --package tampu-event --example event_faults
	@"$(CARGO_TARGET_DIR)/release/examples/event_faults" --kills $(KILLS)

# How long the soak takes, in minutes, and the records that its writers log each second.
MINUTES ?= 30
RATE ?= 50000

.PHONY: soak
soak: release ## all attacks at once with random faults, MINUTES (30) long, while writers log RATE (50 000) records/s
	@TAMPU_BIN="$(CARGO_TARGET_DIR)/release/tampu" tests/attacks/soak.py --minutes $(MINUTES) --rate $(RATE)

.PHONY: fuzz
fuzz: ## every decoder's fuzz target, FUZZ_SECONDS each (60) or FUZZ_RUNS inputs
	@scripts/fuzz.sh $(TARGETS)

.PHONY: ui
ui: ## build the pages of the console anew (needs Node); ui/dist is part of the repository, so that no other build needs it
	@scripts/need.sh node
	@cd ui && npm ci --no-audit --no-fund --silent && npm run --silent check && npm test --silent && npm run --silent build

.PHONY: screenshots
screenshots: build ## pictures of the console's views for the docs, beside the demo (ARGS="log site" for some of them)
	@scripts/need.sh node chromium
	@scripts/screenshots.py $(ARGS)

.PHONY: test-python
test-python: need ## the tests of the Python package, beside real hubs (part of make test-all)
	@scripts/need.sh python
	@scripts/test-python.sh $(ARGS)

.PHONY: kill-python
kill-python: need ## kill processes of Python that log, KILLS times (200), and count what the archive has of their calls
	@scripts/need.sh python
	@TAMPU_KILLS=$(KILLS) scripts/test-python.sh -s -k killed

.PHONY: bench-python
bench-python: need ## log calls of Python beside handlers of logging, events between processes of Python, a long answer (ARGS=10: million rows)
	@scripts/need.sh python
	@scripts/bench-python.sh $(ARGS)

.PHONY: need
need:
	@scripts/need.sh rust cc
