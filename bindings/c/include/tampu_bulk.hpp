// Tampu's bulk data for C++17: streams of several flows, and receivers whose three methods a program writes. Link with -ltampu_log.
//
//     class Recorder : public tampu::bulk::Callback {
//         void start(const tampu::bulk::Start &start) override { open(start.parameter()); }
//         void data(const tampu::bulk::Piece &piece) override { write(piece.bytes, piece.length); }
//         void stop(const tampu::bulk::End &end) override { close(end.complete == 1); }
//     };
//
//     const auto me = tampu::bulk::Participant::join("ARCHIVE/RECORDER");
//     Recorder spectra, metadata;
//     tampu::bulk::Receiver receiver(me, "correlator", {{"spectra", spectra}, {"metadata", metadata}});
//
//     tampu::bulk::Sender sender(tampu::bulk::Participant::join("CORR/CORRELATOR"), "correlator", {{"spectra"}, {"metadata"}});
//     sender.follow();
//     auto &flow = sender.flow("spectra");
//     flow.start("uid://A002/X1");
//     flow.send(block.data(), block.size());
//     flow.stop();
//
// tampu_bulk.h has the contract of each call. A failure throws tampu::Failure.
#ifndef TAMPU_BULK_HPP
#define TAMPU_BULK_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tampu_bulk.h"
#include "tampu_failure.hpp"

namespace tampu::bulk {

namespace detail {

template <typename T> T *checked(T *handle) {
    if (handle == nullptr) {
        throw Failure(tampu_bulk_last_error());
    }
    return handle;
}

inline std::int32_t checked(std::int32_t result) {
    if (result < 0) {
        throw Failure(tampu_bulk_last_error());
    }
    return result;
}

} // namespace detail

// A process that sends or receives. Copies are the same process.
class Participant {
public:
    // Joins the bus under a stable name. The environment has the other settings.
    static Participant join(const std::string &source) { return Participant(tampu_bulk_join(source.c_str())); }
    // A process without the bus: a sender needs the addresses of its receivers.
    static Participant alone(const std::string &domain, const std::string &source) {
        return Participant(tampu_bulk_alone(domain.c_str(), source.c_str()));
    }
    const tampu_bulk_participant *get() const { return handle_.get(); }

private:
    explicit Participant(tampu_bulk_participant *handle) : handle_(detail::checked(handle), tampu_bulk_leave) {}
    std::shared_ptr<tampu_bulk_participant> handle_;
};

// ---- Sending ----

// A flow of a sender, and its settings: members of 0 have the values of the configuration, or their defaults.
struct FlowOf {
    std::string name;
    tampu_bulk_send_settings settings = {};
};

class Flow;

// A block of memory to fill and send without a copy.
class Block {
public:
    void *data() const { return tampu_bulk_block_data(handle_.get()); }
    std::size_t size() const { return size_; }

private:
    friend class Flow;
    struct Free {
        void operator()(tampu_bulk_block *handle) const { tampu_bulk_block_free(handle); }
    };
    Block(tampu_bulk_block *handle, std::size_t size) : handle_(detail::checked(handle)), size_(size) {}
    std::unique_ptr<tampu_bulk_block, Free> handle_;
    std::size_t size_;
};

// Sending at an interval. It ends when it is destroyed, after a running call.
class Periodic {
private:
    friend class Flow;
    using Function = std::function<bool(Flow &)>;
    struct End {
        void operator()(tampu_bulk_periodic *handle) const { tampu_bulk_every_end(handle); }
    };
    // The function and the flow are destroyed after the handle, by which they are used.
    std::unique_ptr<std::pair<Function, Flow *>> call_;
    std::unique_ptr<tampu_bulk_periodic, End> handle_;
};

// One flow of a sender.
class Flow {
public:
    Flow(const Participant &participant, const std::string &stream, const FlowOf &of)
        : name_(of.name), handle_(detail::checked(tampu_bulk_sender_open(participant.get(), stream.c_str(), of.name.c_str(), &of.settings,
                                                                         sizeof of.settings))) {}
    const std::string &name() const { return name_; }
    // Connects to a receiver at "host:port/token".
    void connect(const std::string &target) { detail::checked(tampu_bulk_sender_connect(handle_.get(), target.c_str())); }
    // Connects to all receivers that announce themselves on the bus.
    void follow() { detail::checked(tampu_bulk_sender_follow(handle_.get())); }
    // Waits until this number of receivers is connected; returns whether they are.
    bool wait(std::uint32_t receivers, std::uint32_t timeout_ms) const {
        return detail::checked(tampu_bulk_sender_wait(handle_.get(), receivers, timeout_ms)) > 0;
    }
    // Begins a transfer.
    void start(std::string_view parameter) { detail::checked(tampu_bulk_start(handle_.get(), parameter.data(), parameter.size())); }
    // Sends a copy of a block.
    void send(const void *bytes, std::size_t length) { detail::checked(tampu_bulk_send(handle_.get(), bytes, length)); }
    // Lends a block, to be filled and sent.
    Block block(std::size_t length) { return Block(tampu_bulk_block_new(handle_.get(), length), length); }
    // Sends the first `length` bytes of a block without a copy.
    void send(Block block, std::size_t length) {
        detail::checked(tampu_bulk_block_send(handle_.get(), block.handle_.release(), length));
    }
    void send(Block block) {
        const std::size_t length = block.size();
        send(std::move(block), length);
    }
    // Ends the transfer. `report.complete` of `report.receivers` have all of it; why() says what the others lack.
    tampu_bulk_report stop() {
        tampu_bulk_report report;
        why_ = detail::checked(tampu_bulk_stop(handle_.get(), &report, sizeof report)) == 0 ? tampu_bulk_last_error() : "";
        return report;
    }
    const std::string &why() const { return why_; }
    // Aborts the transfer under way.
    void reset() { detail::checked(tampu_bulk_reset(handle_.get())); }
    tampu_bulk_sender_status state() const {
        tampu_bulk_sender_status status;
        detail::checked(tampu_bulk_sender_state(handle_.get(), &status, sizeof status));
        return status;
    }
    // Calls a function at this interval until it returns false or the result is destroyed. The flow must not move meanwhile.
    Periodic every(std::uint64_t interval_us, std::function<bool(Flow &)> send) {
        Periodic periodic;
        periodic.call_ = std::make_unique<std::pair<Periodic::Function, Flow *>>(std::move(send), this);
        const auto call = [](void *context, const tampu_bulk_sender *) -> std::int32_t {
            auto &[function, flow] = *static_cast<std::pair<Periodic::Function, Flow *> *>(context);
            try {
                return function(*flow) ? 0 : 1;
            } catch (const std::exception &why) {
                tampu_bulk_explain(why.what());
            } catch (...) {
                tampu_bulk_explain("an exception without a text");
            }
            return 1;
        };
        periodic.handle_.reset(detail::checked(tampu_bulk_every(handle_.get(), interval_us, call, periodic.call_.get())));
        return periodic;
    }

