//! The ledger of a spool, which outlives the packets. It lists the samples that the spool has stored, so that a
//! collector which misses them in their stream does not report them lost. It also lists exactly the samples for which
//! the spool had no room.
//!
//! Decision: one small file, which is rewritten and replaces the old one. It is written before dropped packets are
//! acknowledged, and before a file of packets is removed. Packets that still lie in files need not be in the ledger;
//! they are read at every start. The format is JSON, because people read it after a failure and because it is small: a
//! line a stream, a line a source.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    io::{self, Write},
    ops::Range,
    path::Path,
};

use serde::{Deserialize, Serialize};
use tampu_bus::{engine::Fate, host};
use tampu_types::{Incarnation, SourceName};

const NAME: &str = "ledger.json";
const NEW: &str = "ledger.json.new";

/// Samples of one source that found no room, or arrived with a hole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lost {
    /// Records in packets for which there was no room.
    pub records: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Samples that had gone before the spool got them.
    pub samples: u64,
}

/// Samples of one stream, as intervals that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(crate) fn add(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((&from, &to)) = self.0.range(..=range.start).next_back()
            && to >= range.start
        {
            range = from..to.max(range.end);
        }
        while let Some((&from, &to)) = self.0.range(range.start..=range.end).next() {
            range.end = range.end.max(to);
            self.0.remove(&from);
        }
        self.0.insert(range.start, range.end);
    }

    /// Returns the parts of this range that are not in it.
    pub(crate) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        if range.is_empty() {
            return Vec::new();
        }
        let (mut missing, mut at) = (Vec::new(), range.start);
        let before = self.0.range(..=range.start).next_back().map(|(from, to)| (*from, *to));
        let later = self.0.range(range.start.saturating_add(1)..range.end).map(|(from, to)| (*from, *to));
        for (from, to) in before.into_iter().chain(later) {
            if at < from {
                missing.push(at..from);
            }
            at = at.max(to);
        }
        if at < range.end {
            missing.push(at..range.end);
        }
        missing
    }

    pub(crate) fn pairs(&self) -> Vec<(u64, u64)> {
        self.0.iter().map(|(from, to)| (*from, *to)).collect()
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Written {
    version: u16,
    streams: Vec<WrittenStream>,
    lost: BTreeMap<String, Lost>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct WrittenStream {
    incarnation: Incarnation,
    stream: u32,
    taken: Vec<(u64, u64)>,
}

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    taken: HashMap<(Incarnation, u32), Ranges>,
    /// Losses by the source's name.
    lost: BTreeMap<String, Lost>,
}

impl Ledger {
    /// Reads the ledger of a directory. A file that cannot be read is an error; a missing file is an empty ledger.
    pub(crate) fn read(dir: &Path) -> io::Result<Ledger> {
        let text = match fs::read(dir.join(NAME)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ledger::default()),
            Err(error) => return Err(error),
        };
        let written: Written = serde_json::from_slice(&text)?;
        let mut ledger = Ledger { lost: written.lost, ..Ledger::default() };
        for stream in written.streams {
            for (from, to) in stream.taken {
                ledger.take(stream.incarnation, stream.stream, from..to);
            }
        }
        Ok(ledger)
    }

    /// Writes the ledger, completely or not at all. Forgets ended incarnations: no reader expects samples of their
    /// streams.
    pub(crate) fn write(&mut self, dir: &Path) -> io::Result<()> {
        let boot = host::boot();
        self.taken.retain(|(life, _), _| life.boot == boot && host::fate(*life) != Fate::Dead);
        let stream = |(&(incarnation, stream), ranges): (&(Incarnation, u32), &Ranges)| WrittenStream {
            incarnation,
            stream,
            taken: ranges.pairs(),
        };
        let written = Written { version: 1, streams: self.taken.iter().map(stream).collect(), lost: self.lost.clone() };
        let mut text = serde_json::to_vec(&written)?;
        text.push(b'\n');
        let new = dir.join(NEW);
        let mut file = File::create(&new)?;
        file.write_all(&text)?;
        file.sync_data()?;
        fs::rename(&new, dir.join(NAME))?;
        File::open(dir)?.sync_all()
    }

    /// Adds samples that are stored here, or are reported lost.
    pub(crate) fn take(&mut self, incarnation: Incarnation, stream: u32, range: Range<u64>) {
        self.taken.entry((incarnation, stream)).or_default().add(range);
    }

    /// Returns the samples of a stream that are in it.
    pub(crate) fn taken(&self, incarnation: Incarnation, stream: u32) -> Vec<(u64, u64)> {
        self.taken.get(&(incarnation, stream)).map(Ranges::pairs).unwrap_or_default()
    }

    /// Counts lost records.
    pub(crate) fn lose(&mut self, source: &SourceName, lost: Lost) {
        let sum = self.lost.entry(source.to_string()).or_default();
        sum.records += lost.records;
        sum.bytes += lost.bytes;
        sum.samples += lost.samples;
    }

    /// Returns the losses by source.
    pub(crate) fn lost(&self) -> &BTreeMap<String, Lost> {
        &self.lost
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_there_again_after_a_restart_without_the_dead() {
        let dir = tempfile::tempdir().unwrap();
        let here = host::incarnation();
        let dead = Incarnation { boot: here.boot, pid: 4_000_000_000, start: 1 };
        let mut ledger = Ledger::read(dir.path()).unwrap();
        ledger.take(here, 3, 5..9);
        ledger.take(dead, 1, 0..2);
        ledger.lose(&SourceName::new("CORR").unwrap(), Lost { records: 3, bytes: 100, samples: 0 });
        ledger.lose(&SourceName::new("CORR").unwrap(), Lost { records: 1, bytes: 10, samples: 2 });
        ledger.write(dir.path()).unwrap();
        let again = Ledger::read(dir.path()).unwrap();
        assert_eq!((again.taken(here, 3), again.taken(dead, 1)), (vec![(5, 9)], vec![]));
        assert_eq!(again.lost()["CORR"], Lost { records: 4, bytes: 110, samples: 2 });
        fs::write(dir.path().join(NAME), b"{\"streams\": 7").unwrap();
        assert!(Ledger::read(dir.path()).is_err());
    }

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_numbers(added in proptest::collection::vec((0u64..50, 0u64..10), 0..20), from in 0u64..60, length in 0u64..20) {
            let mut ranges = Ranges::default();
            let mut set = std::collections::BTreeSet::new();
            for (from, length) in added {
                ranges.add(from..from + length);
                set.extend(from..from + length);
            }
            prop_assert_eq!(ranges.pairs().iter().flat_map(|&(from, to)| from..to).collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
            prop_assert!(ranges.pairs().windows(2).all(|pair| pair[0].1 < pair[1].0));
            let missing: Vec<u64> = ranges.missing(from..from + length).into_iter().flatten().collect();
            prop_assert_eq!(missing, (from..from + length).filter(|number| !set.contains(number)).collect::<Vec<_>>());
        }
    }
}
