// Logs arguments of every kind with every kind of field, and prints what fmt makes of the same, each text followed by the byte 0x1e.
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tampu_log.hpp"

#define SAME(...)                                                                                                              \
    do {                                                                                                                       \
        TAMPU_INFO(logger, __VA_ARGS__);                                                                                       \
        const std::string text = fmt::format(__VA_ARGS__);                                                                     \
        std::fwrite(text.data(), 1, text.size(), stdout);                                                                      \
        std::fputc('\x1e', stdout);                                                                                            \
    } while (false)

template <typename T> static void integer(const tampu::Logger &logger) {
    for (const T value : {std::numeric_limits<T>::min(), static_cast<T>(0), static_cast<T>(42), std::numeric_limits<T>::max()}) {
        SAME("{} {:d} {:08} {:<6}| {:^7}| {:*>9}", value, value, value, value, value, value);
        // fmt has signs for what can have one.
        if constexpr (T(-1) < T(0)) {
            SAME("{:+} {: } {:-}", value, value, value);
        }
        SAME("{:x} {:X} {:#x} {:#010x} {:o} {:#o} {:b} {:#B}", value, value, value, value, value, value, value, value);
    }
}

template <typename T> static void floating(const tampu::Logger &logger) {
    using Limits = std::numeric_limits<T>;
    for (const T value : {T(0), T(-0.0), T(1), T(-7.5), T(0.1), T(1e15), T(1e-7), T(123456.789), Limits::max(), Limits::min(),
                          Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
        SAME("{} {:.3f} {:e} {:.2E} {:g} {:+.1f} {:010.2f} {:>12.4g}|", value, value, value, value, value, value, value, value);
    }
}

int main() try {
    const tampu::Logger logger("formats");
    SAME("no arguments, {{braces}}");
    integer<signed char>(logger);
    integer<unsigned char>(logger);
    integer<short>(logger);
    integer<unsigned short>(logger);
    integer<int>(logger);
    integer<unsigned>(logger);
    integer<long>(logger);
    integer<unsigned long>(logger);
    integer<long long>(logger);
    integer<unsigned long long>(logger);
    integer<tampu::detail::Int128>(logger);
    floating<float>(logger);
    floating<double>(logger);
    SAME("{} {} {:d} {:>7}|", true, false, true, true);
    SAME("{} {:c} {:d} {:>3}| {:?}", 'a', 'b', 'c', 'd', 'e');

    const std::string string = "h\u00e9llo";
    const std::string_view view = "w\u00f6rld";
    const char *pointer = "pointer";
    char buffer[16] = "buffer";
    SAME("{} {} {} {} {}", string, view, pointer, buffer, "literal");
    SAME("{:>8}|{:*^11}|{:.3}|{:<9.2}|{:s}", string, view, pointer, buffer, "literal");
    SAME("{1} {0} {1:>4}", 1, 2);
    SAME("{:}<5}|", 7);
    SAME("{}", std::string());
    SAME("{}", std::string_view());
    SAME("{} {}", static_cast<const void *>(pointer), nullptr);
    const std::string long_text(60000, 'x');
    SAME("{}", long_text);
    // Nine and more arguments have two words of tags.
    SAME("{} {} {} {} {} {} {} {} {} {} {}", 1, 2u, 3l, 4.5, 5.5f, "6", '7', true, std::uint8_t{9}, std::int16_t{10}, std::string("11"));
    return 0;
} catch (const tampu::Failure &failure) {
    std::fprintf(stderr, "formats: %s\n", failure.what());
    return 1;
}
