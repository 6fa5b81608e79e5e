/* Tampu's bulk data for C. Link with -ltampu_log, which also has the logger.
 *
 *     tampu_bulk_participant *me = tampu_bulk_join("CORR/CORRELATOR");
 *     tampu_bulk_sender *sender = tampu_bulk_sender_open(me, "correlator", "spectra", NULL, 0);
 *     tampu_bulk_sender_follow(sender);
 *     tampu_bulk_start(sender, "uid://A002/X1", 13);
 *     tampu_bulk_send(sender, block, sizeof block);
 *     tampu_bulk_stop(sender, NULL, 0);
 *     tampu_bulk_sender_close(sender);
 *     tampu_bulk_leave(me);
 *
 * A transfer on a flow has a parameter, data of any length, and an end. The receivers' callbacks get the parameter, then every byte
 * once and in order or a report of lost ranges, then the end. The end always comes, also when the sender dies. A handle is a stream
 * with one flow; a program with several flows opens several handles. C++ has classes for streams of several flows in
 * tampu_bulk.hpp.
 *
 * A site may have settings of a flow in the configuration file that TAMPU_CONFIG names, as [[bulk.flow]]; docs/bulk.md describes
 * them. Opening a sender or receiver reads them. What the call sets beats the environment (TAMPU_BULK_PROTOCOL and others), which
 * beats the file, which beats the defaults. An invalid file or variable makes the call fail; the reason has the file and its line
 * or entry.
 *
 * Strings are UTF-8 with a zero at the end; they are copied or used during the call only. Every function may be called in every
 * thread, but not in a signal handler; calls of one sender wait for each other. None unwinds, exits or aborts. A failure
 * returns NULL or -1, and tampu_bulk_last_error() returns its reason. A NULL handle does nothing and counts as a failure. The
 * library's threads block SIGPIPE, so a lost connection ends no program. The mask of the caller's threads stays as it is.
 *
 * A later release may add members at the end of a structure. The caller passes the structure's size with sizeof. */
#ifndef TAMPU_BULK_H
#define TAMPU_BULK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process that sends or receives. */
typedef struct tampu_bulk_participant tampu_bulk_participant;
/* The sending side of a flow. */
typedef struct tampu_bulk_sender tampu_bulk_sender;
/* The receiving side of a flow. */
typedef struct tampu_bulk_receiver tampu_bulk_receiver;

/* Reason of the last failure in this thread; "" if there was none. Valid until the next failure in this thread. The text is the same as
 * that of tampu_log_last_error(). */
const char *tampu_bulk_last_error(void);

/* ---- Participants ---- */

/* Joins the bus under a stable name, such as "CORR/CORRELATOR". The environment has the other settings: TAMPU_DOMAIN,
 * TAMPU_RUN_DIR, TAMPU_HUB, TAMPU_KEY, TAMPU_CERTIFICATES. NULL on failure. */
tampu_bulk_participant *tampu_bulk_join(const char *source);

/* Makes a participant without the bus: a sender needs the addresses of its receivers. Both must be of one domain. NULL on
 * failure. */
tampu_bulk_participant *tampu_bulk_alone(const char *domain, const char *source);

/* Ends a participant, which must not be used afterwards. Senders and receivers opened with it continue, and keep its place on the
 * bus. NULL is allowed. */
void tampu_bulk_leave(tampu_bulk_participant *participant);

/* ---- Sending ---- */

enum {
    /* As transport, protection, `checked` or `slow`: the default of the library, whatever the configuration has. */
    TAMPU_BULK_DEFAULT = -1
};

/* Transport of the data. */
enum {
    /* The group if there is one; shared memory if both are on one host; otherwise TCP. */
    TAMPU_BULK_AUTO = 0,
    TAMPU_BULK_TCP = 1,
    TAMPU_BULK_SHM = 2,
    TAMPU_BULK_UDP = 3,
    /* The multicast group of the settings, once for all receivers. AUTO with a group means the same. */
    TAMPU_BULK_MULTICAST = 4
};

/* Protection that one end demands. The connection has the higher level of both ends. */
enum {
    /* Encrypted between two hosts; nothing on one host. */
    TAMPU_BULK_PROTECTION_AUTO = 0,
    /* This end demands nothing. */
    TAMPU_BULK_PROTECTION_NONE = 1,
    /* Nobody on the network can change, repeat or add data. */
    TAMPU_BULK_PROTECTION_AUTHENTICATED = 2,
    /* Nobody on the network can read or change data. */
    TAMPU_BULK_PROTECTION_ENCRYPTED = 3
};

