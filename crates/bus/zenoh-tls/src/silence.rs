//! Silence of the other end: a cut cable, a host without power.
//!
//! Decision: the kernel is asked, not the engine. The engine takes a link for dead when it has read nothing for a lease.
//! On a busy host its reader may get no time for that long although data waits in the socket. The other end's kernel
//! acknowledges what arrives also while its programs get no time. So a link is silent if the kernel has sent something,
//! and has heard nothing at all since. The engine's lease is long, and its keep-alive messages are what the kernel sends.
//!
//! Rejected: `TCP_USER_TIMEOUT`. It also ends connections whose other end acknowledges, but has a full buffer.

use std::{
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
    time::{Duration, Instant},
};

/// Period of the looks at a link.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// Time for which the kernel repeats what it has sent, without a word from the other end's kernel, after which a link is
/// silent. On a near network it probes 0.2 s after it has sent, which it does not count, and repeats 0.2, 0.6 and 1.4 s after
/// that. With keep-alive messages every 0.5 s a cut is noticed within 1.7 s.
const PATIENCE: Duration = Duration::from_millis(600);

/// State of a connection as the kernel knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery {
    /// True if the kernel waits for an acknowledgement, and has sent something again meanwhile.
    pub is_repeating: bool,
    /// Time since the last word from the other end's kernel.
    pub since_word: Duration,
}

impl Delivery {
    /// Asks the kernel about a TCP connection.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Delivery> {
        // SAFETY: the structure is plain numbers, for which zero is a value.
        let mut info: libc::tcp_info = unsafe { mem::zeroed() };
        let mut length = mem::size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `info`, and the socket is open while it is borrowed.
        let asked = unsafe {
            libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut length)
        };
        if asked != 0 {
            return Err(io::Error::last_os_error());
        }
        let is_repeating = info.tcpi_unacked > 0 && info.tcpi_retransmits > 0 || info.tcpi_probes > 0;
        // Data with an old acknowledgement is a word, too.
        let since_word = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
        Ok(Delivery { is_repeating, since_word: Duration::from_millis(since_word.into()) })
    }
}

/// Result of the looks at one link so far.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Time of the first look at which the kernel was repeating, with no word since.
    since: Option<Instant>,
}

impl Silence {
    /// Notes a look. Returns true if the other end is silent.
    pub fn look(&mut self, delivery: Delivery, now: Instant) -> bool {
        let unheard = |since: &Instant| delivery.is_repeating && delivery.since_word >= now.duration_since(*since);
        let since = self.since.filter(unheard).or_else(|| delivery.is_repeating.then_some(now));
        self.since = since;
        since.is_some_and(|since| now.duration_since(since) >= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every 100 ms, each with whether the kernel repeats and the ms since the last word. Returns the first silent one.
    fn first_silent(looks: impl IntoIterator<Item = (bool, u64)>) -> Option<usize> {
        let (mut silence, begin) = (Silence::default(), Instant::now());
        let look = |(at, (is_repeating, since_word)): (usize, (bool, u64))| {
            let delivery = Delivery { is_repeating, since_word: Duration::from_millis(since_word) };
            silence.look(delivery, begin + at as u32 * LOOK)
        };
        looks.into_iter().enumerate().position(look)
    }

    #[test]
    fn a_link_is_silent_when_repeating_brings_no_word() {
        // A word 300 ms ago, then none; the kernel repeats from the third look on.
        let cut = (0..20).map(|at| (at >= 2, 300 + 100 * at));
        assert_eq!(first_silent(cut), Some(8));
        // A long pause before says nothing.
        assert_eq!(first_silent((0..20).map(|at| (true, 60_000 + 100 * at))), Some(6));
        assert_eq!(first_silent((0..100).map(|at| (false, 60_000 + 100 * at))), None, "nothing was sent");
        // The other end's kernel answers, though its program reads nothing.
        assert_eq!(first_silent((0..100).map(|at| (true, 100 * (at % 5)))), None);
        // Packets that are repeated once, again and again.
        assert_eq!(first_silent((0..100).map(|at| (at % 6 != 5, 60_000))), None);
    }
}
