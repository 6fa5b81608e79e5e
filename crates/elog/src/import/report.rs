//! The report of an import: counts, faults and verdicts.

use std::path::PathBuf;

use serde::Serialize;
use tampu_logbook::store::ImportOutcome;

use super::MAX_FAULTS;
use crate::{FileFault, access_report::AccessReport, options::ConfigCheck};

/// The result of an import for one book.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BookReport {
    pub book: String,
    /// The folder of its files.
    pub directory: PathBuf,
    /// Entries that were found.
    pub entries: u64,
    /// Number of entries that are new in the store.
    pub new: u64,
    /// Number of entries that changed in the source since the last import, and were updated in the store.
    pub changed: u64,
    /// Number of unchanged entries.
    pub same: u64,
    /// Number of entries that changed in the source and in the store. The store's version stays.
    pub conflicts: u64,
    /// Ids of these entries, up to the limit of reported faults.
    pub conflicting: Vec<u32>,
    /// Number of entries that were deleted or moved in the store. They stay so.
    pub gone: u64,
    /// Number of entries that were deleted in the source, and therefore here; only while the source is followed.
    pub deleted: u64,
    /// Number of drafts that are new or changed in the source, and are drafts here.
    pub drafts: u64,
    /// The numbers here of entries whose number another one had, or that had no valid one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub renumbered: Vec<u32>,
    /// Attachments that were found.
    pub attachments: u64,
    /// The people who may read and write the book; an import reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessReport>,
    /// The faults of its files.
    pub faults: Vec<FileFault>,
    /// Faults beyond those reported one by one.
    pub more_faults: u64,
}

impl BookReport {
    /// Counts the outcome of an entry or draft; returns a fault to report with its position.
    pub(crate) fn count(&mut self, id: u32, draft: Option<&str>, outcome: ImportOutcome) -> Option<String> {
        match (outcome, draft) {
            (ImportOutcome::New | ImportOutcome::Changed, Some(owner)) => {
                self.drafts += 1;
                return Some(format!("entry {id}: imported as a draft of {owner}"));
            }
            (ImportOutcome::Full, owner) => {
                let owner = owner.unwrap_or_default();
                return Some(format!("entry {id}: a draft of {owner}, who has too many drafts: left out"));
            }
            (ImportOutcome::New, None) => self.new += 1,
            (ImportOutcome::Changed, None) => self.changed += 1,
            (ImportOutcome::Same, None) => self.same += 1,
            (ImportOutcome::Same, Some(_)) => {}
            (ImportOutcome::Conflict, _) => self.conflict(id),
            (ImportOutcome::Gone, _) => self.gone += 1,
        }
        None
    }

    /// Counts an entry that was changed here too.
    pub(crate) fn conflict(&mut self, id: u32) {
        self.conflicts += 1;
        if self.conflicting.len() < MAX_FAULTS {
            self.conflicting.push(id);
        }
    }
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// The results of all books.
    pub books: Vec<BookReport>,
    /// The local time of the pages, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Faults of the configuration.
    pub faults: Vec<FileFault>,
    /// The verdicts on the options of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<ConfigCheck>,
    /// The name of the site in `URL` of the configuration, if it is no address of this computer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_host: Option<String>,
    /// True if the import was interrupted before its end.
    pub interrupted: bool,
}
