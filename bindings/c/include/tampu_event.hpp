// Tampu's attribute events for C++17: servers with attributes, and clients that subscribe. Link with -ltampu_log.
//
//     tampu::event::Server server("vacuum");
//     tampu::event::Config config;
//     config.name = "sr/vacuum/c01-1/pressure";
//     config.unit = "mbar";
//     config.change_rel = "5";
//     auto pressure = server.declare<double>(config);
//     pressure.push(1.2e-9);
//
//     tampu::event::Client client("panel");
//     auto subscription = client.subscribe({"sr/vacuum/c01-1/pressure"}, [](const tampu::event::Event &event) {
//         if (event.has_value()) {
//             std::cout << event.attribute() << ' ' << event.scalar<double>() << ' ' << event.unit() << '\n';
//         }
//     });
//
// tampu_event.h has the contract of each call. A failure throws tampu::Failure, whose text names the attribute and the type.
// Callbacks run in threads of the library, one at a time for a subscription, and must not throw.
#ifndef TAMPU_EVENT_HPP
#define TAMPU_EVENT_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tampu_event.h"
#include "tampu_failure.hpp"

namespace tampu::event {

// A device's state.
enum class State : std::uint8_t {
    On, Off, Close, Open, Insert, Extract, Moving, Standby, Fault, Init, Running, Alarm, Disable, Unknown
};

// The index of one of an attribute's labels.
struct Label {
    std::int16_t index;
};

// Bytes with a word for their format, as "JPEG_RGB24".
struct Encoded {
    std::string_view format;
    const void *data;
    std::size_t size;
};

namespace detail {

// The data type of elements of a C++ type; none for other types.
template <typename T> struct TypeOf;
template <> struct TypeOf<bool> { static constexpr std::int32_t number = TAMPU_EVENT_BOOLEAN; };
template <> struct TypeOf<std::uint8_t> { static constexpr std::int32_t number = TAMPU_EVENT_UCHAR; };
template <> struct TypeOf<std::int16_t> { static constexpr std::int32_t number = TAMPU_EVENT_SHORT; };
template <> struct TypeOf<std::uint16_t> { static constexpr std::int32_t number = TAMPU_EVENT_USHORT; };
template <> struct TypeOf<std::int32_t> { static constexpr std::int32_t number = TAMPU_EVENT_LONG; };
template <> struct TypeOf<std::uint32_t> { static constexpr std::int32_t number = TAMPU_EVENT_ULONG; };
template <> struct TypeOf<std::int64_t> { static constexpr std::int32_t number = TAMPU_EVENT_LONG64; };
template <> struct TypeOf<std::uint64_t> { static constexpr std::int32_t number = TAMPU_EVENT_ULONG64; };
template <> struct TypeOf<float> { static constexpr std::int32_t number = TAMPU_EVENT_FLOAT; };
template <> struct TypeOf<double> { static constexpr std::int32_t number = TAMPU_EVENT_DOUBLE; };
template <> struct TypeOf<const char *> { static constexpr std::int32_t number = TAMPU_EVENT_STRING; };
template <> struct TypeOf<std::string> { static constexpr std::int32_t number = TAMPU_EVENT_STRING; };
template <> struct TypeOf<State> { static constexpr std::int32_t number = TAMPU_EVENT_STATE; };
template <> struct TypeOf<Encoded> { static constexpr std::int32_t number = TAMPU_EVENT_ENCODED; };
template <> struct TypeOf<Label> { static constexpr std::int32_t number = TAMPU_EVENT_ENUM; };

static_assert(sizeof(bool) == 1 && sizeof(State) == 1 && sizeof(Label) == 2, "elements lie as C has them");

template <typename T> T *checked(T *handle) {
    if (handle == nullptr) {
        throw Failure(tampu_event_last_error());
    }
    return handle;
}

inline std::int32_t checked(std::int32_t result) {
    if (result < 0) {
        throw Failure(tampu_event_last_error());
    }
    return result;
}

inline const char *text(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

// A value of C's over elements that stay where they are.
class Borrowed {
public:
    template <typename T> Borrowed(std::int32_t format, const T *data, std::size_t count, std::uint32_t x = 0, std::uint32_t y = 0) {
        if constexpr (std::is_same_v<T, std::string>) {
            texts_.reserve(count);
            for (std::size_t nth = 0; nth < count; ++nth) {
                texts_.push_back(data[nth].c_str());
            }
            value_ = {TypeOf<T>::number, format, x, y, texts_.data(), count, nullptr};
        } else if constexpr (std::is_same_v<T, Encoded>) {
            static_assert(!std::is_same_v<T, Encoded>, "encoded bytes are scalars");
        } else {
            value_ = {TypeOf<T>::number, format, x, y, data, count, nullptr};
        }
    }
    explicit Borrowed(const Encoded &encoded) : encoding_(encoded.format) {
        value_ = {TAMPU_EVENT_ENCODED, TAMPU_EVENT_SCALAR, 0, 0, encoded.data, encoded.size, encoding_.c_str()};
    }
    Borrowed(const Borrowed &) = delete;
    Borrowed &operator=(const Borrowed &) = delete;
    const tampu_event_value *get() const { return &value_; }

private:
    tampu_event_value value_;
    std::vector<const char *> texts_;
    std::string encoding_;
};

} // namespace detail

// Description of an attribute: the members of tampu_event_config. Empty texts count as absent.
struct Config {
    std::string name, label, description, unit;
    std::int32_t format = TAMPU_EVENT_SCALAR;
    std::uint32_t max_x = 0, max_y = 0;
    std::vector<std::string> labels;
    std::string min, max, alarm_low, alarm_high, warning_low, warning_high;
    std::string change_rel, change_abs, archive_rel, archive_abs;
    std::uint64_t archive_period_ms = 0, period_ms = 0;
    bool acknowledged = false, redundant = false, urgent = false;
};

// An attribute of a server, with elements of type T. Withdrawn when it is destroyed.
template <typename T> class Attribute {
public:
    // Publishes a value if a criterion holds; returns whether an event was sent.
    bool push(const T &element) const {
        if constexpr (std::is_same_v<T, Encoded>) {
            return detail::checked(tampu_event_push(handle_.get(), detail::Borrowed(element).get())) > 0;
        } else {
            return push_elements(TAMPU_EVENT_SCALAR, &element, 1, 1, 0);
        }
    }
    // Publishes a row.
    bool push(const T *elements, std::size_t count) const { return push_elements(TAMPU_EVENT_SPECTRUM, elements, count, 0, 0); }
    template <typename Row, typename = decltype(std::declval<const Row &>().data())> bool push(const Row &row) const {
        return push(row.data(), row.size());
    }
    // Publishes `y` rows of `x` elements.
    bool push_image(const T *elements, std::uint32_t x, std::uint32_t y) const {
        return push_elements(TAMPU_EVENT_IMAGE, elements, static_cast<std::size_t>(x) * y, x, y);
    }
    // Publishes a scalar as these kinds (0: as the criteria say), with a quality and a time (ns of UTC, 0: now).
    tampu_event_pushed push_as(std::uint32_t kinds, const T &element, std::int32_t quality = TAMPU_EVENT_VALID, std::int64_t time = 0) const {
        if constexpr (std::is_same_v<T, Encoded>) {
            return push_reading(kinds, detail::Borrowed(element), quality, time);
        } else {
            return push_reading(kinds, detail::Borrowed(TAMPU_EVENT_SCALAR, &element, 1, 1, 0), quality, time);
        }
    }
    // Publishes a row so.
    tampu_event_pushed push_as(std::uint32_t kinds, const T *elements, std::size_t count, std::int32_t quality = TAMPU_EVENT_VALID,
                               std::int64_t time = 0) const {
        return push_reading(kinds, detail::Borrowed(TAMPU_EVENT_SPECTRUM, elements, count), quality, time);
    }
    template <typename Row, typename = decltype(std::declval<const Row &>().data())>
    tampu_event_pushed push_as(std::uint32_t kinds, const Row &row, std::int32_t quality = TAMPU_EVENT_VALID, std::int64_t time = 0) const {
        return push_as(kinds, row.data(), row.size(), quality, time);
    }
    // Publishes `y` rows of `x` elements so.
    tampu_event_pushed push_image_as(std::uint32_t kinds, const T *elements, std::uint32_t x, std::uint32_t y,
                                     std::int32_t quality = TAMPU_EVENT_VALID, std::int64_t time = 0) const {
        return push_reading(kinds, detail::Borrowed(TAMPU_EVENT_IMAGE, elements, static_cast<std::size_t>(x) * y, x, y), quality, time);
    }
    // Publishes that the attribute could not be read.
    bool fail(const std::string &reason, const std::string &description, const std::string &origin = {}) const {
        return detail::checked(tampu_event_fail(handle_.get(), reason.c_str(), description.c_str(), origin.c_str())) > 0;
    }
    void data_ready(std::int32_t counter) const { detail::checked(tampu_event_data_ready(handle_.get(), counter)); }
    // Waits until all readers have acknowledged what was pushed; returns whether they have.
    bool flush(std::uint32_t timeout_ms) const { return detail::checked(tampu_event_flush(handle_.get(), timeout_ms)) > 0; }
    int readers() const { return detail::checked(tampu_event_readers(handle_.get())); }
    // The handle, for the functions of tampu_event.h.
    tampu_event_attribute *get() const { return handle_.get(); }

private:
    friend class Server;
    struct Withdraw {
        void operator()(tampu_event_attribute *handle) const { tampu_event_withdraw(handle); }
    };
    explicit Attribute(tampu_event_attribute *handle) : handle_(handle) {}
    bool push_elements(std::int32_t format, const T *elements, std::size_t count, std::uint32_t x, std::uint32_t y) const {
        return detail::checked(tampu_event_push(handle_.get(), detail::Borrowed(format, elements, count, x, y).get())) > 0;
    }
    tampu_event_pushed push_reading(std::uint32_t kinds, const detail::Borrowed &value, std::int32_t quality, std::int64_t time) const {
        const tampu_event_reading reading = {value.get(), nullptr, quality, kinds, time};
        tampu_event_pushed pushed;
        detail::checked(tampu_event_push_reading(handle_.get(), &reading, sizeof reading, &pushed, sizeof pushed));
        return pushed;
    }

    std::unique_ptr<tampu_event_attribute, Withdraw> handle_;
};

// A process that has attributes.
class Server {
public:
    // Joins the bus under a stable name. The environment has the other settings.
    explicit Server(const std::string &source) : handle_(detail::checked(tampu_event_server_open(source.c_str()))) {}

