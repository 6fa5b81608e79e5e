//! The logger named after a target.

use crate::{
    bridge::table::{Mix, Table},
    logger::Logger,
};

/// Largest number of targets with a named logger each; other targets use the logger from which the bridge was made.
pub const TARGETS_MAX: usize = 1000;

/// Crates below the bus. With the targets of their modules; `zenoh` also with those of the crates named after it.
const BELOW: [&str; 2] = ["zenoh", "uhlc"];

/// The logger of a target.
#[derive(Clone, Copy)]
pub(super) struct Speaker<'a> {
    pub logger: &'a Logger,
    /// True if the logger is the target's own.
    pub own: bool,
}

/// The loggers of a bridge.
pub(super) struct Speakers {
    logger: Logger,
    named: Table<Named>,
}

struct Named {
    target: Box<str>,
    /// `None` where the target is not listened to.
    logger: Option<Logger>,
}

impl Speakers {
    pub fn new(logger: Logger) -> Speakers {
        Speakers { logger, named: Table::new(TARGETS_MAX) }
    }

    /// Returns the logger of this target; `None` for code below the bus.
    #[inline]
    pub fn of(&self, target: &str) -> Option<Speaker<'_>> {
        let make = || Named { target: target.into(), logger: (!is_below_the_bus(target)).then(|| self.logger.named(target)) };
        match self.named.find_or_add(Mix::START.text(target).hash(), |named| *named.target == *target, make) {
            Some(named) => named.logger.as_ref().map(|logger| Speaker { logger, own: true }),
            None => (!is_below_the_bus(target)).then_some(Speaker { logger: &self.logger, own: false }),
        }
    }

    /// The logger of them all.
    pub fn common(&self) -> &Logger {
        &self.logger
    }
}

fn is_below_the_bus(target: &str) -> bool {
    let name = target.split("::").next().unwrap_or(target);
    BELOW.contains(&name) || name.starts_with("zenoh_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_bus_is_known_by_its_crate() {
        for target in ["zenoh", "zenoh::net::runtime", "zenoh_transport::unicast", "uhlc::id"] {
            assert!(is_below_the_bus(target), "{target}");
        }
        for target in ["", "app", "app::zenoh", "zenohlike", "uhlcs::x"] {
            assert!(!is_below_the_bus(target), "{target}");
        }
    }
}
