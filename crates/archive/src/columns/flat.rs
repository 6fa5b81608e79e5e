//! FlatBuffers, as far as Arrow's messages need them. <https://flatbuffers.dev/internals/>
//!
//! ```text
//! table:   i32 back to its vtable | members, each at the offset that the vtable has
//! vtable:  u16 its bytes | u16 bytes of the table | for each member u16 offset in the table, 0 if it has its default
//! vector:  u32 count | elements      text: u32 length | bytes | 0      reference: u32 forward from its own place
//! ```
//! The writer gives each member 8 bytes, so that all are aligned.

use super::bad::BadColumns;

/// Member of a table that is written.
#[derive(Clone, Copy)]
pub(super) enum Member {
    /// The member has its default.
    Absent,
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    /// Reference that [`Writer::refer`] sets.
    Reference,
}

/// Bytes of a message's metadata.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    /// Begins with a reference to the root, the next table.
    pub(super) fn begin() -> Writer {
        Writer { bytes: vec![0; 4] }
    }

    /// Pads so that what follows `behind` more bytes is at a multiple of 8.
    fn align(&mut self, behind: usize) {
        let length = (self.bytes.len() + behind).next_multiple_of(8) - behind;
        self.bytes.resize(length, 0);
    }

    /// Writes a table; returns its place and the places of its members.
    pub(super) fn table(&mut self, members: &[Member]) -> (usize, Vec<usize>) {
        let vtable = 4 + 2 * members.len();
        self.align(vtable + 4);
        let start = self.bytes.len();
        let size = 4 + 8 * members.len();
        self.bytes.extend_from_slice(&(vtable as u16).to_le_bytes());
        self.bytes.extend_from_slice(&(size as u16).to_le_bytes());
        for (number, member) in members.iter().enumerate() {
            let offset = if matches!(member, Member::Absent) { 0 } else { 4 + 8 * number as u16 };
            self.bytes.extend_from_slice(&offset.to_le_bytes());
        }
        let table = self.bytes.len();
        self.bytes.extend_from_slice(&((table - start) as i32).to_le_bytes());
        let mut places = Vec::with_capacity(members.len());
        for member in members {
            places.push(self.bytes.len());
            let mut bytes = [0; 8];
            match member {
                Member::Absent | Member::Reference => {}
                Member::Byte(value) => bytes[0] = *value,
                Member::Short(value) => bytes[..2].copy_from_slice(&value.to_le_bytes()),
                Member::Int(value) => bytes[..4].copy_from_slice(&value.to_le_bytes()),
                Member::Long(value) => bytes = value.to_le_bytes(),
            }
            self.bytes.extend_from_slice(&bytes);
        }
        (table, places)
    }

    /// Sets a reference to what is at `target`, which is behind it.
    pub(super) fn refer(&mut self, place: usize, target: usize) {
        let forward = ((target - place) as u32).to_le_bytes();
        self.bytes[place..place + 4].copy_from_slice(&forward);
    }

    /// Sets a member of 8 bytes.
    pub(super) fn set_long(&mut self, place: usize, value: i64) {
        self.bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Writes a text; returns its place.
    pub(super) fn text(&mut self, text: &str) -> usize {
        self.align(0);
        let place = self.bytes.len();
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        place
    }

    /// Writes a vector of references; returns its place and theirs.
    pub(super) fn references(&mut self, count: usize) -> (usize, Vec<usize>) {
        self.align(0);
        let place = self.bytes.len();
        self.bytes.extend_from_slice(&(count as u32).to_le_bytes());
        let places = (0..count).map(|number| place + 4 + 4 * number).collect();
        self.bytes.resize(place + 4 + 4 * count, 0);
        (place, places)
    }

    /// Writes a vector of pairs of numbers; returns its place.
    pub(super) fn pairs(&mut self, pairs: &[(i64, i64)]) -> usize {
        self.align(4);
        let place = self.bytes.len();
        self.bytes.extend_from_slice(&(pairs.len() as u32).to_le_bytes());
        for (one, other) in pairs {
            self.bytes.extend_from_slice(&one.to_le_bytes());
            self.bytes.extend_from_slice(&other.to_le_bytes());
        }
        place
    }
}

/// A table that is read.
#[derive(Clone, Copy)]
pub(super) struct Table<'m> {
    bytes: &'m [u8],
    at: usize,
    vtable: usize,
    members: usize,
}

