//! The catalogue of bounds: every queue and limit that a site may reach, with its default and the effect of reaching
//! it.
//!
//! `docs/reference/bounds.md` is made from it, and a test compares the two. The defaults of settings are read from
//! [`Config`]. A test compares constants with the sources, so that neither can differ from the program.

use crate::config::Config;

use Area::{Bulk, Bus, Events, Hub, Logbook, Logs};
use Limit::{Constant, Other, Setting};

/// The subject that a bound belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// The bus: streams, readers, shared memory.
    Bus,
    /// Loggers, the spool, the collector and its archive.
    Logs,
    /// Attribute events and their history.
    Events,
    /// Flows and transfers of bulk data.
    Bulk,
    /// The logbook, its HTTP and its search.
    Logbook,
    /// Inputs, routes, metrics and the bridge to Tango.
    Hub,
}

impl Area {
    /// All areas, in the order of the page.
    pub const ALL: [Area; 6] = [Area::Bus, Area::Logs, Area::Events, Area::Bulk, Area::Logbook, Area::Hub];

    /// The heading of the page.
    pub fn title(self) -> &'static str {
        match self {
            Area::Bus => "Bus",
            Area::Logs => "Logs",
            Area::Events => "Events",
            Area::Bulk => "Bulk data",
            Area::Logbook => "Logbook",
            Area::Hub => "Inputs, routes, metrics, Tango",
        }
    }
}

