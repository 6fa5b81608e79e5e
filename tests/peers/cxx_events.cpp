// Serves an attribute of every type and format, and follows them with a callback and with a queue. It prints a line for each check
// that failed, and the number of those that held.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tampu_event.hpp"

using namespace tampu::event;

static int held = 0, failed = 0;

static void check(const std::string &what, bool good) {
    good ? ++held : ++failed;
    if (!good) {
        std::printf("FAILED: %s\n", what.c_str());
    }
}

static bool within(std::function<bool()> condition) {
    for (int turn = 0; turn < 3000 && !condition(); ++turn) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return condition();
}

// Waits for a value of an attribute in a queue that satisfies a condition.
template <typename Test> static bool comes(const Queue &queue, Test test) {
    for (int turn = 0; turn < 300; ++turn) {
        bool good = false;
        queue.next(100, [&](const Event &event) { good = event.has_value() && test(event); });
        if (good) {
            return true;
        }
    }
    return false;
}

template <typename T> static void type(const Server &server, const Client &client, const std::string &name, const std::vector<T> &elements) {
    for (const std::int32_t format : {TAMPU_EVENT_SCALAR, TAMPU_EVENT_SPECTRUM, TAMPU_EVENT_IMAGE}) {
        Config config;
        config.name = "test/types/" + name + "/" + std::to_string(format);
        config.format = format;
        config.unit = "K";
        config.labels = {"zero", "one", "two", "three"};
        const auto attribute = server.declare<T>(config);
        const auto queue = client.queue({config.name}, 100);
        if (format == TAMPU_EVENT_IMAGE) {
            attribute.push_image(elements.data(), 2, 2);
        } else if (format == TAMPU_EVENT_SPECTRUM) {
            attribute.push(elements.data(), elements.size());
        } else {
            attribute.push(elements[3]);
        }
        const auto follow = client.queue({config.name}, 100, [] {
            Options options;
            options.kinds = TAMPU_EVENT_USER;
            options.without_first = true;
            return options;
        }());
        const auto pushed_as = [&] {
            if (format == TAMPU_EVENT_IMAGE) {
                return attribute.push_image_as(TAMPU_EVENT_USER, elements.data(), 2, 2, TAMPU_EVENT_WARNING);
            }
            if (format == TAMPU_EVENT_SPECTRUM) {
                return attribute.push_as(TAMPU_EVENT_USER, elements.data(), elements.size(), TAMPU_EVENT_WARNING);
            }
            return attribute.push_as(TAMPU_EVENT_USER, elements[3], TAMPU_EVENT_WARNING);
        };
        check(config.name + " as another kind", within([&] {
                  check("it is sent", pushed_as().number > 0);
                  bool good = false;
                  follow.next(100, [&](const Event &event) { good = event.has_value() && event.raw().value->format == format && event.quality() == TAMPU_EVENT_WARNING; });
                  return good;
              }));
        const bool came = comes(queue, [&](const Event &event) {
            const auto &value = *event.raw().value;
            const std::size_t count = format == TAMPU_EVENT_SCALAR ? 1 : elements.size();
            if (event.attribute() != config.name || event.unit() != "K" || event.source() != "cxx_events" || event.size() != count || value.format != format) {
                return false;
            }
            if (format == TAMPU_EVENT_IMAGE && (value.x != 2 || value.y != 2)) {
                return false;
            }
            const T *first = format == TAMPU_EVENT_SCALAR ? &elements[3] : elements.data();
            if constexpr (std::is_same_v<T, std::string>) {
                for (std::size_t nth = 0; nth < count; ++nth) {
                    if (first[nth] != event.elements<const char *>()[nth]) {
                        return false;
                    }
                }
                return true;
            } else {
                return std::memcmp(first, event.elements<T>(), count * sizeof(T)) == 0;
            }
        });
        check(config.name, came);
    }
}

// 99 999 numbered events, each once and in order, in a callback, after zeros that show that the reader is there.
static void order(const Server &server, const Client &client) {
    Config config;
    config.name = "test/order/counter/value";
    const auto attribute = server.declare<std::int64_t>(config);
    std::atomic<std::int64_t> next{1}, wrong{0};
    std::atomic<bool> is_there{false};
    {
        const auto subscription = client.subscribe({"test/order/*/*"}, [&](const Event &event) {
            const std::int64_t number = event.has_value() ? event.scalar<std::int64_t>() : 0;
            wrong += is_there && event.missed() != 0;
            is_there = true;
            if (number != 0) {
                wrong += number != next;
                ++next;
            }
        });
        check("a reader is there", within([&] {
                  attribute.push_as(TAMPU_EVENT_CHANGE, 0);
                  return is_there.load();
              }));
        for (std::int64_t number = 1; number < 100000; ++number) {
            attribute.push_as(TAMPU_EVENT_CHANGE, number);
        }
        check("99999 events in order, each once", within([&] { return next == 100000; }) && wrong == 0);
        check("counts of a subscription", subscription.counts().delivered >= 100000 && subscription.counts().attributes == 1);
    }
    const std::int64_t before = next;
    attribute.push_as(TAMPU_EVENT_CHANGE, 100000);
    attribute.flush(1000);
    check("nothing after the end of a subscription", next == before);
}

