// Calls that meet every turn a ring takes: threads, more records than a ring holds, a record made while another is written, texts too
// long for a ring, a child after fork. Says how many records of each kind there must be.
#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tampu_log.hpp"

// A type whose text is made by somebody who logs himself.
struct Talkative {
    const tampu::Logger *logger;
};
static std::ostream &operator<<(std::ostream &out, const Talkative &value) {
    TAMPU_INFO(*value.logger, "kind nested");
    return out << "nothing";
}

constexpr int THREADS = 3;
constexpr int CALLS = 20000;

static void many(const tampu::Logger &logger, const char *kind) {
    for (int number = 0; number < CALLS; ++number) {
        // A ring holds more than these, so that nothing is lost.
        if (number % 1000 == 0) {
            logger.flush(10000);
        }
        TAMPU_ERROR(logger, "kind {} {}", kind, number, TAMPU_DATA("number", number));
    }
}

int main() try {
    const tampu::Logger logger("rings");
    std::vector<std::thread> threads;
    for (int thread = 0; thread < THREADS; ++thread) {
        threads.emplace_back([&] { many(logger, "thread"); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    TAMPU_INFO(logger, "kind outer {}", Talkative{&logger});
    const std::string text(60000, 'x');
    TAMPU_INFO(logger, "kind long {}{}{}{}{}", text, text, text, text, text);
    const tampu::Logger other = logger.named("other");
    TAMPU_INFO(other.in_stack("chain", 1), "kind chained");
    logger.flush(10000);
    const pid_t child = fork();
    if (child == 0) {
        for (int number = 0; number < 100; ++number) {
            TAMPU_INFO(logger, "kind child {}", number);
        }
        TAMPU_INFO(other, "kind child {}", 100);
        // Drained by the hub, as the backend is the parent's: this process lives until then.
        _exit(logger.flush(60000) ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    TAMPU_INFO(logger, "kind parent {}", "after the child");
    logger.flush(10000);
    std::printf("thread %d\nnested 1\nouter 1\nlong 1\nchained 1\nchild 101\nparent 1\nlost %llu\n", THREADS * CALLS,
                static_cast<unsigned long long>(logger.statistics().dropped));
    return status;
} catch (const tampu::Failure &failure) {
    std::fprintf(stderr, "cxx_rings: %s\n", failure.what());
    return 1;
}
