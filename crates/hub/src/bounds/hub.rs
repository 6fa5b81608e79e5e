//! Bounds of inputs, routes, metrics and the bridge to Tango.

use super::bound::{
    Bound,
    Limit::{Constant, Other, Setting},
    bound,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "policy file",
        Constant("hub/src/rules/file.rs", "LONGEST", "1 << 20", "1 MiB"),
        "an error; the rules stay as they are",
    ),
    bound(
        "syslog streams",
        Setting("syslog.connections", |config| config.syslog.connections.to_string()),
        "the longest silent one is closed, counted and logged",
    ),
    bound(
        "syslog streams of one address",
        Setting("syslog.connections_per_address", |config| config.syslog.connections_per_address.to_string()),
        "the longest silent one of that address is closed, counted and logged",
    ),
    bound(
        "messages a second of one syslog sender",
        Setting("syslog.messages_per_s_per_address", |config| config.syslog.messages_per_s_per_address.to_string()),
        "datagrams are dropped, counted and logged; streams wait",
    ),
    bound(
        "records and bytes of all senders of an input (`[quota]` of its source)",
        Other("80 % of the quota, used ahead for 1 s"),
        "datagrams of the addresses that send most are dropped, counted and logged by address; their streams wait",
    ),
    bound(
        "workers of one address's streams, closed ones included, as a multiple of its open streams",
        Constant("hub/src/inputs/streams.rs", "ENDING", "4", "4"),
        "further connections are closed at once, counted and logged",
    ),
    bound(
        "addresses of an input with a share of their own",
        Constant("hub/src/inputs/shares.rs", "ADDRESSES", "4096", "4096"),
        "further addresses have one share together",
    ),
    bound(
        "bytes of a syslog message",
        Setting("syslog.max_message", |config| config.syslog.max_message.to_string()),
        "the message is truncated, and says so",
    ),
    bound(
        "bytes of datagrams that wait in the kernel",
        Setting("syslog.receive_buffer", |config| config.syslog.receive_buffer.to_string()),
        "the kernel drops datagrams, counted and logged",
    ),
    bound(
        "connections of IOCs",
        Setting("epics.connections", |config| config.epics.connections.to_string()),
        "the longest silent one is closed, counted and logged",
    ),
    bound(
        "connections of IOCs of one address",
        Setting("epics.connections_per_address", |config| config.epics.connections_per_address.to_string()),
        "the longest silent one of that address is closed, counted and logged",
    ),
    bound(
        "lines a second of one IOC's host",
        Setting("epics.lines_per_s_per_address", |config| config.epics.lines_per_s_per_address.to_string()),
        "its streams wait",
    ),
    bound(
        "bytes of a line of an IOC",
        Setting("epics.max_line", |config| config.epics.max_line.to_string()),
        "the line is truncated, and says so",
    ),
    bound(
        "records of an input ahead of their acknowledgement",
        Constant("hub/src/inputs/dispatcher.rs", "AHEAD", "4 << 20", "4 MiB"),
        "it reads no further for up to 60 s, so TCP senders wait; then its logger's queue decides",
    ),
    bound(
        "queue of an input's logger",
        Constant("hub/src/inputs/dispatcher.rs", "QUEUE", "16 << 20", "16 MiB"),
        "records are lost, counted and logged",
    ),
    bound(
        "packets that wait for the routes",
        Constant("hub/src/routes.rs", "QUEUE", "16 << 20", "16 MiB"),
        "lost to all targets, counted and logged; the archive has them",
    ),
    bound(
        "text that waits for a target",
        Constant("hub/src/routes/target.rs", "QUEUE", "8 << 20", "8 MiB"),
        "lost to the target, counted and logged; the archive has it",
    ),
    bound(
        "sources with series of their own in the metrics",
        Setting("metrics.sources", |config| config.metrics.sources.to_string()),
        "those that sent last have series; the page counts the others",
    ),
    bound(
        "connections for metrics",
        Constant("hub/src/metrics/service.rs", "CONNECTIONS", "8", "8"),
        "503, and the connection is closed",
    ),
    bound("head of a request for metrics", Constant("hub/src/metrics/service.rs", "HEAD_BYTES", "8 << 10", "8 KiB"), "431"),
    bound(
        "memory of the book's process",
        Setting("limits.book.memory", |config| config.limits.book.memory.to_string()),
        "the role ends alone and is restarted",
    ),
    bound(
        "memory of the inputs' process",
        Setting("limits.inputs.memory", |config| config.limits.inputs.memory.to_string()),
        "the role ends alone and is restarted",
    ),
    bound(
        "open files of the book's process",
        Setting("limits.book.open_files", |config| config.limits.book.open_files.to_string()),
        "connections and files are refused",
    ),
    bound(
        "pause before a role that keeps ending is restarted",
        Constant("hub/src/supervisor/backoff.rs", "LONGEST", "Duration::from_secs(10)", "10 s"),
        "pauses grow no further",
    ),
    bound(
        "lines that wait for Tango's Python process",
        Other("64 MiB, and as much in the process"),
        "events are lost, counted by attribute and reported, to Tango's clients too",
    ),
];
