//! Bounds of a service.

use std::time::Duration;

use tampu_workers::Running;

/// Limits of a service. A question or answer beyond a limit is refused.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Questions answered at once, including waiting ones. Further ones are refused.
    pub at_once: usize,
    /// Number of running questions. Clones of the limits share it, so several services can share one limit.
    pub running: Running,
    /// Length of a question in bytes.
    pub question: usize,
    /// Length of all parts of an answer in bytes.
    pub answer: usize,
    /// Time for one answer, which the handler obeys ([`Request::time`](super::Request::time)).
    pub time: Duration,
    /// Longest wait at the end of the service for answers under way. Without it the last asker may get no answer, though its
    /// question was carried out.
    pub ending: Duration,
    /// Name of the thread on which each question is answered. Without one, the engine's worker answers and must not
    /// wait.
    pub thread: Option<&'static str>,
}

impl Limits {
    /// Short answers on the engine's worker: questions of at most 4 KiB, 4096 at once, answers of at most 16 MiB.
    pub fn inline() -> Limits {
        Limits {
            at_once: 4096,
            running: Running::new(),
            question: 4096,
            answer: 16 << 20,
            time: Duration::from_secs(1),
            ending: Duration::ZERO,
            thread: None,
        }
    }

    /// Long answers, each on a thread of its own: questions of at most 1 MiB, answers of at most 4 GiB in one minute.
    pub fn on_threads(name: &'static str, at_once: usize) -> Limits {
        let time = Duration::from_secs(60);
        Limits {
            at_once,
            running: Running::new(),
            question: 1 << 20,
            answer: usize::try_from(4_u64 << 30).unwrap_or(usize::MAX),
            time,
            ending: Duration::ZERO,
            thread: Some(name),
        }
    }
}
