// Driver of the conformance kit in C++. README.md has its protocol, ../peers/conformance.py runs it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "driver_bulk.hpp"
#include "driver_lines.hpp"
#include "tampu_event.hpp"
#include "tampu_log.hpp"

using namespace tampu::event;

static const Texts TYPES = {"", "DevBoolean", "DevUChar", "DevShort", "DevUShort", "DevLong", "DevULong", "DevLong64", "DevULong64",
                            "DevFloat", "DevDouble", "DevString", "DevState", "DevEncoded", "DevEnum"};
static const Texts FORMATS = {"scalar", "spectrum", "image"};
static const Texts STATES = {"ON", "OFF", "CLOSE", "OPEN", "INSERT", "EXTRACT", "MOVING", "STANDBY", "FAULT", "INIT", "RUNNING", "ALARM",
                             "DISABLE", "UNKNOWN"};
static const Texts QUALITIES = {"valid", "invalid", "alarm", "changing", "warning"};
static const Texts KINDS = {"change", "alarm", "archive", "periodic", "user", "configuration", "data_ready", "interface", "generic"};
static const Texts REASONS = {"first", "update", "resumed", "gap", "source died", "source hung", "source returned", "source left",
                              "configuration changed", "conflict"};

static std::int32_t index_of(const Texts &all, const std::string &name) {
    const auto found = std::find(all.begin(), all.end(), name);
    if (found == all.end()) {
        throw std::invalid_argument("'" + name + "' is unknown");
    }
    return static_cast<std::int32_t>(found - all.begin());
}

static std::uint32_t kinds_of(const Texts &names) {
    std::uint32_t kinds = 0;
    for (const std::string &name : names) {
        kinds |= 1U << index_of(KINDS, name);
    }
    return kinds;
}

static std::string hex(const void *data, std::size_t size) {
    std::string out;
    for (std::size_t nth = 0; nth < size; ++nth) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char *>(data)[nth]);
        out += digits;
    }
    return out;
}

template <typename T> static T integer(const std::string &text) {
    if constexpr (std::is_signed_v<T>) {
        return static_cast<T>(std::stoll(text));
    } else {
        return static_cast<T>(std::stoull(text));
    }
}
template <typename T, typename Bits> static T float_of(const std::string &text) {
    const Bits bits = static_cast<Bits>(std::stoull(text, nullptr, 16));
    T number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}
template <typename T, typename Bits> static std::string bits_of(const T &number, const char *format) {
    Bits bits;
    std::memcpy(&bits, &number, sizeof bits);
    char digits[17];
    std::snprintf(digits, sizeof digits, format, bits);
    return digits;
}

// Elements from their texts.
template <typename T> static T read(const std::string &text) {
    if constexpr (std::is_same_v<T, bool>) {
        return text == "true";
    } else if constexpr (std::is_same_v<T, float>) {
        return float_of<float, std::uint32_t>(text);
    } else if constexpr (std::is_same_v<T, double>) {
        return float_of<double, std::uint64_t>(text);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return text;
    } else if constexpr (std::is_same_v<T, State>) {
        return static_cast<State>(index_of(STATES, text));
    } else if constexpr (std::is_same_v<T, Label>) {
        return {integer<std::int16_t>(text)};
    } else {
        return integer<T>(text);
    }
}

// An element as text.
template <typename T> static std::string shown(const T &element) {
    if constexpr (std::is_same_v<T, bool>) {
        return element ? "true" : "false";
    } else if constexpr (std::is_same_v<T, float>) {
        return bits_of<float, std::uint32_t>(element, "%08x");
    } else if constexpr (std::is_same_v<T, double>) {
        return bits_of<double, std::uint64_t>(element, "%016lx");
    } else if constexpr (std::is_same_v<T, const char *>) {
        return element;
    } else if constexpr (std::is_same_v<T, State>) {
        return STATES.at(static_cast<std::size_t>(element));
    } else if constexpr (std::is_same_v<T, Label>) {
        return std::to_string(element.index);
    } else {
        return std::to_string(element);
    }
}

template <typename T> static Texts all_shown(const Event &event) {
    Texts texts;
    for (std::size_t nth = 0; nth < event.size(); ++nth) {
        texts.push_back(shown(event.elements<T>()[nth]));
    }
    return texts;
}

