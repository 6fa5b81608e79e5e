//! Retention of records.
//!
//! A Parquet file is removed as a whole, when the last record in it was received long enough ago. The time of reception
//! counts, not the records' own time: an old log that is imported today stays as long as today's. The present is taken
//! to be at most a day after the latest reception, so a clock that jumps ahead removes nothing.
//!
//! Below the reserve of the disk nothing can be written. The archive then removes its oldest files if it has a limit of
//! age or size: without one, an operator decides. Files that a backup links are kept, because removing them frees nothing.

use std::time::Duration;

use tampu_types::Time;

use crate::{News, manifest::FileEntry};

/// Retention limits. The default keeps everything for ever.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// Records received longer ago are removed.
    pub age: Option<Duration>,
    /// Size limit of the Parquet files, in bytes; above it the records received first are removed.
    pub bytes: Option<u64>,
    /// Records received more recently are never removed, for any value of the other two limits.
    pub at_least: Duration,
}

/// Longest time the clock may be ahead of the latest reception, in ns.
const AHEAD: i64 = 86_400_000_000_000;

fn ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

impl Keep {
    /// Returns the files to remove, and a report if the limits ask for more than may be removed.
    pub(crate) fn choose<'f>(&self, files: impl Iterator<Item = &'f FileEntry>, now: Time) -> (Vec<FileEntry>, Option<News>) {
        if self.age.is_none() && self.bytes.is_none() {
            return (Vec::new(), None);
        }
        let mut files: Vec<&FileEntry> = files.collect();
        files.sort_by_key(|file| (file.received, file.file.as_str()));
        let now = present(&files, now);
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let mut old = Vec::new();
        for file in files {
            let too_many = self.bytes.is_some_and(|most| bytes > most);
            if !too_many && !self.age.is_some_and(|age| older_than(file, now, age)) {
                break;
            }
            if !older_than(file, now, self.at_least) {
                let over = self.bytes.map_or(0, |most| bytes.saturating_sub(most));
                return (old, (over > 0).then_some(News::TooLarge { over }));
            }
            bytes -= file.bytes;
            old.push(file.clone());
        }
        (old, None)
    }

    /// Returns the files to remove where this many bytes are missing on the disk: the ones received first that `frees`
    /// space. The report says if not enough may be removed.
    pub(crate) fn choose_for_room<'f>(
        &self,
        files: impl Iterator<Item = &'f FileEntry>,
        now: Time,
        missing: u64,
        frees: impl Fn(&FileEntry) -> bool,
    ) -> (Vec<FileEntry>, Option<News>) {
        if missing == 0 || self.age.is_none() && self.bytes.is_none() {
            return (Vec::new(), None);
        }
        let mut files: Vec<&FileEntry> = files.collect();
        files.sort_by_key(|file| (file.received, file.file.as_str()));
        let now = present(&files, now);
        let (mut freed, mut old) = (0_u64, Vec::new());
        for file in files.into_iter().take_while(|file| older_than(file, now, self.at_least)) {
            if freed >= missing {
                break;
            }
            if frees(file) {
                freed = freed.saturating_add(file.bytes);
                old.push(file.clone());
            }
        }
        let lacking = missing.saturating_sub(freed);
        (old, (lacking > 0).then_some(News::NoRoom { missing: lacking }))
    }
}

/// The present: the clock's time, at most a day after the latest reception of files in this order.
fn present(files: &[&FileEntry], now: Time) -> i64 {
    let latest = files.last().map_or(Time(0), |file| file.received);
    now.0.min(latest.0.saturating_add(AHEAD))
}

fn older_than(file: &FileEntry, now: i64, age: Duration) -> bool {
    file.received.0 < now.saturating_sub(ns(age))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    fn file(day: i64) -> FileEntry {
        FileEntry {
            file: format!("{day}"),
            bytes: 10,
            crc32c: String::new(),
            records: 1,
            // The records are old; only their reception time counts.
            earliest: Time(0),
            latest: Time(0),
            received: Time(day * DAY),
            levels: 1,
        }
    }

    fn chosen(keep: &Keep, now: i64) -> (Vec<String>, Option<News>) {
        let files: Vec<FileEntry> = (1..=5).map(file).collect();
        let (old, news) = keep.choose(files.iter(), Time(now * DAY));
        (old.into_iter().map(|file| file.file).collect(), news)
    }

    fn days(days: u64) -> Duration {
        Duration::from_secs(days * 86_400)
    }

    #[test]
    fn nothing_goes_that_is_younger_than_promised() {
        assert_eq!(chosen(&Keep::default(), 100_000), (vec![], None));
        let age = Keep { age: Some(days(3)), ..Keep::default() };
        assert_eq!(chosen(&age, 5).0, ["1"]);
        // A clock that has jumped ahead is not trusted.
        assert_eq!(chosen(&age, 100_000).0, ["1", "2"]);
        assert_eq!(chosen(&age, -7).0, Vec::<String>::new());
        let size = Keep { bytes: Some(25), ..Keep::default() };
        assert_eq!(chosen(&size, 6).0, ["1", "2", "3"]);
        let both = Keep { bytes: Some(25), at_least: days(3), ..Keep::default() };
        assert_eq!(chosen(&both, 5), (vec!["1".to_owned()], Some(News::TooLarge { over: 15 })));
        let contrary = Keep { age: Some(days(1)), at_least: days(4), ..Keep::default() };
        assert_eq!(chosen(&contrary, 6), (vec!["1".to_owned()], None));
    }

    #[test]
    fn a_full_disk_takes_the_oldest_files_that_may_go() {
        let files: Vec<FileEntry> = (1..=5).map(file).collect();
        let chosen = |keep: &Keep, missing: u64, frees: &dyn Fn(&FileEntry) -> bool| {
            let (old, news) = keep.choose_for_room(files.iter(), Time(6 * DAY), missing, frees);
            (old.into_iter().map(|file| file.file).collect::<Vec<_>>(), news)
        };
        let size = Keep { bytes: Some(1000), ..Keep::default() };
        assert_eq!(chosen(&size, 0, &|_| true), (vec![], None));
        assert_eq!(chosen(&size, 11, &|_| true), (vec!["1".to_owned(), "2".to_owned()], None));
        assert_eq!(chosen(&size, 15, &|file| file.file != "1"), (vec!["2".to_owned(), "3".to_owned()], None), "1 is linked");
        let week = Keep { age: Some(days(30)), at_least: days(3), ..Keep::default() };
        assert_eq!(chosen(&week, 100, &|_| true), (vec!["1".to_owned(), "2".to_owned()], Some(News::NoRoom { missing: 80 })));
        // Without a limit nothing is removed, ever.
        assert_eq!(chosen(&Keep { at_least: days(0), ..Keep::default() }, 100, &|_| true), (vec![], None));
    }
}
