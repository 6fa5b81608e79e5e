//! Bounds of flows and transfers of bulk data.

use super::bound::{
    Bound,
    Limit::{Constant, Other},
    bound,
};

pub(super) const BOUNDS: &[Bound] = &[
    bound(
        "bytes of a flow that are sent and not acknowledged (`window`)",
        Other("32 MiB, 8192 frames"),
        "`send` waits; a receiver without progress for `wait` (5 s) is disconnected or skipped, reported at both ends",
    ),
    bound(
        "datagrams under way to a receiver (`room`)",
        Other("1 MiB, less where its system has smaller buffers"),
        "the flow waits for acknowledgements",
    ),
    bound("time a lost datagram is asked for (`repair`)", Other("1 s"), "it is lost, reported at both ends with its bytes"),
    bound("time a transfer with a broken connection is kept (`resume`)", Other("30 s"), "it ends incomplete at both ends"),
    bound("senders of a receiver (`connections`)", Other("64"), "further ones are rejected, counted and reported"),
    bound(
        "commands that an offer of `bulk/control` carries out at once",
        Constant("bulk/src/control/serve.rs", "AT_ONCE", "16", "16"),
        "further ones are refused",
    ),
    bound(
        "bytes of a command to such an offer",
        Constant("bulk/src/control/serve.rs", "QUESTION_LIMIT", "64 << 10", "64 KiB"),
        "it is refused",
    ),
    bound(
        "wait of a stop for the work that a start began",
        Constant("bulk/src/control/sender.rs", "STOP_WAIT", "Duration::from_secs(3)", "3 s"),
        "the answer says that it is still active",
    ),
    bound(
        "running transfers that a hub follows",
        Constant("bulk/src/transfers/account.rs", "REMEMBERED", "1000", "1000"),
        "the oldest is dropped; its end is kept all the same",
    ),
    bound("kept transfers of one answer; bytes and time of it", Other("1000; 3 MiB, 20 s"), "the caller continues from its end"),
    bound(
        "receivers of a transfer whose results are kept",
        Constant("bulk/src/transfers/account.rs", "RECEIVERS_KEPT", "32", "32"),
        "those with missing data come first, and all are counted",
    ),
];
