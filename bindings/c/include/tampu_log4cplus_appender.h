// An appender that writes the records of log4cplus 2 into Tampu's log.
//
//     log4cplus::SharedAppenderPtr appender(new tampu::log4cplus_appender(tampu::Logger("CONTROL/DV01")));
//     log4cplus::Logger::getRoot().addAppender(appender);
//
// or, after tampu::log4cplus_appender::register_factory(), in a file of properties:
//
//     log4cplus.rootLogger=INFO, TAMPU
//     log4cplus.appender.TAMPU=tampu::log4cplus_appender
//     log4cplus.appender.TAMPU.Source=CONTROL/DV01
//
// A record's text is log4cplus's, without a layout: time, level, logger, thread and place are fields here. Loggers of log4cplus become
// loggers of their names, with levels of their own; the root logger has the name of the process. Pairs of the mapped diagnostic context
// become values of their names beside the text, the nested context becomes the value `ndc`, and all can be searched for. Do not use an
// AsyncAppender or `AsyncAppend`: a call here is only a copy into shared memory, and the records would have the thread of its worker.
#ifndef TAMPU_LOG4CPLUS_APPENDER_H
#define TAMPU_LOG4CPLUS_APPENDER_H

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <log4cplus/appender.h>
#include <log4cplus/helpers/property.h>
#include <log4cplus/helpers/stringhelper.h>
#include <log4cplus/loglevel.h>
#include <log4cplus/spi/factory.h>
#include <log4cplus/spi/loggingevent.h>

#include "tampu_log.hpp"

namespace tampu {

// Longest wait at the end of an appender until its records are sent, in milliseconds.
constexpr std::uint32_t LOG4CPLUS_FLUSH_MS = 1000;

class log4cplus_appender final : public log4cplus::Appender {
public:
    explicit log4cplus_appender(Logger logger) : logger_(std::move(logger)) {}

    // From a file of properties: `Source` is the name of the process. Throws Failure, which log4cplus reports on standard error.
    explicit log4cplus_appender(const log4cplus::helpers::Properties &properties)
        : log4cplus_appender(properties, Logger(source_of(properties))) {}

    // log4cplus closes an appender here, while its own methods still exist.
    ~log4cplus_appender() override { destructorImpl(); }

    // Makes `tampu::log4cplus_appender` known to files of properties; to be called once, before the first is read.
    static void register_factory() {
        using Factory = log4cplus::spi::FactoryTempl<log4cplus_appender, log4cplus::spi::AppenderFactory>;
        log4cplus::spi::getAppenderFactoryRegistry().put(std::make_unique<Factory>(LOG4CPLUS_TEXT("tampu::log4cplus_appender")));
    }

    // Errors are ignored: unsent records are in the ring and are sent later.
    void close() override {
        logger_.flush(LOG4CPLUS_FLUSH_MS);
        closed = true;
    }

protected:
    // log4cplus calls this in one thread at a time.
    void append(const log4cplus::spi::InternalLoggingEvent &event) override try {
        const Logger &logger = named(narrow(event.getLoggerName()));
        const std::string text = narrow(event.getMessage()), file = narrow(event.getFile()), routine = narrow(event.getFunction());
        std::vector<std::pair<std::string, std::string>> pairs;
        for (const auto &pair : event.getMDCCopy()) {
            pairs.emplace_back(narrow(pair.first), narrow(pair.second));
        }
        if (!event.getNDC().empty()) {
            pairs.emplace_back("ndc", narrow(event.getNDC()));
        }
        std::vector<tampu_log_datum> data;
        for (const auto &pair : pairs) {
            data.push_back({pair.first.c_str(), pair.second.c_str()});
        }
        const auto line = static_cast<std::uint32_t>(event.getLine() < 0 ? 0 : event.getLine());
        if (tampu_log_write_data(logger.handle(), level_of(event.getLogLevel()), file.c_str(), line, routine.c_str(), text.data(),
                                 text.size(), data.data(), data.size()) != 0) {
            throw Failure(tampu_log_last_error());
        }
    } catch (const std::exception &failure) {
        getErrorHandler()->error(LOG4CPLUS_C_STR_TO_TSTRING(failure.what()));
    }

private:
    // The logger is opened before: log4cplus complains of an appender whose constructor fails half-way.
    log4cplus_appender(const log4cplus::helpers::Properties &properties, Logger logger)
        : Appender(properties), logger_(std::move(logger)) {}

    static std::string narrow(const log4cplus::tstring &text) { return LOG4CPLUS_TSTRING_TO_STRING(text); }

    static std::string source_of(const log4cplus::helpers::Properties &properties) {
        const std::string source = narrow(properties.getProperty(LOG4CPLUS_TEXT("Source")));
        if (source.empty()) {
            throw Failure("the appender tampu::log4cplus_appender needs the property Source, such as CONTROL/DV01");
        }
        return source;
    }

    // Levels between those of log4cplus, as some sites define them, count as the one below.
    static std::int32_t level_of(log4cplus::LogLevel level) {
        return level >= log4cplus::FATAL_LOG_LEVEL   ? TAMPU_LOG_CRITICAL
               : level >= log4cplus::ERROR_LOG_LEVEL ? TAMPU_LOG_ERROR
               : level >= log4cplus::WARN_LOG_LEVEL  ? TAMPU_LOG_WARNING
               : level >= log4cplus::INFO_LOG_LEVEL  ? TAMPU_LOG_INFO
               : level >= log4cplus::DEBUG_LOG_LEVEL ? TAMPU_LOG_DEBUG
                                                     : TAMPU_LOG_TRACE;
    }

    const Logger &named(const std::string &name) {
        if (name.empty() || name == "root") {
            return logger_;
        }
        const auto known = loggers_.find(name);
        return known != loggers_.end() ? known->second : loggers_.emplace(name, logger_.named(name)).first->second;
    }

    Logger logger_;
    std::map<std::string, Logger> loggers_;
};

} // namespace tampu

#endif