enum {
    /* It gets no more of this transfer, and joins the next one. */
    TAMPU_BULK_SLOW_CUT = 0,
    /* Data without room is skipped for it, and it is told the lost ranges. */
    TAMPU_BULK_SLOW_SKIP = 1
};

enum {
    /* Start and stop wait. */
    TAMPU_BULK_ACK_START_AND_STOP = 0,
    TAMPU_BULK_ACK_NEVER = 1,
    TAMPU_BULK_ACK_EVERY_SEND = 2
};

/* Settings of a flow. A member of 0 (NULL) has the value of the configuration, or its default. The configuration has no window,
 * waits and acknowledgements. */
typedef struct tampu_bulk_send_settings {
    /* Most bytes sent and not acknowledged. Default 32 MiB, at most 16 GiB. */
    uint64_t window;
    /* Most bytes per second. Default: no limit. INFINITY lifts a configured limit. */
    double throttle;
    /* Number of receivers that tampu_bulk_start waits for. Default 1. */
    uint32_t receivers;
    /* Longest wait for them, ms. Default 5000. */
    uint32_t connect_wait_ms;
    /* TAMPU_BULK_... */
    int32_t transport;
    /* 1: data has checksums. -1: none. */
    int32_t checked;
    /* Multicast group, "ADDRESS" or "ADDRESS:PORT" as in "239.255.7.1:4711"; data is sent to it once for all receivers. NULL or
     * "": that of the configuration, unless `transport` excludes it. */
    const char *group;
    /* Address, name or index of this host's interface for the group. NULL or "": 127.0.0.1, which reaches no other host. */
    const char *group_interface;
    /* Number of networks that the data may pass, at most 255. Default 1. */
    uint32_t group_ttl;
    /* TAMPU_BULK_PROTECTION_...: the least protection of the connection to each receiver. */
    int32_t protection;
    /* TAMPU_BULK_SLOW_...: treatment of a receiver that holds up the others for `wait_ms`. */
    int32_t slow;
    /* TAMPU_BULK_ACK_...: calls that wait until the receivers' callbacks have taken their part. */
    int32_t acknowledge;
    /* Longest time that a receiver may hold up the others or make no progress, ms. Default 5000. */
    uint32_t wait_ms;
    /* Longest wait of start and stop for a receiver without progress, ms. Default 10000. */
    uint32_t ack_wait_ms;
    /* Time for which data is kept for a receiver whose connection is broken, ms. Default 30000. */
    uint32_t resume_ms;
    /* Must be 0. */
    int32_t reserved;
} tampu_bulk_send_settings;

/* Opens a sender without receivers. `settings` may be NULL, which is the same as all members 0. NULL on failure. */
tampu_bulk_sender *tampu_bulk_sender_open(const tampu_bulk_participant *participant, const char *stream, const char *flow,
                                          const tampu_bulk_send_settings *settings, size_t size);

/* Connects to a receiver at "host:port/token" (tampu_bulk_receiver_target), in the background, and again whenever the connection
 * breaks. 0: accepted; -1: failed. */
int32_t tampu_bulk_sender_connect(const tampu_bulk_sender *sender, const char *target);

/* Connects to all present and later receivers of the stream and flow that announce themselves on the bus. 0: accepted; -1:
 * failed. */
int32_t tampu_bulk_sender_follow(const tampu_bulk_sender *sender);

/* Waits until this number of receivers is connected, at most `timeout_ms`. 1: connected; 0: timeout, and the last error has the
 * reason; -1: failed. */
int32_t tampu_bulk_sender_wait(const tampu_bulk_sender *sender, uint32_t receivers, uint32_t timeout_ms);

/* Begins a transfer: waits for receivers, and until their callbacks have taken the parameter. The parameter may be any bytes that
 * fit a frame (256 KiB). 0: begun; -1: failed. */
int32_t tampu_bulk_start(const tampu_bulk_sender *sender, const void *parameter, size_t length);

/* Sends a copy of a block. Returns when the fastest receiver's socket or memory has taken it, and waits while the slowest is a
 * window behind. 0: sent; -1: failed, and the caller must still end the transfer with tampu_bulk_stop or tampu_bulk_reset. */
int32_t tampu_bulk_send(const tampu_bulk_sender *sender, const void *bytes, size_t length);

/* A block of memory to fill and send without a copy: in the memory that receivers on this host read, if there are such. */
typedef struct tampu_bulk_block tampu_bulk_block;

