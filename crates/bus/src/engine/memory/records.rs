//! Records of the network's state: announcements, watches, questions under way.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use super::ids::{Plane, ProcessId};
use crate::engine::{Answer, Answers, Seen};

/// An announced key.
pub struct Announcement {
    pub process: ProcessId,
    pub plane: Plane,
    pub key: Arc<str>,
    pub since: u64,
}

/// A watch of a pattern of keys.
pub struct Watch {
    pub process: ProcessId,
    pub plane: Plane,
    pub pattern: String,
    pub seen: Seen,
    pub told: BTreeSet<Arc<str>>,
}

/// A question whose asker waits for answers.
pub struct Pending {
    pub asker: ProcessId,
    /// Callback for the answers; `None` while it is called.
    pub answers: Option<Answers>,
    /// Answers that arrived meanwhile.
    pub backlog: VecDeque<Answer>,
    pub copies: BTreeMap<u64, Copy>,
}

/// A copy of the question at one answerer.
pub struct Copy {
    pub answerer: ProcessId,
    /// Arrival of the last part of its answer: the end must not come before.
    pub parts_until: u64,
}