    const tampu_bulk_sender *get() const { return handle_.get(); }

private:
    struct Close {
        void operator()(tampu_bulk_sender *handle) const { tampu_bulk_sender_close(handle); }
    };
    std::string name_, why_;
    std::unique_ptr<tampu_bulk_sender, Close> handle_;
};

// The sending side of a stream with its flows.
class Sender {
public:
    Sender(Participant participant, const std::string &stream, const std::vector<FlowOf> &flows) : participant_(std::move(participant)) {
        flows_.reserve(flows.size());
        for (const FlowOf &flow : flows) {
            flows_.emplace_back(participant_, stream, flow);
        }
    }
    // Returns a flow by its name.
    Flow &flow(std::string_view name) {
        for (Flow &flow : flows_) {
            if (flow.name() == name) {
                return flow;
            }
        }
        throw Failure("the sender has no flow '" + std::string(name) + "'");
    }
    // Connects every flow to its receivers on the bus.
    void follow() {
        for (Flow &flow : flows_) {
            flow.follow();
        }
    }

private:
    Participant participant_;
    std::vector<Flow> flows_;
};

// ---- Receiving ----

// Start of a transfer.
struct Start : tampu_bulk_transfer_start {
    std::string_view parameter() const { return {static_cast<const char *>(tampu_bulk_transfer_start::parameter), length}; }
};
using Piece = tampu_bulk_piece;
using End = tampu_bulk_end;
using Lost = tampu_bulk_lost_range;
using Fault = tampu_bulk_fault_note;

// Thrown by a callback that wants no more of this transfer. Its text goes to the sender.
struct GiveUp : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Methods that get a flow's transfers, one call at a time. An exception is told to the sender; after GiveUp no more data comes. The
// end always comes.
class Callback {
public:
    virtual ~Callback() = default;
    virtual void start(const Start &start) = 0;
    virtual void data(const Piece &piece) = 0;
    virtual void stop(const End &end) = 0;
    virtual void lost(const Lost &) {}
    virtual void fault(const Fault &) {}
};

// A flow of a receiver and its callback, which must outlive the receiver.
struct CallbackOf {
    std::string flow;
    Callback &callback;
    std::int32_t protection = TAMPU_BULK_PROTECTION_AUTO;
};

// The receiving side of a stream with its flows. Closing waits for running callbacks.
class Receiver {
public:
    // `listen` is an IP address and a port, "0.0.0.0:0"; the default is that of the configuration, or this host alone. `announce` is
    // the name or address at which others reach it. With several flows the port has to be 0: each flow listens at its own.
    Receiver(Participant participant, const std::string &stream, const std::vector<CallbackOf> &flows, const std::string &listen = {},
             const std::string &announce = {})
        : participant_(std::move(participant)) {
        for (const CallbackOf &flow : flows) {
            const tampu_bulk_handler handler = {&flow.callback, on_start, on_data, on_stop, on_lost, on_fault, flow.protection, 0};
            handles_.emplace_back(detail::checked(tampu_bulk_receiver_open(participant_.get(), stream.c_str(), flow.flow.c_str(), text(listen),
                                                                           text(announce), &handler, sizeof handler)));
        }
    }
    // Returns the addresses for senders, "host:port/token", in the order of the flows.
    std::vector<std::string> targets() const {
        std::vector<std::string> all;
        for (const auto &handle : handles_) {
            all.emplace_back(detail::checked(tampu_bulk_receiver_target(handle.get())));
        }
        return all;
    }
    // Withdraws from the bus, and waits until no sender is connected; returns whether none is.
    bool part(std::uint32_t timeout_ms) {
        bool good = true;
        for (const auto &handle : handles_) {
            good = detail::checked(tampu_bulk_receiver_part(handle.get(), timeout_ms)) > 0 && good;
        }
        return good;
    }

private:
    struct Close {
        void operator()(tampu_bulk_receiver *handle) const { tampu_bulk_receiver_close(handle); }
    };
    static const char *text(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }
    template <typename Call> static std::int32_t told(Call call) {
        try {
            call();
            return TAMPU_BULK_OK;
        } catch (const GiveUp &why) {
            tampu_bulk_explain(why.what());
            return TAMPU_BULK_GIVE_UP;
        } catch (const std::exception &why) {
            tampu_bulk_explain(why.what());
        } catch (...) {
            tampu_bulk_explain("an exception without a text");
        }
        return TAMPU_BULK_FAILED;
    }
    static Callback &callback(void *context) { return *static_cast<Callback *>(context); }
    static std::int32_t on_start(void *context, const tampu_bulk_transfer_start *start) {
        return told([&] { callback(context).start(Start{*start}); });
    }
    static std::int32_t on_data(void *context, const tampu_bulk_piece *piece) {
        return told([&] { callback(context).data(*piece); });
    }
    static std::int32_t on_stop(void *context, const tampu_bulk_end *end) {
        return told([&] { callback(context).stop(*end); });
    }
    static void on_lost(void *context, const tampu_bulk_lost_range *lost) {
        told([&] { callback(context).lost(*lost); });
    }
    static void on_fault(void *context, const tampu_bulk_fault_note *fault) {
        told([&] { callback(context).fault(*fault); });
    }