/* Lends a block of this length. Its content is undefined. NULL on failure. */
tampu_bulk_block *tampu_bulk_block_new(const tampu_bulk_sender *sender, size_t length);

/* The memory of a block. NULL after a failure. */
void *tampu_bulk_block_data(tampu_bulk_block *block);

/* Sends the first `length` bytes of a block, and takes the block back, also on failure. Waits and returns as tampu_bulk_send. */
int32_t tampu_bulk_block_send(const tampu_bulk_sender *sender, tampu_bulk_block *block, size_t length);

/* Takes back a block that is not sent. NULL is allowed. */
void tampu_bulk_block_free(tampu_bulk_block *block);

/* Calls of a function at an interval. */
typedef struct tampu_bulk_periodic tampu_bulk_periodic;

/* Sends a piece; returns 0 to be called again, 1 to end. */
typedef int32_t (*tampu_bulk_send_call)(void *context, const tampu_bulk_sender *sender);

/* Calls `send` at this interval in a thread of the library. A call that takes longer delays the next one; missed calls are not
 * repeated. The sender must stay open until the end. NULL on failure. */
tampu_bulk_periodic *tampu_bulk_every(const tampu_bulk_sender *sender, uint64_t interval_us, tampu_bulk_send_call send, void *context);

/* Ends the calls, and waits for a running one. 0: ended; -1: failed, because the function called this. NULL is allowed. */
int32_t tampu_bulk_every_end(tampu_bulk_periodic *periodic);

/* State of a sender. */
typedef struct tampu_bulk_sender_status {
    /* Number of the running transfer, or of the last one. */
    uint64_t transfer;
    /* Its bytes so far. */
    uint64_t bytes;
    /* Bytes per second over about the last second. */
    double rate;
    /* Bytes that some receiver has not acknowledged, and their limit. */
    uint64_t unacknowledged;
    uint64_t window;
    /* Seconds for which a call has waited; 0: none waits. */
    double waits;
    /* 0: no transfer; 1: a transfer is running; 2: the last one has ended. */
    int32_t phase;
    /* Receivers that are known, connected, and cut from the running transfer. */
    uint32_t receivers;
    uint32_t connected;
    uint32_t cut;
} tampu_bulk_sender_status;

/* Tells the state of a sender, without waiting. 0: done; -1: failed. */
int32_t tampu_bulk_sender_state(const tampu_bulk_sender *sender, tampu_bulk_sender_status *status, size_t size);

/* Result of a transfer. */
typedef struct tampu_bulk_report {
    /* Number of the transfer since the sender was opened, from 1. */
    uint64_t transfer;
    /* Bytes that were sent. */
    uint64_t bytes;
    /* Known losses in bytes of the receiver with the largest losses. */
    uint64_t lost_bytes;
    /* Time from start to stop. */
    double seconds;
    /* Receivers that took part. */
    uint32_t receivers;
    /* Receivers that have all of it. */
    uint32_t complete;
} tampu_bulk_report;

/* Ends the transfer: returns when every receiver's callback has had all data and the stop. `report` may be NULL. 1: all receivers
 * that took part have all of it; 0: some do not, and the last error names them and the reasons; -1: failed. */
int32_t tampu_bulk_stop(const tampu_bulk_sender *sender, tampu_bulk_report *report, size_t size);

/* Aborts the transfer under way. Always possible. 0: done; -1: failed. */
int32_t tampu_bulk_reset(const tampu_bulk_sender *sender);

/* Ends a sender, which must not be used afterwards. A transfer under way is aborted. NULL is allowed. */
void tampu_bulk_sender_close(tampu_bulk_sender *sender);

/* ---- Receiving ---- */

/* Start of a transfer. */
typedef struct tampu_bulk_transfer_start {
    uint64_t transfer;
    /* Name of the sender. */
    const char *sender;
    /* Parameter given by the sender; not terminated by a zero. */
    const void *parameter;
    size_t length;
} tampu_bulk_transfer_start;

/* A piece of its data. */
typedef struct tampu_bulk_piece {
    uint64_t transfer;
    /* Offset in the transfer, bytes. */
    uint64_t offset;
    /* On one host the bytes lie in the sender's memory. If the sender does not wait for a slow receiver, they may change during
     * the call. Such bytes are then reported as lost. */
    const void *bytes;
    size_t length;
    /* 1: a block of the sender ends here. */
    int32_t end_of_block;
} tampu_bulk_piece;

