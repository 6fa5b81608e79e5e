//! The Python package `tampu`: its module `_native`. The package itself, with its documentation and types, is in
//! `python/tampu`.
//!
//! | subject | module |
//! |-|-|
//! | log records: from Python's `logging` into the rings | [`log`] |
//! | attribute events: servers and clients | [`event`] |
//! | bulk data: senders and receivers | [`bulk`] |
//! | the logbook | [`book`] |
//! | questions to the archives, answered by tables | [`question`] |
//! | errors as Python's exceptions | [`failure`] |
//! | memory of arrays, borrowed from Python | [`buffer`] |
//! | the bell that wakes a loop of asyncio | [`bell`] |
//!
//! Python code runs on Python's threads only. The crates' own threads put their news where a Python thread fetches them.
//! So a callback never runs on a foreign thread, and the end of the interpreter meets no thread that waits for it.

mod bell;
mod book;
mod buffer;
mod bulk;
mod event;
mod failure;
mod log;
mod question;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::{
        book::{
            client::BookClient,
            failure::{BookConflict, BookError, Locked, NotAllowed, NotFound, NotValid, Unreachable},
        },
        bulk::{
            control::{BulkCommander, BulkControl, BulkWork},
            failure::{BulkError, Cancelled, CannotListen, Closed, Denied, NoReceiver, NobodyLeft, NotOffered, WrongOrder},
            receiver::{BulkData, BulkReceiver},
            sender::BulkSender,
        },
        event::{
            client::{EventClient, EventColumns, EventStream, LatestEvents},
            received::{Elements, EventArray, ReceivedEvent},
            server::{EventAttribute, EventServer},
        },
        failure::TampuError,
        log::{record_handler::RecordHandler, writer::LogWriter},
        question::AnswerTable,
    };
}
