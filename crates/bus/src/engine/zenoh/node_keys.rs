//! Announced keys of a link that the node passes on, as watches and the supervisor see them.

use std::{any::Any, sync::Arc};

use zenoh::key_expr::KeyExpr;

use crate::engine::CaughtUp;

/// Announced keys that the node of a link passes on.
pub(super) trait NodeKeys: Send + Sync {
    /// Returns true if the node passes on keys under this pattern.
    fn covers(&self, pattern: &str) -> bool;

    /// Begins a watch, by its number, until the result is dropped. The keys that are known are noted at once. Calls `caught_up`
    /// when those are noted that were announced before.
    fn watch(self: Arc<Self>, number: u64, pattern: KeyExpr<'static>, caught_up: Option<CaughtUp>) -> Box<dyn Any + Send + Sync>;

    /// Asks the node for what this process has missed, on another thread.
    fn renew(self: Arc<Self>);
}
