//! Tampu beside its peers, on one machine, in one run.
//!
//! A number without a comparison says little: machines differ, and so do the methods of measurement. So every figure of
//! Tampu stands beside the figure of a peer from the same minute with the same payloads. Both are measured the same
//! way:
//!
//! - Writer, readers and the processes between them are separate processes.
//! - Every message is published singly through the peer's public API.
//! - The writer writes every byte of every message, and every reader checks it.
//! - Lost messages are counted, and a rate with loss is marked.
//!
//! | subject | module |
//! |-|-|
//! | payloads | [`payload`] |
//! | counts of a reader | [`tally`] |
//! | processes, and messages to them | [`process`] |
//! | the roles of a writer and of a reader | [`role`] |
//! | the peers | [`peer`] |
//! | Tampu's bus | [`tampu`] |
//! | the catalogue of systems | [`system`] |
//! | one measurement | [`cell`] |
//! | goals | [`goal`] |
//! | speed of the disk | [`disk`] |
//! | Tampu's log line end to end | [`perf_log`] |
//! | log records end to end beside peers | [`log_line`] |
//! | attribute events beside Tango and raw carriers | [`event`] |
//! | cost of a log call to the thread that makes it | [`call`] |
//! | bulk data beside raw sockets, zmq, iperf3 and requests | [`bulk`] |
//! | the cost of TLS for a logbook's pages and files | [`web`] |
//! | tables; curves as SVG | [`table`], [`chart`] |

pub mod book;
pub mod bulk;
pub mod call;
pub mod cell;
pub mod chart;
pub mod clock;
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
pub mod web;
