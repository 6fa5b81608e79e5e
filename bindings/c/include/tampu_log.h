/* Tampu's logger for C. Link with -ltampu_log.
 *
 *     tampu_logger *logger = tampu_log_open("CONTROL/DV01");
 *     TAMPU_LOG_PRINTF(logger, TAMPU_LOG_INFO, "az %.3f el %.3f", az, el);
 *     tampu_log_close(logger);
 *
 * A call stores its record in this thread's ring in shared memory and never waits for the network. What was stored survives the
 * process, however that ends: the host's hub takes it from there. A full ring makes a call wait (200 us, from Error on 20 ms);
 * a record that is lost after that is counted and told of in the log.
 *
 * Strings are UTF-8 that ends with a zero; they are copied or used during the call only. Where nothing else is said, NULL is an
 * empty string, and other bytes than UTF-8 are shown as U+FFFD.
 *
 * Every function may be called in every thread, but not in a signal handler. None unwinds, exits or aborts. What fails says so by
 * what it returns, and tampu_log_last_error() tells why. A logger that is NULL takes nothing.
 *
 * The header of C++17, tampu_log.hpp, is built on this one. */
#ifndef TAMPU_LOG_H
#define TAMPU_LOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How grave a record is: ACS's ten levels with ACS's numbers. */
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

/* Begins the logging of this process under its stable name, such as "CONTROL/DV01"; once a process. The environment says the
 * rest: TAMPU_DOMAIN, TAMPU_RUN_DIR, TAMPU_HUB, TAMPU_LOG_LEVEL (published from), TAMPU_LOG_LOCAL (printed from),
 * TAMPU_LOG_CONFIG (a file) and others, which the README tells. The hub may come later. NULL if that failed. */
tampu_logger *tampu_log_open(const char *source);

/* Another handle of the same logger. NULL if that failed. */
tampu_logger *tampu_log_clone(const tampu_logger *logger);

/* Waits at most so many milliseconds until everything logged before has reached everybody who is there. 1: it has; 0: not in
 * time; -1: failed. */
int32_t tampu_log_flush(const tampu_logger *logger, uint32_t timeout_ms);

/* The same until a collector has committed everything that was published before: when this returns 1 it is on its disk. */
int32_t tampu_log_flush_to_archive(const tampu_logger *logger, uint32_t timeout_ms);

/* 1: what is logged survives the process. 0: the run-time directory cannot be used, tampu_log_last_error() tells why, and what has
 * not gone out ends with the process. -1: failed. */
int32_t tampu_log_survives(const tampu_logger *logger);

/* How many records this process has lost so far. Each has been told of in the log, or will be. */
uint64_t tampu_log_dropped(const tampu_logger *logger);

/* Ends a handle, which is not used any more. The last handle of the process waits up to 2 s until what was logged has gone out;
 * what has not is taken over by the hub. NULL is no mistake. */
void tampu_log_close(tampu_logger *logger);

/* ---- Loggers made from loggers: each is closed by itself; NULL if that failed ---- */

/* One of this name, with levels of its own; the other fields are kept. */
tampu_logger *tampu_log_named(const tampu_logger *logger, const char *name);

/* The same speaking for a component, such as "CONTROL/DV01/Mount". */
tampu_logger *tampu_log_for_object(const tampu_logger *logger, const char *object);

/* The same speaking to these audiences only; to everybody if there are none. */
tampu_logger *tampu_log_for_audiences(const tampu_logger *logger, const char *const *audiences, size_t count);

/* The same in a context. */
tampu_logger *tampu_log_in_context(const tampu_logger *logger, const char *context);

/* The same during a run or observation. */
tampu_logger *tampu_log_in_run(const tampu_logger *logger, const char *run);

/* The same for an antenna of an array. */
tampu_logger *tampu_log_for_antenna(const tampu_logger *logger, const char *antenna, const char *array);

/* The same within an error chain, ACS's stack id, at this depth: 0 is the outermost error. */
tampu_logger *tampu_log_in_stack(const tampu_logger *logger, const char *stack, int32_t depth);

/* ---- What was done so far ---- */

/* Counted for all loggers of this process. */
typedef struct tampu_log_statistics {
    /* Records that found no room. */
    uint64_t dropped;
    /* Records handed to the bus, and bytes. */
    uint64_t published;
    uint64_t bytes;
    /* Calls that waited for room. */
    uint64_t waited;
    /* The most bytes that were seen waiting in one thread's ring. */
    uint64_t high_water;
    /* Records handed to the bus, by level, from TAMPU_LOG_TRACE to TAMPU_LOG_EMERGENCY. */
    uint64_t by_level[10];
} tampu_log_statistics;

/* Fills them in; `size` is sizeof(tampu_log_statistics). 0, or -1 if that failed. */
int32_t tampu_log_stats(const tampu_logger *logger, tampu_log_statistics *statistics, size_t size);

/* ---- Levels: shared by all loggers of one name ---- */

/* 1 if a record of this level would go anywhere, else 0. */
int32_t tampu_log_enabled(const tampu_logger *logger, int32_t level);

/* Where the least level that goes anywhere stands, for those who compare by themselves: `level >= *threshold`, read atomically,
 * relaxed. Never NULL; valid until the logger is closed. */
const uint8_t *tampu_log_threshold(const tampu_logger *logger);

/* From which level on records are published. 0, or -1 if that failed. */
int32_t tampu_log_set_level(const tampu_logger *logger, int32_t from);

