//! Joins small Parquet files. Late records and quiet nights leave many of them.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::Arc,
};

use tampu_types::{LogRecord, Time, log_batch::encode_records};

use crate::{
    parquet::{BadTable, Dictionaries, GROUP, Rows, Scratch, Sent, Table, records, stored::Stored},
    tables::{PlainRows, each_row},
    wal::content::Gathered,
};

/// Number of records below which a file is small, if it is also short. Any two small files can be joined.
const SMALL: u64 = 2 * GROUP as u64;
const SHORT: u64 = MOST_BYTES / 2;
/// Number of small files that a directory may have of one day of reception.
const MANY: usize = 4;
/// Most records of a joined file. This limits the memory of a join.
const MOST: u64 = 6 * GROUP as u64;
/// Most bytes of joined files. This limits the memory where rows are long.
const MOST_BYTES: u64 = 64 << 20;

/// A day, in ns.
const DAY: i64 = 86_400_000_000_000;

/// Returns the directory of files that are joined.
pub(crate) fn directory(files: &[Arc<Stored>]) -> Option<&str> {
    files.first()?.entry.file.split('/').next()
}

/// Returns the files to join: small ones of one directory, whose records were received on one day. Files of different
/// days stay apart also in the directory of far records, because retention removes whole files by their reception.
pub(crate) fn choose(files: &[Arc<Stored>]) -> Option<Vec<Arc<Stored>>> {
    let mut days: BTreeMap<(&str, i64), Vec<&Arc<Stored>>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_small(file.entry.records, file.entry.bytes) && file.met().is_empty()) {
        let directory = file.entry.file.split('/').next().unwrap_or_default();
        days.entry((directory, file.entry.received.0.div_euclid(DAY))).or_default().push(file);
    }
    let mut day = days.into_values().find(|small| small.len() > MANY)?;
    day.sort_by_key(|file| (file.entry.records, file.entry.earliest));
    let (mut records, mut bytes) = (0, 0);
    let fits = |file: &&&Arc<Stored>| {
        records += file.entry.records;
        bytes += file.entry.bytes;
        records <= MOST && bytes <= MOST_BYTES
    };
    let chosen: Vec<Arc<Stored>> = day.iter().take_while(fits).map(|file| (*file).clone()).collect();
    (chosen.len() > 1).then_some(chosen)
}

fn is_small(records: u64, bytes: u64) -> bool {
    records < SMALL && bytes <= SHORT
}

/// Reads all records of the files. Returns `false` and notes the damage if one file is damaged.
pub(crate) fn read(files: &[Arc<Stored>], rows: &mut Gathered, pace: &mut dyn FnMut() -> io::Result<()>) -> io::Result<bool> {
    let rows = match rows {
        Gathered::Log(rows) => rows,
        Gathered::Plain(rows) => return read_plain(files, rows, pace),
    };
    let mut scratch = Scratch::new()?;
    for file in files {
        let Some(table) = file.open() else { return Ok(false) };
        let dictionaries = Dictionaries::default();
        for (number, group) in table.index.groups.iter().enumerate() {
            for unit in 0..group.units.len() {
                pace()?;
                let places: Vec<u32> = (0..Table::unit_rows(group, unit) as u32).collect();
                if let Err(error) = read_unit(&table, number, unit, &places, &dictionaries, &mut scratch, rows) {
                    file.note(&error);
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

fn read_plain(files: &[Arc<Stored>], rows: &mut PlainRows, pace: &mut dyn FnMut() -> io::Result<()>) -> io::Result<bool> {
    for file in files {
        let Some(table) = file.open() else { return Ok(false) };
        let mut ended = Ok(());
        let read = each_row(rows.schema(), &table, |_, _, found| {
            found.into_iter().for_each(|row| rows.push(row));
            ended = pace();
            Ok(())
        });
        ended?;
        if let Err(error) = read {
            file.note(&error);
            return Ok(false);
        }
    }
    Ok(true)
}

#[allow(clippy::too_many_arguments)] // A struct for a single call would add nothing.
fn read_unit(
    table: &Arc<Table>,
    group: usize,
    unit: usize,
    places: &[u32],
    dictionaries: &Dictionaries,
    scratch: &mut Scratch,
    rows: &mut Rows,
) -> Result<(), BadTable> {
    let mut senders: HashMap<Sent, Vec<LogRecord>> = HashMap::new();
    let mut bad = None;
    records(table, group, unit, places, dictionaries, scratch, |_, record, sent| match sent() {
        Ok(sent) => senders.entry(sent).or_default().push(record),
        Err(error) => bad = Some(error),
    })?;
    if let Some(error) = bad {
        return Err(error);
    }
    for (sent, records) in senders {
        // Each record has its own time of reception.
        let sample = encode_records(&records).map_err(io::Error::other)?;
        rows.push_sample(&sent, &sample, Time(0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_small_files_can_be_joined() {
        assert!(is_small(SMALL - 1, SHORT));
        assert!(!is_small(SMALL, 1), "many records");
        assert!(!is_small(1, SHORT + 1), "long ones, which would keep the days behind from being joined");
        const { assert!(2 * SMALL <= MOST && 2 * SHORT <= MOST_BYTES) }
    }
}
