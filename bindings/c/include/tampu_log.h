/* Tampu's logger for C. Link with -ltampu_log.
 *
 *     tampu_logger *logger = tampu_log_open("CONTROL/DV01");
 *     TAMPU_LOG_PRINTF(logger, TAMPU_LOG_INFO, "az %.3f el %.3f", az, el);
 *     tampu_log_close(logger);
 *
 * A call stores its record in this thread's ring in shared memory and never waits for the network. A stored record survives any
 * end of the process: the host's hub takes it from the ring. If the ring is full, a call waits (200 us, from Error on 20 ms). A
 * record that is lost after that is counted and reported in the log.
 *
 * Strings are UTF-8 with a zero at the end; they are copied or used during the call only. Unless stated otherwise, NULL is an empty
 * string, and bytes that are not UTF-8 are shown as U+FFFD.
 *
 * Every function may be called in every thread, but not in a signal handler. None unwinds, exits or aborts. The return value
 * reports a failure, and tampu_log_last_error() returns its reason. A NULL logger discards all records.
 *
 * The header of C++17, tampu_log.hpp, is built on this one. */
#ifndef TAMPU_LOG_H
#define TAMPU_LOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Levels of records: ACS's ten levels with ACS's numbers. */
enum {
    TAMPU_LOG_TRACE = 1,
    TAMPU_LOG_DELOUSE = 2,
    TAMPU_LOG_DEBUG = 3,
    TAMPU_LOG_INFO = 4,
    TAMPU_LOG_NOTICE = 5,
    TAMPU_LOG_WARNING = 6,
    TAMPU_LOG_ERROR = 8,
    TAMPU_LOG_CRITICAL = 9,
    TAMPU_LOG_ALERT = 10,
    TAMPU_LOG_EMERGENCY = 11,
    /* A threshold only: nothing passes it. */
    TAMPU_LOG_OFF = 99
};

/* A named logger, or one derived from it. It is closed once; loggers may be closed in any order. */
typedef struct tampu_logger tampu_logger;

/* ---- Opening and closing ---- */

/* Begins the logging of this process under its stable name, such as "CONTROL/DV01"; once a process. The environment has the other
 * settings: TAMPU_DOMAIN, TAMPU_RUN_DIR, TAMPU_HUB, TAMPU_LOG_LEVEL (lowest level to publish), TAMPU_LOG_LOCAL (lowest level to
 * print), TAMPU_LOG_CONFIG (a file) and others, listed in the documentation. The hub may start later. NULL on failure. */
tampu_logger *tampu_log_open(const char *source);

/* Returns another handle of the same logger. NULL on failure. */
tampu_logger *tampu_log_clone(const tampu_logger *logger);

/* Waits until everything logged before has reached every present receiver, at most `timeout_ms`. 1: done; 0: timeout;
 * -1: failed. */
int32_t tampu_log_flush(const tampu_logger *logger, uint32_t timeout_ms);

/* Waits until a collector has committed everything published before: when this returns 1, it is on the collector's disk. */
int32_t tampu_log_flush_to_archive(const tampu_logger *logger, uint32_t timeout_ms);

/* Returns at once, and calls `told` later, once: with kept = 1 when a collector has committed everything published before this call,
 * with 0 after `timeout_ms` or at the end of the logging. The logger's worker calls it with `user`, possibly after the handle was
 * closed; it must be quick, and may log. 0, or -1: failed, and `told` is never called. */
int32_t tampu_log_when_kept(const tampu_logger *logger, uint32_t timeout_ms, void (*told)(void *user, int32_t kept), void *user);

/* The grade of safety that a program waits for. */
enum tampu_log_grade {
    /* A collector has the records in its memory and will commit them. If the collector dies before that, they come again from this
     * process or from its log rings, as long as this host runs. */
    TAMPU_LOG_RECEIVED = 1,
    /* A collector has committed them: they are on its disk. */
    TAMPU_LOG_KEPT = 2
};

