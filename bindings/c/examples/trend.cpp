// A server with a spectrum, and a client that follows it with a callback.
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <numeric>

#include "tampu_event.hpp"

int main() try {
    using namespace tampu::event;
    const Client client("display");
    std::mutex mutex;
    std::condition_variable changed;
    int told = 0;
    const auto subscription = client.subscribe({"corr/baseband/1/spectrum"}, [&](const Event &event) {
        if (!event.has_value()) {
            return;
        }
        const auto *power = event.elements<float>();
        std::cout << event.attribute() << ": " << event.size() << " channels, " << std::accumulate(power, power + event.size(), 0.0)
                  << ' ' << event.unit() << " in all\n";
        const std::lock_guard<std::mutex> lock(mutex);
        ++told;
        changed.notify_one();
    });

    const Server server("correlator");
    Config config;
    config.name = "corr/baseband/1/spectrum";
    config.format = TAMPU_EVENT_SPECTRUM;
    config.unit = "K";
    config.change_abs = "0.5";
    const auto spectrum = server.declare<float>(config);
    std::vector<float> channels(1024, 1.0F);
    for (int wanted = 1; wanted <= 2; ++wanted) {
        spectrum.push(channels);
        std::unique_lock<std::mutex> lock(mutex);
        if (!changed.wait_for(lock, std::chrono::seconds(30), [&] { return told >= wanted; })) {
            std::cerr << "trend: no event within 30 s\n";
            return 1;
        }
        channels[0] += 1.0F;
    }
    return 0;
} catch (const tampu::Failure &failure) {
    std::fprintf(stderr, "trend: %s\n", failure.what());
    return 1;
}
