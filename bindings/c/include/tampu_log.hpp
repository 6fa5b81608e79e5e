// Tampu's logger for C++17. A program needs this header and -ltampu_log.
//
//     tampu::Logger logger("CONTROL/DV01");
//     TAMPU_INFO(logger, "az {:.3f} el {:.3f} of {}", az, el, name, TAMPU_DATA("scan", 7));
//
// The text has the syntax of fmt and std::format, and is formatted elsewhere. A call stores its arguments unformatted in this
// thread's ring in shared memory, in the layout of spec/log-call.md. It allocates nothing and never waits for the network; a
// stored record survives the process. A disabled level costs one relaxed load and a branch, and its arguments are not
// evaluated. The compiler checks that the numbers of fields and arguments are equal.
//
// Stored unformatted: bool, char, integers up to 128 bits, float, double (long double as double), texts (const char *, char
// arrays, std::string, std::string_view and types that convert to it), const void *, enumerations, and std::optional of these,
// which shows "None" if it is empty. Any other type is formatted at the call, by its operator<< or by LoggedAs.
//
// TAMPU_DATA(name, value), at the end, adds a value beside the text, which can be searched for by its name, a literal.
//
// Rejected by the compiler: widths and precisions from arguments, named fields, and arguments without a field. {:a} and {:p} are
// shown differently than in fmt.
#ifndef TAMPU_LOG_HPP
#define TAMPU_LOG_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tampu_failure.hpp"
#include "tampu_log.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arguments are stored as they lie in memory: little endian");

namespace tampu {

// Levels of records: ACS's ten levels with ACS's numbers. Off is a threshold only.
enum class Level : std::uint8_t {
    Trace = TAMPU_LOG_TRACE,
    Delouse = TAMPU_LOG_DELOUSE,
    Debug = TAMPU_LOG_DEBUG,
    Info = TAMPU_LOG_INFO,
    Notice = TAMPU_LOG_NOTICE,
    Warning = TAMPU_LOG_WARNING,
    Error = TAMPU_LOG_ERROR,
    Critical = TAMPU_LOG_CRITICAL,
    Alert = TAMPU_LOG_ALERT,
    Emergency = TAMPU_LOG_EMERGENCY,
    Off = TAMPU_LOG_OFF,
};

// The grade of safety that a program waits for: a collector's memory, or its disk. See enum tampu_log_grade.
enum class Grade : std::int32_t { Received = TAMPU_LOG_RECEIVED, Kept = TAMPU_LOG_KEPT };

// The outcome for records. See enum tampu_log_outcome.
enum class Outcome : std::int32_t {
    Lost = TAMPU_LOG_IS_LOST,
    Refused = TAMPU_LOG_IS_REFUSED,
    Unconfirmed = TAMPU_LOG_IS_UNCONFIRMED,
    Received = TAMPU_LOG_IS_RECEIVED,
    Kept = TAMPU_LOG_IS_KEPT,
};

// A named logger, or one derived from it. When the process's last logger is destroyed, it waits until its records are sent (at most
// 2 s). A moved-from logger discards all records.
class Logger {
public:
    // Begins the logging of this process; once a process. The environment has the other settings (tampu_log_open). Throws Failure.
    explicit Logger(const char *source) : Logger(tampu_log_open(source)) {}
    explicit Logger(const std::string &source) : Logger(source.c_str()) {}

    Logger(const Logger &other) : Logger(tampu_log_clone(other.handle_)) {}
    Logger(Logger &&other) noexcept : handle_(nullptr), threshold_(tampu_log_threshold(nullptr)), front_(NO_FRONT) { swap(other); }
    Logger &operator=(Logger other) noexcept {
        swap(other);
        return *this;
    }
    ~Logger() { tampu_log_close(handle_); }

