// A mount that logs its work: arguments of all kinds, values beside the text, types of its own. With the argument `die` it waits
// to be killed, and its records are kept all the same.
#include <cstdint>
#include <cstdio>
#include <future>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "tampu_log.hpp"

// A type with an operator<<.
struct Position {
    double azimuth, elevation;
};

std::ostream &operator<<(std::ostream &out, const Position &position) {
    return out << '(' << position.azimuth << ", " << position.elevation << ')';
}

// A type that is stored as a number.
class Angle {
public:
    explicit Angle(double degrees) : degrees_(degrees) {}
    double degrees() const { return degrees_; }

private:
    double degrees_;
};

template <> struct tampu::LoggedAs<Angle> {
    static double of(const Angle &angle) { return angle.degrees(); }
};

enum class Mode : std::uint8_t { Standby = 1, Tracking = 2 };

class Mount {
public:
    explicit Mount(const tampu::Logger &logger) : logger_(logger.named("mount").for_object("CONTROL/DV01/Mount")) {}

    void slew(const std::string &target, Position to) {
        TAMPU_INFO(logger_, "slewing to {} at {}", target, to, TAMPU_DATA("scan", 7), TAMPU_DATA("target", target));
    }

    void report(Angle az, Angle el, Mode mode, std::optional<int> tries) {
        TAMPU_DEBUG(logger_, "az {:8.3f} el {:+.2e} mode {} tries {}", az, el, mode, tries);
        TAMPU_WARNING(logger_, "status {:#06x} of {:>6}, {}", std::uint16_t{0x2a}, std::string_view("DV01"), true);
        TAMPU_TRACE(logger_, "never asked for: {}", never());
    }

private:
    int never() const {
        std::fputs("an argument of a disabled statement was evaluated\n", stderr);
        _exit(1);
    }

    tampu::Logger logger_;
};

int main(int count, char **words) try {
    const tampu::Logger logger("CONTROL/DV01");
    if (count > 1 && std::string_view(words[1]) == "die") {
        for (int number = 0; number < 1000; ++number) {
            TAMPU_INFO(logger.in_context("the end"), "the last {} of {}", number, words[1]);
        }
        std::puts("said all");
        std::fflush(stdout);
        for (;;) {
            pause();
        }
    }
    Mount mount(logger);
    mount.slew("3C273", {-57.5, 21.25});
    mount.report(Angle(269.9), Angle(0.00125), Mode::Tracking, 3);
    mount.report(Angle(-0.5), Angle(88), Mode::Standby, std::nullopt);
    // The call goes on; the answer comes when a collector has the records on its disk.
    std::promise<bool> kept;
    logger.when_kept(30'000, [&kept](bool are_kept) { kept.set_value(are_kept); });
    std::puts(kept.get_future().get() ? "kept" : "not kept");
    return 0;
} catch (const tampu::Failure &failure) {
    std::fprintf(stderr, "mount: %s\n", failure.what());
    return 1;
}