static Texts elements_of(const Event &event) {
    switch (event.raw().value->data_type) {
    case TAMPU_EVENT_BOOLEAN:
        return all_shown<bool>(event);
    case TAMPU_EVENT_UCHAR:
        return all_shown<std::uint8_t>(event);
    case TAMPU_EVENT_SHORT:
        return all_shown<std::int16_t>(event);
    case TAMPU_EVENT_USHORT:
        return all_shown<std::uint16_t>(event);
    case TAMPU_EVENT_LONG:
        return all_shown<std::int32_t>(event);
    case TAMPU_EVENT_ULONG:
        return all_shown<std::uint32_t>(event);
    case TAMPU_EVENT_LONG64:
        return all_shown<std::int64_t>(event);
    case TAMPU_EVENT_ULONG64:
        return all_shown<std::uint64_t>(event);
    case TAMPU_EVENT_FLOAT:
        return all_shown<float>(event);
    case TAMPU_EVENT_DOUBLE:
        return all_shown<double>(event);
    case TAMPU_EVENT_STRING:
        return all_shown<const char *>(event);
    case TAMPU_EVENT_STATE:
        return all_shown<State>(event);
    case TAMPU_EVENT_ENUM:
        return all_shown<Label>(event);
    default: {
        const Encoded encoded = event.encoded();
        return {std::string(encoded.format), hex(encoded.data, encoded.size)};
    }
    }
}

static void print(const Event &event) {
    Line line("line", "event");
    line.add("name", event.attribute()).add("source", event.source()).add("reason", REASONS.at(static_cast<std::size_t>(event.reason())));
    const tampu_event &raw = event.raw();
    if (event.missed() == 0) {
        line.add("missed", Texts());
    } else if (raw.missed_to == UINT64_MAX) {
        line.add("missed", Texts{"unknown"});
    } else {
        line.add("missed", Texts{std::to_string(raw.missed_from), std::to_string(raw.missed_to)});
    }
    if (event.reason() <= TAMPU_EVENT_RESUMED) {
        line.add("number", std::to_string(event.number())).add("quality", QUALITIES.at(static_cast<std::size_t>(event.quality())));
        Texts errors;
        for (std::size_t nth = 0; nth < raw.cause_count; ++nth) {
            errors.insert(errors.end(), {raw.causes[nth].reason, raw.causes[nth].description, raw.causes[nth].origin});
        }
        line.add("errors", errors);
    }
    if (event.has_value()) {
        const tampu_event_value &value = *raw.value;
        line.add("type", TYPES.at(static_cast<std::size_t>(value.data_type))).add("format", FORMATS.at(static_cast<std::size_t>(value.format)));
        line.add("x", std::to_string(value.x)).add("y", std::to_string(value.y)).add("elements", elements_of(event));
    }
    line.print();
}

// Pushes to an attribute, whatever its type is. The attribute lives as long as this.
using Published = std::function<void(const Command &)>;

template <typename T> static void push(const Attribute<T> &attribute, const Command &command, std::int32_t format) {
    const Texts &texts = command.list("elements");
    const auto kinds = kinds_of(command.list("kinds"));
    const auto quality = index_of(QUALITIES, command["quality"]);
    const bool is_plain = kinds == 0 && command["quality"] == "valid";
    if constexpr (std::is_same_v<T, Encoded>) {
        std::string bytes;
        for (std::size_t at = 0; at < texts.at(1).size(); at += 2) {
            bytes += static_cast<char>(std::stoi(texts[1].substr(at, 2), nullptr, 16));
        }
        const Encoded encoded{texts[0], bytes.data(), bytes.size()};
        if (is_plain) {
            attribute.push(encoded);
        } else {
            attribute.push_as(kinds, encoded, quality);
        }
    } else {
        const auto elements = std::make_unique<T[]>(texts.size());
        std::transform(texts.begin(), texts.end(), elements.get(), read<T>);
        const auto x = integer<std::uint32_t>(command["x"]), y = integer<std::uint32_t>(command["y"]);
        if (!is_plain && format == TAMPU_EVENT_SCALAR) {
            attribute.push_as(kinds, elements[0], quality);
        } else if (!is_plain && format == TAMPU_EVENT_SPECTRUM) {
            attribute.push_as(kinds, elements.get(), texts.size(), quality);
        } else if (!is_plain) {
            attribute.push_image_as(kinds, elements.get(), x, y, quality);
        } else if (format == TAMPU_EVENT_SCALAR) {
            attribute.push(elements[0]);
        } else if (format == TAMPU_EVENT_SPECTRUM) {
            attribute.push(elements.get(), texts.size());
        } else {
            attribute.push_image(elements.get(), x, y);
        }
    }
}

template <typename T> static Published declared(const Server &server, const Config &config) {
    const auto attribute = std::make_shared<Attribute<T>>(server.declare<T>(config));
    return [attribute, format = config.format](const Command &command) { push(*attribute, command, format); };
}