    // A logger of this name, with levels of its own; the other fields are kept.
    Logger named(const std::string &name) const { return Logger(tampu_log_named(handle_, name.c_str())); }
    // The same logger for a component.
    Logger for_object(const std::string &object) const { return Logger(tampu_log_for_object(handle_, object.c_str())); }
    // The same logger for these audiences only; without audiences for everybody.
    Logger for_audiences(const std::vector<std::string> &audiences) const {
        std::vector<const char *> strings;
        for (const std::string &audience : audiences) {
            strings.push_back(audience.c_str());
        }
        return Logger(tampu_log_for_audiences(handle_, strings.data(), strings.size()));
    }
    // The same logger in a context.
    Logger in_context(const std::string &context) const { return Logger(tampu_log_in_context(handle_, context.c_str())); }
    // The same logger during a run or observation.
    Logger in_run(const std::string &run) const { return Logger(tampu_log_in_run(handle_, run.c_str())); }

    // The same logger for an antenna of an array.
    Logger for_antenna(const std::string &antenna, const std::string &array) const {
        return Logger(tampu_log_for_antenna(handle_, antenna.c_str(), array.c_str()));
    }
    // The same logger within an error chain, at this depth: 0 is the outermost error.
    Logger in_stack(const std::string &stack, std::int32_t depth) const {
        return Logger(tampu_log_in_stack(handle_, stack.c_str(), depth));
    }

    // Returns true if a record of this level has a receiver.
    bool enabled(Level level) const noexcept {
        return static_cast<std::uint8_t>(level) >= __atomic_load_n(threshold_, __ATOMIC_RELAXED);
    }
    // Sets the lowest level to publish for this name.
    void set_level(Level from) const { check(tampu_log_set_level(handle_, static_cast<std::int32_t>(from)) == 0); }
    // Sets the lowest level to print on standard error.
    void set_local_level(Level from) const { check(tampu_log_set_local_level(handle_, static_cast<std::int32_t>(from)) == 0); }

    // Waits until everything logged before has reached every receiver; false after the timeout.
    bool flush(std::uint32_t timeout_ms) const noexcept { return tampu_log_flush(handle_, timeout_ms) == 1; }
    // Waits until a collector has committed everything published before; false after the timeout.
    bool flush_to_archive(std::uint32_t timeout_ms) const noexcept {
        return tampu_log_flush_to_archive(handle_, timeout_ms) == 1;
    }
    // Returns at once, and calls `told` later, once: with true when a collector has committed everything published before, with
    // false after the timeout or at the end of the logging. The logger's worker calls it, so it must be quick; it must not throw.
    void when_kept(std::uint32_t timeout_ms, std::function<void(bool)> told) const {
        using Told = std::function<void(bool)>;
        auto kept = std::make_unique<Told>(std::move(told));
        const auto call = [](void *user, std::int32_t is_kept) {
            const std::unique_ptr<Told> told(static_cast<Told *>(user));
            (*told)(is_kept == 1);
        };
        check(tampu_log_when_kept(handle_, timeout_ms, call, kept.get()) == 0);
        kept.release();
    }
    // Waits until a collector has everything published before in this grade, at most so long; returns what has become of it.
    Outcome wait_until(Grade grade, std::uint32_t timeout_ms) const {
        const std::int32_t outcome = tampu_log_wait(handle_, static_cast<std::int32_t>(grade), timeout_ms);
        check(outcome != -1);
        return static_cast<Outcome>(outcome);
    }
    // As when_kept, for any grade, with what has become of the records.
    void when(Grade grade, std::uint32_t timeout_ms, std::function<void(Outcome)> told) const {
        using Told = std::function<void(Outcome)>;
        auto kept = std::make_unique<Told>(std::move(told));
        const auto call = [](void *user, std::int32_t outcome) {
            const std::unique_ptr<Told> told(static_cast<Told *>(user));
            (*told)(static_cast<Outcome>(outcome));
        };
        check(tampu_log_when(handle_, static_cast<std::int32_t>(grade), timeout_ms, call, kept.get()) == 0);
        kept.release();
    }
    // Returns true if logged records survive the process; they do not if the run-time directory cannot be used.
    bool survives() const noexcept { return tampu_log_survives(handle_) == 1; }
    // Number of records that this process has lost so far.
    std::uint64_t dropped() const noexcept { return tampu_log_dropped(handle_); }