    Participant participant_;
    std::vector<std::unique_ptr<tampu_bulk_receiver, Close>> handles_;
};

// ---- Control by other programs ----

// What a start wants.
struct StartOrder {
    std::string parameter;
    // One of the files that this program offers; empty if the caller names none.
    std::string file;
};

// Work that the program does by itself on a flow, with several transfers, until the object ends.
class Work {
public:
    explicit Work(tampu_bulk_work *handle) : handle_(handle) {}

private:
    struct End {
        void operator()(tampu_bulk_work *handle) const { tampu_bulk_control_end_work(handle); }
    };
    std::unique_ptr<tampu_bulk_work, End> handle_;
};

// A flow that other programs may control under a name. Its end cancels and waits for the function of a start.
class ControlledFlow {
public:
    // `start` sends what the order wants: start, send, stop. It runs in a thread of the library. After a stop Flow::send throws; what is
    // then left open is aborted. Without it others may pace, pause, resume and stop the flow. The flow must not move meanwhile.
    ControlledFlow(Flow &flow, const std::string &name, std::function<void(Flow &, const StartOrder &)> start = {})
        : call_(std::make_unique<Call>(std::move(start), &flow)),
          handle_(detail::checked(tampu_bulk_control_sender(flow.get(), name.c_str(), call_->first ? on_start : nullptr, call_.get()))) {}
    ControlledFlow(ControlledFlow &&) = default;
    // Another offer would lose its function before its handle.
    ControlledFlow &operator=(ControlledFlow &&) = delete;
    // A stop then also ends what is between two transfers, or before the first one: Flow::start throws until the work has ended.
    // Without it a stop ends a running transfer only, and is refused between two.
    Work begin_work() const { return Work(detail::checked(tampu_bulk_control_begin_work(handle_.get()))); }

private:
    using Call = std::pair<std::function<void(Flow &, const StartOrder &)>, Flow *>;
    struct End {
        void operator()(tampu_bulk_control *handle) const { tampu_bulk_control_end(handle); }
    };
    static std::int32_t on_start(void *context, const tampu_bulk_sender *, const char *parameter, const char *file) {
        auto &[start, flow] = *static_cast<Call *>(context);
        try {
            start(*flow, StartOrder{parameter, file == nullptr ? "" : file});
            return 0;
        } catch (const std::exception &why) {
            tampu_bulk_explain(why.what());
        } catch (...) {
            tampu_bulk_explain("an exception without a text");
        }
        return 1;
    }
    // The function is destroyed after the handle, by which it is used.
    std::unique_ptr<Call> call_;
    std::unique_ptr<tampu_bulk_control, End> handle_;
};

// No program offers the control, or none has answered in time.
struct NotOffered : Failure {
    using Failure::Failure;
};

// Commands to the sender or receiver that a program offers under a name. A refusal throws Failure.
class Control {
public:
    Control(Participant participant, std::string name, std::uint32_t timeout_ms = 5000)
        : participant_(std::move(participant)), name_(std::move(name)), timeout_(timeout_ms) {}
    void start(const std::string &parameter = {}, const std::string &file = {}, const std::string &flow = {}) {
        done(tampu_bulk_control_start(participant_.get(), name_.c_str(), flow.c_str(), parameter.c_str(), file.c_str(), timeout_));
    }
    // Bytes per second; 0 lifts the limit.
    void pace(double bytes_per_s, const std::string &flow = {}) {
        done(tampu_bulk_control_pace(participant_.get(), name_.c_str(), flow.c_str(), bytes_per_s, timeout_));
    }
    void pause(const std::string &flow = {}) { done(tampu_bulk_control_pause(participant_.get(), name_.c_str(), flow.c_str(), timeout_)); }
    void resume(const std::string &flow = {}) { done(tampu_bulk_control_resume(participant_.get(), name_.c_str(), flow.c_str(), timeout_)); }
    void stop(const std::string &flow = {}) { done(tampu_bulk_control_stop(participant_.get(), name_.c_str(), flow.c_str(), timeout_)); }
    void open() { done(tampu_bulk_control_open(participant_.get(), name_.c_str(), timeout_)); }
    void close() { done(tampu_bulk_control_close(participant_.get(), name_.c_str(), timeout_)); }
    // The state as JSON (spec/bulk-control.md).
    std::string state() const {
        const std::unique_ptr<char, Free> text(detail::checked(tampu_bulk_control_ask(participant_.get(), name_.c_str(), nullptr, timeout_)));
        return text.get();
    }

private:
    struct Free {
        void operator()(char *text) const { tampu_bulk_control_free(text); }
    };
    static void done(std::int32_t result) {
        if (detail::checked(result) != 0) {
            throw NotOffered(tampu_bulk_last_error());
        }
    }
    Participant participant_;
    std::string name_;
    std::uint32_t timeout_;
};

} // namespace tampu::bulk

#endif
