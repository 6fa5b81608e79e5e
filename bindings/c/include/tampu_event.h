/* Tampu's attribute events for C. Link with -ltampu_log, which also has the logger and bulk data.
 *
 *     tampu_event_server *server = tampu_event_server_open("vacuum");
 *     tampu_event_config config = {0};
 *     config.name = "sr/vacuum/c01-1/pressure";
 *     config.data_type = TAMPU_EVENT_DOUBLE;
 *     config.unit = "mbar";
 *     config.change_rel = "5";
 *     tampu_event_attribute *pressure = tampu_event_declare(server, &config, sizeof config);
 *     tampu_event_push_double(pressure, 1.2e-9);
 *
 * A server declares attributes "domain/family/member/attribute" and pushes readings. Criteria choose the kinds of event for a
 * reading; a reading for which none holds is only the current value. A client subscribes to names and patterns, in which an
 * asterisk stands for any text between two slashes. It gets the current value first, then each event once and in order, each loss
 * with its numbers, and changes of the source: died, silent, returned. C++ has classes for this in tampu_event.hpp.
 *
 * Strings are UTF-8 with a zero at the end; they are copied or used during the call only. Every function may be called in every
 * thread, but not in a signal handler. None unwinds, exits or aborts. A failure returns NULL or -1, and tampu_event_last_error()
 * returns its reason, which names the attribute and the type where these are wrong. A NULL handle counts as a failure.
 *
 * A later release may add members at the end of a structure. The caller passes the structure's size with sizeof, and sets it to
 * zero first: members of 0 or NULL have their defaults. */
#ifndef TAMPU_EVENT_H
#define TAMPU_EVENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process that has attributes. */
typedef struct tampu_event_server tampu_event_server;
/* One of its attributes. */
typedef struct tampu_event_attribute tampu_event_attribute;
/* A process that subscribes. */
typedef struct tampu_event_client tampu_event_client;
/* A subscription with a callback. */
typedef struct tampu_event_subscription tampu_event_subscription;
/* A subscription with a queue. */
typedef struct tampu_event_queue tampu_event_queue;

/* Reason of the last failure in this thread; "" if there was none. Valid until the next failure in this thread. The text is the same as
 * that of tampu_log_last_error(). */
const char *tampu_event_last_error(void);

/* ---- Values ---- */

/* Types of elements, and what an element is in C. The names are Tango's. */
enum {
    TAMPU_EVENT_BOOLEAN = 1, /* uint8_t, 0 or 1 */
    TAMPU_EVENT_UCHAR = 2,   /* uint8_t */
    TAMPU_EVENT_SHORT = 3,   /* int16_t */
    TAMPU_EVENT_USHORT = 4,  /* uint16_t */
    TAMPU_EVENT_LONG = 5,    /* int32_t */
    TAMPU_EVENT_ULONG = 6,   /* uint32_t */
    TAMPU_EVENT_LONG64 = 7,  /* int64_t */
    TAMPU_EVENT_ULONG64 = 8, /* uint64_t */
    TAMPU_EVENT_FLOAT = 9,   /* float */
    TAMPU_EVENT_DOUBLE = 10, /* double */
    TAMPU_EVENT_STRING = 11, /* const char * */
    TAMPU_EVENT_STATE = 12,  /* uint8_t: TAMPU_EVENT_STATE_... */
    TAMPU_EVENT_ENCODED = 13, /* uint8_t, with a word for the format of the bytes */
    TAMPU_EVENT_ENUM = 14    /* int16_t: the index of one of the attribute's labels */
};

/* Arrangement of the elements. */
enum { TAMPU_EVENT_SCALAR = 0, TAMPU_EVENT_SPECTRUM = 1, TAMPU_EVENT_IMAGE = 2 };