    // Statistics of all loggers of this process.
    tampu_log_statistics statistics() const {
        tampu_log_statistics found{};
        check(tampu_log_stats(handle_, &found, sizeof found) == 0);
        return found;
    }

    // The handle for the functions of tampu_log.h; it still belongs to this logger.
    const tampu_logger *handle() const noexcept { return handle_; }
    // Values common to all its records.
    const tampu_log_front &front() const noexcept { return front_; }

private:
    explicit Logger(tampu_logger *handle) : handle_(handle), threshold_(tampu_log_threshold(handle)), front_(NO_FRONT) {
        check(handle != nullptr);
        tampu_log_front_of(handle, TAMPU_LOG_FRONT_ABI, &front_);
    }

    // No thread has this pool.
    static constexpr tampu_log_front NO_FRONT{UINT64_MAX, 0, 0, 0, 0};

    static void check(bool good) {
        if (!good) {
            throw Failure(tampu_log_last_error());
        }
    }
    void swap(Logger &other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(threshold_, other.threshold_);
        std::swap(front_, other.front_);
    }

    tampu_logger *handle_;
    const std::uint8_t *threshold_;
    tampu_log_front front_;
};

namespace detail {

struct Unspecialised {};

template <typename T, typename = void> struct IsStreamed : std::false_type {};
template <typename T>
struct IsStreamed<T, std::void_t<decltype(std::declval<std::ostream &>() << std::declval<const T &>())>> : std::true_type {};

} // namespace detail

// Replacement for a value of a type of your own. Specialise it with a function `of` that returns a value of a type listed above:
//
//     template <> struct tampu::LoggedAs<Angle> {
//         static double of(const Angle &angle) { return angle.degrees(); }
//     };
//
// A text returned as std::string is kept during the call; other texts must outlive the call. The default returns the output of
// operator<<, which allocates memory.
template <typename T, typename = void> struct LoggedAs : detail::Unspecialised {
    static std::string of(const T &value) {
        static_assert(detail::IsStreamed<T>::value, "give this type an operator<<, or specialise tampu::LoggedAs for it");
        std::ostringstream stream;
        stream << value;
        return std::move(stream).str();
    }
};

namespace detail {

// Kinds of values, as in spec/log-call.md.
enum Tag : std::uint8_t { BOOL = 1, CHAR = 2, UNSIGNED = 3, SIGNED = 8, F32 = 13, F64 = 14, STR = 15, OPTIONAL = 0x80 };

// Most bytes stored of one text.
constexpr std::size_t TEXT_MAX = 65536;
constexpr std::size_t ARGUMENTS_MAX = 64;

// A value of fixed size.
template <std::uint8_t Kind, typename Bits> struct Fixed {
    static constexpr std::uint8_t tag = Kind;
    static constexpr std::size_t fixed = sizeof(Bits);
    Bits value;
    std::size_t varying() const noexcept { return 0; }
    unsigned char *write(unsigned char *out) const noexcept {
        std::memcpy(out, &value, sizeof value);
        return out + sizeof value;
    }
};

// Copies a text; a short one in overlapping pieces, without a call.
inline void copy_text(unsigned char *out, const char *data, std::size_t length) noexcept {
    if (length > 16) {
        std::memcpy(out, data, length);
    } else if (length >= 8) {
        std::memcpy(out, data, 8);
        std::memcpy(out + length - 8, data + length - 8, 8);
    } else if (length >= 4) {
        std::memcpy(out, data, 4);
        std::memcpy(out + length - 4, data + length - 4, 4);
    } else if (length > 0) {
        // Here the length is known not to be 0; an empty text may have no address.
        out[0] = static_cast<unsigned char>(data[0]);
        out[length / 2] = static_cast<unsigned char>(data[length / 2]);
        out[length - 1] = static_cast<unsigned char>(data[length - 1]);
    }
}

// A text that outlives the call.
struct Text {
    static constexpr std::uint8_t tag = STR;
    static constexpr std::size_t fixed = 4;
    const char *data;
    std::size_t length;
    std::size_t varying() const noexcept { return length < TEXT_MAX ? length : TEXT_MAX; }
    unsigned char *write(unsigned char *out) const noexcept {
        constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
        const auto told = static_cast<std::uint32_t>(length < most ? length : most);
        std::memcpy(out, &told, sizeof told);
        // Without bytes nothing is copied: data may be null then.
        copy_text(out + sizeof told, data, varying());
        return out + sizeof told + varying();
    }
};

// A text owned by the call.
struct OwnText {
    static constexpr std::uint8_t tag = STR;
    static constexpr std::size_t fixed = 4;
    std::string text;
    Text borrowed() const noexcept { return {text.data(), text.size()}; }
    std::size_t varying() const noexcept { return borrowed().varying(); }
    unsigned char *write(unsigned char *out) const noexcept { return borrowed().write(out); }
};

// An address, as text.
struct Address {
    static constexpr std::uint8_t tag = STR;
    static constexpr std::size_t fixed = 4;
    char digits[2 + 2 * sizeof(std::uintptr_t)];
    std::size_t length;
    explicit Address(const void *pointer) noexcept : digits{'0', 'x'}, length(2) {
        const auto bits = reinterpret_cast<std::uintptr_t>(pointer);
        int shift = 0;
        while (shift + 4 < std::numeric_limits<std::uintptr_t>::digits && bits >> (shift + 4) != 0) {
            shift += 4;
        }
        for (; shift >= 0; shift -= 4) {
            digits[length++] = "0123456789abcdef"[bits >> shift & 0xf];
        }
    }
    std::size_t varying() const noexcept { return length; }
    unsigned char *write(unsigned char *out) const noexcept { return Text{digits, length}.write(out); }
};

// A value that may be absent.
template <typename Captured> struct Maybe {
    static_assert((Captured::tag & OPTIONAL) == 0, "an optional in an optional cannot be logged");
    static constexpr std::uint8_t tag = OPTIONAL | Captured::tag;
    static constexpr std::size_t fixed = 1;
    std::optional<Captured> value;
    std::size_t varying() const noexcept { return value ? Captured::fixed + value->varying() : 0; }
    unsigned char *write(unsigned char *out) const noexcept {
        *out++ = value ? 1 : 0;
        return value ? value->write(out) : out;
    }
};

template <typename T> struct IsOptional : std::false_type {};
template <typename T> struct IsOptional<std::optional<T>> : std::true_type {};

// A named value beside the text. The name is the result of a function without arguments, whose type is unique to the call.
template <typename NameOf, typename T> struct Named {
    const T &value;
    // Only for the compiler: the name comes from a function without state.
    NameOf name;
};
template <typename NameOf, typename T> Named<NameOf, T> named(NameOf name, const T &value) { return {value, name}; }

template <typename T> struct IsNamed : std::false_type {};
template <typename NameOf, typename T> struct IsNamed<Named<NameOf, T>> : std::true_type {};

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;
template <typename T> constexpr bool IS_INTEGER = std::is_integral_v<T> || std::is_same_v<T, Int128> || std::is_same_v<T, Uint128>;
#else
template <typename T> constexpr bool IS_INTEGER = std::is_integral_v<T>;
#endif

// The tags of integers are in the order of their sizes.
constexpr std::uint8_t size_class(std::size_t size) { return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : 4; }

template <typename T> using Integer = Fixed<(T(-1) < T(0) ? SIGNED : UNSIGNED) + size_class(sizeof(T)), T>;

template <typename T> constexpr bool SAYS_HOW = !std::is_base_of_v<Unspecialised, LoggedAs<T>>;

template <typename T> auto capture(const T &value) {
    using Plain = std::remove_cv_t<T>;
    if constexpr (IsNamed<Plain>::value) {
        return capture(value.value);
    } else if constexpr (std::is_same_v<Plain, bool>) {
        return Fixed<BOOL, std::uint8_t>{static_cast<std::uint8_t>(value)};
    } else if constexpr (std::is_same_v<Plain, char>) {
        // A part of a UTF-8 character is not a character itself.
        const auto byte = static_cast<unsigned char>(value);
        return Fixed<CHAR, std::uint32_t>{byte < 0x80 ? std::uint32_t{byte} : std::uint32_t{0xFFFD}};
    } else if constexpr (std::is_same_v<Plain, char32_t> || std::is_same_v<Plain, wchar_t>) {
        return Fixed<CHAR, std::uint32_t>{static_cast<std::uint32_t>(value)};
    } else if constexpr (IS_INTEGER<Plain>) {
        return Integer<Plain>{value};
    } else if constexpr (std::is_same_v<Plain, float>) {
        return Fixed<F32, float>{value};
    } else if constexpr (std::is_floating_point_v<Plain>) {
        return Fixed<F64, double>{static_cast<double>(value)};
    } else if constexpr (std::is_array_v<Plain> && std::is_same_v<std::remove_cv_t<std::remove_extent_t<Plain>>, char>) {
        return Text{value, strnlen(value, std::extent_v<Plain>)};
    } else if constexpr (std::is_same_v<Plain, const char *> || std::is_same_v<Plain, char *>) {
        return value == nullptr ? Text{"(null)", 6} : Text{value, std::strlen(value)};
    } else if constexpr (SAYS_HOW<Plain> || (!IsOptional<Plain>::value && !std::is_convertible_v<const Plain &, std::string_view> &&
                                             !std::is_pointer_v<Plain> && !std::is_null_pointer_v<Plain> &&
                                             (!std::is_enum_v<Plain> || IsStreamed<Plain>::value))) {
        using Given = std::decay_t<decltype(LoggedAs<Plain>::of(value))>;
        if constexpr (std::is_same_v<Given, std::string>) {
            return OwnText{LoggedAs<Plain>::of(value)};
        } else {
            return capture<Given>(LoggedAs<Plain>::of(value));
        }
    } else if constexpr (IsOptional<Plain>::value) {
        using Captured = decltype(capture(*value));
        return value ? Maybe<Captured>{capture(*value)} : Maybe<Captured>{std::nullopt};
    } else if constexpr (std::is_enum_v<Plain>) {
        return capture(static_cast<std::underlying_type_t<Plain>>(value));
    } else if constexpr (std::is_pointer_v<Plain> || std::is_null_pointer_v<Plain>) {
        static_assert(std::is_null_pointer_v<Plain> || std::is_void_v<std::remove_pointer_t<Plain>>,
                      "to log an address cast the pointer to const void *; to log what is there, dereference it");
        return Address(value);
    } else {
        const std::string_view text = value;
        return Text{text.data(), text.size()};
    }
}

constexpr int BAD_TEXT = -1;

// Number of arguments that a format text shows; BAD_TEXT for an invalid text. The complete parser checks types and precisions.
constexpr int fields(std::string_view text) {
    int next = 0, most = 0, explicit_numbers = -1;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char brace = text[at];
        if (brace != '{' && brace != '}') {
            continue;
        }
        if (at + 1 < text.size() && text[at + 1] == brace) {
            ++at;
            continue;
        }
        if (brace == '}') {
            return BAD_TEXT;
        }
        int number = -1;
        for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
            number = (number < 0 ? 0 : number) * 10 + (text[at] - '0');
            if (number >= static_cast<int>(ARGUMENTS_MAX)) {
                return BAD_TEXT;
            }
        }
        if (at >= text.size() || (text[at] != ':' && text[at] != '}')) {
            return BAD_TEXT;
        }
        if (explicit_numbers != -1 && explicit_numbers != (number >= 0)) {
            return BAD_TEXT;
        }
        explicit_numbers = number >= 0;
        next = (number >= 0 ? number : next) + 1;
        most = next > most ? next : most;
        // A brace can be the fill character; it then stands before its alignment.
        if (at + 2 < text.size() && text[at] == ':' && (text[at + 2] == '<' || text[at + 2] == '^' || text[at + 2] == '>')) {
            at += 2;
        }
        while (at < text.size() && text[at] != '}') {
            if (text[at] == '{') {
                return BAD_TEXT;
            }
            ++at;
        }
        if (at >= text.size()) {
            return BAD_TEXT;
        }
    }
    return most;
}