/* End of the transfer. */
typedef struct tampu_bulk_end {
    uint64_t transfer;
    /* Bytes delivered to the callbacks. */
    uint64_t bytes;
    /* End of the data, bytes from the start. */
    uint64_t offset;
    /* Known number of missing bytes. */
    uint64_t lost_bytes;
    double seconds;
    /* 1: the sender stopped the transfer and nothing is missing. */
    int32_t complete;
    /* 1: the sender stopped the transfer. 0: the sender aborted it, is gone, or began another one. */
    int32_t stopped;
} tampu_bulk_end;

/* A range of lost bytes. */
typedef struct tampu_bulk_lost_range {
    uint64_t from;
    /* Offset behind the last byte; UINT64_MAX if unknown. */
    uint64_t to;
    /* Number of frames, if known. */
    uint64_t frames;
    /* Number in the table of causes in spec/bulk.md, and its text. */
    int32_t cause;
    const char *why;
} tampu_bulk_lost_range;

/* A fault, which is also reported to the sender. */
typedef struct tampu_bulk_fault_note {
    /* Number in the table of faults in spec/bulk.md. */
    int32_t kind;
    /* Number of such faults in this transfer so far. */
    uint32_t count;
    const char *text;
} tampu_bulk_fault_note;

/* Answer of a callback. */
enum {
    TAMPU_BULK_OK = 0,
    /* The callback failed but accepts more data. The sender gets a report, and `fault` is called. The transfer still counts as
     * complete, because no data is missing. */
    TAMPU_BULK_FAILED = 1,
    /* The callback accepts no more data of this transfer. The stop is still delivered. */
    TAMPU_BULK_GIVE_UP = 2
};

/* Callbacks and settings of a receiver. A callback may be NULL. Threads of the library call them one after another with this `context`; the
 * other argument is valid only during the call. While a callback runs, no further data is read, and finally the sender waits.
 * Callbacks must not throw, longjmp or end their thread. */
typedef struct tampu_bulk_handler {
    void *context;
    int32_t (*start)(void *context, const tampu_bulk_transfer_start *start);
    int32_t (*data)(void *context, const tampu_bulk_piece *data);
    int32_t (*stop)(void *context, const tampu_bulk_end *end);
    void (*lost)(void *context, const tampu_bulk_lost_range *lost);
    void (*fault)(void *context, const tampu_bulk_fault_note *fault);
    /* TAMPU_BULK_PROTECTION_...: the least protection of the connection to each sender. */
    int32_t protection;
    /* Must be 0. */
    int32_t reserved;
} tampu_bulk_handler;

/* Sets the reason of a failure for the sender. Called in a callback before it returns the failure. */
void tampu_bulk_explain(const char *text);

/* Opens a receiver, and announces it if the participant is on the bus. `listen` is an IP address and a port, "0.0.0.0:0"; NULL:
 * the `endpoint` of the configuration, or 127.0.0.1 and a free port. Each handle listens at its own port, so a stream of several flows needs
 * port 0. `announce` is the announced name or address, with or without a port; NULL: that of the configuration, or the same as
 * `listen`, or this host's name for 0.0.0.0. NULL on failure. */
tampu_bulk_receiver *tampu_bulk_receiver_open(const tampu_bulk_participant *participant, const char *stream, const char *flow,
                                              const char *listen, const char *announce, const tampu_bulk_handler *handler, size_t size);

/* Address and token for senders: "host:port/token". Valid until the receiver is closed. NULL after a failure. */
const char *tampu_bulk_receiver_target(const tampu_bulk_receiver *receiver);

/* Withdraws a receiver from the bus, and waits until no sender is connected, at most `timeout_ms`. Call this before closing a
 * receiver that is done: otherwise its sender may miss the acknowledgement of the last stop. 1: no sender is connected; 0:
 * timeout; -1: failed. */
int32_t tampu_bulk_receiver_part(const tampu_bulk_receiver *receiver, uint32_t timeout_ms);

/* Ends a receiver, which must not be used afterwards. The end of a transfer under way is reported unless a callback takes longer
 * than 2 s. Waits until running callbacks have returned: afterwards none is called, and the context may be freed. 0: closed; -1:
 * failed, because a callback called this. NULL is allowed. */
int32_t tampu_bulk_receiver_close(tampu_bulk_receiver *receiver);

/* ---- Control by other programs ---- */

/* A sender or a receiver that others may control under a name, with `tampu bulk control` or the functions below. The rules of this
 * host decide about each command; by default only the user of this host may give one. docs/bulk.md describes the commands. */