/* States of devices. */
enum {
    TAMPU_EVENT_STATE_ON = 0,
    TAMPU_EVENT_STATE_OFF = 1,
    TAMPU_EVENT_STATE_CLOSE = 2,
    TAMPU_EVENT_STATE_OPEN = 3,
    TAMPU_EVENT_STATE_INSERT = 4,
    TAMPU_EVENT_STATE_EXTRACT = 5,
    TAMPU_EVENT_STATE_MOVING = 6,
    TAMPU_EVENT_STATE_STANDBY = 7,
    TAMPU_EVENT_STATE_FAULT = 8,
    TAMPU_EVENT_STATE_INIT = 9,
    TAMPU_EVENT_STATE_RUNNING = 10,
    TAMPU_EVENT_STATE_ALARM = 11,
    TAMPU_EVENT_STATE_DISABLE = 12,
    TAMPU_EVENT_STATE_UNKNOWN = 13
};

/* Quality of a reading. */
enum {
    TAMPU_EVENT_VALID = 0,
    /* There is no value. */
    TAMPU_EVENT_INVALID = 1,
    /* Beyond an alarm limit. */
    TAMPU_EVENT_ALARMING = 2,
    /* On its way to a set point. */
    TAMPU_EVENT_CHANGING = 3,
    /* Beyond a warning limit. */
    TAMPU_EVENT_WARNING = 4
};

/* A value. */
typedef struct tampu_event_value {
    /* TAMPU_EVENT_DOUBLE and so on. */
    int32_t data_type;
    /* TAMPU_EVENT_SCALAR and so on. */
    int32_t format;
    /* Length of a row and number of rows; given for images only, and always told. */
    uint32_t x;
    uint32_t y;
    /* The elements, row after row. */
    const void *data;
    /* Number of elements; of TAMPU_EVENT_ENCODED, number of bytes. */
    size_t count;
    /* Format of encoded bytes, as "JPEG_RGB24"; NULL otherwise. */
    const char *encoding;
} tampu_event_value;

/* ---- Servers ---- */

/* Kinds of events: bits of a set. */
enum {
    /* The value changed by more than its thresholds. */
    TAMPU_EVENT_CHANGE = 1 << 0,
    /* The quality entered or left alarm or warning, or an error began or ended. */
    TAMPU_EVENT_ALARM = 1 << 1,
    /* The value changed by more than the thresholds for the archive, or the archive's period is over. */
    TAMPU_EVENT_ARCHIVE = 1 << 2,
    /* The attribute's period is over. */
    TAMPU_EVENT_PERIODIC = 1 << 3,
    /* The program chose it. */
    TAMPU_EVENT_USER = 1 << 4,
    TAMPU_EVENT_CONFIGURATION = 1 << 5,
    TAMPU_EVENT_DATA_READY = 1 << 6,
    TAMPU_EVENT_INTERFACE = 1 << 7,
    TAMPU_EVENT_GENERIC = 1 << 8
};

/* Description of an attribute. Numbers are texts, so that an absent one differs from 0. */
typedef struct tampu_event_config {
    /* Name of the attribute, domain/family/member/attribute. */
    const char *name;
    int32_t data_type;
    int32_t format;
    /* Longest row and most rows; 0: no limit but that of the encoding. */
    uint32_t max_x;
    uint32_t max_y;
    /* For people. */
    const char *label;
    const char *description;
    /* A UCUM code as "mbar" or "Cel". */
    const char *unit;
    /* Labels of TAMPU_EVENT_ENUM, by index. */
    const char *const *labels;
    size_t label_count;
    /* Limits of the value. At an alarm or warning limit and beyond it, the quality follows. */
    const char *min;
    const char *max;
    const char *alarm_low;
    const char *alarm_high;
    const char *warning_low;
    const char *warning_high;
    /* Thresholds of change events and of archive events: in percent of the last value sent, and in the attribute's unit. One
     * number x means -x and +x; two differ by direction, as "-0.5,2". */
    const char *change_rel;
    const char *change_abs;
    const char *archive_rel;
    const char *archive_abs;
    /* Longest time without an archive event, ms; 0: no limit. */
    uint64_t archive_period_ms;
    /* Period of periodic events, ms; 0: 1000. */
    uint64_t period_ms;
    /* 1: the attribute has a stream of its own, and tampu_event_flush tells whether its subscribers have its events. */
    int32_t acknowledged;
    /* 1: another process may have the attribute too, with this option. */
    int32_t redundant;
    /* 1: its events travel before ordinary data. */
    int32_t urgent;
    /* Must be 0. */
    int32_t reserved;
} tampu_event_config;

