// A stream with two flows: a receiver with a class for each, and a sender that finds it on the bus.
#include <cstdio>
#include <cstring>

#include "tampu_bulk.hpp"

class Recorder : public tampu::bulk::Callback {
public:
    explicit Recorder(const char *name) : name_(name) {}

private:
    void start(const tampu::bulk::Start &start) override {
        std::printf("%s: start %.*s from %s\n", name_, static_cast<int>(start.length), start.parameter().data(), start.sender);
    }
    void data(const tampu::bulk::Piece &piece) override {
        if (piece.length > 0 && *static_cast<const char *>(piece.bytes) == '!') {
            throw tampu::bulk::GiveUp("no more, please");
        }
    }
    void stop(const tampu::bulk::End &end) override {
        std::printf("%s: %llu bytes, %s\n", name_, static_cast<unsigned long long>(end.bytes), end.complete == 1 ? "complete" : "incomplete");
    }
    const char *name_;
};

int main() try {
    Recorder spectra("spectra"), metadata("metadata");
    tampu::bulk::Receiver receiver(tampu::bulk::Participant::join("ARCHIVE/RECORDER"), "correlator",
                                   {{"spectra", spectra}, {"metadata", metadata}});
    tampu::bulk::Sender sender(tampu::bulk::Participant::join("CORR/CORRELATOR"), "correlator", {{"spectra"}, {"metadata"}});
    sender.follow();
    auto &data = sender.flow("spectra");
    auto &about = sender.flow("metadata");
    if (!data.wait(1, 30000) || !about.wait(1, 30000)) {
        std::fprintf(stderr, "recorder: %s\n", tampu_bulk_last_error());
        return 1;
    }
    data.start("uid://A002/X1");
    for (int turn = 0; turn < 10; ++turn) {
        auto block = data.block(1 << 20);
        std::memset(block.data(), turn, block.size());
        data.send(std::move(block));
    }
    const auto report = data.stop();
    std::printf("%llu bytes to %u of %u\n", static_cast<unsigned long long>(report.bytes), report.complete, report.receivers);
    about.start("header");
    int left = 3;
    {
        const auto periodic = about.every(1000, [&left](tampu::bulk::Flow &flow) {
            flow.send("tick", 4);
            return --left > 0;
        });
        while (about.state().bytes < 12) {
        }
    }
    about.stop();
    about.start("refused");
    about.send("!", 1);
    if (about.stop().complete == 0) {
        std::printf("%s\n", about.why().c_str());
    }
    return 0;
} catch (const tampu::Failure &failure) {
    std::fprintf(stderr, "recorder: %s\n", failure.what());
    return 1;
}