    // Declares an attribute with elements of type T: bool, integers of fixed width, float, double, std::string, State, Label,
    // Encoded.
    template <typename T> Attribute<T> declare(const Config &config) const {
        std::vector<const char *> labels;
        for (const std::string &label : config.labels) {
            labels.push_back(label.c_str());
        }
        tampu_event_config given = {};
        given.name = config.name.c_str();
        given.data_type = detail::TypeOf<T>::number;
        given.format = config.format;
        given.max_x = config.max_x;
        given.max_y = config.max_y;
        given.label = detail::text(config.label);
        given.description = detail::text(config.description);
        given.unit = detail::text(config.unit);
        given.labels = labels.data();
        given.label_count = labels.size();
        given.min = detail::text(config.min);
        given.max = detail::text(config.max);
        given.alarm_low = detail::text(config.alarm_low);
        given.alarm_high = detail::text(config.alarm_high);
        given.warning_low = detail::text(config.warning_low);
        given.warning_high = detail::text(config.warning_high);
        given.change_rel = detail::text(config.change_rel);
        given.change_abs = detail::text(config.change_abs);
        given.archive_rel = detail::text(config.archive_rel);
        given.archive_abs = detail::text(config.archive_abs);
        given.archive_period_ms = config.archive_period_ms;
        given.period_ms = config.period_ms;
        given.acknowledged = config.acknowledged;
        given.redundant = config.redundant;
        given.urgent = config.urgent;
        return Attribute<T>(detail::checked(tampu_event_declare(handle_.get(), &given, sizeof given)));
    }

private:
    struct Close {
        void operator()(tampu_event_server *handle) const { tampu_event_server_close(handle); }
    };
    std::unique_ptr<tampu_event_server, Close> handle_;
};

// An event, valid during the callback or until the next event of its queue.
class Event {
public:
    explicit Event(const tampu_event &event) : event_(event) {}
    std::string_view attribute() const { return event_.attribute; }
    std::string_view source() const { return event_.source; }
    std::string_view unit() const { return event_.unit; }
    // TAMPU_EVENT_FIRST, TAMPU_EVENT_UPDATE and so on.
    std::int32_t reason() const { return event_.reason; }
    std::int32_t quality() const { return event_.quality; }
    std::uint64_t number() const { return event_.number; }
    // Number of events missing before this one; UINT64_MAX if it is unknown.
    std::uint64_t missed() const {
        return event_.missed_to == UINT64_MAX ? UINT64_MAX : event_.missed_to - event_.missed_from;
    }
    // Time of the reading, ns of UTC since 1970.
    std::int64_t time() const { return event_.time; }
    bool has_value() const { return event_.value != nullptr; }
    // Number of elements; 0 without a value.
    std::size_t size() const { return has_value() ? event_.value->count : 0; }
    // The elements, which are of type T; strings are `const char *`. Throws Failure for another type.
    template <typename T> const T *elements() const {
        static_assert(!std::is_same_v<T, std::string> && !std::is_same_v<T, Encoded>, "use const char *, or encoded()");
        return static_cast<const T *>(of_type(detail::TypeOf<T>::number).data);
    }
    template <typename T> T scalar() const {
        if (size() == 0) {
            throw Failure(std::string(attribute()) + ": the event has no element");
        }
        return *elements<T>();
    }
    Encoded encoded() const {
        const tampu_event_value &value = of_type(TAMPU_EVENT_ENCODED);
        return {value.encoding, value.data, value.count};
    }
    // Everything, as C has it.
    const tampu_event &raw() const { return event_; }

private:
    const tampu_event_value &of_type(std::int32_t wanted) const {
        if (!has_value()) {
            throw Failure(std::string(attribute()) + ": the event has no value");
        }
        if (event_.value->data_type != wanted) {
            throw Failure(std::string(attribute()) + " is of data type " + std::to_string(event_.value->data_type) + ", not " +
                          std::to_string(wanted) + " (the numbers are in tampu_event.h)");
        }
        return *event_.value;
    }
    const tampu_event &event_;
};

// Options of a subscription: the members of tampu_event_options.
struct Options {
    std::uint32_t kinds = TAMPU_EVENT_CHANGE;
    bool without_first = false, unreliable = false, in_place = false;
    std::string condition, moved_rel, moved_abs;
    std::uint64_t every_ms = 0;
};

// A subscription with a callback. It ends when it is destroyed, after a running call. Not to be destroyed in its callback.
class Subscription {
public:
    tampu_event_counts counts() const {
        tampu_event_counts counts;
        detail::checked(tampu_event_counts_of(handle_.get(), &counts, sizeof counts));
        return counts;
    }

private:
    friend class Client;
    using Function = std::function<void(const Event &)>;
    struct Close {
        void operator()(tampu_event_subscription *handle) const { tampu_event_unsubscribe(handle); }
    };
    // The function is destroyed after the handle, by which it is called.
    std::unique_ptr<Function> call_;
    std::unique_ptr<tampu_event_subscription, Close> handle_;
};

// A subscription with a queue: the program takes the events itself.
class Queue {
public:
    // Calls `use` with the next event, and waits for it at most this long; returns whether there was one.
    template <typename Use> bool next(std::uint32_t timeout_ms, Use use) const {
        tampu_event event;
        if (detail::checked(tampu_event_queue_next(handle_.get(), timeout_ms, &event, sizeof event)) == 0) {
            return false;
        }
        use(Event(event));
        return true;
    }
    tampu_event_counts counts() const {
        tampu_event_counts counts;
        detail::checked(tampu_event_queue_counts(handle_.get(), &counts, sizeof counts));
        return counts;
    }

private:
    friend class Client;
    struct Close {
        void operator()(tampu_event_queue *handle) const { tampu_event_queue_close(handle); }
    };
    explicit Queue(tampu_event_queue *handle) : handle_(handle) {}
    std::unique_ptr<tampu_event_queue, Close> handle_;
};

// A process that subscribes.
class Client {
public:
    // Joins the bus under a name. The environment has the other settings.
    explicit Client(const std::string &source) : handle_(detail::checked(tampu_event_client_open(source.c_str()))) {}