/* The outcome for records; above 0, the grade that was asked for is reached. */
enum tampu_log_outcome {
    /* The bus no longer had them when a collector asked for them. */
    TAMPU_LOG_IS_LOST = -3,
    /* This process could not send them, for instance because they were too long. */
    TAMPU_LOG_IS_REFUSED = -2,
    /* The time is over, or the logging ends: nothing is known yet. A collector may get them later. */
    TAMPU_LOG_IS_UNCONFIRMED = 0,
    TAMPU_LOG_IS_RECEIVED = 1,
    TAMPU_LOG_IS_KEPT = 2
};

/* Waits until a collector has everything published before in this grade of enum tampu_log_grade, at most `timeout_ms`. A value of
 * enum tampu_log_outcome, or -1: failed. */
int32_t tampu_log_wait(const tampu_logger *logger, int32_t grade, uint32_t timeout_ms);

/* As tampu_log_when_kept, for any grade: `told` is called once, with a value of enum tampu_log_outcome. After each statement, it is a
 * callback for each record. 0, or -1: failed, and `told` is never called. */
int32_t tampu_log_when(const tampu_logger *logger, int32_t grade, uint32_t timeout_ms, void (*told)(void *user, int32_t outcome),
                       void *user);

/* 1: logged records survive the process. 0: the run-time directory cannot be used, tampu_log_last_error() has the reason, and
 * unsent records end with the process. -1: failed. */
int32_t tampu_log_survives(const tampu_logger *logger);

/* Number of records that this process has lost so far. Each loss has been reported in the log, or will be. */
uint64_t tampu_log_dropped(const tampu_logger *logger);

/* Ends a handle, which must not be used afterwards. The last handle of the process waits up to 2 s until the logged records are
 * sent; the hub takes over the rest. NULL is allowed. */
void tampu_log_close(tampu_logger *logger);

/* ---- Loggers derived from loggers: each has to be closed; NULL on failure ---- */

/* A logger of this name, with levels of its own; the other fields are kept. */
tampu_logger *tampu_log_named(const tampu_logger *logger, const char *name);

/* The same logger for a component, such as "CONTROL/DV01/Mount". */
tampu_logger *tampu_log_for_object(const tampu_logger *logger, const char *object);

/* The same logger for these audiences only; without audiences for everybody. */
tampu_logger *tampu_log_for_audiences(const tampu_logger *logger, const char *const *audiences, size_t count);

/* The same logger in a context. */
tampu_logger *tampu_log_in_context(const tampu_logger *logger, const char *context);

/* The same logger during a run or observation. */
tampu_logger *tampu_log_in_run(const tampu_logger *logger, const char *run);

/* The same logger for an antenna of an array. */
tampu_logger *tampu_log_for_antenna(const tampu_logger *logger, const char *antenna, const char *array);

/* The same logger within an error chain, ACS's stack id, at this depth: 0 is the outermost error. */
tampu_logger *tampu_log_in_stack(const tampu_logger *logger, const char *stack, int32_t depth);

/* ---- Statistics ---- */

/* Statistics of all loggers of this process. */
typedef struct tampu_log_statistics {
    /* Records dropped for lack of room. */
    uint64_t dropped;
    /* Records handed to the bus, and bytes. */
    uint64_t published;
    uint64_t bytes;
    /* Calls that waited for room. */
    uint64_t waited;
    /* Largest number of waiting bytes seen in one thread's ring. */
    uint64_t high_water;
    /* Records handed to the bus, by level, from TAMPU_LOG_TRACE to TAMPU_LOG_EMERGENCY. */
    uint64_t by_level[10];
} tampu_log_statistics;

/* Fills in the statistics; `size` is sizeof(tampu_log_statistics). Returns 0, or -1 on failure. */
int32_t tampu_log_stats(const tampu_logger *logger, tampu_log_statistics *statistics, size_t size);

/* ---- Levels: shared by all loggers of one name ---- */

/* Returns 1 if a record of this level has a receiver, otherwise 0. */
int32_t tampu_log_enabled(const tampu_logger *logger, int32_t level);

