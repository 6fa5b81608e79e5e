// Cost of a call for the logging thread: processor time per call, the median and the minimum of many rounds.
//
// The environment decides whether a hub receives the records. A round is short enough for the ring, and the backend has time to
// empty it before the next: the result is the cost of the call, without waits for room.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "tampu_log.hpp"

constexpr int ROUNDS = 300;
constexpr int CALLS = 500;

static double thread_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <typename Call> static void measure(const tampu::Logger &logger, const char *what, Call call) {
    std::vector<double> rounds;
    for (int round = 0; round < ROUNDS; ++round) {
        const double begun = thread_ns();
        for (int number = 0; number < CALLS; ++number) {
            call(number);
        }
        rounds.push_back((thread_ns() - begun) / CALLS);
        logger.flush(50);
    }
    std::sort(rounds.begin(), rounds.end());
    std::printf("%-44s %7.1f ns median, %7.1f least\n", what, rounds[ROUNDS / 2], rounds[0]);
}

int main() try {
    const tampu::Logger logger("call-cost");
    const std::string antenna = "DV01";
    measure(logger, "disabled", [&](int number) { TAMPU_TRACE(logger, "{}", number); });
    measure(logger, "no argument", [&](int) { TAMPU_INFO(logger, "on source"); });
    measure(logger, "two floats", [&](int number) { TAMPU_INFO(logger, "az {:.3f} el {:.3f}", number * 0.1, number * 0.2); });
    measure(logger, "two integers and a short text",
            [&](int number) { TAMPU_INFO(logger, "scan {} of {} at {}", number, CALLS, antenna); });
    measure(logger, "tampu_log_write of a short text",
            [&](int) { tampu_log_write(logger.handle(), TAMPU_LOG_INFO, __FILE__, __LINE__, "main", "on source"); });
    std::printf("%llu lost\n", static_cast<unsigned long long>(logger.dropped()));
    return 0;
} catch (const tampu::Failure &failure) {
    std::fprintf(stderr, "call_cost: %s\n", failure.what());
    return 1;
}
