// Measures Tango's events with its C++ library: a server pushes change events of one spectrum of DevLong one by one, and a client
// checks every element. No database is needed; both use the lines of tango_table.py.
//
//   bench-tango server PORT ELEMENTS          the attribute is tango://127.0.0.1:PORT/bench/event/1/value#dbase=no
//   bench-tango client PORT [latency]
//
// BENCH_TANGO_HOST names another address of the server than 127.0.0.1, for both.
//
// Built by `make bench-tango` with g++ -O3; Debian has Tango as libtango-dev. All settings are Tango's defaults, including high-water marks.

#include <algorithm>
#include <atomic>
#include <climits>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

#include <tango.h>

namespace {

const char* const device_name = "bench/event/1";
const char* const attribute_name = "value";
// The answer to a read, which is not an event.
const Tango::DevLong no_event = INT_MIN;

// Output for our lines. Tango may write to stdout; its text goes to stderr.
std::FILE* out;

// Address of the server's host.
std::string host() {
    const char* const named = std::getenv("BENCH_TANGO_HOST");
    return named != nullptr ? named : "127.0.0.1";
}

uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

uint64_t cpu_us() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return uint64_t(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u + uint64_t(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

void sleep_until(uint64_t ns) {
    const timespec at{time_t(ns / 1000000000u), long(ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

// Every element follows from the first one and its own index; the compiler makes vector code of the loops.
uint32_t element(uint32_t first, uint32_t index) { return first * 0x9E3779B1u + index * 0x85EBCA77u; }

void fill(std::vector<Tango::DevLong>& values, uint32_t first) {
    const uint32_t size = uint32_t(values.size());
    Tango::DevLong* const to = values.data();
    to[0] = Tango::DevLong(first);
    for (uint32_t index = 1; index < size; ++index) to[index] = Tango::DevLong(element(first, index));
}

bool right(const Tango::DevLong* values, uint32_t size) {
    const uint32_t first = uint32_t(values[0]);
    uint32_t differences = 0;
    for (uint32_t index = 1; index < size; ++index) differences |= uint32_t(values[index]) ^ element(first, index);
    return differences == 0;
}

// --------------------------------------------------------------------------------------------------------------- server

uint32_t elements;

class Device : public TANGO_BASE_CLASS {
public:
    Device(Tango::DeviceClass* of, const std::string& name) : TANGO_BASE_CLASS(of, name.c_str()), answer_(elements, no_event) {
        set_change_event(attribute_name, true, false);
        set_state(Tango::ON);
    }
    void init_device() override {}
    Tango::DevLong* answer() { return answer_.data(); }

private:
    std::vector<Tango::DevLong> answer_;
};

class Value : public Tango::SpectrumAttr {
public:
    explicit Value(long size) : Tango::SpectrumAttr(attribute_name, Tango::DEV_LONG, Tango::READ, size) {}
    void read(Tango::DeviceImpl* device, Tango::Attribute& attribute) override {
        attribute.set_value(static_cast<Device*>(device)->answer(), elements);
    }
    bool is_allowed(Tango::DeviceImpl*, Tango::AttReqType) override { return true; }
};

class Class : public Tango::DeviceClass {
public:
    // Tango 9 requires a string that it could change.
    explicit Class(std::string name) : Tango::DeviceClass(name) {}
    void attribute_factory(std::vector<Tango::Attr*>& all) override { all.push_back(new Value(long(elements))); }
    void command_factory() override {}
    void device_factory(const Tango::DevVarStringArray* names) override {
        for (CORBA::ULong at = 0; at < names->length(); ++at) {
            device_list.push_back(new Device(this, std::string((*names)[at])));
            export_device(device_list.back(), (*names)[at]);
        }
    }
};

Tango::DeviceImpl* device() { return Tango::Util::instance()->get_device_by_name(device_name); }

// Pushes until `stop`, at full speed or at a rate, with the clock or a number in the value.
void push(Tango::DeviceImpl& to, std::atomic<bool>& stop, uint64_t rate, bool clock) {
    omni_thread::ensure_self self;
    // Two buffers: a value is never written while it might still be read.
    std::vector<Tango::DevLong> values[2] = {std::vector<Tango::DevLong>(elements), std::vector<Tango::DevLong>(elements)};
    std::string name = attribute_name;
    const uint64_t begun = now_ns(), cpu = cpu_us();
    uint64_t sent = 0;
    for (; !stop.load(std::memory_order_relaxed); ++sent) {
        if (rate != 0) {
            const uint64_t due = begun + sent * 1000000000u / rate, now = now_ns();
            // At high rates a sleep is longer than the interval of events; the events due by then go out at once.
            if (due > now) sleep_until(rate <= 10000 ? due : std::max(due, now + 100000));
        }
        auto& value = values[sent % 2];
        fill(value, clock ? uint32_t(now_ns()) & uint32_t(INT_MAX) : uint32_t(sent));
        to.push_change_event(name, value.data(), long(elements));
    }
    std::fprintf(out, "{\"sent\":%llu,\"first_ns\":%llu,\"last_ns\":%llu,\"cpu_us\":%llu}\n", (unsigned long long)sent, (unsigned long long)begun,
                (unsigned long long)now_ns(), (unsigned long long)(cpu_us() - cpu));
    std::fflush(out);
}

void serve_lines(Tango::DeviceImpl& to, unsigned port) {
    omni_thread::ensure_self self;
    std::fprintf(out, "{\"ready\":\"tango://%s:%u/%s/%s#dbase=no\",\"tango\":\"%s\"}\n", host().c_str(), port, device_name, attribute_name, Tango::TgLibVers);
    std::fflush(out);
    std::vector<Tango::DevLong> marker(elements);
    std::string name = attribute_name, line;
    std::atomic<bool> stop{false};
    std::thread pusher;
    const auto stopped = [&] {
        stop = true;
        if (pusher.joinable()) pusher.join();
        stop = false;
    };
    while (std::getline(std::cin, line)) {
        unsigned long long number = 0;
        if (std::sscanf(line.c_str(), "start %llu", &number) == 1 || std::sscanf(line.c_str(), "clock %llu", &number) == 1) {
            stopped();
            const bool clock = line[0] == 'c';
            pusher = std::thread([&to, &stop, number, clock] { push(to, stop, number, clock); });
        } else if (line == "stop") {
            stopped();
        } else if (std::sscanf(line.c_str(), "mark %llu", &number) == 1) {
            fill(marker, uint32_t(-1 - Tango::DevLong(number)));
            to.push_change_event(name, marker.data(), long(elements));
        } else {
            std::fprintf(stderr, "unknown line '%s'\n", line.c_str());
        }
    }
    stopped();
    std::fflush(out);
    // Tango's own shutdown takes seconds.
    _exit(0);
}

int server(unsigned port) {
    std::string at = "giop:tcp:" + host() + ":" + std::to_string(port);
    // Tango keeps references to these, so they live as long as the process.
    static std::vector<std::string> words{"bench-tango", "bench", "-nodb", "-dlist", device_name, "-ORBendPoint", at};
    static std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(&word[0]);
    arguments.push_back(nullptr);
    Tango::Util* const util = Tango::Util::init(int(words.size()), arguments.data());
    util->server_init(false);
    std::thread lines([port] { serve_lines(*device(), port); });
    util->server_run();
    lines.join();
    return 0;
}

// --------------------------------------------------------------------------------------------------------------- client

class Reader : public Tango::CallBack {
public:
    explicit Reader(bool latency) : latency_(latency) {}

    void push_event(Tango::EventData* event) override {
        const uint64_t arrived = now_ns();
        if (event->err) {
            const std::lock_guard<std::mutex> lock(mutex_);
            ++errors_;
            std::fprintf(stderr, "error event: %s: %s\n", event->errors[0].reason.in(), event->errors[0].desc.in());
            return;
        }
        Tango::DevVarLongArray* taken = nullptr;
        if (!(*event->attr_value >> taken) || taken == nullptr || taken->length() == 0) {
            const std::lock_guard<std::mutex> lock(mutex_);
            ++wrong_;
            return;
        }
        const Tango::DevLong first = (*taken)[0];
        if (first != no_event) take(taken->get_buffer(), uint32_t(taken->length()), first, arrived);
        delete taken;
    }

    void report() {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::fprintf(out, "{\"received\":%llu,\"lost\":%llu,\"first_ns\":%llu,\"last_ns\":%llu,\"wrong\":%llu,\"twice\":%llu,\"errors\":%llu,\"cpu_us\":%llu",
                    (unsigned long long)received_, (unsigned long long)lost_, (unsigned long long)first_ns_, (unsigned long long)last_ns_,
                    (unsigned long long)wrong_, (unsigned long long)twice_, (unsigned long long)errors_, (unsigned long long)cpu_us());
        if (latency_) {
            std::sort(times_.begin(), times_.end());
            std::fprintf(out, ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"longest_us\":%.1f", quantile(0.5), quantile(0.99), quantile(1));
        }
        std::fprintf(out, "}\n");
        std::fflush(out);
        received_ = lost_ = wrong_ = twice_ = errors_ = first_ns_ = last_ns_ = 0;
        next_ = 0;
        times_.clear();
    }

private:
    void take(const Tango::DevLong* values, uint32_t size, Tango::DevLong first, uint64_t arrived) {
        const bool whole = right(values, size);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!whole) ++wrong_;
        if (first < 0) {
            // Tango repeats the last value after a reconnection; a marker is reported once.
            const long long mark = -1LL - first;
            if (mark != marked_) {
                marked_ = mark;
                std::fprintf(out, "{\"mark\":%lld}\n", mark);
                std::fflush(out);
            }
            return;
        }
        last_ns_ = now_ns();
        if (!latency_ && first < next_) {
            // Tango 9 sends an event twice after a client has connected.
            ++twice_;
            return;
        }
        if (received_++ == 0) first_ns_ = arrived;
        if (latency_) {
            // The value has the lower 31 bits of the clock.
            times_.push_back((uint32_t(last_ns_) - uint32_t(first)) & uint32_t(INT_MAX));
            return;
        }
        lost_ += uint64_t(first - next_);
        next_ = first + 1;
    }

    double quantile(double share) const {
        if (times_.empty()) return 0;
        const size_t at = std::min(times_.size() - 1, size_t(share * double(times_.size())));
        return double(times_[at]) / 1000;
    }

    std::mutex mutex_;
    const bool latency_;
    long long marked_ = -1;
    Tango::DevLong next_ = 0;
    uint64_t received_ = 0, lost_ = 0, wrong_ = 0, twice_ = 0, errors_ = 0, first_ns_ = 0, last_ns_ = 0;
    std::vector<uint32_t> times_;
};

int client(unsigned port, bool latency) {
    std::string name = "tango://" + host() + ":" + std::to_string(port) + "/" + device_name + "#dbase=no";
    Tango::DeviceProxy proxy(name);
    // Tango may still call it while the process ends.
    static Reader* const reader = new Reader(latency);
    proxy.subscribe_event(attribute_name, Tango::CHANGE_EVENT, reader);
    std::fprintf(out, "{\"ready\":\"client\",\"tango\":\"%s\"}\n", Tango::TgLibVers);
    std::fflush(out);
    std::string line;
    while (std::getline(std::cin, line)) {
        if (line == "report") reader->report();
        else std::fprintf(stderr, "unknown line '%s'\n", line.c_str());
    }
    _exit(0);
}

} // namespace

// The library calls this function; a server creates its classes here.
void Tango::DServer::class_factory() { add_class(new Class("BenchEvent")); }

int main(int argc, char** argv) {
    const std::string role = argc > 1 ? argv[1] : "";
    const bool fits = (role == "server" && argc == 4) || (role == "client" && (argc == 3 || (argc == 4 && std::strcmp(argv[3], "latency") == 0)));
    if (!fits) {
        std::fprintf(stderr, "usage: %s server PORT ELEMENTS | client PORT [latency]\n", argv[0]);
        return 2;
    }
    out = fdopen(dup(STDOUT_FILENO), "w");
    dup2(STDERR_FILENO, STDOUT_FILENO);
    const unsigned port = unsigned(std::strtoul(argv[2], nullptr, 10));
    try {
        if (role == "client") return client(port, argc == 4);
        elements = uint32_t(std::strtoul(argv[3], nullptr, 10));
        return elements == 0 ? 2 : server(port);
    } catch (const CORBA::Exception& e) {
        Tango::Except::print_exception(e);
        return 1;
    }
}
