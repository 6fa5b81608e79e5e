//! Tampu beside its peers, on one machine, in one run.
//!
//! A number without its neighbours says little: machines differ, and so do the things people measure. So every figure of ours
//! stands beside what a peer does in the same minute with the same payloads, and both are made the same way: writer, readers
//! and what stands between are separate processes; every message is published singly through the peer's public API; every byte
//! of every message is written by the writer and checked by every reader; what was lost is counted, and a rate with loss is
//! marked as such.
//!
//! | subject | module |
//! |-|-|
//! | what travels | [`payload`] |
//! | what a reader counts | [`tally`] |
//! | processes and how they are spoken to | [`process`] |
//! | the life of a writer, of a reader | [`role`] |
//! | the peers | [`peer`] |
//! | our own bus | [`tampu`] |
//! | the catalogue of systems | [`system`] |
//! | one measurement | [`cell`] |
//! | what we want to reach | [`goal`] |
//! | what the disk takes | [`disk`] |
//! | our log line end to end | [`perf_log`] |
//! | log records end to end beside peers | [`log_line`] |
//! | attribute events beside Tango and raw carriers | [`event`] |
//! | what a log call costs the one who logs | [`call`] |
//! | bulk data beside raw sockets, zmq, iperf3 and questions | [`bulk`] |
//! | tables; curves as SVG | [`table`], [`chart`] |

pub mod book;
pub mod bulk;
pub mod call;
pub mod cell;
pub mod chart;
pub mod disk;
pub mod event;
pub mod goal;
pub mod log_line;
pub mod payload;
pub mod peer;
pub mod perf_log;
pub mod process;
pub mod role;
pub mod system;
pub mod table;
pub mod tally;
pub mod tampu;
