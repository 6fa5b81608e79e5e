//! Worker threads that cannot die unnoticed.
//!
//! A panic in a plain thread ends that thread and nothing else: the process looks healthy while its archive accepts no
//! more records. Every long-lived thread of Tampu is therefore started by [`WorkerThread`]. It names the thread,
//! catches a panic, passes it to the process-wide reporter ([`set_reporter`]), and counts it ([`counts`]). Then it
//! follows its caller's policy: restart the work, end the process so that a supervisor restarts it, or only report.
//!
//! | subject | module |
//! |-|-|
//! | starting threads, policies after a panic | [`thread`] |
//! | reports and counts of panics | [`report`] |
//! | numbers of tasks that run at a time, released on drop | [`running`] |
//! | the signal that ends a search or a task from outside | [`stop`] |
//! | names of the host and the user | [`host`] |
//! | processor time of a thread | [`mod@thread_cpu`] |
//! | SIGPIPE, which would end a program in C | [`sigpipe`] |
//! | locks that a process which is about to end still holds | [`predecessor`] |
//!
//! The crate depends on no other crate of the project, because each of them starts threads.
//!
//! Rejected: aborting on every panic (`panic = "abort"`). A bad request would then end a hub, and the loggers live in
//! processes of other people.
//!
//! ```
//! use std::time::Duration;
//! use tampu_workers::WorkerThread;
//!
//! let mut left = 3;
//! let worker = WorkerThread::named("countdown").spawn_restarting(Duration::ZERO, move || {
//!     while left > 0 {
//!         left -= 1;
//!     }
//! });
//! worker.unwrap().join().unwrap();
//! assert!(tampu_workers::counts().iter().any(|count| count.worker == "countdown" && count.panics == 0));
//! ```

#![warn(missing_docs)]

pub mod host;
pub mod predecessor;
pub mod report;
pub mod running;
pub mod sigpipe;
pub mod stop;
pub mod thread;
pub mod thread_cpu;

pub use predecessor::lock_after_predecessor;
pub use report::{Consequence, PanicReport, WorkerCount, counts, set_reporter};
pub use running::{Running, RunningGuard};
pub use sigpipe::SigpipeBlocked;
pub use stop::{Stop, StopReason};
pub use thread::{OnPanic, Panicked, WorkerThread, guard};
pub use thread_cpu::thread_cpu;
