/* Tampu's bulk data for C. Link with -ltampu_log, which has it too.
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
 * A sender gives a flow a parameter, data of any length, an end. Its receivers' callbacks are called with the parameter, then every
 * byte once and in order or word of which are lost, then the end: always, also when the sender dies. A handle is a stream with one
 * flow; who has several flows opens several handles.
 *
 * Strings are UTF-8 that ends with a zero; they are copied or used during the call only. Every function may be called in every
 * thread, but not in a signal handler; calls of one sender wait for each other. None unwinds, exits or aborts. What fails says so by
 * what it returns, NULL or -1, and tampu_bulk_last_error() tells why. A handle that is NULL does nothing and is told as a failure.
 *
 * Structures may become longer with a later release, at their end. Who gives one to a function says how long it is, with sizeof. */
#ifndef TAMPU_BULK_H
#define TAMPU_BULK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who sends or receives. */
typedef struct tampu_bulk_participant tampu_bulk_participant;
/* The sending side of a flow. */
typedef struct tampu_bulk_sender tampu_bulk_sender;
/* The receiving side of a flow. */
typedef struct tampu_bulk_receiver tampu_bulk_receiver;

/* Why the last call in this thread that failed did so; "" if none has. Holds until the next failure of this thread. It is the same text
 * as tampu_log_last_error()'s. */
const char *tampu_bulk_last_error(void);

/* ---- Who one is ---- */

/* Joins the bus under a stable name, such as "CORR/CORRELATOR". The environment says the rest: TAMPU_DOMAIN, TAMPU_RUN_DIR,
 * TAMPU_HUB, TAMPU_KEY. NULL if that failed. */
tampu_bulk_participant *tampu_bulk_join(const char *source);

/* Does without the bus: senders are told where receivers are. Both must be of one domain. NULL if that failed. */
tampu_bulk_participant *tampu_bulk_alone(const char *domain, const char *source);

/* Ends a participant, which is not used any more. Senders and receivers that were opened with it go on, and hold its place on the bus.
 * NULL is no mistake. */
void tampu_bulk_leave(tampu_bulk_participant *participant);

/* ---- Sending ---- */

/* Which way data goes. */
enum {
    /* To the group where there is one; shared memory where both are on one host; else TCP. */
    TAMPU_BULK_AUTO = 0,
    TAMPU_BULK_TCP = 1,
    TAMPU_BULK_SHM = 2,
    TAMPU_BULK_UDP = 3,
    /* To the multicast group of the settings, once for all receivers; that is also what a group means without it. */
    TAMPU_BULK_MULTICAST = 4
};

/* How a flow is sent. What is 0 is as it is without settings. */
typedef struct tampu_bulk_send_settings {
    /* Bytes that may be sent and not acknowledged: 32 MiB; at most 16 GiB. */
    uint64_t window;
    /* At most so many bytes a second; 0: no limit. */
    double throttle;
    /* How many receivers tampu_bulk_start wants: 1. */
    uint32_t receivers;
    /* How long it waits for them, ms: 5000. */
    uint32_t connect_wait_ms;
    /* TAMPU_BULK_... */
    int32_t transport;
    /* 1: data has checksums. */
    int32_t checked;
    /* A multicast group, "ADDRESS" or "ADDRESS:PORT" as in "239.255.7.1:4711": data goes to it once for all receivers. NULL or "": none. */
    const char *group;
    /* The address of this host's interface that it goes out at. NULL or "": 127.0.0.1, which no other host hears. */
    const char *group_interface;
    /* How many networks it may go through, 255 at most: 1. */
    uint32_t group_ttl;
    /* 0. */
    uint32_t reserved;
} tampu_bulk_send_settings;

/* Opens a sender. `settings` may be NULL. It has no receivers yet. NULL if that failed. */
tampu_bulk_sender *tampu_bulk_sender_open(const tampu_bulk_participant *participant, const char *stream, const char *flow,
                                          const tampu_bulk_send_settings *settings, size_t size);

/* Connects to a receiver at "host:port/token" (tampu_bulk_receiver_target), in the background, and again whenever the connection breaks.
 * 0: it will; -1: failed. */
int32_t tampu_bulk_sender_connect(const tampu_bulk_sender *sender, const char *target);

/* Connects to all receivers of the stream and flow that announce themselves on the bus, now and later. 0: it will; -1: failed. */
int32_t tampu_bulk_sender_follow(const tampu_bulk_sender *sender);

/* Waits at most so many milliseconds until so many receivers are connected. 1: they are; 0: not in time, and the last error tells why;
 * -1: failed. */
int32_t tampu_bulk_sender_wait(const tampu_bulk_sender *sender, uint32_t receivers, uint32_t timeout_ms);

/* Begins a transfer: waits for receivers, and until their callbacks have taken the parameter. The parameter may be any bytes that fit a
 * frame (256 KiB). 0: begun; -1: failed. */
int32_t tampu_bulk_start(const tampu_bulk_sender *sender, const void *parameter, size_t length);

/* Sends a copy of a block. Returns when the fastest receiver's socket or memory has taken it, and waits where the slowest is a window
 * behind. 0: sent; -1: failed, and the transfer is still to be ended with tampu_bulk_stop or tampu_bulk_reset. */
int32_t tampu_bulk_send(const tampu_bulk_sender *sender, const void *bytes, size_t length);

/* How a transfer went. */
typedef struct tampu_bulk_report {
    /* Its number in this life of the sender, from 1. */
    uint64_t transfer;
    /* Bytes that were sent. */
    uint64_t bytes;
    /* Bytes that the receiver with the most losses has lost, as far as known. */
    uint64_t lost_bytes;
    /* From start to stop. */
    double seconds;
    /* Receivers that took part. */
    uint32_t receivers;
    /* Those that have all of it. */
    uint32_t complete;
} tampu_bulk_report;

