// Measures spdlog as benches/src/call/cost.rs measures the others: the same calls, rounds, bursts and account. Text goes to a file.
//
//   bench-spdlog spdlog-sync|spdlog-async THREADS CALLS ROUNDS RECORDS FILE --account FILE
//
// Built by `make bench-spdlog` with g++ -O2; Debian has spdlog as libspdlog-dev.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t ticks() { return __rdtsc(); }
#else
static inline uint64_t ticks() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}
#endif

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

static const auto settle = milliseconds(50);
static const uint64_t burst = 20;
static const char* const states[] = {"tracking", "slewing", "idle", "stowed"};

static uint64_t thread_cpu() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

// The cost of reading the thread's clock.
static uint64_t reading() {
    uint64_t between[15];
    for (auto& one : between) {
        const uint64_t before = thread_cpu();
        one = thread_cpu() - before;
    }
    std::sort(between, between + 15);
    return between[7];
}

// A gate that all threads pass together, repeatedly.
class Gate {
public:
    explicit Gate(size_t threads) : threads_(threads) {}
    void wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        const size_t round = round_;
        if (++waiting_ == threads_) {
            waiting_ = 0;
            ++round_;
            all_.notify_all();
        } else {
            all_.wait(lock, [&] { return round_ != round; });
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable all_;
    size_t threads_, waiting_ = 0, round_ = 0;
};

struct Plan {
    uint64_t threads, calls, rounds;
    uint64_t bound(uint64_t thread, uint64_t of) const { return of * thread / threads; }
};

// Each thread does its share of each round by `work(first, end, counts)`; the first round is a warm-up.
template <class Work> static void rounds(const Plan& plan, Work work) {
    Gate gate(plan.threads + 1);
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < plan.threads; ++thread) {
        threads.emplace_back([&, thread] {
            for (uint64_t round = 0; round <= plan.rounds; ++round) {
                gate.wait();
                work(plan.bound(thread, plan.calls), plan.bound(thread + 1, plan.calls), round > 0);
                gate.wait();
            }
        });
    }
    for (uint64_t round = 0; round <= plan.rounds; ++round) {
        gate.wait();
        gate.wait();
        std::this_thread::sleep_for(settle);
    }
    for (auto& thread : threads) thread.join();
}

static inline void call(spdlog::logger& logger, uint64_t number) {
    logger.info("antenna {} at {} is {}", number, number * 7 % 360, states[number % 4]);
}

static double ns_per_tick() {
    const auto begun = Clock::now();
    const uint64_t first = ticks();
    std::this_thread::sleep_for(settle);
    const auto ended = Clock::now();
    const uint64_t last = ticks();
    return std::chrono::duration<double, std::nano>(ended - begun).count() / double(last - first);
}

// The summary of timed calls, in the format of `Summary`.
static std::string summary(std::vector<uint64_t>& times, double scale) {
    std::sort(times.begin(), times.end());
    double total = 0;
    for (const uint64_t time : times) total += double(time) * scale;
    const auto quantile = [&](double share) {
        const double rank = share * double(times.size());
        size_t at = size_t(rank);
        if (double(at) < rank) ++at;
        return double(times[std::max<size_t>(at, 1) - 1]) * scale;
    };
    char text[400];
    std::snprintf(text, sizeof text,
                  "{\"calls\":%zu,\"total_ns\":%.1f,\"min_ns\":%.1f,\"max_ns\":%.1f,\"p50_ns\":%.1f,\"p99_ns\":%.1f,\"p999_ns\":%.1f}",
                  times.size(), total, double(times.front()) * scale, double(times.back()) * scale, quantile(0.5), quantile(0.99),
                  quantile(0.999));
    return text;
}

int main(int argc, char** argv) {
    if (argc != 9 || std::strcmp(argv[7], "--account") != 0) {
        std::fprintf(stderr, "usage: %s spdlog-sync|spdlog-async THREADS CALLS ROUNDS RECORDS FILE --account FILE\n", argv[0]);
        return 2;
    }
    const Plan plan{std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10), std::strtoull(argv[4], nullptr, 10)};
    const uint64_t records = std::strtoull(argv[5], nullptr, 10);
    const double scale = ns_per_tick();

    std::shared_ptr<spdlog::logger> logger;
    if (std::strcmp(argv[1], "spdlog-async") == 0) {
        spdlog::init_thread_pool(8192, 1);
        logger = spdlog::basic_logger_mt<spdlog::async_factory>("bench", argv[6]);
    } else {
        logger = spdlog::basic_logger_mt("bench", argv[6]);
    }

    std::mutex mutex;
    uint64_t cpu = 0;
    rounds(plan, [&](uint64_t first, uint64_t end, bool counts) {
        const uint64_t before = thread_cpu();
        for (uint64_t number = first; number < end; ++number) call(*logger, number);
        const uint64_t spent = thread_cpu() - before, own = reading();
        const std::lock_guard<std::mutex> lock(mutex);
        if (counts) cpu += spent > own ? spent - own : 0;
    });

    std::vector<uint64_t> flat_out, bursts;
    const auto timed = [&](std::vector<uint64_t>& all, uint64_t at_once) {
        rounds(plan, [&](uint64_t first, uint64_t end, bool counts) {
            std::vector<uint64_t> times(end - first);
            auto next = Clock::now();
            for (uint64_t number = first; number < end; ++number) {
                if (at_once != 0 && (number - first) % at_once == 0) {
                    std::this_thread::sleep_until(next);
                    next += milliseconds(1);
                }
                const uint64_t before = ticks();
                call(*logger, number);
                times[number - first] = ticks() - before;
            }
            const std::lock_guard<std::mutex> lock(mutex);
            if (counts) all.insert(all.end(), times.begin(), times.end());
        });
    };
    timed(flat_out, 0);
    timed(bursts, std::max<uint64_t>(burst / plan.threads, 1));

    const auto begun = Clock::now();
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < plan.threads; ++thread) {
        threads.emplace_back([&, thread] {
            for (uint64_t number = plan.bound(thread, records); number < plan.bound(thread + 1, records); ++number) call(*logger, number);
        });
    }
    for (auto& thread : threads) thread.join();
    logger->flush();
    // The pool's thread ends when its queue is empty.
    logger.reset();
    spdlog::shutdown();
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();

    std::FILE* account = std::fopen(argv[8], "w");
    if (account == nullptr) {
        std::perror(argv[8]);
        return 1;
    }
    std::fprintf(account,
                 "{\"Ok\":{\"cpu_ns\":%.3f,\"flat_out\":%s,\"bursts\":%s,\"sustained_per_s\":%.1f,\"logged\":%llu,\"dropped\":0,"
                 "\"confirmed\":true,\"noop_ns\":null}}\n",
                 double(cpu) / double(plan.calls * plan.rounds), summary(flat_out, scale).c_str(), summary(bursts, scale).c_str(),
                 double(records) / seconds, static_cast<unsigned long long>(3 * plan.calls * (plan.rounds + 1) + records));
    return std::fclose(account) == 0 ? 0 : 1;
}
