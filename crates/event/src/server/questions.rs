//! Questions that wait for the keeper.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tampu_bus::service::Request;

/// Service of a question.
#[derive(Debug, Clone, Copy)]
pub(super) enum QuestionKind {
    Refresh,
    List,
    Get,
    Conf,
    Doctor,
}

/// Queue of questions. The limits of the services bound it.
#[derive(Default)]
pub(super) struct QuestionQueue {
    pub waiting: Mutex<VecDeque<(QuestionKind, Request)>>,
}