/* Returns the address of the lowest level that has a receiver, for callers that compare themselves: `level >= *threshold`, read
 * atomically, relaxed. Never NULL; valid until the logger is closed. */
const uint8_t *tampu_log_threshold(const tampu_logger *logger);

/* Sets the lowest level to publish. Returns 0, or -1 on failure. */
int32_t tampu_log_set_level(const tampu_logger *logger, int32_t from);

/* Sets the lowest level to print on standard error. Returns 0, or -1 on failure. */
int32_t tampu_log_set_local_level(const tampu_logger *logger, int32_t from);

/* ---- Logging a text ---- */

/* Logs a text unchanged. A text beyond 65 536 bytes is cut, with the number of missing bytes. `file`, `line` and `routine` are
 * the place: __FILE__, __LINE__, __func__. Returns 0 (also if the level is not enabled), or -1 for invalid arguments. */
int32_t tampu_log_write(const tampu_logger *logger, int32_t level, const char *file, uint32_t line, const char *routine,
                        const char *text);

/* The same with a text of `length` bytes, which may contain zeros. */
int32_t tampu_log_write_bytes(const tampu_logger *logger, int32_t level, const char *file, uint32_t line, const char *routine,
                              const char *text, size_t length);

/* A named value beside a text, which can be searched for by its name. */
typedef struct tampu_log_datum {
    const char *name;
    const char *value;
} tampu_log_datum;

/* The same with `count` values beside the text. */
int32_t tampu_log_write_data(const tampu_logger *logger, int32_t level, const char *file, uint32_t line, const char *routine,
                             const char *text, size_t length, const tampu_log_datum *data, size_t count);

/* ---- Statements with arguments: for front ends of other languages ---- */

/* A log statement. It is never freed: make one for each statement of the program, not one for each call. */
typedef struct tampu_log_statement tampu_log_statement;

/* Description of a statement: everything known before it runs. */
typedef struct tampu_log_site {
    int32_t level;
    /* 0 if unknown. */
    uint32_t line;
    const char *file;
    /* The namespace. */
    const char *module;
    const char *routine;
    /* Format text of the C++ library fmt and std::format: "az {:.3f} of {}". */
    const char *text;
    /* Number of arguments of a call, including the named ones: at most 64. */
    size_t arguments;
    /* Names of the values beside the text; they are the last arguments, in this order. */
    const char *const *names;
    size_t names_count;
} tampu_log_site;

/* Room for one call, in the caller's memory: 128 bytes on the stack. Its content is internal. */
typedef struct tampu_log_slot {
    uint64_t opaque[16];
} tampu_log_slot;

/* Makes a statement. With an invalid format text, its records show the text unchanged, the reason, and the arguments;
 * tampu_log_last_error() returns the reason too. NULL if the description is invalid. */
const tampu_log_statement *tampu_log_define(const tampu_log_site *site);

/* Reserves room for the payload of a call: `length` bytes in the layout of spec/log-call.md, unaligned. This thread has to write
 * and commit it soon, because its further records take a slow path meanwhile. The level is not checked: check it before. NULL
 * without room, which is counted (then there is nothing to commit), or for invalid arguments. The logger stays open as long as
 * the slot. */
unsigned char *tampu_log_claim(const tampu_logger *logger, const tampu_log_statement *statement, size_t length,
                               tampu_log_slot *slot);

/* Completes the record. After this call the record survives the process. */
void tampu_log_commit(tampu_log_slot *slot);

/* Releases the room without a record. */
void tampu_log_discard(tampu_log_slot *slot);

/* ---- Records written without a call: for front ends whose code is compiled into the program ----
 *
 * The record has the form of spec/log-ring.md, in the ring that this thread used last. Everything here belongs to one layout with
 * the number TAMPU_LOG_FRONT_ABI. A library with another layout reports it in tampu_log_front_of(); then records go through
 * tampu_log_claim(), which always works. For an example see `store` in tampu_log.hpp. */
#define TAMPU_LOG_FRONT_ABI 1u

