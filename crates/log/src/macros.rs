//! The log statements.
//!
//! `info!(logger, "text {} {x}", y; key = value, other = 2)`: a text with Rust's formatting, then after a semicolon the named
//! values, which travel beside the text and can be searched for by themselves. Nothing is evaluated while the level is
//! disabled, and nothing of a known type is formatted at the call: its value is stored, and the text made of it elsewhere
//! ([`tampu_text`]).

/// Logs at a level given as an expression of constants; the ten macros named after the levels are shorter.
#[macro_export]
macro_rules! log {
    ($level:expr, $logger:expr, $($rest:tt)+) => {
        $crate::text::statement!($crate::Level::number($level), $logger, $($rest)+)
    };
}
/// Logs at Trace: entering and leaving functions.
#[macro_export]
macro_rules! trace {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Trace, $logger, $($rest)+) };
}

/// Logs at Delouse: more than anybody wants while nothing is wrong.
#[macro_export]
macro_rules! delouse {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Delouse, $logger, $($rest)+) };
}

/// Logs at Debug: what a developer looks at.
#[macro_export]
macro_rules! debug {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Debug, $logger, $($rest)+) };
}

/// Logs at Info: what is going on.
#[macro_export]
macro_rules! info {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Info, $logger, $($rest)+) };
}

/// Logs at Notice: normal, and worth noticing.
#[macro_export]
macro_rules! notice {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Notice, $logger, $($rest)+) };
}

/// Logs at Warning: not an error, but it may become one.
#[macro_export]
macro_rules! warning {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Warning, $logger, $($rest)+) };
}

/// Logs at Error: something did not work.
#[macro_export]
macro_rules! error {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Error, $logger, $($rest)+) };
}

/// Logs at Critical: something important does not work any more.
#[macro_export]
macro_rules! critical {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Critical, $logger, $($rest)+) };
}

/// Logs at Alert: somebody must act.
#[macro_export]
macro_rules! alert {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Alert, $logger, $($rest)+) };
}

/// Logs at Emergency: the system is unusable.
#[macro_export]
macro_rules! emergency {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Emergency, $logger, $($rest)+) };
}
