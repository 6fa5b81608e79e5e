// Bulk data of the driver in C++: receivers that write each transfer to a file, and senders that send files in blocks.
#ifndef DRIVER_BULK_HPP
#define DRIVER_BULK_HPP

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "driver_lines.hpp"
#include "tampu_bulk.hpp"

class Bulk {
public:
    explicit Bulk(const std::string &source) : participant_(tampu::bulk::Participant::join(source)) {}

    // Receives a stream into a directory.
    void receive(const Command &command) {
        const std::string stream = command["name"];
        auto into = std::make_unique<Into>(stream, command["directory"]);
        const std::vector<tampu::bulk::CallbackOf> flows = {{"data", *into}};
        auto receiver = std::make_unique<tampu::bulk::Receiver>(participant_, stream, flows);
        Line("line", "receiver").add("name", stream).add("target", receiver->targets().at(0)).print();
        receivers_[stream] = {std::move(into), std::move(receiver)};
    }

    // Opens a sender that follows the receivers of its stream.
    void open(const Command &command) {
        tampu::bulk::FlowOf flow = {"data"};
        flow.settings.throttle = std::stod(command["rate"]);
        flow.settings.receivers = static_cast<std::uint32_t>(std::stoul(command["receivers"]));
        // The runner waits longer.
        flow.settings.connect_wait_ms = flow.settings.wait_ms = flow.settings.ack_wait_ms = 50'000;
        flow.settings.resume_ms = 10'000;
        auto sender = std::make_unique<tampu::bulk::Sender>(participant_, command["name"], std::vector<tampu::bulk::FlowOf>{flow});
        sender->follow();
        senders_[command["name"]] = std::move(sender);
    }

    // Sends a file in blocks of these lengths.
    void transfer(const Command &command) {
        tampu::bulk::Flow &flow = senders_.at(command["name"])->flow("data");
        std::ifstream file(command["file"], std::ios::binary);
        file.exceptions(std::ios::failbit | std::ios::badbit);
        flow.start(command["parameter"]);
        for (const std::string &length : command.list("blocks")) {
            std::string block(std::stoul(length), 0);
            file.read(block.data(), static_cast<std::streamsize>(block.size()));
            flow.send(block.data(), block.size());
        }
        const tampu_bulk_report report = flow.stop();
        Line line("line", "sent");
        line.add("name", command["name"]).add("parameter", command["parameter"]).add("bytes", std::to_string(report.bytes));
        line.add("receivers", std::to_string(report.receivers)).add("complete", std::to_string(report.complete)).add("why", flow.why());
        line.print();
    }

    // Closes the receiver or the sender of a stream.
    void close(const Command &command) {
        senders_.erase(command["name"]);
        receivers_.erase(command["name"]);
    }

private:
    // A callback that writes each transfer to the file that its parameter names.
    class Into : public tampu::bulk::Callback {
    public:
        Into(std::string stream, std::string directory) : stream_(std::move(stream)), directory_(std::move(directory)) {}
        void start(const tampu::bulk::Start &start) override {
            parameter_ = start.parameter();
            block_ = 0;
            file_ = std::ofstream();
            file_.exceptions(std::ios::failbit | std::ios::badbit);
            file_.open(directory_ + "/" + parameter_, std::ios::binary | std::ios::trunc);
        }
        void data(const tampu::bulk::Piece &piece) override {
            file_.write(static_cast<const char *>(piece.bytes), static_cast<std::streamsize>(piece.length));
            if (piece.end_of_block) {
                const std::uint64_t end = piece.offset + piece.length;
                Line line("line", "block");
                line.add("name", stream_).add("parameter", parameter_).add("offset", std::to_string(block_));
                line.add("length", std::to_string(end - block_)).print();
                block_ = end;
            }
        }
        void stop(const tampu::bulk::End &end) override {
            file_.close();
            Line line("line", "end");
            line.add("name", stream_).add("parameter", parameter_).add("bytes", std::to_string(end.bytes));
            line.add("complete", end.complete ? "true" : "false").add("stopped", end.stopped ? "true" : "false").print();
        }

    private:
        const std::string stream_, directory_;
        std::string parameter_;
        std::uint64_t block_ = 0;
        std::ofstream file_;
    };

    tampu::bulk::Participant participant_;
    // A callback is destroyed after its receiver.
    std::map<std::string, std::pair<std::unique_ptr<Into>, std::unique_ptr<tampu::bulk::Receiver>>> receivers_;
    std::map<std::string, std::unique_ptr<tampu::bulk::Sender>> senders_;
};

#endif
