//! A Parquet file of the archive: listed by the manifest, opened when it is needed, removed when nobody needs it any more.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    Fault,
    frame::Levels,
    manifest::FileEntry,
    parquet::{BadTable, Layout, Table},
};

/// Files kept open, and bytes of their indexes: beyond either the one opened first is closed. A search that uses it keeps it.
const MOST_OPEN: usize = 256;
const MOST_INDEXES: usize = 64 << 20;

/// The open files, all of one layout.
#[derive(Debug)]
pub(crate) struct Tables {
    layout: &'static Layout,
    open: Mutex<Open>,
}

/// The open files with the bytes of their indexes, the one opened first in front; and all those bytes.
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
        let mut kept = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Open { tables, bytes } = &mut *kept;
        let size = table.index.size();
        tables.push_back((table.clone(), size));
        *bytes += size;
        while tables.len() > MOST_OPEN || *bytes > MOST_INDEXES && tables.len() > 1 {
            *bytes -= tables.pop_front().map_or(0, |(_, size)| size);
        }
    }
}

/// One file.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) entry: FileEntry,
    pub(crate) path: PathBuf,
    table: Mutex<Weak<Table>>,
    tables: Arc<Tables>,
    met: Mutex<Vec<Fault>>,
    /// It cannot be opened at all.
    broken: AtomicBool,
    /// No longer the archive's: it goes when the last search that has it ends.
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

    pub(crate) fn levels(&self) -> Levels {
        Levels(self.entry.levels)
    }

    /// Opens it, or gives it as it is open. Where it cannot be read, that is noted and there is nothing.
    pub(crate) fn open(&self) -> Option<Arc<Table>> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Notes that something of it could not be read; the rest is served.
    pub(crate) fn note(&self, error: &BadTable) {
        let what = if self.is_broken() {
            format!("damaged ({error}): its {} records are not served", self.entry.records)
        } else {
            format!("damaged ({error}): what that concerns is not served, the rest is")
        };
        let fault = Fault { file: self.path.clone(), from: 0, to: self.entry.bytes, what };
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if !met.contains(&fault) {
            met.push(fault);
        }
    }

    pub(crate) fn met(&self) -> Vec<Fault> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// It is no longer the archive's; whoever still reads it may end first.
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
                // Only when it was the day's last file.
                let _ = fs::remove_dir(day);
            }
        }
    }
}