typedef struct tampu_bulk_control tampu_bulk_control;

/* Sends what a start wants, with the functions above: start, send, stop. `file` is NULL if the caller names none. Called in a thread
 * of the library, one call at a time. After a stop, tampu_bulk_send fails: the function then ends the transfer with tampu_bulk_stop or
 * tampu_bulk_reset. It returns 0, or another number after tampu_bulk_explain. A transfer that it leaves open is aborted. */
typedef int32_t (*tampu_bulk_start_call)(void *context, const tampu_bulk_sender *sender, const char *parameter, const char *file);

/* Offers the control of a sender. With `start` NULL, others may pace, pause, resume and stop it, and not start it. The sender must
 * stay open until the offer is ended. NULL on failure. */
tampu_bulk_control *tampu_bulk_control_sender(const tampu_bulk_sender *sender, const char *name, tampu_bulk_start_call start,
                                              void *context);

/* Work that the program does by itself on the flow of an offered sender, with several transfers. */
typedef struct tampu_bulk_work tampu_bulk_work;

/* Notes such work until it is ended. A stop then also ends what is between two transfers, or before the first one: tampu_bulk_start
 * fails. Without it a stop ends a running transfer only, and is refused between two. NULL on failure. */
tampu_bulk_work *tampu_bulk_control_begin_work(const tampu_bulk_control *control);

/* Ends the work; afterwards transfers may begin again. It may end after the offer. NULL is allowed. */
void tampu_bulk_control_end_work(tampu_bulk_work *work);

/* Offers the control of a receiver, which the library opens and closes. It is closed at first. The arguments are those of
 * tampu_bulk_receiver_open; a command may demand more protection and checksums. NULL on failure. */
tampu_bulk_control *tampu_bulk_control_receiver(const tampu_bulk_participant *participant, const char *name, const char *stream,
                                                const char *flow, const char *listen, const char *announce,
                                                const tampu_bulk_handler *handler, size_t size);

/* Opens the receiver of an own offer, as the command does. 0: open; -1: failed. */
int32_t tampu_bulk_control_open_own(const tampu_bulk_control *control);

/* Ends an offer, which must not be used afterwards. Cancels and waits for the function of a start; closes the receiver and waits for
 * its callbacks. 0: ended; -1: failed, because a callback called this. NULL is allowed. */
int32_t tampu_bulk_control_end(tampu_bulk_control *control);

/* Commands to an offer of any program. 0: carried out; 1: no program offers the name, or none has answered; -1: refused or failed.
 * The last error has the reason. `flow` may be NULL: all flows, or the only one for a start. Finding the offer and carrying the
 * command out may each take `timeout_ms`. */

/* Starts a sender. `parameter` is a text for the receivers, or NULL; `file` one of the files that its program offers, or NULL. */
int32_t tampu_bulk_control_start(const tampu_bulk_participant *participant, const char *name, const char *flow, const char *parameter,
                                 const char *file, uint32_t timeout_ms);

/* Limits the rate to 1000 to 10^12 bytes/s; 0 lifts the limit. It holds for a running transfer. */
int32_t tampu_bulk_control_pace(const tampu_bulk_participant *participant, const char *name, const char *flow, double bytes_per_s,
                                uint32_t timeout_ms);

/* Sends no data until it is resumed. */
int32_t tampu_bulk_control_pause(const tampu_bulk_participant *participant, const char *name, const char *flow, uint32_t timeout_ms);
int32_t tampu_bulk_control_resume(const tampu_bulk_participant *participant, const char *name, const char *flow, uint32_t timeout_ms);

/* Ends the running transfer. */
int32_t tampu_bulk_control_stop(const tampu_bulk_participant *participant, const char *name, const char *flow, uint32_t timeout_ms);

/* Opens or closes a receiver. */
int32_t tampu_bulk_control_open(const tampu_bulk_participant *participant, const char *name, uint32_t timeout_ms);
int32_t tampu_bulk_control_close(const tampu_bulk_participant *participant, const char *name, uint32_t timeout_ms);

/* Sends any command of spec/bulk-control.md as JSON, and returns the state as JSON. `command` NULL: "state". `name` NULL: a JSON
 * array of all offers. Free the text with tampu_bulk_control_free. NULL on failure. */
char *tampu_bulk_control_ask(const tampu_bulk_participant *participant, const char *name, const char *command, uint32_t timeout_ms);
void tampu_bulk_control_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
