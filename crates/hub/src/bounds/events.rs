//! Bounds of attribute events and their history.

use super::bound::{
    Bound,
    Limit::{Constant, Other, Setting},
    bound,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "one event in the history",
        Setting("events.longest_kb", |config| format!("{} KiB", config.events.longest_kb)),
        "a gap stands in its place",
    ),
    bound(
        "readers of a client, each with a worker (`max_stream_workers`)",
        Other("64"),
        "attributes of further servers share two readers",
    ),
    bound(
        "declarations that a server keeps for later readers, for each of 16 families and for all others together",
        Constant("event/src/topics.rs", "NAMES_KEPT", "64 << 20", "64 MiB"),
        "all are written again before half of this was written since",
    ),
    bound(
        "families of attributes whose declarations a process reads one by one",
        Constant("event/src/names_reader.rs", "FAMILIES", "64", "64"),
        "it reads all declarations",
    ),
    bound(
        "first events of a server's attributes, kept for 5 s for other hosts; as much of long values",
        Constant("event/src/server/early_events.rs", "EARLY_BYTES", "4 << 20", "4 MiB"),
        "older subscribers on other hosts are told the numbers of the events that they missed",
    ),
    bound(
        "events of one server that wait until a subscriber knows the age of their attributes",
        Constant("event/src/client/undecided.rs", "MOST", "16 << 20", "16 MiB"),
        "the clocks decide whether the subscription is older than the attribute",
    ),
    bound(
        "workers of one process on another host that want an attribute",
        Constant("event/src/server/host_route.rs", "WISHES", "128", "128"),
        "a further one is refused until another one is released",
    ),
    bound(
        "queue of an event stream",
        Other("the subscriber's option"),
        "the oldest event is dropped, counted, and reported as missing by the next one",
    ),
    bound(
        "events that wait for the history's archive",
        Other("32 MiB"),
        "further events are not kept, counted, and stand as a gap in the history",
    ),
    bound(
        "answers of the history at a time; time and bytes of one",
        Other("4; 60 s, 16 MiB"),
        "rejected; ended with a notice, and the caller continues from there",
    ),
];