/* Joins the bus under a stable name and begins to publish. The environment has the other settings: TAMPU_DOMAIN, TAMPU_RUN_DIR,
 * TAMPU_HUB, TAMPU_KEY, TAMPU_CERTIFICATES. NULL on failure. */
tampu_event_server *tampu_event_server_open(const char *source);

/* Ends a server, which must not be used afterwards. Its attributes have to be withdrawn, too. 0: done, and no poll runs any more; -1:
 * failed, because a callback called this. NULL is allowed. */
int32_t tampu_event_server_close(tampu_event_server *server);

/* Declares an attribute. NULL on failure, as when this or another process has it already. */
tampu_event_attribute *tampu_event_declare(const tampu_event_server *server, const tampu_event_config *config, size_t size);

/* Withdraws an attribute, which must not be used afterwards. NULL is allowed. */
void tampu_event_withdraw(tampu_event_attribute *attribute);

/* Publishes a good value, with the present time, if a criterion holds. It becomes the current value in any case. 1: an event was
 * sent; 0: no criterion held; -1: failed. */
int32_t tampu_event_push(const tampu_event_attribute *attribute, const tampu_event_value *value);

/* A reading with all that it may have. */
typedef struct tampu_event_reading {
    /* NULL if the quality is invalid. */
    const tampu_event_value *value;
    /* Value that was written last; NULL: none. */
    const tampu_event_value *set_point;
    int32_t quality;
    /* Kinds to send it as, whatever the criteria say; 0: the criteria decide. */
    uint32_t kinds;
    /* Time of the reading, ns of UTC since 1970; 0: now. */
    int64_t time;
} tampu_event_reading;

/* Outcome of a reading. */
typedef struct tampu_event_pushed {
    /* Number of the attribute's last event. */
    uint64_t number;
    /* Kinds as which it was sent; 0: not sent. */
    uint32_t kinds;
    /* Processes that read the stream. */
    uint32_t readers;
} tampu_event_pushed;

/* Publishes a reading. `pushed` may be NULL. The result is that of tampu_event_push. */
int32_t tampu_event_push_reading(const tampu_event_attribute *attribute, const tampu_event_reading *reading, size_t size,
                                 tampu_event_pushed *pushed, size_t pushed_size);

/* Publishes that the attribute could not be read: a word for programs as "Cryo_NotConnected", a text for people, the place in the
 * program. The same failure is sent once. The result is that of tampu_event_push. */
int32_t tampu_event_fail(const tampu_event_attribute *attribute, const char *reason, const char *description, const char *origin);

/* Publishes that data is ready, with a counter of the program's. 0: sent; -1: failed. */
int32_t tampu_event_data_ready(const tampu_event_attribute *attribute, int32_t counter);

/* Publishes an event of the site's own with a name; `value` may be NULL, and of any type. 0: sent; -1: failed. */
int32_t tampu_event_generic(const tampu_event_attribute *attribute, const char *name, const tampu_event_value *value);

/* Number of processes that read the attribute's stream, or -1. */
int32_t tampu_event_readers(const tampu_event_attribute *attribute);

/* Waits until all readers have acknowledged what was pushed so far, at most `timeout_ms`. 1: all have; 0: not all; -1: failed. */
int32_t tampu_event_flush(const tampu_event_attribute *attribute, uint32_t timeout_ms);

/* Reads an attribute and pushes what it has read. */
typedef void (*tampu_event_read)(void *context, const tampu_event_attribute *attribute);