// Place and text of a statement.
struct Place {
    Level level;
    const char *file;
    std::uint32_t line;
    const char *text;
};

template <typename... Arguments> constexpr std::size_t names_of() { return (0 + ... + (IsNamed<Arguments>::value ? 1 : 0)); }

template <typename... Arguments> constexpr bool names_are_last() {
    bool good = true, named = false;
    ((good = good && (IsNamed<Arguments>::value || !named), named = named || IsNamed<Arguments>::value), ...);
    return good;
}

template <typename T> void add_name(const char **&, const T &) {}
template <typename NameOf, typename T> void add_name(const char **&names, const Named<NameOf, T> &value) { *names++ = value.name(); }

// A statement of the program after its first call.
struct Known {
    std::atomic<const tampu_log_statement *> statement{nullptr};
    // The low half is its number in records; the high half is the page of the logger with this number.
    std::atomic<std::uint64_t> number{0};
};

// Makes the statement at its first call. If two threads do so at once, one of the two results is used.
template <typename... Arguments>
[[gnu::cold, gnu::noinline]] void define(Known &known, const Place &place, const char *routine, const Arguments &...arguments) {
    const char *names[names_of<Arguments...>() + 1] = {};
    [[maybe_unused]] const char **next = names;
    (add_name(next, arguments), ...);
    const tampu_log_site site = {static_cast<std::int32_t>(place.level), place.line, place.file, nullptr, routine, place.text,
                                 sizeof...(Arguments), names, names_of<Arguments...>()};
    const tampu_log_statement *none = nullptr;
    known.statement.compare_exchange_strong(none, tampu_log_define(&site), std::memory_order_acq_rel);
}