/* Ends the transfer: returns when every receiver's callback has had all data and the stop. `report` may be NULL. 1: all who took part
 * have all of it; 0: somebody has not, and the last error tells who and why; -1: failed. */
int32_t tampu_bulk_stop(const tampu_bulk_sender *sender, tampu_bulk_report *report, size_t size);

/* Gives up what is under way. Always possible. 0: done; -1: failed. */
int32_t tampu_bulk_reset(const tampu_bulk_sender *sender);

/* Ends a sender, which is not used any more. What is under way is given up. NULL is no mistake. */
void tampu_bulk_sender_close(tampu_bulk_sender *sender);

/* ---- Receiving ---- */

/* A transfer begins. */
typedef struct tampu_bulk_transfer_start {
    uint64_t transfer;
    /* Who sends it. */
    const char *sender;
    /* What the sender says about it; no zero stands behind it. */
    const void *parameter;
    size_t length;
} tampu_bulk_transfer_start;

/* A piece of its data. */
typedef struct tampu_bulk_piece {
    uint64_t transfer;
    /* Where it lies in the transfer. */
    uint64_t offset;
    /* On one host they lie in the sender's memory. Where the sender did not wait for a receiver that was too slow they may change while they
     * are looked at; that they did is then told as lost. */
    const void *bytes;
    size_t length;
    /* 1: a block of the sender's ends here. */
    int32_t end_of_block;
} tampu_bulk_piece;

/* How it ended. */
typedef struct tampu_bulk_end {
    uint64_t transfer;
    /* Bytes that were handed over. */
    uint64_t bytes;
    /* Where the data ended. */
    uint64_t offset;
    /* Bytes that are missing, as far as known. */
    uint64_t lost_bytes;
    double seconds;
    /* 1: the sender stopped it and nothing is missing. */
    int32_t complete;
    /* 1: the sender stopped it. 0: it gave it up, is gone, or began something else. */
    int32_t stopped;
} tampu_bulk_end;

/* Bytes that will not come. */
typedef struct tampu_bulk_lost_range {
    uint64_t from;
    /* The one after the last; UINT64_MAX: how many there were is not known. */
    uint64_t to;
    /* How many frames, where that is known. */
    uint64_t frames;
    /* The number of spec/bulk.md's table of causes, and in words. */
    int32_t cause;
    const char *why;
} tampu_bulk_lost_range;

/* Something that is wrong; the sender is told too. */
typedef struct tampu_bulk_fault_note {
    /* The number of spec/bulk.md's table of faults. */
    int32_t kind;
    /* How often in this transfer so far. */
    uint32_t count;
    const char *text;
} tampu_bulk_fault_note;

/* What a callback answers. */
enum {
    TAMPU_BULK_OK = 0,
    /* It failed; what follows is still wanted. The sender is told, and `fault` is called; the transfer counts as complete all the same:
     * nothing of it is missing. */
    TAMPU_BULK_FAILED = 1,
    /* It wants no more data of this transfer. The stop is delivered all the same. */
    TAMPU_BULK_GIVE_UP = 2
};

/* What is to be done with what comes. A callback may be NULL: then nothing is. They are called one after another, in threads of the
 * library's, with `context` as it is given here; what their other argument points to is gone when they return. While one runs nothing
 * more is read, and in the end the sender waits. None may throw, longjmp or end its thread. */
typedef struct tampu_bulk_handler {
    void *context;
    int32_t (*start)(void *context, const tampu_bulk_transfer_start *start);
    int32_t (*data)(void *context, const tampu_bulk_piece *data);
    int32_t (*stop)(void *context, const tampu_bulk_end *end);
    void (*lost)(void *context, const tampu_bulk_lost_range *lost);
    void (*fault)(void *context, const tampu_bulk_fault_note *fault);
} tampu_bulk_handler;

/* In a callback that is about to answer with a failure: says why, for the sender. */
void tampu_bulk_explain(const char *text);

/* Opens a receiver; with a participant on the bus it is announced there. `listen` is an IP address and a port, "0.0.0.0:0"; NULL:
 * 127.0.0.1 and a free port. `announce` is the name or address that is given away, with or without a port; NULL: the one it listens
 * at. NULL if that failed. */
tampu_bulk_receiver *tampu_bulk_receiver_open(const tampu_bulk_participant *participant, const char *stream, const char *flow,
                                              const char *listen, const char *announce, const tampu_bulk_handler *handler, size_t size);

/* Where senders reach it and what lets them in: "host:port/token". Holds until it is closed. NULL if that failed. */
const char *tampu_bulk_receiver_target(const tampu_bulk_receiver *receiver);

/* Takes a receiver back from the bus, and waits at most so many milliseconds until no sender is connected. Before closing one that has all it
 * wanted: else its sender may not hear that the last stop was taken. 1: none is connected; 0: somebody is; -1: failed. */
int32_t tampu_bulk_receiver_part(const tampu_bulk_receiver *receiver, uint32_t timeout_ms);

/* Ends a receiver, which is not used any more. A transfer under way is told as ended, but where a callback takes longer than 2 s. Waits
 * until running callbacks have returned: after it none is called, and the context may be freed. 0: closed; -1: failed: a callback
 * called this. NULL is no mistake. */
int32_t tampu_bulk_receiver_close(tampu_bulk_receiver *receiver);

#ifdef __cplusplus
}
#endif

#endif