    // Subscribes to names and patterns with a function.
    Subscription subscribe(const std::vector<std::string> &attributes, std::function<void(const Event &)> call, const Options &options = {}) const {
        Subscription subscription;
        subscription.call_ = std::make_unique<Subscription::Function>(std::move(call));
        const auto names = pointers(attributes);
        const auto given = for_c(options);
        const auto tell = [](void *context, const tampu_event *event) { (*static_cast<Subscription::Function *>(context))(Event(*event)); };
        subscription.handle_.reset(detail::checked(tampu_event_subscribe(handle_.get(), names.data(), names.size(), &given, sizeof given, tell,
                                                                         subscription.call_.get())));
        return subscription;
    }

    // Subscribes to names and patterns with a queue of at most `bound` events.
    Queue queue(const std::vector<std::string> &attributes, std::size_t bound, const Options &options = {}) const {
        const auto names = pointers(attributes);
        const auto given = for_c(options);
        return Queue(detail::checked(tampu_event_queue_open(handle_.get(), names.data(), names.size(), &given, sizeof given, bound)));
    }

private:
    static std::vector<const char *> pointers(const std::vector<std::string> &texts) {
        std::vector<const char *> all;
        for (const std::string &text : texts) {
            all.push_back(text.c_str());
        }
        return all;
    }
    static tampu_event_options for_c(const Options &options) {
        return {options.kinds, options.without_first, options.unreliable, options.in_place, detail::text(options.condition),
                detail::text(options.moved_rel), detail::text(options.moved_abs), options.every_ms};
    }
    struct Close {
        void operator()(tampu_event_client *handle) const { tampu_event_client_close(handle); }
    };
    std::unique_ptr<tampu_event_client, Close> handle_;
};

} // namespace tampu::event

#endif
