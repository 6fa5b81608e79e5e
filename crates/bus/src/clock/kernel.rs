//! The one question to the kernel that only C's library can put: `adjtimex`.

/// What the kernel says about its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Whether it follows a reference.
    pub(super) synchronised: bool,
    /// TAI - UTC in seconds; 0 where nobody has told the kernel.
    pub(super) tai_offset: i32,
    /// How far off it may be, in microseconds, as whoever disciplines it has estimated.
    pub(super) error_us: i64,
}

/// Asks without changing anything; `None` where the kernel does not say (some containers forbid the question).
pub(super) fn ask() -> Option<Told> {
    // SAFETY: `timex` is made of numbers only, for which all zeros is a value. Its `modes` of 0 asks for nothing to be
    // changed, and the kernel writes into no more than this one structure, which outlives the call.
    let (state, timex) = unsafe {
        let mut timex: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut timex), timex)
    };
    (state >= 0).then_some(Told { synchronised: state != libc::TIME_ERROR, tai_offset: timex.tai, error_us: timex.esterror })
}
