// A program that logs through spdlog, and whose records go into Tampu's log.
#include <cstdio>
#include <memory>

#define SPDLOG_ACTIVE_LEVEL SPDLOG_LEVEL_DEBUG
#include <spdlog/spdlog.h>

#include "tampu_spdlog_sink.h"

int main() try {
    const auto sink = std::make_shared<tampu::spdlog_sink>(tampu::Logger("CORR/CORRELATOR"));
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("", sink));
    spdlog::set_level(spdlog::level::debug);

    spdlog::info("integration {} begins", 12);
    SPDLOG_DEBUG("quadrant {:02d} at {:.1f} C", 3, 72.04);
    spdlog::logger baseband("baseband", sink);
    baseband.critical("no lock after {} tries", 60);
    spdlog::shutdown();
    return 0;
} catch (const std::exception &failure) {
    std::fprintf(stderr, "spdlog: %s\n", failure.what());
    return 1;
}
