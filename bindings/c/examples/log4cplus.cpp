// A program that logs through log4cplus, configured by properties, and whose records go into Tampu's log.
#include <cstdio>
#include <exception>
#include <sstream>

#include <log4cplus/configurator.h>
#include <log4cplus/initializer.h>
#include <log4cplus/logger.h>
#include <log4cplus/loggingmacros.h>
#include <log4cplus/mdc.h>
#include <log4cplus/ndc.h>

#include "tampu_log4cplus_appender.h"

// What stands in a site's file of properties.
constexpr const char *PROPERTIES = "log4cplus.rootLogger=DEBUG, TAMPU\n"
                                   "log4cplus.appender.TAMPU=tampu::log4cplus_appender\n"
                                   "log4cplus.appender.TAMPU.Source=CORR/CORRELATOR\n"
                                   "log4cplus.appender.TAMPU.Threshold=DEBUG\n";

int main() try {
    const log4cplus::Initializer initializer;
    tampu::log4cplus_appender::register_factory();
    std::istringstream properties(PROPERTIES);
    log4cplus::PropertyConfigurator(properties).configure();

    const log4cplus::Logger root = log4cplus::Logger::getRoot();
    LOG4CPLUS_INFO(root, "integration " << 12 << " begins");
    LOG4CPLUS_TRACE(root, "nobody reads this");
    const log4cplus::Logger baseband = log4cplus::Logger::getInstance("corr.baseband");
    log4cplus::getMDC().put("quadrant", "3");
    const log4cplus::NDCContextCreator lock("lock loop");
    LOG4CPLUS_FATAL(baseband, "no lock after " << 60 << " tries");
    return 0;
} catch (const std::exception &failure) {
    std::fprintf(stderr, "log4cplus: %s\n", failure.what());
    return 1;
}
