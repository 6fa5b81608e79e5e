//! Loggers and statements that were used before, found without reading a text.
//!
//! A text of Python is known by its address, while a reference keeps it alive. A program has a fixed number of places
//! and logger names, but records that arrive from elsewhere have new texts each time. So the tables have bounds. Beyond
//! them, places are found by their texts, and records of further loggers become whole records.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use pyo3::{prelude::*, types::PyString};
use tampu_log::Logger;
use tampu_text::{
    Statement,
    place::{PLACES, SourcePlace},
};

use crate::log::call::Call;

/// Most loggers, each in each context it is used in.
const LOGGERS_MAX: usize = 1024;
/// Most places that are known by their addresses.
const PLACES_MAX: usize = 8192;

type Address = usize;

/// A table by addresses and small numbers. The standard hash resists keys that an attacker chooses; nobody chooses these.
type ByAddress<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;

/// A hash that multiplies and folds each number of a key.
#[derive(Default)]
struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_usize(byte.into()));
    }

    fn write_usize(&mut self, number: usize) {
        let product = u128::from(self.0.rotate_left(32) ^ number as u64) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_u32(&mut self, number: u32) {
        self.write_usize(number as usize);
    }
}

fn address(text: &Bound<'_, PyString>) -> Address {
    text.as_ptr().addr()
}

/// Number of a logger, and the texts that keep the addresses by which it is known.
struct KnownLogger {
    number: usize,
    _texts: (Py<PyString>, Option<Py<PyString>>),
}

/// Loggers by name and context.
pub struct Loggers {
    root: Logger,
    all: Vec<Logger>,
    by_text: HashMap<(String, String), usize>,
    by_address: ByAddress<(Address, Address), KnownLogger>,
}

impl Loggers {
    /// Makes the loggers of a process.
    pub fn of(root: Logger) -> Loggers {
        Loggers { root, all: Vec::new(), by_text: HashMap::new(), by_address: ByAddress::default() }
    }

    /// Returns the process's logger.
    pub fn root(&self) -> &Logger {
        &self.root
    }

    /// Returns the number of the logger of a name in a context; `None` if there are too many.
    pub fn find(&mut self, name: &Bound<'_, PyString>, context: Option<&Bound<'_, PyString>>) -> Option<usize> {
        let key = (address(name), context.map_or(0, address));
        if let Some(known) = self.by_address.get(&key) {
            return Some(known.number);
        }
        let texts =
            (name.to_string_lossy().into_owned(), context.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default());
        let found = match self.by_text.get(&texts) {
            Some(&found) => found,
            None if self.all.len() == LOGGERS_MAX => return None,
            None => {
                let named = self.root.named(&texts.0);
                self.all.push(if texts.1.is_empty() { named } else { named.in_context(&texts.1) });
                self.by_text.insert(texts, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        if self.by_address.len() < LOGGERS_MAX {
            let texts = (name.clone().unbind(), context.map(|text| text.clone().unbind()));
            self.by_address.insert(key, KnownLogger { number: found, _texts: texts });
        }
        Some(found)
    }

    /// Returns the logger of a number.
    pub fn get(&self, number: usize) -> &Logger {
        self.all.get(number).unwrap_or(&self.root)
    }
}

#[derive(PartialEq, Eq, Hash)]
struct PlaceKey {
    path: Address,
    function: Address,
    line: u32,
    level: u8,
}

struct KnownPlace {
    /// Keeps the addresses of the key.
    _texts: (Py<PyString>, Py<PyString>),
    statements: Vec<(Box<[Py<PyString>]>, &'static Statement)>,
}

/// Statements by the place of their call and the names of its data.
#[derive(Default)]
pub struct Places {
    by_address: ByAddress<PlaceKey, KnownPlace>,
}

impl Places {
    /// Returns the statement of a call; `None` if it has to become a whole record.
    pub fn find(&mut self, call: &Call<'_>) -> Option<&'static Statement> {
        let key = PlaceKey {
            path: address(&call.path),
            function: address(&call.function),
            line: call.line,
            level: call.level.number(),
        };
        let has_room = self.by_address.len() < PLACES_MAX;
        let found = self.by_address.get_mut(&key);
        let is_same = |names: &[Py<PyString>]| {
            names.len() == call.data.len()
                && names.iter().zip(&call.data).all(|(known, (name, _))| known.as_ptr() == name.as_ptr())
        };
        if let Some(known) = &found
            && let Some((_, statement)) = known.statements.iter().find(|(names, _)| is_same(names))
        {
            return Some(statement);
        }
        let (path, function) = (call.path.to_string_lossy(), call.function.to_string_lossy());
        let names: Vec<_> = call.data.iter().map(|(name, _)| name.to_string_lossy()).collect();
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        let (file, routine) = (path.as_bytes(), function.as_bytes());
        let statement =
            PLACES.statement(SourcePlace { level: call.level.number(), line: call.line, file, routine, names: &names })?;
        let entry = || (call.data.iter().map(|(name, _)| name.clone().unbind()).collect(), statement);
        match found {
            Some(known) if known.statements.len() < 16 => known.statements.push(entry()),
            None if has_room => {
                let texts = (call.path.clone().unbind(), call.function.clone().unbind());
                self.by_address.insert(key, KnownPlace { _texts: texts, statements: vec![entry()] });
            }
            _ => {}
        }
        Some(statement)
    }
}