static Published declare(const Server &server, const Command &command) {
    Config config;
    config.name = command["name"];
    config.format = index_of(FORMATS, command["format"]);
    config.labels = command.list("labels");
    switch (index_of(TYPES, command["type"])) {
    case TAMPU_EVENT_BOOLEAN:
        return declared<bool>(server, config);
    case TAMPU_EVENT_UCHAR:
        return declared<std::uint8_t>(server, config);
    case TAMPU_EVENT_SHORT:
        return declared<std::int16_t>(server, config);
    case TAMPU_EVENT_USHORT:
        return declared<std::uint16_t>(server, config);
    case TAMPU_EVENT_LONG:
        return declared<std::int32_t>(server, config);
    case TAMPU_EVENT_ULONG:
        return declared<std::uint32_t>(server, config);
    case TAMPU_EVENT_LONG64:
        return declared<std::int64_t>(server, config);
    case TAMPU_EVENT_ULONG64:
        return declared<std::uint64_t>(server, config);
    case TAMPU_EVENT_FLOAT:
        return declared<float>(server, config);
    case TAMPU_EVENT_DOUBLE:
        return declared<double>(server, config);
    case TAMPU_EVENT_STRING:
        return declared<std::string>(server, config);
    case TAMPU_EVENT_STATE:
        return declared<State>(server, config);
    case TAMPU_EVENT_ENUM:
        return declared<Label>(server, config);
    default:
        return declared<Encoded>(server, config);
    }
}

// A scalar that is read on demand: its elements, one a read.
struct Readable {
    Texts left;
    std::unique_ptr<Attribute<double>> attribute;
};

// The readable lives as long as the server.
static void make_readable(const Server &server, const Command &command, Readable &readable) {
    readable.left = command.list("elements");
    Config config;
    config.name = command["name"];
    readable.attribute = std::make_unique<Attribute<double>>(server.declare<double>(config));
    const auto next = [](void *context, const tampu_event_attribute *attribute) {
        Texts &left = static_cast<Readable *>(context)->left;
        tampu_event_push_double(attribute, read<double>(left.front()));
        if (left.size() > 1) {
            left.erase(left.begin());
        }
    };
    if (tampu_event_on_read(readable.attribute->get(), 0, next, &readable) != 0) {
        throw tampu::Failure(tampu_event_last_error());
    }
}

static void log(const tampu::Logger &logger, const Command &command) {
    const std::string level = command["level"], message = command["message"], word = command["word"];
    const auto count = integer<std::int64_t>(command["count"]);
    const double ratio = std::stod(command["ratio"]);
    const bool truth = command["truth"] == "true";
#define AT(NAME, MACRO)                                                                                                        \
    if (level == NAME) {                                                                                                       \
        MACRO(logger, "{}", message, TAMPU_DATA("word", word), TAMPU_DATA("count", count), TAMPU_DATA("ratio", ratio),         \
              TAMPU_DATA("truth", truth));                                                                                     \
        return;                                                                                                                \
    }
    AT("Trace", TAMPU_TRACE)
    AT("Delouse", TAMPU_DELOUSE)
    AT("Debug", TAMPU_DEBUG)
    AT("Info", TAMPU_INFO)
    AT("Notice", TAMPU_NOTICE)
    AT("Warning", TAMPU_WARNING)
    AT("Error", TAMPU_ERROR)
    AT("Critical", TAMPU_CRITICAL)
    AT("Alert", TAMPU_ALERT)
    AT("Emergency", TAMPU_EMERGENCY)
    throw std::invalid_argument("there is no level '" + level + "'");
}

int main(int count, char **arguments) {
    if (count != 2) {
        std::fputs("give the name of the process\n", stderr);
        return 2;
    }
    const std::string name = arguments[1];
    std::map<std::string, Readable> readables;
    const Server server(name + "/server");
    const Client client(name + "/client");
    const tampu::Logger logger(name);
    std::map<std::string, Published> attributes;
    std::vector<Subscription> subscriptions;
    Bulk bulk(name + "/bulk");
    Line("line", "ready").print();
    for (std::string line; std::getline(std::cin, line);) {
        const Command command(line);
        const std::string verb = command["do"];
        try {
            if (verb == "end") {
                break;
            } else if (verb == "declare") {
                attributes.emplace(command["name"], declare(server, command));
            } else if (verb == "readable") {
                make_readable(server, command, readables[command["name"]]);
            } else if (verb == "push") {
                attributes.at(command["name"])(command);
            } else if (verb == "withdraw") {
                attributes.erase(command["name"]);
                readables[command["name"]].attribute.reset();
            } else if (verb == "follow") {
                Options options;
                options.kinds = kinds_of(command.list("kinds"));
                subscriptions.push_back(client.subscribe(command.list("attributes"), print, options));
            } else if (verb == "log") {
                log(logger, command);
            } else if (verb == "receive") {
                bulk.receive(command);
            } else if (verb == "sender") {
                bulk.open(command);
            } else if (verb == "transfer") {
                bulk.transfer(command);
            } else if (verb == "close") {
                bulk.close(command);
            } else {
                throw std::invalid_argument("there is no command '" + verb + "'");
            }
            if (verb != "push" && verb != "log") {
                Line("line", "done").add("do", verb).add("name", command["name"]).print();
            }
        } catch (const std::exception &failure) {
            Line("line", "error").add("do", verb).add("name", command["name"]).add("why", failure.what()).print();
        }
    }
    return 0;
}
