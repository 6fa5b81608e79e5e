//! The only system call that needs C's library: `adjtimex`.

/// The kernel's report about its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// True if it follows a reference.
    pub(super) synchronised: bool,
    /// TAI - UTC in seconds; 0 if it was never set in the kernel.
    pub(super) tai_offset: i32,
    /// Largest error in microseconds, as the synchronising daemon has estimated it.
    pub(super) error_us: i64,
}

/// Reads the state without changing anything; `None` if the kernel refuses (some containers forbid the call).
pub(super) fn ask() -> Option<Told> {
    // SAFETY: `timex` holds only numbers, so all zeros is a valid value. `modes` of 0 requests no change. The kernel writes only
    // into this structure, which outlives the call.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut timex), timex)
    };
    (state >= 0).then_some(Told { synchronised: state != libc::TIME_ERROR, tai_offset: timex.tai, error_us: timex.esterror })
}
