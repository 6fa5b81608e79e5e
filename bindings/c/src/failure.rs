//! Failures in C: a function returns a value for the failure, and its thread can read the text of the last one.
//!
//! Decision: a text for each thread, as `dlerror` has it. Rejected: codes, because each text would need one and an
//! operator would have to look it up. Also rejected: a parameter for the text in every function.

use std::{
    cell::RefCell,
    ffi::{CString, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
};

use tampu_bulk::{
    directory::AnnounceError,
    group::BadGroup,
    name::BadBulkName,
    sender::SendError,
    settings::{BadCombination, BadFlowSettings},
    target::BadTarget,
};
use tampu_bus::{BusError, connect::BadEnvironment};
use tampu_event::{
    JoinError,
    client::BadCondition,
    server::{DeclareError, PushError},
};
use tampu_log::logger::{BadSettings, OpenError};
use tampu_types::{
    event::{BadAttributeName, BadPattern, config::BadBand},
    identity::BadName,
};

/// Reason for which a function failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Failure {
    #[error("{0} is NULL")]
    Null(&'static str),
    #[error("the source's name: {0}")]
    Name(#[from] BadName),
    #[error(transparent)]
    Settings(#[from] BadSettings),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{0} is not a level: they are 1 to 11 without 7, and 99 is off for a threshold")]
    Level(i32),
    #[error("the grade {0}: TAMPU_LOG_RECEIVED (1) and TAMPU_LOG_KEPT (2) are the only ones")]
    Grade(i32),
    #[error("a log statement of {names} names has only {arguments} arguments, and 64 at most are possible")]
    Arguments { arguments: usize, names: usize },
    #[error("a payload of {0} bytes is longer than any call's")]
    Length(usize),
    #[error("the domain's name: {0}")]
    Domain(BadName),
    #[error(transparent)]
    Environment(#[from] BadEnvironment),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    BulkName(#[from] BadBulkName),
    #[error(transparent)]
    Target(#[from] BadTarget),
    #[error("the group: {0}")]
    Group(#[from] BadGroup),
    #[error(transparent)]
    FlowSettings(#[from] BadFlowSettings),
    #[error(transparent)]
    Combination(#[from] BadCombination),
    #[error(transparent)]
    BulkOpen(#[from] tampu_bulk::receiver::OpenError),
    #[error(transparent)]
    Announce(#[from] AnnounceError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("the attribute's name: {0}")]
    Attribute(#[from] BadAttributeName),
    #[error("the attribute: {0}")]
    Pattern(#[from] BadPattern),
    #[error(transparent)]
    Declare(#[from] DeclareError),
    #[error(transparent)]
    Push(#[from] PushError),
    #[error("the condition: {0}")]
    Condition(#[from] BadCondition),
    #[error("the least difference: {0}")]
    Band(#[from] BadBand),
    #[error("{what}: invalid value '{value}'; {possible}")]
    Odd { what: &'static str, value: String, possible: &'static str },
    #[error("the participant '{0}' is not on the bus: it was made with tampu_bulk_alone")]
    Alone(String),
    #[error("{0}")]
    Control(String),
    #[error("this waits for callbacks, so none of them may call it")]
    InCallback,
    /// A bug in this library. The panic must not reach the caller's stack.
    #[error("the library has a bug: {0}")]
    Panic(String),
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(text: String) {
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    // In the destructors of an ending thread the variable may be gone.
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = text));
}

/// Runs a function of the header. An error or a panic becomes `otherwise` and this thread's last error.
#[inline(always)]
pub fn guarded<T>(otherwise: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => {
            remember(failure.to_string());
            otherwise
        }
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            remember(Failure::Panic(text).to_string());
            // Dropping the panic's value could panic again.
            std::mem::forget(panic);
            otherwise
        }
    }
}

/// Stores the text of a problem that does not make the function fail.
pub fn mention(what: impl std::fmt::Display) {
    remember(what.to_string());
}

/// Returns the text of the last failure in this thread, or an empty text.
pub fn last_error() -> *const c_char {
    LAST.try_with(|last| last.try_borrow().map_or(c"".as_ptr(), |last| last.as_ptr())).unwrap_or(c"".as_ptr())
}

/// Returns the text of the last failure to C.
#[unsafe(no_mangle)]
pub extern "C" fn tampu_log_last_error() -> *const c_char {
    last_error()
}