/* Bytes before a record's payload, and the offset from `lines` to the word that publishes it. */
#define TAMPU_LOG_RECORD_HEADER 24
#define TAMPU_LOG_RING_HEAD 128

/* The part of a thread's ring that front ends may use. */
typedef struct tampu_log_ring {
    /* Address of the next record; written after each record. */
    unsigned char *next;
    /* A record with a payload of n bytes has room if next + n < end; otherwise nothing may be written. */
    uintptr_t end;
    /* Difference between an address and its position in the ring. */
    uint64_t bias;
    /* The word at TAMPU_LOG_RING_HEAD behind it is the position up to which records are complete: stored last, with Release. */
    unsigned char *lines;
} tampu_log_ring;

/* The words of a thread. The library changes them; only that thread may read them. */
typedef struct tampu_log_thread {
    /* Owner of the ring; 0 for none. `ring` may be read only if this is the logger's `pool`. */
    uint64_t pool;
    tampu_log_ring *ring;
} tampu_log_thread;

/* Values that all records of a logger have in common. */
typedef struct tampu_log_front {
    uint64_t pool;
    /* Loggers of another page have other statement numbers. 0 only without a front. */
    uint32_t page;
    uint32_t voice;
    /* After a record of this level or above, tampu_log_wake() is called. */
    uint32_t bell_from;
    uint32_t reserved;
} tampu_log_front;

/* Fills in the values common to all records of this logger, and returns 1. Returns 0 if records have to go through
 * tampu_log_claim(): then no thread has this `pool`. `abi` is TAMPU_LOG_FRONT_ABI. */
int32_t tampu_log_front_of(const tampu_logger *logger, uint32_t abi, tampu_log_front *front);

/* Returns this thread's words. Never NULL; valid as long as the thread runs. */
const tampu_log_thread *tampu_log_this_thread(void);

/* Returns the number of a statement in this logger's records; 0 if it has none. */
uint32_t tampu_log_number(const tampu_logger *logger, const tampu_log_statement *statement);

/* Wakes the thread that takes records from the rings. */
void tampu_log_wake(const tampu_logger *logger);

/* ---- Errors ---- */

/* Reason of the last failure in this thread; "" if there was none. Never NULL; valid until the next failure in this thread. */
const char *tampu_log_last_error(void);

#ifdef __cplusplus
}
#endif

/* ---- For C: a text formatted by printf ---- */

#ifndef __cplusplus
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Size in bytes of the stack buffer for a text. */
#define TAMPU_LOG_SHORT 1024

#if defined(__GNUC__)
__attribute__((format(printf, 6, 7)))
#endif
static inline int32_t
tampu_log_printf(const tampu_logger *logger, int32_t level, const char *file, uint32_t line, const char *routine,
                 const char *format, ...) {
    char brief[TAMPU_LOG_SHORT];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(brief, sizeof brief, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return tampu_log_write(logger, level, file, line, routine, format);
    }
    if ((size_t)length < sizeof brief) {
        return tampu_log_write_bytes(logger, level, file, line, routine, brief, (size_t)length);
    }
    char *whole = (char *)malloc((size_t)length + 1);
    if (whole == NULL) {
        return tampu_log_write_bytes(logger, level, file, line, routine, brief, sizeof brief - 1);
    }
    va_start(arguments, format);
    vsnprintf(whole, (size_t)length + 1, format, arguments);
    va_end(arguments);
    int32_t done = tampu_log_write_bytes(logger, level, file, line, routine, whole, (size_t)length);
    free(whole);
    return done;
}

/* TAMPU_LOG_PRINTF(logger, level, format, ...): the arguments are evaluated only if the level is enabled. */
#define TAMPU_LOG_PRINTF(logger, level, ...)                                                                                   \
    do {                                                                                                                       \
        const tampu_logger *tampu_log_here = (logger);                                                                         \
        if (tampu_log_enabled(tampu_log_here, (level))) {                                                                      \
            tampu_log_printf(tampu_log_here, (level), __FILE__, __LINE__, __func__, __VA_ARGS__);                              \
        }                                                                                                                      \
    } while (0)
#endif

#endif
