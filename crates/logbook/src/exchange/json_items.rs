//! The entries of a JSON export, one at a time: the elements of an array, which may be a member of an object.
//!
//! Memory holds one entry, whose size is bounded.

use std::{
    cell::Cell,
    fmt,
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
    rc::Rc,
};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::foreign::SourceError;

/// Bytes of one entry, without its files.
pub const MAX_ITEM: u64 = 64 << 20;

/// A reader that fails when one entry takes too many bytes.
struct Bounded<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        match self.left.get().checked_sub(read as u64) {
            Some(left) => self.left.set(left),
            None => return Err(io::Error::other(format!("an entry has more than {} MiB", MAX_ITEM >> 20))),
        }
        Ok(read)
    }
}

/// A callback with the JSON pointer of an entry and the entry; false ends the pass.
pub type TakeItem<'a> = &'a mut dyn FnMut(String, Value) -> Result<bool, SourceError>;

/// The state of a pass.
struct Pass<'p, 'a> {
    list: &'p str,
    left: Rc<Cell<u64>>,
    take: TakeItem<'a>,
    failed: Option<SourceError>,
    ended: bool,
}

/// Passes the entries of a file on. They are the elements of an array, or of the array `list` of an object. Another
/// object is an entry itself.
pub fn each(path: &Path, list: &str, take: TakeItem<'_>) -> Result<(), SourceError> {
    let file = File::open(path).map_err(|error| SourceError::Io { path: path.to_owned(), error })?;
    let left = Rc::new(Cell::new(MAX_ITEM));
    let reader = Bounded { inner: BufReader::with_capacity(1 << 16, file), left: left.clone() };
    let mut pass = Pass { list, left, take, failed: None, ended: false };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = Top(&mut pass).deserialize(&mut json).and_then(|()| if pass.ended { Ok(()) } else { json.end() });
    if let Some(failed) = pass.failed {
        return Err(failed);
    }
    match read {
        Err(error) if !pass.ended => Err(SourceError::Format { path: path.to_owned(), why: error.to_string() }),
        _ => Ok(()),
    }
}

impl Pass<'_, '_> {
    /// Passes an entry on. An error here ends the parser, too.
    fn give<E: Error>(&mut self, pointer: String, value: Value) -> Result<(), E> {
        self.left.set(MAX_ITEM);
        match (self.take)(pointer, value) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => self.failed = Some(error),
        }
        self.ended = true;
        Err(E::custom("ended"))
    }
}

struct Top<'s, 'p, 'a>(&'s mut Pass<'p, 'a>);

impl<'de> DeserializeSeed<'de> for Top<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of entries, or an object with the array '{}'", self.0.list)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<(), A::Error> {
        Items(self.0, String::new()).visit_seq(from)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<(), A::Error> {
        let (mut one, mut is_list) = (Map::new(), false);
        while let Some(name) = from.next_key::<String>()? {
            if name == self.0.list {
                is_list = true;
                from.next_value_seed(Items(self.0, format!("/{name}")))?;
            } else if is_list {
                from.next_value::<IgnoredAny>()?;
            } else {
                one.insert(name, from.next_value()?);
            }
        }
        if is_list { Ok(()) } else { self.0.give(String::new(), Value::Object(one)) }
    }
}

/// The array of entries, with its JSON pointer.
struct Items<'s, 'p, 'a>(&'s mut Pass<'p, 'a>, String);

impl<'de> DeserializeSeed<'de> for Items<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<(), A::Error> {
        let mut at = 0_u64;
        self.0.left.set(MAX_ITEM);
        while let Some(value) = from.next_element::<Value>()? {
            self.0.give(format!("{}/{at}", self.1), value)?;
            at += 1;
        }
        Ok(())
    }
}

/// Returns a member's text; a number counts as its digits.
pub fn text(of: &Value, name: &str) -> Option<String> {
    match &of[name] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a member's whole number, also if it is written as text.
pub fn number(of: &Value, name: &str) -> Option<i64> {
    match &of[name] {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Returns the elements of a member; nothing if it is no array.
pub fn list<'v>(of: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    of[name].as_array().into_iter().flatten()
}