template <typename... Captured> constexpr auto tags_of() {
    std::array<unsigned char, (sizeof...(Captured) + 7) / 8 * 8> tags{};
    std::size_t at = 0;
    ((tags[at++] = Captured::tag), ...);
    (void)at;
    return tags;
}

template <typename... Captured>
inline void write_payload(unsigned char *out, const Captured &...captured) noexcept {
    static constexpr auto tags = tags_of<Captured...>();
    if constexpr (sizeof...(Captured) != 0) {
        std::memcpy(out, tags.data(), tags.size());
        out += tags.size();
        ((out = captured.write(out)), ...);
    }
}

// The processor's counter, and a hint that this memory is written to soon: the other side has read it one round ago.
#if defined(__x86_64__)
#define TAMPU_DETAIL_FRONT 1
inline std::uint64_t ticks() noexcept { return __builtin_ia32_rdtsc(); }
inline void fetch_ahead(const unsigned char *place) noexcept { __asm__ volatile("prefetchw %0" : : "m"(*place)); }
#elif defined(__aarch64__)
#define TAMPU_DETAIL_FRONT 1
inline std::uint64_t ticks() noexcept {
    std::uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
}
inline void fetch_ahead(const unsigned char *) noexcept {}
#else
#define TAMPU_DETAIL_FRONT 0
#endif

