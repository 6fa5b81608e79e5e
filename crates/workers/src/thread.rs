//! Starting worker threads.
//!
//! The policy after a panic is part of the call, because only the caller knows whether the work can start again:
//! - [`WorkerThread::spawn_restarting`] for a loop whose state survives a panic, or is made anew by each start;
//! - [`OnPanic::EndProcess`] for work whose state may be broken and without which the process does harm (the archive's
//!   writer): the write-ahead log makes a restart safe. Only programs may choose it, never a library that runs in
//!   processes
//!   of other people;
//! - [`OnPanic::ReportOnly`] for work that ends by itself or that others do without.

use std::{
    any::Any,
    fmt, io,
    panic::{self, AssertUnwindSafe},
    process,
    thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle},
    time::Duration,
};

use crate::{
    report::{Alive, Consequence, report},
    sigpipe,
};

/// Effect of a panic on a worker that cannot be restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPanic {
    /// The panic is reported and the process aborts, so that its supervisor restarts it.
    EndProcess,
    /// The panic is reported, and joining the thread returns it.
    ReportOnly,
}

/// A worker thread that is about to be started. It blocks SIGPIPE ([`sigpipe`]).
#[derive(Debug, Clone)]
#[must_use = "nothing runs before one of the spawn functions is called"]
pub struct WorkerThread {
    name: String,
    counted_as: Option<&'static str>,
    stack_size: Option<usize>,
}

impl WorkerThread {
    /// A worker of this name, which the operating system shows too (its first 15 bytes). It must not contain NUL.
    pub fn named(name: impl Into<String>) -> WorkerThread {
        WorkerThread { name: name.into(), counted_as: None, stack_size: None }
    }

    /// Counts and reports the worker under this name, for workers whose own name contains a number or an address.
    pub fn counted_as(self, name: &'static str) -> WorkerThread {
        WorkerThread { counted_as: Some(name), ..self }
    }

    /// Size of the thread's stack in bytes; without it the standard library's.
    pub fn stack_size(self, bytes: usize) -> WorkerThread {
        WorkerThread { stack_size: Some(bytes), ..self }
    }

    /// Starts the worker. Fails if the operating system refuses a further thread.
    pub fn spawn<T: Send + 'static>(
        self,
        on_panic: OnPanic,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let (builder, name) = self.builder();
        builder.spawn(move || run(&name, on_panic, work))
    }

    /// Starts a worker that borrows from its surroundings, as [`std::thread::scope`] allows.
    pub fn spawn_scoped<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        on_panic: OnPanic,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        let (builder, name) = self.builder();
        builder.spawn_scoped(scope, move || run(&name, on_panic, work))
    }

    /// Starts a worker whose work is called again, after `pause`, each time it panics. The thread ends when the work
    /// returns. The work sees its own state as the panic left it. A thread that joins this one also waits for the
    /// pause.
    pub fn spawn_restarting(self, pause: Duration, mut work: impl FnMut() + Send + 'static) -> io::Result<JoinHandle<()>> {
        let (builder, name) = self.builder();
        builder.spawn(move || {
            sigpipe::block();
            let _alive = Alive::new(&name);
            while let Err(payload) = panic::catch_unwind(AssertUnwindSafe(&mut work)) {
                report(&name, &*payload, Consequence::Restart(pause));
                thread::sleep(pause);
            }
        })
    }

    fn builder(self) -> (Builder, String) {
        let reported = self.counted_as.map_or_else(|| self.name.clone(), str::to_owned);
        let builder = Builder::new().name(self.name);
        let builder = match self.stack_size {
            Some(bytes) => builder.stack_size(bytes),
            None => builder,
        };
        (builder, reported)
    }
}

fn run<T>(name: &str, on_panic: OnPanic, work: impl FnOnce() -> T) -> T {
    sigpipe::block();
    let alive = Alive::new(name);
    let payload = match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => return result,
        Err(payload) => payload,
    };
    drop(alive);
    match on_panic {
        OnPanic::EndProcess => {
            report(name, &*payload, Consequence::EndProcess);
            process::abort();
        }
        OnPanic::ReportOnly => {
            report(name, &*payload, Consequence::WorkerEnded);
            // The panic hook has already run. The caller of `join` decides how to handle the panic.
            panic::resume_unwind(payload)
        }
    }
}

/// A task panicked; the report has its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("an internal error: the task panicked")
    }
}

impl std::error::Error for Panicked {}

/// Runs one task of a worker on this thread. A panic in it is reported and counted under `worker`, and the worker
/// continues.
///
/// The caller is responsible for values that the task borrows: a panic may leave them half changed.
pub fn guard<T>(worker: &str, task: impl FnOnce() -> T) -> Result<T, Panicked> {
    panic::catch_unwind(AssertUnwindSafe(task)).map_err(|payload: Box<dyn Any + Send>| {
        report(worker, &*payload, Consequence::TaskFailed);
        Panicked
    })
}
