//! Rows gathered for a compaction, column by column. Each text is kept once, and bytes are appended to each other.

use std::{collections::HashMap, sync::Arc};

use tampu_types::{BatchHeader, Incarnation, RecordId, Time};

use super::{Cell, KEYS, Row, Schema};
use crate::{ids::hash::Mixed, parquet::Shape};

/// Columns that every row has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub time: i64,
    pub received: i64,
    pub life: u32,
    pub ring: u32,
    pub from: u64,
    pub number: u64,
    pub marks: u16,
}

/// Column after the keys.
#[derive(Debug)]
pub(super) enum Store {
    Numbers(Vec<i64>),
    OptionalNumbers(Vec<Option<i64>>),
    Doubles(Vec<Option<f64>>),
    /// Numbers of texts.
    Texts(Vec<u32>),
    /// Concatenated bytes, and the end of each value in them.
    Bytes(Vec<u8>, Vec<usize>),
}

impl Store {
    fn new(shape: Shape) -> Store {
        match shape {
            Shape::Time | Shape::Number | Shape::UnsignedNumber => Store::Numbers(Vec::new()),
            Shape::OptionalNumber => Store::OptionalNumbers(Vec::new()),
            Shape::OptionalDouble => Store::Doubles(Vec::new()),
            Shape::Text => Store::Texts(Vec::new()),
            Shape::Bytes => Store::Bytes(Vec::new(), Vec::new()),
        }
    }
}

/// Rows of a table.
#[derive(Debug)]
pub(crate) struct PlainRows {
    pub(super) schema: &'static Schema,
    pub(super) keys: Vec<Key>,
    pub(super) lives: Vec<Incarnation>,
    life_numbers: HashMap<Incarnation, u32>,
    pub(super) stores: Vec<Store>,
    pub(super) texts: Vec<Arc<[u8]>>,
    text_numbers: HashMap<Arc<[u8]>, u32, Mixed>,
}

impl PlainRows {
    pub(crate) fn new(schema: &'static Schema) -> PlainRows {
        PlainRows {
            schema,
            keys: Vec::new(),
            lives: Vec::new(),
            life_numbers: HashMap::new(),
            stores: schema.layout.columns[KEYS..].iter().map(|column| Store::new(column.shape)).collect(),
            texts: Vec::new(),
            text_numbers: HashMap::default(),
        }
    }

    pub(crate) fn schema(&self) -> &'static Schema {
        self.schema
    }

    /// Adds a sample. Returns the number of unreadable rows: one or zero.
    pub(crate) fn push_sample(&mut self, header: &BatchHeader, sample: &[u8]) -> u32 {
        match self.schema.row(header, sample) {
            Ok(row) => {
                self.push(row);
                0
            }
            Err(_) => 1,
        }
    }

    pub(crate) fn push(&mut self, row: Row) {
        let life = match self.life_numbers.get(&row.life) {
            Some(&number) => number,
            None => {
                self.lives.push(row.life);
                let number = self.lives.len() as u32 - 1;
                self.life_numbers.insert(row.life, number);
                number
            }
        };
        let Row { time, received, ring, from, number, marks, cells, .. } = row;
        self.keys.push(Key { time: time.0, received: received.0, life, ring, from, number, marks });
        let mut cells = cells.into_iter();
        for store in &mut self.stores {
            match (store, cells.next()) {
                (Store::Numbers(all), Some(Cell::Number(number))) => all.push(number),
                (Store::OptionalNumbers(all), Some(Cell::OptionalNumber(number))) => all.push(number),
                (Store::Doubles(all), Some(Cell::Double(number))) => all.push(number),
                (Store::Texts(all), Some(Cell::Text(text))) => {
                    let number = match self.text_numbers.get(text.as_slice()) {
                        Some(&number) => number,
                        None => {
                            let text: Arc<[u8]> = text.into();
                            self.texts.push(text.clone());
                            let number = self.texts.len() as u32 - 1;
                            self.text_numbers.insert(text, number);
                            number
                        }
                    };
                    all.push(number);
                }
                (Store::Bytes(bytes, ends), Some(Cell::Text(text))) => {
                    bytes.extend_from_slice(&text);
                    ends.push(bytes.len());
                }
                // A cell that does not fit its column is a mistake in the schema; the row keeps its place.
                (Store::Numbers(all), _) => all.push(0),
                (Store::OptionalNumbers(all), _) => all.push(None),
                (Store::Doubles(all), _) => all.push(None),
                (Store::Texts(all), _) => all.push(0),
                (Store::Bytes(bytes, ends), _) => ends.push(bytes.len()),
            }
        }
    }

    /// Returns the positions of all rows, in order of time and id.
    pub(crate) fn ordered(&self) -> Vec<u32> {
        let place = |place: u32| {
            let key = &self.keys[place as usize];
            (key.time, RecordId { incarnation: self.lives[key.life as usize], ring: key.ring, number: key.number })
        };
        let mut order: Vec<u32> = (0..self.keys.len() as u32).collect();
        order.sort_by_cached_key(|&row| place(row));
        order
    }

    /// Returns the own times of the rows from this position on.
    pub(crate) fn times_from(&self, place: usize) -> impl Iterator<Item = Time> {
        self.keys.iter().skip(place).map(|key| Time(key.time))
    }

    /// Drops the rows and keeps most of the memory.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.lives.clear();
        self.life_numbers.clear();
        self.texts.clear();
        self.text_numbers.clear();
        for store in &mut self.stores {
            match store {
                Store::Numbers(all) => all.clear(),
                Store::OptionalNumbers(all) => all.clear(),
                Store::Doubles(all) => all.clear(),
                Store::Texts(all) => all.clear(),
                Store::Bytes(bytes, ends) => {
                    bytes.clear();
                    ends.clear();
                }
            }
        }
    }
}