#if TAMPU_DETAIL_FRONT
// Model of thread-local variables: no call, even in a library that is loaded later. If the C library has no room for such
// variables, define this as global-dynamic.
#ifndef TAMPU_LOG_TLS_MODEL
#define TAMPU_LOG_TLS_MODEL "initial-exec"
#endif

inline constexpr tampu_log_thread NOWHERE{0, nullptr};
// This thread's words, valid from its first call on.
inline thread_local const tampu_log_thread *here __attribute__((tls_model(TAMPU_LOG_TLS_MODEL))) = &NOWHERE;

constexpr std::size_t PREFETCHED = 512;

// Writes the record of a call into the ring that this thread used last, if the ring is the logger's and has room. Writing the
// captured values runs no user code.
template <typename... Captured>
inline bool store(const tampu_log_front &front, std::uint32_t site, std::size_t length, const Captured &...captured) noexcept {
    const tampu_log_thread *words = here;
    if (__builtin_expect(words->pool != front.pool, 0)) {
        return false;
    }
    tampu_log_ring *ring = words->ring;
    unsigned char *start = ring->next;
    if (__builtin_expect(reinterpret_cast<std::uintptr_t>(start) + length >= ring->end, 0)) {
        return false;
    }
    const std::uint64_t position = reinterpret_cast<std::uintptr_t>(start) + ring->bias;
    unsigned char *lines = ring->lines;
    write_payload(start + TAMPU_LOG_RECORD_HEADER, captured...);
    const std::uint64_t header[3] = {ticks(), site | std::uint64_t{length} << 32,
                                     front.voice | std::uint64_t{static_cast<std::uint32_t>(position >> 3)} << 32};
    static_assert(sizeof header == TAMPU_LOG_RECORD_HEADER, "as the other side reads it");
    std::memcpy(start, header, sizeof header);
    const std::size_t taken = TAMPU_LOG_RECORD_HEADER + ((length + 7) & ~std::size_t{7});
    ring->next = start + taken;
    __atomic_store_n(reinterpret_cast<std::uint64_t *>(lines + TAMPU_LOG_RING_HEAD), position + taken, __ATOMIC_RELEASE);
    fetch_ahead(start + PREFETCHED);
    return true;
}
#endif