static void polled(const Server &server, const Client &client) {
    Config config;
    config.name = "test/poll/clock/ticks";
    config.change_abs = "0.5";
    const auto attribute = server.declare<std::int32_t>(config);
    std::atomic<std::int32_t> ticks{0};
    const auto queue = client.queue({config.name}, 1000);
    const auto read = [](void *context, const tampu_event_attribute *of) {
        tampu_event_push_long(of, ++*static_cast<std::atomic<std::int32_t> *>(context));
    };
    check("a poll begins", tampu_event_poll(attribute.get(), 10, read, &ticks) == 0);
    check("polled values arrive", comes(queue, [](const Event &event) { return event.scalar<std::int32_t>() >= 5; }));
}

static void failures(const Server &server, const Client &client) {
    Config config;
    config.name = "test/failures/cryo/temperature";
    config.alarm_high = "300";
    const auto attribute = server.declare<double>(config);
    Options options;
    options.kinds = TAMPU_EVENT_CHANGE | TAMPU_EVENT_ALARM;
    const auto queue = client.queue({config.name}, 1000, options);
    attribute.push(4.2);
    check("a first value", comes(queue, [](const Event &event) { return event.scalar<double>() == 4.2 && event.quality() == TAMPU_EVENT_VALID; }));
    attribute.push(301.0);
    check("beyond a limit", comes(queue, [](const Event &event) { return event.quality() == TAMPU_EVENT_ALARMING; }));
    attribute.fail("Cryo_NotConnected", "the cable is out", "cryo.cpp");
    bool told = false;
    for (int turn = 0; turn < 300 && !told; ++turn) {
        queue.next(100, [&](const Event &event) {
            const tampu_event &raw = event.raw();
            told = raw.cause_count == 1 && std::string(raw.causes[0].reason) == "Cryo_NotConnected" && std::string(raw.causes[0].origin) == "cryo.cpp";
        });
    }
    check("a failure has its reason", told);
    const auto refused = [&](const std::string &part, std::function<void()> call) {
        try {
            call();
            check("refused: " + part, false);
        } catch (const tampu::Failure &failure) {
            const bool good = std::string(failure.what()).find(part) != std::string::npos;
            check("refused: " + part + ": " + failure.what(), good);
        }
    };
    refused("test/failures/cryo/temperature", [&] { server.declare<double>(config); });
    refused("DevDouble, not DevLong", [&] {
        const std::int32_t element = 1;
        if (tampu_event_push_scalar(attribute.get(), TAMPU_EVENT_LONG, &element) < 0) {
            throw tampu::Failure(tampu_event_last_error());
        }
    });
    refused("the absolute change", [&] {
        Config odd;
        odd.name = "test/failures/odd/threshold";
        odd.change_abs = "much";
        server.declare<double>(odd);
    });
    refused("the attribute", [&] { client.queue({"a//b"}, 1); });
}

int main() try {
    const Server server("cxx_events");
    const Client client("cxx_follower");
    type<std::uint8_t>(server, client, "uchar", {1, 2, 3, 255});
    type<std::int16_t>(server, client, "short", {-1, 0, 1, 32767});
    type<std::uint16_t>(server, client, "ushort", {1, 0, 2, 65535});
    type<std::int32_t>(server, client, "long", {-1, 0, 1, 2147483647});
    type<std::uint32_t>(server, client, "ulong", {1, 0, 2, 4294967295U});
    type<std::int64_t>(server, client, "long64", {-1, 0, 1, INT64_MAX});
    type<std::uint64_t>(server, client, "ulong64", {1, 0, 2, UINT64_MAX});
    type<float>(server, client, "float", {-1.5F, 0.0F, 1e30F, 2.5F});
    type<double>(server, client, "double", {-1.5, 0.0, 1e300, 2.5});
    type<std::string>(server, client, "string", {"", "h\u00e9llo", "with\nlines", "last"});
    type<State>(server, client, "state", {State::On, State::Fault, State::Moving, State::Unknown});
    type<Label>(server, client, "enum", {{0}, {1}, {2}, {3}});
    {
        // A vector of bool has no elements in a row.
        const bool flags[] = {true, false, true, true};
        Config config;
        config.name = "test/types/boolean/1";
        config.format = TAMPU_EVENT_SPECTRUM;
        const auto attribute = server.declare<bool>(config);
        const auto queue = client.queue({config.name}, 10);
        attribute.push(flags, 4);
        check(config.name, comes(queue, [&](const Event &event) { return event.size() == 4 && std::memcmp(flags, event.elements<bool>(), 4) == 0; }));
    }
    {
        const unsigned char bytes[] = {0xff, 0xd8, 0xff};
        Config config;
        config.name = "test/types/encoded/0";
        const auto attribute = server.declare<Encoded>(config);
        const auto queue = client.queue({config.name}, 10);
        attribute.push(Encoded{"RAW", bytes, 1});
        attribute.push_as(TAMPU_EVENT_CHANGE, Encoded{"JPEG_RGB24", bytes, sizeof bytes});
        check(config.name, comes(queue, [&](const Event &event) {
                  const Encoded encoded = event.encoded();
                  return encoded.format == "JPEG_RGB24" && encoded.size == 3 && std::memcmp(encoded.data, bytes, 3) == 0;
              }));
    }
    order(server, client);
    polled(server, client);
    failures(server, client);
    std::printf("held %d, failed %d\n", held, failed);
    return failed == 0 ? 0 : 1;
} catch (const tampu::Failure &failure) {
    std::printf("FAILED: %s\n", failure.what());
    return 1;
}
