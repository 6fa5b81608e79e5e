//! Bounds of loggers, the spool, the collector and its archive.

use super::bound::{
    Bound,
    Limit::{Constant, Other, Setting},
    bound, mib, unlimited,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "bytes of a thread's log ring (`ring_bytes`)",
        Other("1 MiB"),
        "the call waits as long as its level allows; then the record is lost, counted by level and reported in the ring",
    ),
    bound(
        "callers that wait to be told what has become of their records",
        Constant("log/src/logger/promises.rs", "OPEN", "16384", "16384 of each grade"),
        "a further one is told at once that nothing is known of them",
    ),
    bound("threads with a log ring of their own (`max_rings`)", Other("256"), "further threads share a ring"),
    bound(
        "bytes of packets in overflow files beside the rings",
        Other("16 MiB a process"),
        "the oldest half is dropped; the writer's cache may still have it",
    ),
    bound(
        "bytes of records too long for a ring (`queue_bytes`)",
        Other("8 MiB a process"),
        "the call waits as long as its level allows; then the record is lost, counted and reported",
    ),
    bound(
        "records of one process a second (`max_per_s`)",
        Other("no limit"),
        "further records are suppressed, counted by level and reported each second",
    ),
    bound(
        "spool of one source",
        Setting("spool.per_source_mb", |config| mib(config.spool.per_source_mb)),
        "the newest packets are not kept, counted by source and reported",
    ),
    bound(
        "spool of all sources",
        Setting("spool.total_mb", |config| mib(config.spool.total_mb)),
        "the newest packets are not kept, counted by source and reported",
    ),
    bound(
        "one source at the collector (`[quota]`)",
        Other("50 MB/s, 200 000 records/s, 1000 streams"),
        "the rest is not kept, counted and reported",
    ),
    bound(
        "backlog of one source, sent at once",
        Constant("log/src/collector/quota.rs", "BACKLOG", "600", "600 s of its quota, at most 1 GiB"),
        "the rest is not kept, counted and reported; a spool has its own limits",
    ),
    bound(
        "questions about the collector's state at a time",
        Constant("log/src/collector/services.rs", "STATUSES", "32", "32"),
        "refused; a spool takes a refusal for a collector that keeps nothing",
    ),
    bound(
        "bytes of a message of an answer in columns",
        Constant("bus/src/service/request.rs", "PART_LENGTH", "1_000_000", "1 MB"),
        "it has fewer rows; only one row, or the name of one row, may be longer",
    ),
    bound(
        "bytes of an answer in columns",
        Constant("log/src/collector/services.rs", "COLUMNS_BYTES", "256 << 20", "256 MiB"),
        "the answer ends, and the client asks for the rows behind it",
    ),
    bound(
        "bytes of the names of a column in a client's table",
        Constant("archive/src/columns/table.rs", "NAMES_BYTES", "1 << 30", "1 GiB a dictionary"),
        "the next rows have another dictionary",
    ),
    bound(
        "free space on the disk of logs and events",
        Setting("collector.min_free_gb", |config| {
            format!("{} GiB, at most a twentieth of the disk", config.collector.min_free_gb)
        }),
        "nothing is written until there is room; it is reported, and spools keep what comes",
    ),
    bound(
        "size of a write-ahead segment",
        Setting("collector.segment_mb", |config| mib(config.collector.segment_mb)),
        "the segment is closed and waits for compaction",
    ),
    bound(
        "closed segments that wait for compaction",
        Setting("collector.compact_backlog", |config| config.collector.compact_backlog.to_string()),
        "compaction uses a whole processor instead of its share",
    ),
    bound(
        "share of a processor for compaction",
        Setting("collector.compact_share", |config| config.collector.compact_share.to_string()),
        "compaction pauses",
    ),
    bound(
        "age of records in the archive",
        Setting("collector.keep_days", |config| unlimited(config.collector.keep_days, "days")),
        "whole Parquet files are removed, the oldest first, and logged",
    ),
    bound(
        "size of the archive",
        Setting("collector.keep_gb", |config| unlimited(config.collector.keep_gb, "GiB")),
        "whole Parquet files are removed, the oldest first, and logged",
    ),
];
