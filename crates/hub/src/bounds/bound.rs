//! A bound: the thing that is bounded, its value, and the behaviour when it is full.

use crate::config::Config;

/// The value of a bound.
#[derive(Clone, Copy)]
pub enum Limit {
    /// A setting of the configuration: its name, and its default with the unit.
    Setting(&'static str, fn(&Config) -> String),
    /// A constant: its source file, seen from `crates/`, its name and expression in that file, and its value with the unit.
    Constant(&'static str, &'static str, &'static str, &'static str),
    /// A value that another setting or the caller's argument gives.
    Other(&'static str),
}

/// A bound of a queue, a buffer or a time.
#[derive(Clone, Copy)]
pub struct Bound {
    /// The thing that is bounded.
    pub what: &'static str,
    /// The value, and its origin.
    pub limit: Limit,
    /// The behaviour when the bound is reached.
    pub full: &'static str,
}

pub(super) const fn bound(what: &'static str, limit: Limit, full: &'static str) -> Bound {
    Bound { what, limit, full }
}

pub(super) fn mib(value: u64) -> String {
    format!("{value} MiB")
}

pub(super) fn unlimited(value: u64, unit: &str) -> String {
    if value == 0 { "no limit".to_owned() } else { format!("{value} {unit}") }
}
