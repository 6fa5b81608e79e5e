//! The rule that decides which of several processes owns an attribute.
//!
//! Servers and subscribers apply the same rule, so no arbiter is needed. Of two incarnations with one source name, the
//! later one owns the attribute, because the process was restarted. Of two different sources, the one that started
//! first owns it.

use tampu_bus::SourceInfo;
use tampu_types::{Incarnation, SourceName};

/// Returns whether `source` must give up an attribute that `other` declares too.
pub(crate) fn outranked_by(source: &SourceName, incarnation: Incarnation, other: &SourceInfo) -> bool {
    let start = |incarnation: Incarnation| (incarnation.start, incarnation);
    if source.as_str().eq_ignore_ascii_case(other.source.as_str()) {
        start(incarnation) < start(other.incarnation)
    } else {
        start(incarnation) > start(other.incarnation)
    }
}