/* Calls `read` at this period in a thread of the server, until the attribute is withdrawn. A slow one delays other polls of this
 * server and nothing else. The context must be valid until the server is closed. 0: begun; -1: failed. */
int32_t tampu_event_poll(const tampu_event_attribute *attribute, uint32_t period_ms, tampu_event_read read, void *context);

/* Calls `read` in the same thread when somebody asks for the current value and the last reading is older than `max_age_ms`. Those who
 * ask wait at most 2 s, and share the reading. The context must be valid until the server is closed. 0: begun; -1: failed. */
int32_t tampu_event_on_read(const tampu_event_attribute *attribute, uint32_t max_age_ms, tampu_event_read read, void *context);

/* Pushes of scalars. */
static inline int32_t tampu_event_push_scalar(const tampu_event_attribute *attribute, int32_t data_type, const void *element) {
    const tampu_event_value value = {data_type, TAMPU_EVENT_SCALAR, 1, 0, element, 1, NULL};
    return tampu_event_push(attribute, &value);
}
static inline int32_t tampu_event_push_double(const tampu_event_attribute *attribute, double element) {
    return tampu_event_push_scalar(attribute, TAMPU_EVENT_DOUBLE, &element);
}
static inline int32_t tampu_event_push_long(const tampu_event_attribute *attribute, int32_t element) {
    return tampu_event_push_scalar(attribute, TAMPU_EVENT_LONG, &element);
}
static inline int32_t tampu_event_push_string(const tampu_event_attribute *attribute, const char *element) {
    return tampu_event_push_scalar(attribute, TAMPU_EVENT_STRING, &element);
}

/* ---- Events ---- */

/* Reason for which an event reaches a subscriber. */
enum {
    /* The value that the attribute had when the subscription began. */
    TAMPU_EVENT_FIRST = 0,
    /* A new event of the source. */
    TAMPU_EVENT_UPDATE = 1,
    /* The first value after an absence of the source. */
    TAMPU_EVENT_RESUMED = 2,
    /* Events are lost: `missed_from` to `missed_to`. */
    TAMPU_EVENT_GAP = 3,
    /* The process that has the attribute died; its last value stands. */
    TAMPU_EVENT_SOURCE_DIED = 4,
    /* The source is silent: it hangs, or the network to it is cut. */
    TAMPU_EVENT_SOURCE_HUNG = 5,
    /* The source has recovered, or another life of it has begun. */
    TAMPU_EVENT_SOURCE_RETURNED = 6,
    /* The source ended in order, or has withdrawn the attribute. */
    TAMPU_EVENT_SOURCE_LEFT = 7,
    /* The attribute's configuration has changed. */
    TAMPU_EVENT_CONFIG_CHANGED = 8,
    /* A second process has the attribute too. */
    TAMPU_EVENT_CONFLICT = 9
};

/* An element of a stack of errors, the innermost first. */
typedef struct tampu_event_cause {
    const char *reason;
    const char *description;
    const char *origin;
    /* 0: warning; 1: error; 2: the source cannot continue. */
    int32_t severity;
    int32_t reserved;
} tampu_event_cause;

/* An event. All that it points to is valid during the callback, or until the next event of the queue. */
typedef struct tampu_event {
    const char *attribute;
    /* Name of the process that has the attribute. */
    const char *source;
    const char *unit;
    /* TAMPU_EVENT_UPDATE and so on. */
    int32_t reason;
    int32_t quality;
    /* Kinds of the event, a set. */
    uint32_t kinds;
    /* Number of the configuration that was valid. */
    uint32_t epoch;
    /* Number of the event, from 1 for each attribute in each life of its source. */
    uint64_t number;
    /* Events that are missing before this one, the second not included: 0 and 0 if none is; 0 and UINT64_MAX if their number is
     * unknown. */
    uint64_t missed_from;
    uint64_t missed_to;
    /* Times in ns of UTC since 1970: of the reading and of sending by the source's clock, of arrival by this host's. */
    int64_t time;
    int64_t sent;
    int64_t received;
    /* The value; NULL for a message about the source, and for a failed reading. */
    const tampu_event_value *value;
    const tampu_event_value *set_point;
    /* Errors because of which there is no value. */
    const tampu_event_cause *causes;
    size_t cause_count;
    /* Name of a generic event; "" otherwise. */
    const char *name;
} tampu_event;

