// Measures events from C++: a server pushes a spectrum of DevLong for some seconds, and a client checks every element. scripts/bench-clients.py
// starts both; the environment names the domain.
//
//   bench-cxx server ELEMENTS SECONDS      pushes probes until a line comes on standard input
//   bench-cxx client                       prints "connected", and at the end a line of JSON
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tampu_event.hpp"

using namespace tampu::event;

namespace {

constexpr char name[] = "bench/cxx/event/value";
constexpr std::int32_t probe = -1, last = -2;

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void push(const Attribute<std::int32_t> &attribute, std::vector<std::int32_t> &elements, std::int32_t number) {
    for (auto &element : elements) {
        element = number;
    }
    const tampu_event_value value = {TAMPU_EVENT_LONG, TAMPU_EVENT_SPECTRUM, 0, 0, elements.data(), elements.size(), nullptr};
    const tampu_event_reading reading = {&value, nullptr, TAMPU_EVENT_VALID, TAMPU_EVENT_USER, 0};
    detail::checked(tampu_event_push_reading(attribute.get(), &reading, sizeof reading, nullptr, 0));
}

int server(std::size_t count, double seconds) {
    const Server server("cxx-server");
    Config config;
    config.name = name;
    config.format = TAMPU_EVENT_SPECTRUM;
    config.max_x = static_cast<std::uint32_t>(count);
    const auto attribute = server.declare<std::int32_t>(config);
    std::vector<std::int32_t> elements(count);
    std::mutex mutex;
    std::condition_variable changed;
    bool begun = false;
    std::thread orders([&] {
        std::string line;
        std::getline(std::cin, line);
        const std::lock_guard<std::mutex> lock(mutex);
        begun = true;
        changed.notify_all();
    });
    for (std::unique_lock<std::mutex> lock(mutex); !changed.wait_for(lock, std::chrono::milliseconds(10), [&] { return begun; });) {
        push(attribute, elements, probe);
    }
    orders.join();
    const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
    std::int32_t number = 0;
    while (number % 64 != 0 || now_ns() < until) {
        push(attribute, elements, number++);
    }
    push(attribute, elements, last);
    std::printf("{\"pushed\": %d}\n", number);
    std::fflush(stdout);
    // It is ended when the client has all.
    while (std::cin.get() != EOF) {
    }
    return 0;
}

int client() {
    const Client client("cxx-client");
    std::mutex mutex;
    std::condition_variable ended;
    bool is_connected = false, is_over = false;
    std::int32_t next = 0;
    std::int64_t received = 0, wrong = 0, missed = 0, first_ns = 0, last_ns = 0;
    // As the measurement in Rust has it.
    Options options;
    options.kinds = TAMPU_EVENT_USER;
    options.in_place = true;
    const auto subscription = client.subscribe({name}, [&](const Event &event) {
        missed += event.missed() == UINT64_MAX ? 0 : static_cast<std::int64_t>(event.missed());
        if (!event.has_value()) {
            return;
        }
        const std::int32_t *elements = event.elements<std::int32_t>();
        const std::int32_t number = elements[0];
        if (!is_connected) {
            is_connected = true;
            std::puts("connected");
            std::fflush(stdout);
        }
        if (number < 0) {
            const std::lock_guard<std::mutex> lock(mutex);
            is_over |= number == last;
            ended.notify_all();
            return;
        }
        bool whole = number >= next;
        for (std::size_t nth = 0; nth < event.size(); ++nth) {
            whole &= elements[nth] == number;
        }
        first_ns = received == 0 ? now_ns() : first_ns;
        last_ns = received % 32 == 0 ? now_ns() : last_ns;
        wrong += !whole;
        next = number + 1;
        ++received;
    }, options);
    std::unique_lock<std::mutex> lock(mutex);
    ended.wait(lock, [&] { return is_over; });
    std::printf("{\"received\": %lld, \"wrong\": %lld, \"missed\": %lld, \"first_ns\": %lld, \"last_ns\": %lld}\n", static_cast<long long>(received),
                static_cast<long long>(wrong), static_cast<long long>(missed), static_cast<long long>(first_ns), static_cast<long long>(last_ns));
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    const std::string role = argc > 1 ? argv[1] : "";
    try {
        if (role == "server" && argc == 4) {
            return server(std::strtoul(argv[2], nullptr, 10), std::strtod(argv[3], nullptr));
        }
        if (role == "client" && argc == 2) {
            return client();
        }
    } catch (const tampu::Failure &failure) {
        std::fprintf(stderr, "bench-cxx: %s\n", failure.what());
        return 1;
    }
    std::fprintf(stderr, "usage: bench-cxx server ELEMENTS SECONDS | client\n");
    return 2;
}
