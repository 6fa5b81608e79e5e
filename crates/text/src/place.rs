//! Places in source files that log plain texts, for languages whose statements are unknown before they run. Each place
//! becomes a statement that shows one text. So such records are written to the rings too, and survive their process.
//!
//! Decision: places are distinguished by their strings and not by their addresses, because a script's file name has no
//! fixed address. Their number is bounded, because statements are never freed and a caller may generate any number of
//! file names.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{LazyLock, PoisonError, RwLock},
};

use crate::{ARGUMENTS_MAX, Dialect, Piece, Site, Spec, Statement};

/// Maximum number of places with a statement. The records of further places are written without one.
pub const PLACES_MAX: usize = 4096;

/// A place in a source file that logs a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourcePlace<'a> {
    /// Number of the level.
    pub level: u8,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Name of the file.
    pub file: &'a [u8],
    /// Name of the function.
    pub routine: &'a [u8],
    /// Names of the values beside the text: at most 63.
    pub names: &'a [&'a [u8]],
}

/// The known places.
#[derive(Default)]
pub struct Places {
    random: RandomState,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    by_hash: HashMap<u64, Vec<(SourcePlace<'static>, &'static Statement)>>,
    count: usize,
}

impl Known {
    fn find(&self, hash: u64, place: SourcePlace) -> Option<&'static Statement> {
        self.by_hash.get(&hash)?.iter().find(|(known, _)| *known == place).map(|(_, statement)| *statement)
    }
}

/// The known places of this process.
pub static PLACES: LazyLock<Places> = LazyLock::new(Places::default);

impl Places {
    /// Returns the statement of a place. Returns `None` if there are too many places, or too many values at this place.
    pub fn statement(&self, place: SourcePlace) -> Option<&'static Statement> {
        if place.names.len() >= ARGUMENTS_MAX {
            return None;
        }
        let hash = self.random.hash_one(place);
        if let Some(statement) = self.known.read().unwrap_or_else(PoisonError::into_inner).find(hash, place) {
            return Some(statement);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = known.find(hash, place) {
            return Some(statement);
        }
        if known.count == PLACES_MAX {
            return None;
        }
        let kept = |bytes: &[u8]| -> &'static [u8] { Box::leak(bytes.into()) };
        let names: Vec<&'static [u8]> = place.names.iter().map(|name| kept(name)).collect();
        let place = SourcePlace { file: kept(place.file), routine: kept(place.routine), names: Box::leak(names.into()), ..place };
        let statement: &'static Statement = Box::leak(Box::new(Statement::of_site(Site {
            level: place.level,
            dialect: Dialect::Fmt,
            file: String::from_utf8_lossy(place.file),
            line: place.line,
            routine: String::from_utf8_lossy(place.routine),
            pieces: vec![Piece::Argument { index: 0, spec: Spec::PLAIN }].into(),
            arguments: 1 + place.names.len() as u16,
            names: place.names.iter().map(|name| String::from_utf8_lossy(name)).collect(),
            ..Site::EMPTY
        })));
        known.by_hash.entry(hash).or_default().push((place, statement));
        known.count += 1;
        Some(statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32) -> SourcePlace<'static> {
        SourcePlace { level: 4, line, file: b"mount.c", routine: b"slew", names: &[] }
    }

    #[test]
    fn a_place_is_one_statement_wherever_its_strings_lie() {
        let places = Places::default();
        let first = places.statement(at(7)).unwrap();
        let moved = (b"mount.c".to_vec(), b"slew".to_vec());
        let again = places.statement(SourcePlace { file: &moved.0, routine: &moved.1, ..at(7) }).unwrap();
        assert!(std::ptr::eq(first, again));
        let named = SourcePlace { names: &[b"scan"], ..at(7) };
        let others = [
            at(8),
            SourcePlace { level: 5, ..at(7) },
            SourcePlace { file: b"b.c", ..at(7) },
            SourcePlace { routine: b"", ..at(7) },
            named,
        ];
        for other in others {
            assert!(!std::ptr::eq(first, places.statement(other).unwrap()), "{other:?}");
        }
        let site = places.statement(named).unwrap().site();
        assert_eq!((site.arguments, &*site.names), (2, &["scan".into()][..]));
        assert!(places.statement(SourcePlace { names: &[&b"a"[..]; 64], ..at(7) }).is_none());
        assert_eq!((&*first.site().file, first.site().line, &*first.site().routine), ("mount.c", 7, "slew"));
    }

    #[test]
    fn there_is_a_bound_and_known_places_stay_known() {
        let places = Places::default();
        for line in 0..PLACES_MAX as u32 {
            assert!(places.statement(at(line)).is_some());
        }
        assert!(places.statement(at(PLACES_MAX as u32)).is_none());
        assert!(places.statement(at(0)).is_some());
    }
}
