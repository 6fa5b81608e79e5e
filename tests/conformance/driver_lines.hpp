// Commands from the runner and lines for it, in C++. README.md has their form.
#ifndef DRIVER_LINES_HPP
#define DRIVER_LINES_HPP

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using Texts = std::vector<std::string>;

// A command: each member is a text or a list of texts.
class Command {
public:
    explicit Command(const std::string &line) : at_(line.c_str()) {
        expect('{');
        while (*at_ != '}') {
            const std::string name = text();
            expect(':');
            Texts &values = members_[name];
            if (*at_ == '"') {
                values.push_back(text());
            } else {
                expect('[');
                while (*at_ != ']') {
                    values.push_back(text());
                    skip(',');
                }
                expect(']');
            }
            skip(',');
        }
    }
    const Texts &list(const std::string &name) const { return members_.count(name) ? members_.at(name) : NONE; }
    std::string operator[](const char *name) const { return list(name).empty() ? std::string() : list(name)[0]; }

private:
    static const Texts NONE;
    void blank() {
        while (*at_ == ' ') {
            ++at_;
        }
    }
    void skip(char sign) {
        at_ += *at_ == sign;
        blank();
    }
    void expect(char sign) {
        if (*at_ != sign) {
            throw std::invalid_argument(std::string("expected ") + sign + " at: " + at_);
        }
        skip(sign);
    }
    // The runner escapes quotation marks, backslashes and control characters only.
    std::string text() {
        std::string text;
        if (*at_ != '"') {
            throw std::invalid_argument(std::string("expected a text at: ") + at_);
        }
        while (*++at_ != '"') {
            if (*at_ == 0) {
                throw std::invalid_argument("a text does not end");
            }
            if (*at_ != '\\') {
                text += *at_;
            } else if (*++at_ == 'u') {
                text += static_cast<char>(std::stoi(std::string(at_ + 1, 4), nullptr, 16));
                at_ += 4;
            } else {
                const char *found = std::strchr("nrtbf", *at_);
                text += found ? "\n\r\t\b\f"[found - "nrtbf"] : *at_;
            }
        }
        skip('"');
        return text;
    }
    const char *at_;
    std::map<std::string, Texts> members_;
};
inline const Texts Command::NONE;

inline std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char sign : text) {
        if (static_cast<unsigned char>(sign) < 32 || sign == '"' || sign == '\\') {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(sign));
            out += escaped;
        } else {
            out += sign;
        }
    }
    return out + '"';
}

// A line for the runner.
class Line {
public:
    Line(const char *name, std::string_view value) : out_("{" + quoted(name) + ": " + quoted(value)) {}
    Line &add(const char *name, std::string_view value) {
        out_ += ", " + quoted(name) + ": " + quoted(value);
        return *this;
    }
    Line &add(const char *name, const Texts &values) {
        out_ += ", " + quoted(name) + ": [";
        for (const std::string &value : values) {
            out_ += (&value == values.data() ? "" : ", ") + quoted(value);
        }
        out_ += ']';
        return *this;
    }
    void print() const {
        static std::mutex one_at_a_time;
        const std::lock_guard<std::mutex> guard(one_at_a_time);
        std::printf("%s}\n", out_.c_str());
        std::fflush(stdout);
    }

private:
    std::string out_;
};

#endif
