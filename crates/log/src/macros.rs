//! The log statements.
//!
//! `info!(logger, "text {} {x}", y; key = value, other = 2)` has a text with Rust's formatting, and named values after
//! a semicolon. The named values travel beside the text and can be searched for. A call evaluates nothing while the
//! level is disabled. A call formats no argument of a known type: it stores the value, and another thread or process
//! makes the text ([`tampu_text`]).

/// Logs at a level given as a constant expression; the ten macros named after the levels are shorter. The syntax is that of
/// [`info!`].
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

/// Logs at Delouse: more detail than Debug, for the search of a fault.
#[macro_export]
macro_rules! delouse {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Delouse, $logger, $($rest)+) };
}

/// Logs at Debug: detail for developers.
#[macro_export]
macro_rules! debug {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Debug, $logger, $($rest)+) };
}

/// Logs at Info: normal progress.
///
/// ```text
/// info!(logger, "text {} {name:.1}", argument, name = value; key = value, other = 2)
/// ```
/// The text has the syntax of [`format!`], with its arguments behind it. After a semicolon stand named values: they travel
/// beside the text, are shown behind it, and can be searched for by themselves. Nothing is evaluated while the level is disabled.
/// All macros of levels have this syntax.
///
/// ```
/// # use tampu_log::{LogSettings, Logger, info};
/// # fn scan(logger: &Logger) {
/// let (number, source, flux) = (7, "3C273", 12.25);
/// info!(logger, "scan begins");
/// info!(logger, "scan {} of {source}", number);
/// info!(logger, "flux {flux:.1} Jy"; scan = number, source = source);
/// # }
/// ```
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

/// Logs at Critical: an important function has failed.
#[macro_export]
macro_rules! critical {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Critical, $logger, $($rest)+) };
}

/// Logs at Alert: immediate action is needed.
#[macro_export]
macro_rules! alert {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Alert, $logger, $($rest)+) };
}

/// Logs at Emergency: the system is unusable.
#[macro_export]
macro_rules! emergency {
    ($logger:expr, $($rest:tt)+) => { $crate::log!($crate::Level::Emergency, $logger, $($rest)+) };
}
