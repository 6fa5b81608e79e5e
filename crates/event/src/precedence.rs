//! The rule that decides which of several processes owns an attribute.
//!
//! Servers and subscribers apply the same rule, so no arbiter is needed. Of two incarnations with one source name, the
//! later one owns the attribute, because the process was restarted. Of two different sources, the one that started
//! first owns it.
//!
//! The clocks of two boots may disagree about which life is the later one. So a life that is heard goes before a silent one of
//! another boot.

use tampu_bus::SourceInfo;
use tampu_types::{Incarnation, SourceName};

/// Returns whether `source` must give up an attribute that `other` declares too. `is_silent` tells of an incarnation that it is
/// hung, or cannot be reached.
pub(crate) fn outranked_by(
    source: &SourceName,
    incarnation: Incarnation,
    other: &SourceInfo,
    is_silent: impl Fn(Incarnation) -> bool,
) -> bool {
    let start = |incarnation: Incarnation| (incarnation.start, incarnation);
    if !source.as_str().eq_ignore_ascii_case(other.source.as_str()) {
        return start(incarnation) > start(other.incarnation);
    }
    let (silent, other_silent) = (is_silent(incarnation), is_silent(other.incarnation));
    if incarnation.boot != other.incarnation.boot && silent != other_silent {
        return silent;
    }
    start(incarnation) < start(other.incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_life_goes_before_an_earlier_one_and_a_heard_one_before_a_silent_boot() {
        let source = SourceName::new("vacuum").unwrap();
        let (old, new) = (Incarnation { boot: 1, pid: 1, start: 10 }, Incarnation { boot: 2, pid: 1, start: 5 });
        let gives_up = |one, other, silent: &[Incarnation]| {
            let other = SourceInfo { source: source.clone(), incarnation: other };
            outranked_by(&source, one, &other, |life| silent.contains(&life))
        };
        assert!(gives_up(new, old, &[]) && !gives_up(old, new, &[]));
        assert!(!gives_up(new, old, &[old]) && gives_up(old, new, &[old]), "the clock of the new boot is behind");
        assert!(gives_up(new, old, &[old, new]) && !gives_up(old, new, &[old, new]));
        let (hung, next) = (Incarnation { boot: 1, pid: 7, start: 11 }, old);
        assert!(gives_up(next, hung, &[hung]), "lives of one boot have one clock");
    }
}
