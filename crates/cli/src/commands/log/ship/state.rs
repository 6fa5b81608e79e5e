//! Committed positions, in a file that is replaced as a whole.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tampu_types::{Incarnation, SourceName};

use crate::failure::Failure;

/// Committed position of one file, or of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Incarnation in the ids of its records.
    pub life: Incarnation,
    /// The number of its next record.
    pub number: u64,
    /// Identity of the file, independent of its name.
    pub device: u64,
    pub inode: u64,
    /// Up to where it is committed.
    pub offset: u64,
    /// The same of the journal.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub cursor: String,
}

/// The key of the journal; no path is empty.
const JOURNAL: &str = "";

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    source: String,
    places: BTreeMap<String, Place>,
}

pub(super) struct State {
    path: Option<PathBuf>,
    content: Content,
}

impl State {
    /// Reads the state, if there is one. One of another source is refused: its lines would be given to this one.
    pub fn open(path: Option<PathBuf>, source: &SourceName) -> Result<State, Failure> {
        let mut content = Content { source: source.to_string(), ..Content::default() };
        if let Some(path) = &path {
            let failed = |why: String| Failure::failed(format!("the state {}", path.display()), why);
            match fs::read(path) {
                Ok(bytes) => {
                    content = serde_json::from_slice(&bytes).map_err(|error| {
                        failed(format!("{error}; remove it to start from the beginning: lines will be sent again"))
                    })?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error.to_string())),
            }
            if content.source != source.as_str() {
                return Err(failed(format!("it is of the source '{}': name another file", content.source)));
            }
        }
        Ok(State { path, content })
    }

    /// Returns the position of a file.
    pub fn place(&self, path: &Path) -> Option<Place> {
        self.content.places.get(&*path.to_string_lossy()).cloned()
    }

    /// Returns the position of the journal.
    pub fn journal(&self) -> Option<Place> {
        self.content.places.get(JOURNAL).cloned()
    }

    /// Keeps where a file is.
    pub fn keep(&mut self, path: &Path, place: &Place) -> Result<(), Failure> {
        self.put(&path.to_string_lossy(), place)
    }

    /// Keeps where the journal is.
    pub fn keep_journal(&mut self, place: &Place) -> Result<(), Failure> {
        self.put(JOURNAL, place)
    }

    fn put(&mut self, key: &str, place: &Place) -> Result<(), Failure> {
        self.content.places.insert(key.to_owned(), place.clone());
        let Some(path) = &self.path else { return Ok(()) };
        let write = || -> io::Result<()> {
            let mut new = path.clone().into_os_string();
            new.push(".new");
            let mut file = File::create(&new)?;
            file.write_all(&serde_json::to_vec_pretty(&self.content)?)?;
            // Synced before the rename, because half a state is useless.
            file.sync_all()?;
            fs::rename(&new, path)
        };
        write().map_err(|error| Failure::failed(format!("the state {}", path.display()), error))
    }
}