// Stores a call through the library. This path is for the first call of a statement or thread, and for any event such as a quarter
// of the ring being written.
template <typename... Captured>
[[gnu::cold, gnu::noinline]] void store_slowly(const Logger &logger, Known &known, std::size_t length,
                                               const Captured &...captured) noexcept {
    const tampu_log_statement *statement = known.statement.load(std::memory_order_acquire);
    tampu_log_slot slot;
    unsigned char *out = tampu_log_claim(logger.handle(), statement, length, &slot);
    if (out != nullptr) {
        write_payload(out, captured...);
        tampu_log_commit(&slot);
    }
#if TAMPU_DETAIL_FRONT
    here = tampu_log_this_thread();
    const std::uint64_t number = tampu_log_number(logger.handle(), statement);
    if (number != 0) {
        known.number.store(std::uint64_t{logger.front().page} << 32 | number, std::memory_order_relaxed);
    }
#endif
}

// The captured values live until this returns. `make` makes the statement.
template <typename Make, typename... Captured>
inline void store_call(const Logger &logger, Known &known, const Place &place, Make make, const Captured &...captured) {
    constexpr std::size_t fixed = tags_of<Captured...>().size() + (0 + ... + Captured::fixed);
    const std::size_t length = (fixed + ... + captured.varying());
#if TAMPU_DETAIL_FRONT
    const tampu_log_front &front = logger.front();
    const std::uint64_t number = known.number.load(std::memory_order_relaxed);
    if (__builtin_expect(number >> 32 == front.page, 1) &&
        __builtin_expect(store(front, static_cast<std::uint32_t>(number), length, captured...), 1)) {
        if (__builtin_expect(static_cast<std::uint32_t>(place.level) >= front.bell_from, 0)) {
            tampu_log_wake(logger.handle());
        }
        return;
    }
#else
    (void)place;
#endif
    if (known.statement.load(std::memory_order_acquire) == nullptr) {
        make();
    }
    store_slowly(logger, known, length, captured...);
}