const CUT: BadColumns = BadColumns("its metadata is cut off");

fn take<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], BadColumns> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or(CUT)
}

fn follow(bytes: &[u8], at: usize) -> Result<usize, BadColumns> {
    at.checked_add(u32::from_le_bytes(take(bytes, at)?) as usize).ok_or(CUT)
}

impl<'m> Table<'m> {
    /// Returns the root of a message's metadata.
    pub(super) fn root(bytes: &'m [u8]) -> Result<Table<'m>, BadColumns> {
        Table::at(bytes, follow(bytes, 0)?)
    }

    fn at(bytes: &'m [u8], at: usize) -> Result<Table<'m>, BadColumns> {
        let back = i64::from(i32::from_le_bytes(take(bytes, at)?));
        let vtable = i64::try_from(at).ok().and_then(|at| usize::try_from(at - back).ok()).ok_or(CUT)?;
        let length = u16::from_le_bytes(take(bytes, vtable)?) as usize;
        let members = length.checked_sub(4).ok_or(CUT)? / 2;
        Ok(Table { bytes, at, vtable, members })
    }

    /// Returns the place of a member; `None` if it has its default.
    fn member(&self, number: usize) -> Result<Option<usize>, BadColumns> {
        if number >= self.members {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(take(self.bytes, self.vtable + 4 + 2 * number)?) as usize;
        Ok((offset > 0).then_some(self.at + offset))
    }

    pub(super) fn byte(&self, number: usize) -> Result<u8, BadColumns> {
        self.member(number)?.map_or(Ok(0), |at| Ok(take::<1>(self.bytes, at)?[0]))
    }

    pub(super) fn short(&self, number: usize) -> Result<i16, BadColumns> {
        self.member(number)?.map_or(Ok(0), |at| Ok(i16::from_le_bytes(take(self.bytes, at)?)))
    }

    pub(super) fn int(&self, number: usize) -> Result<i32, BadColumns> {
        self.member(number)?.map_or(Ok(0), |at| Ok(i32::from_le_bytes(take(self.bytes, at)?)))
    }

    pub(super) fn long(&self, number: usize) -> Result<i64, BadColumns> {
        self.member(number)?.map_or(Ok(0), |at| Ok(i64::from_le_bytes(take(self.bytes, at)?)))
    }

    pub(super) fn table(&self, number: usize) -> Result<Option<Table<'m>>, BadColumns> {
        self.member(number)?.map(|at| Table::at(self.bytes, follow(self.bytes, at)?)).transpose()
    }

    pub(super) fn text(&self, number: usize) -> Result<&'m str, BadColumns> {
        let Some((at, length)) = self.vector(number, 1)? else { return Ok("") };
        std::str::from_utf8(&self.bytes[at..at + length]).map_err(|_| BadColumns("a name is not UTF-8"))
    }

    /// Returns the tables that a vector refers to.
    pub(super) fn tables(&self, number: usize) -> Result<Vec<Table<'m>>, BadColumns> {
        let Some((at, count)) = self.vector(number, 4)? else { return Ok(Vec::new()) };
        (0..count).map(|number| Table::at(self.bytes, follow(self.bytes, at + 4 * number)?)).collect()
    }

    /// Returns a vector of pairs of numbers.
    pub(super) fn pairs(&self, number: usize) -> Result<Vec<(i64, i64)>, BadColumns> {
        let Some((at, count)) = self.vector(number, 16)? else { return Ok(Vec::new()) };
        let pair = |number: usize| {
            let at = at + 16 * number;
            Ok((i64::from_le_bytes(take(self.bytes, at)?), i64::from_le_bytes(take(self.bytes, at + 8)?)))
        };
        (0..count).map(pair).collect()
    }

    /// Returns the place of a vector's first element and their number; all elements of this size are there.
    fn vector(&self, number: usize, size: usize) -> Result<Option<(usize, usize)>, BadColumns> {
        let Some(at) = self.member(number)? else { return Ok(None) };
        let at = follow(self.bytes, at)?;
        let count = u32::from_le_bytes(take(self.bytes, at)?) as usize;
        let end = count.checked_mul(size).and_then(|length| (at + 4).checked_add(length)).ok_or(CUT)?;
        if end > self.bytes.len() { Err(CUT) } else { Ok(Some((at + 4, count))) }
    }
}
