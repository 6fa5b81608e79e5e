//! Summary of a batch, made in one pass before it is stored: ids, times, levels.

use tampu_types::{
    Incarnation, Time,
    log_batch::{BatchSequence, JoinedBatch, LogBatchView, RecordView},
};

use crate::{ids::seen::Run, wal::frame::LevelSet};

/// Summary of one `LogBatch`, or of a whole frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digest {
    /// Number of readable records.
    pub(crate) records: u32,
    /// Number of unreadable records, which are stored unchanged.
    pub(crate) unreadable: u32,
    /// Number of records without an id. Their duplicates cannot be recognised.
    pub(crate) anonymous: u32,
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
    pub(crate) levels: LevelSet,
    pub(crate) runs: Vec<(Incarnation, Run)>,
    /// True if an id occurs twice.
    pub(crate) doubled: bool,
    /// True for one row of a table. It is stored if it stands for any new number, and never split.
    pub(crate) whole: bool,
}

/// Number of latest runs in which a number's run is searched. The threads of one process alternate in a batch.
const LOOK_BACK: usize = 8;

impl Default for Digest {
    fn default() -> Digest {
        Digest {
            records: 0,
            unreadable: 0,
            anonymous: 0,
            earliest: Time(i64::MAX),
            latest: Time(i64::MIN),
            levels: LevelSet::default(),
            runs: Vec::new(),
            doubled: false,
            whole: false,
        }
    }
}

impl Digest {
    pub(crate) fn add(&mut self, record: &RecordView<'_>) {
        self.records += 1;
        self.earliest = self.earliest.min(record.time());
        self.latest = self.latest.max(record.time());
        self.levels.add(record.level());
        let Some(incarnation) = record.origin().incarnation() else {
            self.anonymous += 1;
            return;
        };
        let (ring, number) = (record.ring(), record.number());
        let continued =
            self.runs.iter_mut().rev().take(LOOK_BACK).any(|(life, run)| *life == incarnation && run.extend(ring, number));
        if !continued {
            self.runs.push((incarnation, Run { ring, first: number, count: 1 }));
        }
    }

    /// Adds the content of `other`.
    pub(crate) fn join(&mut self, other: Digest) {
        self.records += other.records;
        self.unreadable += other.unreadable;
        self.anonymous += other.anonymous;
        self.earliest = self.earliest.min(other.earliest);
        self.latest = self.latest.max(other.latest);
        self.levels.0 |= other.levels.0;
        self.runs.extend(other.runs);
    }

    /// Sorts the runs, joins adjacent ones, and detects an id that occurs twice.
    fn tidy(&mut self) {
        if self.runs.len() < 2 {
            return;
        }
        self.runs.sort_unstable();
        let mut kept = 0;
        for place in 1..self.runs.len() {
            let ((life, run), (next_life, next)) = (self.runs[kept], self.runs[place]);
            let of_one_ring = life == next_life && run.ring == next.ring;
            self.doubled |= of_one_ring && next.first - run.first < run.count;
            if of_one_ring && next.first - run.first == run.count {
                self.runs[kept].1.count += next.count;
            } else {
                kept += 1;
                self.runs[kept] = (next_life, next);
            }
        }
        self.runs.truncate(kept + 1);
    }
}

/// Summarises one `LogBatch`. It is valid if it is empty or at least one of its records can be read.
pub(crate) fn digest(sample: &[u8]) -> Result<Digest, String> {
    let mut digest = Digest::default();
    read_into(sample, &mut digest)?;
    digest.tidy();
    Ok(digest)
}

/// Several samples that are stored together.
pub(crate) struct Together<'a> {
    /// Summary of all samples.
    pub(crate) digest: Digest,
    /// Samples in the form in which they are stored.
    pub(crate) contents: Vec<Stored<'a>>,
}

/// One or more samples in the form in which they are stored.
pub(crate) enum Stored<'a> {
    /// One sample as it came.
    Sample(&'a [u8]),
    /// Samples with equal tables, as one.
    Joined(JoinedBatch<'a>),
}

/// Summarises several `LogBatch`es as one, and joins those that have equal tables; each must be valid. An error names the
/// first that is not.
pub(crate) fn digest_all<'a>(samples: &[&'a [u8]]) -> Result<Together<'a>, (usize, String)> {
    let (mut digest, mut contents) = (Digest::default(), Vec::new());
    let mut sequence = BatchSequence::default();
    for (place, sample) in samples.iter().enumerate() {
        let view = sequence.parse(sample).map_err(|error| (place, error.to_string()))?;
        add(view, &mut digest).map_err(|why| (place, why))?;
        let is_joined = match contents.last_mut() {
            Some(Stored::Joined(joined)) => joined.add(view),
            Some(Stored::Sample(_)) | None => false,
        };
        if !is_joined {
            contents.push(JoinedBatch::begin(view).map_or(Stored::Sample(sample), Stored::Joined));
        }
    }
    digest.tidy();
    Ok(Together { digest, contents })
}

/// Adds the `LogBatch` that follows those in the sequence.
pub(crate) fn read_next<'a>(sequence: &mut BatchSequence<'a>, sample: &'a [u8], digest: &mut Digest) -> Result<(), String> {
    add(sequence.parse(sample).map_err(|error| error.to_string())?, digest)
}

pub(crate) fn read_into(sample: &[u8], digest: &mut Digest) -> Result<(), String> {
    let view = LogBatchView::parse(sample).map_err(|error| error.to_string())?;
    add(&view, digest)
}

fn add(view: &LogBatchView<'_>, digest: &mut Digest) -> Result<(), String> {
    let before = digest.records;
    let mut bad = None;
    for record in view.records() {
        match record {
            Ok(record) => digest.add(&record),
            Err(error) => {
                digest.unreadable += 1;
                bad = Some(error);
            }
        }
    }
    match bad {
        Some(error) if digest.records == before => Err(error.to_string()),
        _ => Ok(()),
    }
}