/// The value of a bound.
#[derive(Clone, Copy)]
pub enum Limit {
    /// A setting of the configuration: its name, and its default with the unit.
    Setting(&'static str, fn(&Config) -> String),
    /// A constant: its source file below `crates/`, its name and expression in that file, and its value with the unit.
    Constant(&'static str, &'static str, &'static str, &'static str),
    /// A value that another setting or the caller's argument gives.
    Other(&'static str),
}

/// A bound of a queue, a buffer or a time.
#[derive(Clone, Copy)]
pub struct Bound {
    /// The subject it belongs to.
    pub area: Area,
    /// The thing that is bounded.
    pub what: &'static str,
    /// The value, and its origin.
    pub limit: Limit,
    /// The behaviour when the bound is reached.
    pub full: &'static str,
}

const fn bound(area: Area, what: &'static str, limit: Limit, full: &'static str) -> Bound {
    Bound { area, what, limit, full }
}

/// The bounds of all subjects.
pub const BOUNDS: &[Bound] = &[
    bound(
        Bus,
        "bytes a writer may be ahead of an acknowledgement (`credit`)",
        Other("1 MiB; log topics 4 MiB"),
        "writes wait, `max_wait` in total",
    ),
    bound(
        Bus,
        "waiting of a writer in every `wait_period` (`max_wait`)",
        Other("100 ms of 1 s"),
        "slow readers count as lagging and are not waited for",
    ),
    bound(
        Bus,
        "bytes kept for readers that are behind (`cache`)",
        Other("64 MiB a stream"),
        "the oldest are lost to them, counted and reported",
    ),
    bound(
        Bus,
        "acknowledged bytes kept for late readers (`keep`)",
        Other("4 MiB a stream; log topics 16 MiB"),
        "the oldest are dropped",
    ),
    bound(
        Bus,
        "time a sample waits for others of its batch (`linger`)",
        Other("200 us"),
        "the batch is sent; after a pause the first sample is sent at once",
    ),
    bound(Bus, "bytes of a batch (`batch`)", Other("56 KiB"), "the batch is sealed"),
    bound(
        Bus,
        "shared memory for loans (`pool`)",
        Other("32 MiB a stream, taken with the first loan"),
        "a request for a loan waits like a write; then the oldest loan is taken back and lost to readers that have not read it",
    ),
    bound(
        Bus,
        "shared memory for batches",
        Other("twice the credit and 1024 batches a stream"),
        "it is overwritten; slower readers fetch from the cache",
    ),
    bound(
        Bus,
        "bytes that wait in a reader for its application (`queue`)",
        Other("32 MiB"),
        "batches stay in the writers' caches",
    ),
    bound(
        Bus,
        "proofs of the local user that an answering process remembers",
        Constant("bus/src/access/proof.rs", "REMEMBERED", "65_536", "65 536 in two minutes"),
        "a further question counts as one of a holder of the key",
    ),
    bound(
        Bus,
        "settings of topics of one hub, for other hosts",
        Constant("bus/src/topic_settings/site.rs", "SETTINGS_LIMIT", "256 << 10", "256 KiB as JSON"),
        "other hosts keep the settings that they have, and the log says so",
    ),
    bound(
        Bus,
        "hubs whose settings of topics hold on a host",
        Constant("bus/src/topic_settings/site.rs", "HUBS", "256", "256 beside its own"),
        "those of further hubs do not hold, and the log says so",
    ),
    bound(
        Bus,
        "hubs of one host with a certificate among them",
        Constant("bus/src/topic_settings/site.rs", "HUBS_OF_HOST", "4", "4"),
        "those of further hubs do not hold, and the log says so",
    ),
    bound(
        Bus,
        "audit records of one principal's refusals",
        Constant("bus/src/access/period_limit.rs", "IN_PERIOD", "5", "5 a minute for each verb"),
        "counted in the next record",
    ),
    bound(
        Logs,
        "bytes of a thread's log ring (`ring_bytes`)",
        Other("1 MiB"),
        "the call waits as long as its level allows; then the record is lost, counted by level and reported in the ring",
    ),
    bound(
        Logs,
        "callers that wait to be told that their records are kept",
        Constant("log/src/logger/promises.rs", "OPEN", "1024", "1024"),
        "a further one is told at once that they are not known to be kept",
    ),
    bound(Logs, "threads with a log ring of their own (`max_rings`)", Other("256"), "further threads share a ring"),
    bound(
        Logs,
        "bytes of packets in overflow files beside the rings",
        Other("16 MiB a process"),
        "the oldest half is dropped; the writer's cache may still have it",
    ),
    bound(
        Logs,
        "bytes of records too long for a ring (`queue_bytes`)",
        Other("8 MiB a process"),
        "the call waits as long as its level allows; then the record is lost, counted and reported",
    ),
    bound(
        Logs,
        "records of one process a second (`max_per_s`)",
        Other("no limit"),
        "further records are suppressed, counted by level and reported each second",
    ),
    bound(
        Logs,
        "spool of one source",
        Setting("spool.per_source_mb", |config| mib(config.spool.per_source_mb)),
        "the newest packets are not kept, counted by source and reported",
    ),
    bound(
        Logs,
        "spool of all sources",
        Setting("spool.total_mb", |config| mib(config.spool.total_mb)),
        "the newest packets are not kept, counted by source and reported",
    ),
    bound(
        Logs,
        "one source at the collector (`[quota]`)",
        Other("50 MB/s, 200 000 records/s, 1000 streams"),
        "the rest is not kept, counted and reported",
    ),
    bound(
        Logs,
        "backlog of one source, sent at once",
        Constant("log/src/collector/quota.rs", "BACKLOG", "600", "600 s of its quota, at most 1 GiB"),
        "the rest is not kept, counted and reported; a spool has its own limits",
    ),
    bound(
        Logs,
        "questions about the collector's state at a time",
        Constant("log/src/collector/services.rs", "STATUSES", "32", "32"),
        "refused; a spool takes a refusal for a collector that keeps nothing",
    ),
    bound(
        Logs,
        "free space on the disk of logs and events",
        Setting("collector.min_free_gb", |config| {
            format!("{} GiB, at most a twentieth of the disk", config.collector.min_free_gb)
        }),
        "nothing is written until there is room; it is reported, and spools keep what comes",
    ),
    bound(
        Logs,
        "size of a write-ahead segment",
        Setting("collector.segment_mb", |config| mib(config.collector.segment_mb)),
        "the segment is closed and waits for compaction",
    ),
    bound(
        Logs,
        "closed segments that wait for compaction",
        Setting("collector.compact_backlog", |config| config.collector.compact_backlog.to_string()),
        "compaction uses a whole processor instead of its share",
    ),
    bound(
        Logs,
        "share of a processor for compaction",
        Setting("collector.compact_share", |config| config.collector.compact_share.to_string()),
        "compaction pauses",
    ),
    bound(
        Logs,
        "age of records in the archive",
        Setting("collector.keep_days", |config| unlimited(config.collector.keep_days, "days")),
        "whole Parquet files are removed, the oldest first, and logged",
    ),
    bound(
        Logs,
        "size of the archive",
        Setting("collector.keep_gb", |config| unlimited(config.collector.keep_gb, "GiB")),
        "whole Parquet files are removed, the oldest first, and logged",
    ),
    bound(
        Events,
        "one event in the history",
        Setting("events.longest_kb", |config| format!("{} KiB", config.events.longest_kb)),
        "a gap stands in its place",
    ),
    bound(
        Events,
        "readers of a client, each with a worker (`max_stream_workers`)",
        Other("64"),
        "attributes of further servers share two readers",
    ),
    bound(
        Events,
        "first events of a server's attributes, kept for 5 s for other hosts",
        Constant("event/src/server/early_events.rs", "EARLY_BYTES", "4 << 20", "4 MiB"),
        "older subscribers on other hosts are told the numbers of the events that they missed",
    ),
    bound(
        Events,
        "workers of one process on another host that want an attribute",
        Constant("event/src/server/host_route.rs", "WISHES", "128", "128"),
        "a further one is refused until another one is released",
    ),
    bound(Events, "queue of an event stream", Other("the subscriber's option"), "the oldest event is dropped and counted"),
    bound(
        Events,
        "events that wait for the history's archive",
        Other("32 MiB"),
        "further events are not kept, counted, and stand as a gap in the history",
    ),
    bound(
        Events,
        "answers of the history at a time; time and bytes of one",
        Other("4; 60 s, 16 MiB"),
        "rejected; ended with a notice, and the caller continues from there",
    ),
    bound(
        Bulk,
        "bytes of a flow that are sent and not acknowledged (`window`)",
        Other("32 MiB, 8192 frames"),
        "`send` waits; a receiver without progress for `wait` (5 s) is disconnected or skipped, reported at both ends",
    ),
    bound(
        Bulk,
        "datagrams under way to a receiver (`room`)",
        Other("1 MiB, less where its system has smaller buffers"),
        "the flow waits for acknowledgements",
    ),
    bound(Bulk, "time a lost datagram is asked for (`repair`)", Other("1 s"), "it is lost, reported at both ends with its bytes"),
    bound(Bulk, "time a transfer with a broken connection is kept (`resume`)", Other("30 s"), "it ends incomplete at both ends"),
    bound(Bulk, "senders of a receiver (`connections`)", Other("64"), "further ones are rejected, counted and reported"),
    bound(
        Logbook,
        "connections",
        Setting("book.connections", |config| config.book.connections.to_string()),
        "the connection that is idle longest is closed; without an idle one 503",
    ),
    bound(
        Logbook,
        "connections of one address",
        Setting("book.connections_of_one", |config| config.book.connections_of_one.to_string()),
        "the same, among its own; `proxies` have no such limit",
    ),
    bound(
        Logbook,
        "changes of one user in a minute",
        Setting("book.changes_per_minute", |config| config.book.changes_per_minute.to_string()),
        "429 with `Retry-After`; 0: no limit",
    ),
    bound(
        Logbook,
        "changes of one user at once",
        Setting("book.changes_burst", |config| config.book.changes_burst.to_string()),
        "the same",
    ),
    bound(
        Logbook,
        "readers of entries of one day that are remembered",
        Constant("hub/src/book/look_counter.rs", "KNOWN", "500_000", "500 000"),
        "all are forgotten; a reader may count twice on this day",
    ),
    bound(
        Logbook,
        "entries whose looks wait to be written",
        Constant("hub/src/book/look_counter.rs", "WAITING", "20_000", "20 000"),
        "looks at further entries are not counted",
    ),
    bound(
        Logbook,
        "searches of one request that may be in the log of slow searches",
        Constant("logbook/src/search/cost.rs", "MOST", "8", "8"),
        "the slowest ones",
    ),
    bound(Logbook, "query of a search in the log", Constant("logbook/src/search/cost.rs", "QUERY", "1000", "1000 bytes"), "cut"),
    bound(Logbook, "path of a request in the log", Constant("hub/src/http/exchange.rs", "PATH", "512", "512 bytes"), "cut"),
    bound(
        Logbook,
        "users whose changes are counted",
        Constant("hub/src/http/change_rate.rs", "COUNTED", "4096", "4096"),
        "users with no change for long are forgotten, then all",
    ),
    bound(
        Logbook,
        "GB of the files of all logbooks, of one logbook, of one user",
        Setting("book.site_gb", |config| {
            let book = &config.book;
            format!("{}, {}, {}", book.site_gb, book.book_gb, book.user_gb)
        }),
        "507; `book_gb` and `user_gb` are the other two, and 0 is no limit",
    ),
    bound(Logbook, "one attachment", Setting("book.attachment_mb", |config| mib(config.book.attachment_mb)), "413"),
    bound(
        Logbook,
        "time of a search",
        Setting("book.search_ms", |config| format!("{} ms", config.book.search_ms)),
        "the search ends with the hits so far, and says so",
    ),
    bound(
        Logbook,
        "one entry in a file of ELOG's",
        Constant("elog/src/entry_reader.rs", "MAX_FILE_ENTRY", "24 << 20", "24 MiB"),
        "the entry is left out and reported",
    ),
    bound(
        Logbook,
        "wrong passwords of a login from one address",
        Constant("logbook/src/people/attempts.rs", "LOGIN_FREE", "5", "5"),
        "further tries from this address wait, at most a minute",
    ),
    bound(
        Logbook,
        "wrong passwords of all logins from one address",
        Constant("logbook/src/people/attempts.rs", "ADDRESS_FREE", "30", "30"),
        "further tries from this address wait, at most 15 minutes",
    ),
    bound(
        Logbook,
        "changes of a logbook's configuration that are kept",
        Constant("logbook/src/book/change.rs", "MAX_CHANGES", "200", "200"),
        "the oldest one is dropped",
    ),
    bound(
        Logbook,
        "registrations that wait for an administrator",
        Constant("logbook/src/people/registration.rs", "MAX_WAITING", "500", "500"),
        "a further one is refused, and says so",
    ),
    bound(
        Logbook,
        "registrations of one address in an hour",
        Constant("logbook/src/people/registration.rs", "OF_ONE_ADDRESS", "5", "5"),
        "429 with the time to wait",
    ),
    bound(
        Logbook,
        "requests for a new password of one address in an hour",
        Constant("logbook/src/people/reset.rs", "OF_ONE_ADDRESS", "5", "5"),
        "429 with the time to wait",
    ),
    bound(
        Logbook,
        "time between two mails with a new password to one user",
        Constant("logbook/src/people/reset.rs", "PAUSE", "Duration::from_secs(120)", "120 s"),
        "a request in between sends nothing",
    ),
    bound(
        Logbook,
        "life of a link for a new password",
        Constant("logbook/src/people/reset.rs", "LIFE", "Duration::from_secs(30 * 60)", "30 min"),
        "the link has expired",
    ),
    bound(
        Logbook,
        "requests for a new password at a time",
        Constant("logbook/src/people/reset.rs", "MAX_WORKING", "4", "4"),
        "503 with Retry-After",
    ),
    bound(
        Logbook,
        "life of a token without an end",
        Constant("logbook/src/people/token.rs", "LIFE", "365 * 86_400 * 1_000_000_000", "a year"),
        "the token is no longer accepted",
    ),
    bound(Logbook, "requests at a time", Constant("hub/src/http/admission.rs", "WORKERS", "48", "48"), "further ones wait"),
    bound(Logbook, "searches at a time", Constant("hub/src/http/admission.rs", "SEARCHES", "8", "8"), "further ones wait"),
    bound(
        Logbook,
        "results of searches, and logbooks, that a connection for searches remembers until something is written",
        Constant("logbook/src/store/memory.rs", "MOST_BYTES", "512 << 10", "512 KiB each, and 128 of each"),
        "all are forgotten",
    ),
    bound(
        Logbook,
        "searches of one address at a time",
        Constant("hub/src/http/admission.rs", "SEARCHES_OF_ONE", "4", "4"),
        "further ones wait",
    ),
    bound(
        Logbook,
        "lists and exports of one address at a time",
        Constant("hub/src/http/admission.rs", "EXPORTS_OF_ONE", "2", "2"),
        "further ones wait",
    ),
    bound(Logbook, "entries rendered at a time", Constant("hub/src/http/admission.rs", "PAGES", "8", "8"), "further ones wait"),
    bound(
        Logbook,
        "entries rendered for one address at a time",
        Constant("hub/src/http/admission.rs", "PAGES_OF_ONE", "4", "4"),
        "further ones wait",
    ),
    bound(
        Logbook,
        "requests with a password at a time",
        Constant("hub/src/http/admission.rs", "LOGINS", "hashing::HASHING + hashing::WAITING", "8"),
        "further ones wait",
    ),
    bound(
        Logbook,
        "requests with a password of one address at a time",
        Constant("hub/src/http/admission.rs", "LOGINS_OF_ONE", "hashing::OF_ONE", "4"),
        "further ones wait",
    ),
    bound(
        Logbook,
        "lists and exports at a time",
        Constant("hub/src/http/admission.rs", "EXPORTS", "3", "3"),
        "further ones wait",
    ),
    bound(Logbook, "previews made at a time", Constant("hub/src/http/admission.rs", "PICTURES", "1", "1"), "further ones wait"),
    bound(Logbook, "PDF made at a time", Constant("hub/src/http/admission.rs", "TYPESETTING", "1", "1"), "further ones wait"),
    bound(
        Logbook,
        "entries of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_ENTRIES", "1000", "1000"),
        "a PDF of more is refused",
    ),
    bound(
        Logbook,
        "bytes of the texts of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_TEXT", "1 << 20", "1 MiB"),
        "the same",
    ),
    bound(
        Logbook,
        "lines and paragraphs of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_LINES", "50_000", "50 000"),
        "the same",
    ),
    bound(
        Logbook,
        "cells of the tables of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_CELLS", "4000", "4000"),
        "further tables are shown as lines",
    ),
    bound(
        Logbook,
        "pictures of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_PICTURES", "100", "100"),
        "further ones are listed as files",
    ),
    bound(
        Logbook,
        "bytes of the pictures of a PDF",
        Constant("logbook/src/export/pdf.rs", "MAX_PICTURE_BYTES", "32 << 20", "32 MiB"),
        "the same",
    ),
    bound(
        Logbook,
        "mails that wait",
        Setting("mail.queue", |config| config.mail.queue.to_string()),
        "further mails are refused, with a line in the log",
    ),
    bound(
        Logbook,
        "MiB of waiting and failed mails",
        Setting("mail.queue_mb", |config| format!("{} MiB", config.mail.queue_mb)),
        "the same",
    ),
    bound(
        Logbook,
        "hours until a mail that was not sent counts as failed",
        Setting("mail.give_up_h", |config| format!("{} h", config.mail.give_up_h)),
        "it stays listed until somebody retries or drops it",
    ),
    bound(
        Logbook,
        "failed mails that are kept",
        Constant("logbook/src/mail/queue.rs", "FAILED", "1000", "1000"),
        "the oldest is dropped",
    ),
    bound(
        Logbook,
        "recipients of a mail",
        Constant("logbook/src/mail/message.rs", "RECIPIENTS", "1000", "1000"),
        "the mail is refused",
    ),
    bound(Logbook, "changes at a time", Constant("hub/src/http/admission.rs", "CHANGES", "8", "8"), "further ones wait"),
    bound(Logbook, "large bodies at a time", Constant("hub/src/http/admission.rs", "UPLOADS", "8", "8"), "further ones wait"),
    bound(
        Logbook,
        "large bodies of one address at a time",
        Constant("hub/src/http/admission.rs", "UPLOADS_OF_ONE", "4", "4"),
        "further ones wait",
    ),
    bound(
        Logbook,
        "requests that wait",
        Constant("hub/src/http/admission.rs", "WAITING", "512", "512, for 10 s"),
        "503 with `Retry-After`",
    ),
    bound(
        Logbook,
        "requests of one kind that wait",
        Constant("hub/src/http/admission.rs", "WAITING_OF_A_KIND", "128", "128, for 10 s"),
        "503 with `Retry-After`",
    ),
    bound(
        Logbook,
        "passwords hashed at a time, with 19 MiB each",
        Constant("logbook/src/people/hash_memory.rs", "KEPT", "2", "2"),
        "further ones wait",
    ),
    bound(
        Logbook,
        "requests that wait for a hash",
        Constant("logbook/src/people/hashing.rs", "WAITING", "6", "6"),
        "503 with `Retry-After`",
    ),
    bound(
        Logbook,
        "requests of one address that are hashed or wait for it",
        Constant("logbook/src/people/hashing.rs", "OF_ONE", "4", "4"),
        "503 with `Retry-After`",
    ),
    bound(
        Logbook,
        "passwords that login methods check at a time",
        Constant("logbook/src/people/outside.rs", "MAX_ASKING", "6", "6"),
        "503 with `Retry-After`",
    ),
    bound(
        Logbook,
        "of them, requests that wait for providers of identities",
        Constant("logbook/src/people/outside.rs", "MAX_ASKING_PROVIDERS", "3", "3"),
        "503 with `Retry-After`",
    ),
    bound(
        Logbook,
        "stored groups of a user from outside",
        Constant("logbook/src/people/outside.rs", "MAX_GROUPS", "256", "256"),
        "those without a rule are left out",
    ),
    bound(
        Logbook,
        "slowest reader of a response, in bytes a second",
        Constant(
            "hub/src/http/socket.rs",
            "SLOWEST_READER",
            "8 << 10",
            "8 KiB, after 30 s; a third of the kernel's buffer at least",
        ),
        "the connection is closed",
    ),
    bound(
        Logbook,
        "time for a connection to the database",
        Constant("logbook/src/store/error.rs", "WAIT", "Duration::from_secs(10)", "10 s"),
        "503 with `Retry-After`",
    ),
    bound(
        Logbook,
        "contents in a page of a thread or a history",
        Constant("logbook/src/store/part.rs", "PAGE_BYTES", "4 << 20", "4 MiB"),
        "the page ends with the entry that reaches them, and says where the next one begins",
    ),
    bound(
        Logbook,
        "entries of a thread on one of ELOG's pages",
        Constant("elog/src/pages/list/rows.rs", "MAX_THREAD", "500", "500"),
        "the page shows the first ones and says so",
    ),
    bound(
        Logbook,
        "requests of one address and one kind that wait",
        Constant("hub/src/http/admission.rs", "WAITING_OF_ONE", "32", "32, for 10 s"),
        "503 with `Retry-After`",
    ),
    bound(
        Logbook,
        "entries that are counted for a guest",
        Constant("hub/src/api/searches.rs", "GUEST_COUNT", "10_000", "10 000"),
        "the count is a lower limit, and says so",
    ),
    bound(
        Logbook,
        "body of a guest who may write nowhere",
        Constant("hub/src/http/body.rs", "OF_GUESTS", "SMALL", "64 KiB"),
        "413",
    ),
    bound(
        Logbook,
        "a text that is shown with its marks",
        Constant("logbook/src/render.rs", "MAX_MARKUP", "1 << 20", "1 MiB"),
        "it is shown as source, with a note",
    ),
    bound(
        Logbook,
        "cache of rendered texts",
        Constant("logbook/src/render/cache.rs", "CACHE", "8 << 20", "8 MiB for each site"),
        "the ones used longest ago are evicted",
    ),
    bound(Logbook, "subscribers of searches", Constant("hub/src/api/push.rs", "SUBSCRIBERS", "256", "256"), "503"),
    bound(Logbook, "subscribers of one login", Constant("hub/src/api/push.rs", "OF_ONE", "32", "32"), "503"),
    bound(
        Logbook,
        "events that wait for a subscriber",
        Constant("hub/src/api/push.rs", "QUEUE", "256", "256"),
        "the subscriber is disconnected with the event 'cut'",
    ),
    bound(
        Logbook,
        "uploaded files of one login without an entry",
        Constant("hub/src/api/staging.rs", "OF_ONE", "128", "128, for one hour"),
        "409",
    ),
    bound(
        Logbook,
        "size of one sender's uploaded files without an entry",
        Setting("book.waiting_mb", |config| mib(config.book.waiting_mb)),
        "409; all senders together have four times as much",
    ),
    bound(
        Logbook,
        "free space that uploads leave on the disk, a twentieth of a small disk",
        Setting("book.min_free_mb", |config| mib(config.book.min_free_mb)),
        "507",
    ),
    bound(
        Logbook,
        "changes of one address at a time",
        Constant("hub/src/http/admission.rs", "CHANGES_OF_ONE", "4", "4"),
        "further ones wait",
    ),
    bound(
        Logbook,
        "new words and their endings that one entry adds to the vocabulary",
        Constant("logbook/src/query/candidates.rs", "MAX_ENDINGS", "30_000", "30 000"),
        "a search for parts of words reads the entry itself",
    ),
    bound(
        Logbook,
        "uploaded files without an entry",
        Constant("hub/src/api/staging.rs", "OF_ALL", "2048", "2048, for one hour"),
        "409",
    ),
    bound(
        Logbook,
        "pixels of a side of a picture with a preview",
        Constant("hub/src/api/preview.rs", "MAX_SIDE", "16_384", "16 384"),
        "422",
    ),
    bound(
        Logbook,
        "memory for reading a picture",
        Constant("hub/src/api/preview.rs", "MAX_BYTES", "128 << 20", "128 MiB"),
        "422",
    ),
    bound(
        Logbook,
        "cache of previews",
        Constant("hub/src/api/preview.rs", "CACHE", "16 << 20", "16 MiB"),
        "the one used longest ago is dropped",
    ),
    bound(
        Logbook,
        "lead of an entry's date over the hub's clock",
        Constant("hub/src/api/input.rs", "AHEAD", "300 * 1_000_000_000", "300 s"),
        "400",
    ),
    bound(Logbook, "saved searches of one user", Constant("hub/src/api/searches.rs", "MAX_SAVED", "1000", "1000"), "409"),
    bound(Logbook, "rules of notification of one user", Constant("logbook/src/notify/rule.rs", "RULES", "50", "50"), "422"),
    bound(
        Logbook,
        "entries that wait for the mails of one user",
        Constant("logbook/src/notify/pending.rs", "WAITING", "500", "500"),
        "further ones are only counted in the mail",
    ),
    bound(
        Logbook,
        "recipients that options of ELOG name for one entry",
        Constant("elog/src/pages/mails/recipients.rs", "OF_OPTIONS", "200", "200"),
        "the others get no mail",
    ),
    bound(
        Logbook,
        "conversations with mail servers at a time",
        Constant("hub/src/book/mail_in.rs", "CONVERSATIONS", "16", "16"),
        "the next one is closed; the mail server tries again",
    ),
    bound(
        Logbook,
        "logbooks of one mail",
        Constant("hub/src/book/mail_in/session.rs", "RECIPIENTS", "20", "20"),
        "452, and the mail server sends the rest again",
    ),
    bound(Logbook, "files of one mail", Constant("hub/src/book/mail_in/entry.rs", "FILES", "50", "50"), "the mail is refused"),
    bound(
        Logbook,
        "parts of one mail with a type of their own",
        Constant("hub/src/book/mail_in/shape.rs", "TYPED", "1000", "1000"),
        "the mail is refused",
    ),
    bound(
        Logbook,
        "lines of one mail that can begin a part",
        Constant("hub/src/book/mail_in/shape.rs", "BOUNDARIES", "10_000", "10 000"),
        "the mail is refused",
    ),
    bound(
        Logbook,
        "Markdown whose marks are left out in snippets",
        Constant("logbook/src/plain.rs", "MAX_READ", "32 << 10", "32 KiB"),
        "the snippet shows the source",
    ),
    bound(
        Logbook,
        "Markdown whose checklist can be ticked off",
        Constant("logbook/src/checklist.rs", "MAX_TEXT", "256 << 10", "256 KiB"),
        "it has no boxes",
    ),
    bound(
        Logbook,
        "logbooks whose mails a user gets by ELOG's list",
        Constant("logbook/src/people/user.rs", "MAX_NOTIFY", "4096", "4096"),
        "422",
    ),
    bound(
        Logbook,
        "time for which a mail is known as an entry",
        Constant("hub/src/book/mail_in/entry.rs", "REMEMBERED", "30 * 86_400_000_000_000", "30 days"),
        "the same mail again is a new entry",
    ),
    bound(Logbook, "a lock", Constant("hub/src/api/drafts.rs", "LONGEST_LOCK", "24 * 3600", "24 h"), "400"),
    bound(
        Hub,
        "policy file",
        Constant("hub/src/rules/file.rs", "LONGEST", "1 << 20", "1 MiB"),
        "an error; the rules stay as they are",
    ),
    bound(
        Hub,
        "syslog streams",
        Setting("syslog.connections", |config| config.syslog.connections.to_string()),
        "the longest silent one is closed, counted and logged",
    ),
    bound(
        Hub,
        "syslog streams of one address",
        Setting("syslog.connections_per_address", |config| config.syslog.connections_per_address.to_string()),
        "the longest silent one of that address is closed, counted and logged",
    ),
    bound(
        Hub,
        "messages a second of one syslog sender",
        Setting("syslog.messages_per_s_per_address", |config| config.syslog.messages_per_s_per_address.to_string()),
        "datagrams are dropped, counted and logged; streams wait",
    ),
    bound(
        Hub,
        "records and bytes of all senders of an input (`[quota]` of its source)",
        Other("80 % of the quota, used ahead for 1 s"),
        "datagrams of the addresses that send most are dropped, counted and logged by address; their streams wait",
    ),
    bound(
        Hub,
        "workers of one address's streams, closed ones included, as a multiple of its open streams",
        Constant("hub/src/inputs/streams.rs", "ENDING", "4", "4"),
        "further connections are closed at once, counted and logged",
    ),
    bound(
        Hub,
        "addresses of an input with a share of their own",
        Constant("hub/src/inputs/shares.rs", "ADDRESSES", "4096", "4096"),
        "further addresses have one share together",
    ),
    bound(
        Hub,
        "bytes of a syslog message",
        Setting("syslog.max_message", |config| config.syslog.max_message.to_string()),
        "the message is truncated, and says so",
    ),
    bound(
        Hub,
        "bytes of datagrams that wait in the kernel",
        Setting("syslog.receive_buffer", |config| config.syslog.receive_buffer.to_string()),
        "the kernel drops datagrams, counted and logged",
    ),
    bound(
        Hub,
        "connections of IOCs",
        Setting("epics.connections", |config| config.epics.connections.to_string()),
        "the longest silent one is closed, counted and logged",
    ),
    bound(
        Hub,
        "connections of IOCs of one address",
        Setting("epics.connections_per_address", |config| config.epics.connections_per_address.to_string()),
        "the longest silent one of that address is closed, counted and logged",
    ),
    bound(
        Hub,
        "lines a second of one IOC's host",
        Setting("epics.lines_per_s_per_address", |config| config.epics.lines_per_s_per_address.to_string()),
        "its streams wait",
    ),
    bound(
        Hub,
        "bytes of a line of an IOC",
        Setting("epics.max_line", |config| config.epics.max_line.to_string()),
        "the line is truncated, and says so",
    ),
    bound(
        Hub,
        "records of an input ahead of their acknowledgement",
        Constant("hub/src/inputs/dispatcher.rs", "AHEAD", "4 << 20", "4 MiB"),
        "it reads no further for up to 60 s, so TCP senders wait; then its logger's queue decides",
    ),
    bound(
        Hub,
        "queue of an input's logger",
        Constant("hub/src/inputs/dispatcher.rs", "QUEUE", "16 << 20", "16 MiB"),
        "records are lost, counted and logged",
    ),
    bound(
        Hub,
        "packets that wait for the routes",
        Constant("hub/src/routes.rs", "QUEUE", "16 << 20", "16 MiB"),
        "lost to all targets, counted and logged; the archive has them",
    ),
    bound(
        Hub,
        "text that waits for a target",
        Constant("hub/src/routes/target.rs", "QUEUE", "8 << 20", "8 MiB"),
        "lost to the target, counted and logged; the archive has it",
    ),
    bound(
        Hub,
        "sources with series of their own in the metrics",
        Setting("metrics.sources", |config| config.metrics.sources.to_string()),
        "those that sent last have series; the page counts the others",
    ),
    bound(
        Hub,
        "connections for metrics",
        Constant("hub/src/metrics/service.rs", "CONNECTIONS", "8", "8"),
        "503, and the connection is closed",
    ),
    bound(Hub, "head of a request for metrics", Constant("hub/src/metrics/service.rs", "HEAD_BYTES", "8 << 10", "8 KiB"), "431"),
    bound(
        Hub,
        "memory of the book's process",
        Setting("limits.book.memory", |config| config.limits.book.memory.to_string()),
        "the role ends alone and is restarted",
    ),
    bound(
        Hub,
        "memory of the inputs' process",
        Setting("limits.inputs.memory", |config| config.limits.inputs.memory.to_string()),
        "the role ends alone and is restarted",
    ),
    bound(
        Hub,
        "open files of the book's process",
        Setting("limits.book.open_files", |config| config.limits.book.open_files.to_string()),
        "connections and files are refused",
    ),
    bound(
        Hub,
        "pause before a role that keeps ending is restarted",
        Constant("hub/src/supervisor/backoff.rs", "LONGEST", "Duration::from_secs(10)", "10 s"),
        "pauses grow no further",
    ),
    bound(
        Hub,
        "lines that wait for Tango's Python process",
        Other("64 MiB, and as much in the process"),
        "events are lost, counted by attribute and reported, to Tango's clients too",
    ),
];

fn mib(value: u64) -> String {
    format!("{value} MiB")
}

fn unlimited(value: u64, unit: &str) -> String {
    if value == 0 { "no limit".to_owned() } else { format!("{value} {unit}") }
}

/// Makes the page of all bounds.
pub fn page() -> String {
    let config = Config::default();
    let mut page = "# Bounds\nEvery queue and limit has a default and a defined behaviour when it is full. Settings stand in the configuration file\nas \
                    `[section] name`. This page is made from the catalogue in `crates/hub/src/bounds.rs`.\n"
        .to_owned();
    for area in Area::ALL {
        page.push_str(&format!("\n## {}\n| bound | setting | default | when it is full |\n|-|-|-|-|\n", area.title()));
        for bound in BOUNDS.iter().filter(|bound| bound.area == area) {
            let (setting, default) = match bound.limit {
                Setting(name, default) => (format!("`{name}`"), default(&config)),
                Constant(_, _, _, value) | Other(value) => (String::new(), value.to_owned()),
            };
            page.push_str(&format!("| {} | {setting} | {default} | {} |\n", bound.what, bound.full));
        }
    }
    page
}