/* From which level on records are also printed on standard error. 0, or -1 if that failed. */
int32_t tampu_log_set_local_level(const tampu_logger *logger, int32_t from);

/* ---- Logging a text ---- */

/* Logs a text as it is. Of one longer than 65 536 bytes the beginning is kept, and how much is missing. `file`, `line` and
 * `routine` say where: __FILE__, __LINE__, __func__. 0 (also if the level is not enabled), or -1 if the arguments are wrong. */
int32_t tampu_log_write(const tampu_logger *logger, int32_t level, const char *file, uint32_t line, const char *routine,
                        const char *text);

/* The same with a text of `length` bytes, which may have zeros in it. */
int32_t tampu_log_write_bytes(const tampu_logger *logger, int32_t level, const char *file, uint32_t line, const char *routine,
                              const char *text, size_t length);

/* A value that travels beside a text and can be searched for by its name. */
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

/* What is known of a statement before it runs. */
typedef struct tampu_log_site {
    int32_t level;
    /* 0 if unknown. */
    uint32_t line;
    const char *file;
    /* The namespace. */
    const char *module;
    const char *routine;
    /* A format text as the C++ library fmt and std::format have it: "az {:.3f} of {}". */
    const char *text;
    /* How many arguments a call has, the named ones among them: at most 64. */
    size_t arguments;
    /* Names of the values that travel beside the text; they are the last arguments, in this order. */
    const char *const *names;
    size_t names_count;
} tampu_log_site;

/* Room for one call, in the caller's memory: 128 bytes on the stack. What is in it is not the caller's business. */
typedef struct tampu_log_slot {
    uint64_t opaque[16];
} tampu_log_slot;

/* Makes a statement. One whose format text is wrong shows the text as it stands, what is wrong with it, and the arguments beside
 * it; tampu_log_last_error() tells too. NULL if nothing can be made of it. */
const tampu_log_statement *tampu_log_define(const tampu_log_site *site);

/* Room for the payload of a call, `length` bytes in the layout of spec/log-call.md, unaligned, to be written and then committed
 * by this thread, soon: further records of this thread take a slow way meanwhile. The level is not looked at: ask before. NULL if
 * there is no room, which has been counted (there is nothing to commit then), or if the arguments are wrong. The logger stays
 * open as long as the slot is. */
unsigned char *tampu_log_claim(const tampu_logger *logger, const tampu_log_statement *statement, size_t length,
                               tampu_log_slot *slot);

/* Makes a record of it. Once this returns the record survives the process. */
void tampu_log_commit(tampu_log_slot *slot);

/* Gives the room back instead. */
void tampu_log_discard(tampu_log_slot *slot);

/* ---- Records written without a call: for front ends whose code is compiled into the program ----
 *
 * As spec/log-ring.md has a record, in the ring that this thread used last. Everything here belongs to one layout, whose number is
 * TAMPU_LOG_FRONT_ABI; a library that has another one says so in tampu_log_front_of(), and then records go through
 * tampu_log_claim(), which always works. How it is done: `store` in tampu_log.hpp. */
#define TAMPU_LOG_FRONT_ABI 1u

/* Bytes before a record's payload, and what is added to `lines` to get the word that publishes it. */
#define TAMPU_LOG_RECORD_HEADER 24
#define TAMPU_LOG_RING_HEAD 128

/* The ring that a thread writes to, as far as front ends may touch it. */
typedef struct tampu_log_ring {
    /* Where the next record begins; written after each record. */
    unsigned char *next;
    /* A payload of n bytes has room with all that belongs to it where next + n < end; else nothing may be written. */
    uintptr_t end;
    /* What is added to an address to get a position in the ring. */
    uint64_t bias;
    /* The word at TAMPU_LOG_RING_HEAD behind it is the position up to which records are complete: stored last, with Release. */
    unsigned char *lines;
} tampu_log_ring;

/* The words of a thread. They are changed by the library; whoever reads them must be that thread. */
typedef struct tampu_log_thread {
    /* Whose ring it is; 0 for none. Only where it is the logger's may `ring` be looked at. */
    uint64_t pool;
    tampu_log_ring *ring;
} tampu_log_thread;

/* What is the same in all records of a logger. */
typedef struct tampu_log_front {
    uint64_t pool;
    /* Statements have other numbers with loggers of another page. Never 0, but where there is no front. */
    uint32_t page;
    uint32_t voice;
    /* After a record of this level or above, tampu_log_wake() is called. */
    uint32_t bell_from;
    uint32_t reserved;
} tampu_log_front;

/* Fills in what is the same in all records of this logger: 1. Or 0, where they have to go through tampu_log_claim(): then `pool` is
 * one that no thread's words have. `abi` is TAMPU_LOG_FRONT_ABI. */
int32_t tampu_log_front_of(const tampu_logger *logger, uint32_t abi, tampu_log_front *front);

/* This thread's words. Never NULL; they stay there as long as the thread runs. */
const tampu_log_thread *tampu_log_this_thread(void);

/* The number that stands for a statement in this logger's records; 0 where it has none. */
uint32_t tampu_log_number(const tampu_logger *logger, const tampu_log_statement *statement);

/* Wakes whoever takes records from the rings. */
void tampu_log_wake(const tampu_logger *logger);

/* ---- Errors ---- */

/* Why a function last failed in this thread; "" if none has. Never NULL; valid until the next failure in this thread. */
const char *tampu_log_last_error(void);

#ifdef __cplusplus
}
#endif

/* ---- For C: a text made as printf makes it ---- */

#ifndef __cplusplus
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes of a text that needs no memory from the heap. */
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
