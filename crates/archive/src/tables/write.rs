//! Writer for rows of a table as a Parquet file.

use std::{
    io::{self, Write},
    path::Path,
};

use tampu_types::Time;

use super::gather::{PlainRows, Store};
use crate::{
    parquet::{Chunk, ChunkFacts, Group, HEAD, Output, UNIT, Words, Written, finish, group_ranges, whole_file},
    wal::frame::LevelSet,
};

impl PlainRows {
    /// Writes these rows, which are in order, as a file of this name.
    pub(crate) fn write_file(
        &self,
        path: &Path,
        places: &[u32],
        domain: &str,
        pace: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Written> {
        whole_file(path, |file| {
            let mut out = Output::new(file)?;
            out.put(HEAD)?;
            let mut groups = Vec::new();
            for range in group_ranges(places.len()) {
                groups.push(self.group(&mut out, &places[range], pace)?);
            }
            let received = places.iter().map(|&place| self.keys[place as usize].received).max().unwrap_or(i64::MIN);
            finish(out, &self.schema.layout, groups, Time(received), domain)
        })
    }

    pub(super) fn group<W: Write>(
        &self,
        out: &mut Output<W>,
        places: &[u32],
        pace: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<(Group, Vec<ChunkFacts>)> {
        let (mut columns, mut facts) = (Vec::new(), Vec::new());
        for column in 0..self.schema.layout.columns.len() {
            pace()?;
            let mut fact = ChunkFacts::default();
            columns.push(self.column(column, out, places, &mut fact)?);
            facts.push(fact);
        }
        let time = |place: u32| Time(self.keys[place as usize].time);
        let group = Group {
            rows: places.len() as u32,
            levels: LevelSet(places.iter().fold(0, |marks, &place| marks | self.keys[place as usize].marks)),
            units: places.chunks(UNIT).map(|unit| (time(unit[0]), time(unit[unit.len() - 1]))).collect(),
            columns,
            // Tables have no search for words.
            words: Words::default(),
            data_words: Words::default(),
        };
        Ok((group, facts))
    }

    fn column<W: Write>(&self, column: usize, out: &mut Output<W>, places: &[u32], facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let keys = || places.iter().map(|&place| &self.keys[place as usize]);
        match column {
            0 => out.ranged_numbers(&keys().map(|key| key.time).collect::<Vec<_>>(), facts),
            1 => out.ranged_numbers(&keys().map(|key| key.received).collect::<Vec<_>>(), facts),
            2 => {
                let lives: Vec<String> = self.lives.iter().map(ToString::to_string).collect();
                out.any_texts(keys().map(|key| lives[key.life as usize].as_bytes()), facts)
            }
            3 => out.few_numbers(&keys().map(|key| key.ring.into()).collect::<Vec<_>>(), facts),
            // Without a range: these numbers are unsigned and stored by their bits.
            4 => out.numbers(&keys().map(|key| key.from.cast_signed()).collect::<Vec<_>>(), facts),
            5 => out.numbers(&keys().map(|key| key.number.cast_signed()).collect::<Vec<_>>(), facts),
            6 => out.few_numbers(&keys().map(|key| key.marks.into()).collect::<Vec<_>>(), facts),
            own => {
                let places = places.iter().map(|&place| place as usize);
                match &self.stores[own - super::KEYS] {
                    Store::Numbers(all) => out.few_numbers(&places.map(|place| all[place]).collect::<Vec<_>>(), facts),
                    Store::OptionalNumbers(all) => out.optional_numbers(places.map(|place| all[place]), facts),
                    Store::Doubles(all) => out.optional_doubles(places.map(|place| all[place]), facts),
                    Store::Texts(all) => {
                        out.any_texts(places.map(|place| self.texts.get(all[place] as usize).map_or(&[][..], |text| text)), facts)
                    }
                    Store::Bytes(bytes, ends) => {
                        let from = |place: usize| place.checked_sub(1).map_or(0, |before| ends[before]);
                        out.texts(places.map(|place| &bytes[from(place)..ends[place]]), facts)
                    }
                }
            }
        }
    }
}
