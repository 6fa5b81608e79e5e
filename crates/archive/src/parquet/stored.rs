//! A Parquet file of the archive: listed in the manifest, opened on demand, and deleted after its last use.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{
    Fault,
    manifest::FileEntry,
    parquet::{BadTable, Layout, Table},
    wal::frame::LevelSet,
};

/// Most open files. A second limit is on the memory of their indexes and of copies of rewritten files. Beyond either,
/// the file opened first is closed. A search that uses it keeps it.
const MOST_OPEN: usize = 256;
const MOST_BYTES: usize = 256 << 20;

/// Open files, all of one layout.
#[derive(Debug)]
pub(crate) struct Tables {
    layout: &'static Layout,
    open: Mutex<Open>,
}

/// Open files in the order of opening, each with its bytes in memory, and the sum of the bytes.
#[derive(Debug, Default)]
struct Open {
    tables: VecDeque<(Arc<Table>, usize)>,
    bytes: usize,
}

impl Tables {
    pub(crate) fn new(layout: &'static Layout) -> Tables {
        Tables { layout, open: Mutex::default() }
    }

    fn keep(&self, table: &Arc<Table>) {
        let mut kept = self.open.lock();
        let Open { tables, bytes } = &mut *kept;
        let size = table.size();
        tables.push_back((table.clone(), size));
        *bytes += size;
        while tables.len() > MOST_OPEN || *bytes > MOST_BYTES && tables.len() > 1 {
            *bytes -= tables.pop_front().map_or(0, |(_, size)| size);
        }
    }
}

/// A Parquet file of the archive.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) entry: FileEntry,
    pub(crate) path: PathBuf,
    table: Mutex<Weak<Table>>,
    tables: Arc<Tables>,
    met: Mutex<Vec<Fault>>,
    /// True if the file cannot be opened at all.
    broken: AtomicBool,
    /// True if the file has left the archive. It is deleted when the last search that uses it ends.
    doomed: AtomicBool,
}

impl Stored {
    pub(crate) fn new(dir: &Path, entry: FileEntry, tables: &Arc<Tables>) -> Arc<Stored> {
        Arc::new(Stored {
            path: dir.join(&entry.file),
            entry,
            table: Mutex::default(),
            tables: tables.clone(),
            met: Mutex::default(),
            broken: AtomicBool::new(false),
            doomed: AtomicBool::new(false),
        })
    }

    pub(crate) fn levels(&self) -> LevelSet {
        LevelSet(self.entry.levels)
    }

    /// Returns the open file, and opens it if necessary. If it cannot be read, the error is noted and `None` returned.
    pub(crate) fn open(&self) -> Option<Arc<Table>> {
        let mut table = self.table.lock();
        if let Some(table) = table.upgrade() {
            return Some(table);
        }
        match Table::open(&self.path, self.tables.layout) {
            Ok(opened) => {
                let opened = Arc::new(opened);
                *table = Arc::downgrade(&opened);
                self.tables.keep(&opened);
                Some(opened)
            }
            Err(error) => {
                self.broken.store(matches!(error, BadTable::Corrupt(_)), Ordering::Relaxed);
                self.note(&error);
                None
            }
        }
    }

    /// Notes an unreadable part; the rest is served.
    pub(crate) fn note(&self, error: &BadTable) {
        let what = if self.is_broken() {
            format!("damaged ({error}): its {} records are not served", self.entry.records)
        } else {
            format!("damaged ({error}): the damaged part is not served, the rest is")
        };
        let fault = Fault { file: self.path.clone(), from: 0, to: self.entry.bytes, what };
        let mut met = self.met.lock();
        if !met.contains(&fault) {
            met.push(fault);
        }
    }

    pub(crate) fn met(&self) -> Vec<Fault> {
        self.met.lock().clone()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Removes the file from the archive. Searches that still read it may end first.
    pub(crate) fn doom(&self) {
        self.doomed.store(true, Ordering::Relaxed);
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        if self.doomed.load(Ordering::Relaxed) {
            // If it stays, the next start removes it: the manifest does not name it.
            let _ = fs::remove_file(&self.path);
            if let Some(day) = self.path.parent() {
                // This succeeds only if it was the day's last file.
                let _ = fs::remove_dir(day);
            }
        }
    }
}