/* ---- Clients ---- */

/* Options of a subscription. */
typedef struct tampu_event_options {
    /* Kinds of events to deliver; 0: TAMPU_EVENT_CHANGE. Messages about the source are always delivered. */
    uint32_t kinds;
    /* 1: the current value is not delivered first. */
    int32_t without_first;
    /* 1: events lost on a link are not sent again, and no server waits for this subscriber. */
    int32_t unreliable;
    /* 1: long values are read in their server's memory, without a copy. If the server reclaims it meanwhile, a gap with the event's
     * number follows at once, and what was read must be discarded. For callbacks only. */
    int32_t in_place;
    /* Condition on the value, as "> 1e-6"; NULL: none. */
    const char *condition;
    /* Least difference from the value delivered last, in percent and in the unit; NULL: none. */
    const char *moved_rel;
    const char *moved_abs;
    /* At most one reading in this time, ms, the newest; 0: no limit. */
    uint64_t every_ms;
} tampu_event_options;

/* Counts of a subscription. */
typedef struct tampu_event_counts {
    /* Attributes that a living server has. */
    uint64_t attributes;
    uint64_t delivered;
    /* Readings that the options kept back. */
    uint64_t held_back;
    /* Events that a full queue dropped, the oldest first. */
    uint64_t dropped;
} tampu_event_counts;

/* Joins the bus under a name, to subscribe. NULL on failure. */
tampu_event_client *tampu_event_client_open(const char *source);

/* Ends a client, which must not be used afterwards, and its subscriptions, whose handles still have to be closed. 0: done; -1:
 * failed, because a callback called this. NULL is allowed. */
int32_t tampu_event_client_close(tampu_event_client *client);

/* Called for each event in a thread of the library, one call at a time for a subscription. It must not throw, longjmp or end its
 * thread. While it runs, further events of this source wait, and finally the source does. */
typedef void (*tampu_event_callback)(void *context, const tampu_event *event);

/* Subscribes to names and patterns with a callback. `options` may be NULL. NULL on failure. */
tampu_event_subscription *tampu_event_subscribe(const tampu_event_client *client, const char *const *attributes, size_t count,
                                                const tampu_event_options *options, size_t size, tampu_event_callback event,
                                                void *context);

/* Ends a subscription, which must not be used afterwards. Waits until a running callback has returned: afterwards none is called,
 * and the context may be freed. 0: ended; -1: failed, because a callback called this. NULL is allowed. */
int32_t tampu_event_unsubscribe(tampu_event_subscription *subscription);

/* Tells the counts of a subscription. 0: done; -1: failed. */
int32_t tampu_event_counts_of(const tampu_event_subscription *subscription, tampu_event_counts *counts, size_t size);

/* Subscribes to names and patterns with a queue of at most `bound` events. When it is full, the oldest is dropped and counted, and
 * the next event of its attribute has it in `missed_from` and `missed_to`. NULL on failure. */
tampu_event_queue *tampu_event_queue_open(const tampu_event_client *client, const char *const *attributes, size_t count,
                                          const tampu_event_options *options, size_t size, size_t bound);

/* Takes the next event, and waits for it at most `timeout_ms`. One thread at a time uses a queue's events. 1: there is one; 0:
 * timeout; -1: failed. */
int32_t tampu_event_queue_next(const tampu_event_queue *queue, uint32_t timeout_ms, tampu_event *event, size_t size);

/* Tells the counts of a queue. 0: done; -1: failed. */
int32_t tampu_event_queue_counts(const tampu_event_queue *queue, tampu_event_counts *counts, size_t size);

/* Ends a queue, which must not be used afterwards. NULL is allowed. */
void tampu_event_queue_close(tampu_event_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
