//! Bounds of requests that are answered at a time.

use crate::bounds::bound::{Bound, Limit::Constant, bound};

pub(super) const BOUNDS: &[Bound] = &[
    bound("requests at a time", Constant("hub/src/http/admission.rs", "WORKERS", "48", "48"), "further ones wait"),
    bound("searches at a time", Constant("hub/src/http/admission.rs", "SEARCHES", "8", "8"), "further ones wait"),
    bound(
        "results of searches, and logbooks, that a connection for searches remembers until something is written",
        Constant("logbook/src/store/memory.rs", "MOST_BYTES", "512 << 10", "512 KiB each, and 128 of each"),
        "all are forgotten",
    ),
    bound(
        "verdicts on entries for one part of a query, and such parts, that are remembered until a logbook is changed",
        Constant("logbook/src/store/verdicts.rs", "VERDICTS", "4096", "4096, and 64 parts"),
        "further entries are checked in each search; the part that was not used for the longest time is forgotten",
    ),
    bound(
        "rows in lists of entries with a word, and numbers of their words, with PostgreSQL",
        Constant("logbook/src/store/postgres/lists.rs", "ROWS", "4_000_000", "4 000 000 (32 MB), and 512 lists"),
        "the list that was not used for the longest time is forgotten",
    ),
    bound(
        "rows of one such list",
        Constant("logbook/src/store/postgres/lists.rs", "MOST", "1 << 17", "131 072"),
        "the database is asked in each search",
    ),
    bound(
        "searches of one address at a time",
        Constant("hub/src/http/admission.rs", "SEARCHES_OF_ONE", "4", "4"),
        "further ones wait",
    ),
    bound(
        "lists and exports of one address at a time",
        Constant("hub/src/http/admission.rs", "EXPORTS_OF_ONE", "2", "2"),
        "further ones wait",
    ),
    bound("entries rendered at a time", Constant("hub/src/http/admission.rs", "PAGES", "8", "8"), "further ones wait"),
    bound(
        "entries rendered for one address at a time",
        Constant("hub/src/http/admission.rs", "PAGES_OF_ONE", "4", "4"),
        "further ones wait",
    ),
    bound(
        "requests with a password at a time",
        Constant("hub/src/http/admission.rs", "LOGINS", "hashing::HASHING + hashing::WAITING", "8"),
        "further ones wait",
    ),
    bound(
        "requests with a password of one address at a time",
        Constant("hub/src/http/admission.rs", "LOGINS_OF_ONE", "hashing::OF_ONE", "4"),
        "further ones wait",
    ),
    bound("lists and exports at a time", Constant("hub/src/http/admission.rs", "EXPORTS", "3", "3"), "further ones wait"),
    bound("previews made at a time", Constant("hub/src/http/admission.rs", "PICTURES", "1", "1"), "further ones wait"),
    bound("PDF made at a time", Constant("hub/src/http/admission.rs", "TYPESETTING", "1", "1"), "further ones wait"),
];
