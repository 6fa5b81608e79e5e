//! Bounds of the bus: streams, readers, shared memory, access.

use super::bound::{
    Bound,
    Limit::{Constant, Other},
    bound,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "bytes a writer may be ahead of an acknowledgement (`credit`)",
        Other("1 MiB; log topics 4 MiB; four samples, if that is more, up to `credit_limit`"),
        "writes wait, `max_wait` in total",
    ),
    bound(
        "bytes a writer of long samples may be ahead (`credit_limit`)",
        Other("32 MiB, at most half the cache"),
        "fewer than four samples are under way",
    ),
    bound(
        "waiting of a writer in every `wait_period` (`max_wait`)",
        Other("100 ms of 1 s"),
        "slow readers count as lagging and are not waited for",
    ),
    bound(
        "bytes kept for readers that are behind (`cache`)",
        Other("64 MiB a stream"),
        "the oldest are lost to them, counted and reported",
    ),
    bound(
        "time for which samples are kept for a reader that is cut off, and its process counts as living",
        Constant("bus/src/nodes.rs", "FORGET", "180_000_000_000", "180 s"),
        "the process counts as dead; when it is back, it is told what it missed",
    ),
    bound(
        "acknowledged bytes kept for late readers (`keep`)",
        Other("4 MiB a stream; log topics 16 MiB"),
        "the oldest are dropped",
    ),
    bound(
        "time a sample waits for others of its batch (`linger`)",
        Other("200 us"),
        "the batch is sent; after a pause the first sample is sent at once",
    ),
    bound(
        "messages that wait for a multicast group",
        Other("32 MiB a group"),
        "the newest are dropped; readers fetch them from their writers",
    ),
    bound(
        "datagrams that a multicast group can send again",
        Other("16 MiB a group"),
        "the oldest are forgotten; readers fetch the samples from their writers",
    ),
    bound(
        "messages of a multicast group that are not whole or wait for others",
        Other("96 MiB a source, 400 ms"),
        "given up; readers fetch the samples from their writers",
    ),
    bound("bytes of a batch (`batch`)", Other("56 KiB"), "the batch is sealed"),
    bound(
        "shared memory for loans (`pool`)",
        Other("32 MiB a stream, taken with the first loan"),
        "a request for a loan waits like a write; then the oldest loan is taken back and lost to readers that have not read it",
    ),
    bound(
        "shared memory for batches",
        Other("twice the credit and 1024 batches a stream"),
        "it is overwritten; slower readers fetch from the cache",
    ),
    bound("bytes that wait in a reader for its application (`queue`)", Other("32 MiB"), "batches stay in the writers' caches"),
    bound(
        "proofs of the local user that an answering process remembers",
        Constant("bus/src/access/proof.rs", "REMEMBERED", "65_536", "65 536 in two minutes"),
        "a further question counts as one of a holder of the key",
    ),
    bound(
        "settings of topics of one hub, for other hosts",
        Constant("bus/src/topic_settings/site.rs", "SETTINGS_LIMIT", "256 << 10", "256 KiB as JSON"),
        "other hosts keep the settings that they have, and the log says so",
    ),
    bound(
        "hubs whose settings of topics hold on a host",
        Constant("bus/src/topic_settings/site.rs", "HUBS", "256", "256 beside its own"),
        "those of further hubs do not hold, and the log says so",
    ),
    bound(
        "hubs of one host with a certificate among them",
        Constant("bus/src/topic_settings/site.rs", "HUBS_OF_HOST", "4", "4"),
        "those of further hubs do not hold, and the log says so",
    ),
    bound(
        "changes of announced keys that a node keeps for its processes",
        Constant("bus/src/wire/announced.rs", "KEPT", "16_384", "16 384"),
        "a process that lacks earlier ones gets all keys",
    ),
    bound(
        "audit records of one principal's refusals",
        Constant("bus/src/access/period_limit.rs", "IN_PERIOD", "5", "5 a minute for each verb"),
        "counted in the next record",
    ),
    bound(
        "audit records of one host's streams of one topic that it may not write",
        Constant("hub/src/rules/audit.rs", "TOPIC_RECORDS", "1", "1 a minute"),
        "counted in the next record",
    ),
    bound(
        "causes of audit records that are counted apart",
        Constant("bus/src/access/period_limit.rs", "PLACES", "1024", "1024"),
        "further causes share one limit",
    ),
];
