//! Threads that run a callback of C's. Functions that wait for callbacks must not be called by one of them.

use std::cell::Cell;

thread_local! {
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if this thread is in a callback.
pub fn running() -> bool {
    RUNS.get()
}

/// Runs a callback.
pub fn inside<T>(call: impl FnOnce() -> T) -> T {
    let before = RUNS.replace(true);
    let answer = call();
    RUNS.set(before);
    answer
}
