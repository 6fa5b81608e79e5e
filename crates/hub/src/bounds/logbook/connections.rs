//! Bounds of connections, changes and files of a site.

use crate::bounds::bound::{
    Bound,
    Limit::{Constant, Setting},
    bound, mib,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "connections",
        Setting("book.connections", |config| config.book.connections.to_string()),
        "the connection that is idle longest is closed; without an idle one 503",
    ),
    bound(
        "connections of one address",
        Setting("book.connections_of_one", |config| config.book.connections_of_one.to_string()),
        "the same, among its own; `proxies` have no such limit",
    ),
    bound(
        "changes of one user in a minute",
        Setting("book.changes_per_minute", |config| config.book.changes_per_minute.to_string()),
        "429 with `Retry-After`; 0: no limit",
    ),
    bound(
        "changes of one user at once",
        Setting("book.changes_burst", |config| config.book.changes_burst.to_string()),
        "the same",
    ),
    bound(
        "readers of entries of one day that are remembered",
        Constant("hub/src/book/look_counter.rs", "KNOWN", "500_000", "500 000"),
        "all are forgotten; a reader may count twice on this day",
    ),
    bound(
        "entries whose looks wait to be written",
        Constant("hub/src/book/look_counter.rs", "WAITING", "20_000", "20 000"),
        "looks at further entries are not counted",
    ),
    bound(
        "searches of one request that may be in the log of slow searches",
        Constant("logbook/src/search/cost.rs", "MOST", "8", "8"),
        "the slowest ones",
    ),
    bound("query of a search in the log", Constant("logbook/src/search/cost.rs", "QUERY", "1000", "1000 bytes"), "cut"),
    bound("path of a request in the log", Constant("hub/src/http/exchange.rs", "PATH", "512", "512 bytes"), "cut"),
    bound(
        "users whose changes are counted",
        Constant("hub/src/http/change_rate.rs", "COUNTED", "4096", "4096"),
        "users with no change for long are forgotten, then all",
    ),
    bound(
        "GB of the files of all logbooks, of one logbook, of one user",
        Setting("book.site_gb", |config| {
            let book = &config.book;
            format!("{}, {}, {}", book.site_gb, book.book_gb, book.user_gb)
        }),
        "507; `book_gb` and `user_gb` are the other two, and 0 is no limit",
    ),
    bound("one attachment", Setting("book.attachment_mb", |config| mib(config.book.attachment_mb)), "413"),
    bound(
        "time of a search",
        Setting("book.search_ms", |config| format!("{} ms", config.book.search_ms)),
        "the search ends with the hits so far, and says so",
    ),
    bound(
        "one entry in a file of ELOG's",
        Constant("elog/src/entry_reader.rs", "MAX_FILE_ENTRY", "24 << 20", "24 MiB"),
        "the entry is left out and reported",
    ),
];