// One call. `PlaceOf` is a stateless function whose type is unique to the statement, and so is the static variable in here.
template <typename PlaceOf, typename... Arguments>
inline void record(const Logger &logger, PlaceOf place_of, const char *routine, const char *, const Arguments &...arguments) {
    static constexpr Place place = place_of();
    constexpr int asked = fields(place.text);
    static_assert(asked != BAD_TEXT, "this is no format text: braces in it are doubled, fields are {}, {:spec} or {number:spec}");
    static_assert(asked == BAD_TEXT || asked == static_cast<int>(sizeof...(Arguments) - names_of<Arguments...>()),
                  "the format text shows as many arguments as there are before TAMPU_DATA");
    static_assert(names_are_last<Arguments...>(), "TAMPU_DATA stands behind the arguments of the text");
    static_assert(sizeof...(Arguments) <= ARGUMENTS_MAX, "a log statement takes at most 64 arguments");
    static Known known;
    store_call(logger, known, place, [&] { define(known, place, routine, arguments...); }, capture(arguments)...);
}

} // namespace detail
} // namespace tampu

#define TAMPU_DETAIL_FIRST(first, ...) first

// A value beside the text, under a name that is a literal.
#define TAMPU_DATA(name, value) ::tampu::detail::named([] { return "" name; }, value)

// TAMPU_LOG(level, logger, text, arguments...): the level is a constant, the text a literal.
#define TAMPU_LOG(level, logger, ...)                                                                                          \
    do {                                                                                                                       \
        const ::tampu::Logger &tampu_detail_logger = (logger);                                                                 \
        if (tampu_detail_logger.enabled(level)) {                                                                              \
            ::tampu::detail::record(                                                                                           \
                tampu_detail_logger,                                                                                           \
                [] {                                                                                                           \
                    return ::tampu::detail::Place{level, __FILE__, __LINE__, TAMPU_DETAIL_FIRST(__VA_ARGS__, 0)};              \
                },                                                                                                             \
                static_cast<const char *>(__func__), __VA_ARGS__);                                                             \
        }                                                                                                                      \
    } while (false)

// Entries to and exits from functions.
#define TAMPU_TRACE(logger, ...) TAMPU_LOG(::tampu::Level::Trace, logger, __VA_ARGS__)
// More details than needed while nothing is wrong.
#define TAMPU_DELOUSE(logger, ...) TAMPU_LOG(::tampu::Level::Delouse, logger, __VA_ARGS__)
// Details for developers.
#define TAMPU_DEBUG(logger, ...) TAMPU_LOG(::tampu::Level::Debug, logger, __VA_ARGS__)
// Normal operation.
#define TAMPU_INFO(logger, ...) TAMPU_LOG(::tampu::Level::Info, logger, __VA_ARGS__)
// Normal, but worth noticing.
#define TAMPU_NOTICE(logger, ...) TAMPU_LOG(::tampu::Level::Notice, logger, __VA_ARGS__)
// Not an error, but it may become one.
#define TAMPU_WARNING(logger, ...) TAMPU_LOG(::tampu::Level::Warning, logger, __VA_ARGS__)
// An operation failed.
#define TAMPU_ERROR(logger, ...) TAMPU_LOG(::tampu::Level::Error, logger, __VA_ARGS__)
// An important part has stopped working.
#define TAMPU_CRITICAL(logger, ...) TAMPU_LOG(::tampu::Level::Critical, logger, __VA_ARGS__)
// An operator must act.
#define TAMPU_ALERT(logger, ...) TAMPU_LOG(::tampu::Level::Alert, logger, __VA_ARGS__)
// The system is unusable.
#define TAMPU_EMERGENCY(logger, ...) TAMPU_LOG(::tampu::Level::Emergency, logger, __VA_ARGS__)

#endif
