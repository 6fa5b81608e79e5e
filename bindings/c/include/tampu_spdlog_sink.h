// A sink that writes the records of spdlog into Tampu's log.
//
//     auto sink = std::make_shared<tampu::spdlog_sink>(tampu::Logger("CONTROL/DV01"));
//     spdlog::set_default_logger(std::make_shared<spdlog::logger>("", sink));
//
// A record's text is spdlog's, without its pattern: time, level, logger, thread and place are fields here. Loggers of spdlog with
// a name become loggers of that name, with levels of their own. The place is known if spdlog has it: with the macros
// SPDLOG_INFO(...). Do not use an asynchronous logger of spdlog: a call here is only a copy into shared memory, and the records of
// such a logger would have the time and the thread of its worker.
#ifndef TAMPU_SPDLOG_SINK_H
#define TAMPU_SPDLOG_SINK_H

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include "tampu_log.hpp"

namespace tampu {

// Longest wait of spdlog's flush(), in milliseconds.
constexpr std::uint32_t SPDLOG_FLUSH_MS = 1000;

template <typename Mutex> class basic_spdlog_sink final : public spdlog::sinks::base_sink<Mutex> {
public:
    explicit basic_spdlog_sink(Logger logger) : logger_(std::move(logger)) {}

protected:
    void sink_it_(const spdlog::details::log_msg &message) override {
        const Logger &logger = named({message.logger_name.data(), message.logger_name.size()});
        tampu_log_write_bytes(logger.handle(), level_of(message.level), message.source.filename,
                              static_cast<std::uint32_t>(message.source.line), message.source.funcname, message.payload.data(),
                              message.payload.size());
    }

    // Errors are ignored: unsent records are in the ring and are sent later.
    void flush_() override { logger_.flush(SPDLOG_FLUSH_MS); }

private:
    static std::int32_t level_of(spdlog::level::level_enum level) {
        switch (level) {
        case spdlog::level::trace:
            return TAMPU_LOG_TRACE;
        case spdlog::level::debug:
            return TAMPU_LOG_DEBUG;
        case spdlog::level::warn:
            return TAMPU_LOG_WARNING;
        case spdlog::level::err:
            return TAMPU_LOG_ERROR;
        case spdlog::level::critical:
            return TAMPU_LOG_CRITICAL;
        default:
            return TAMPU_LOG_INFO;
        }
    }

    const Logger &named(std::string_view name) {
        if (name.empty()) {
            return logger_;
        }
        const auto known = loggers_.find(name);
        return known != loggers_.end() ? known->second : loggers_.emplace(name, logger_.named(std::string(name))).first->second;
    }

    Logger logger_;
    std::map<std::string, Logger, std::less<>> loggers_;
};

// For programs with threads.
using spdlog_sink = basic_spdlog_sink<std::mutex>;
// For a logger used by only one thread.
using spdlog_sink_st = basic_spdlog_sink<spdlog::details::null_mutex>;

} // namespace tampu

#endif
