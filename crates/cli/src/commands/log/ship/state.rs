//! How far everything has been committed, in a file that is replaced whole.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tampu_types::{Incarnation, SourceName};

use crate::failure::Failure;

/// Where one file, or the journal, is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// What the ids of its records begin with.
    pub life: Incarnation,
    /// The number of its next record.
    pub number: u64,
    /// Which file it is, whatever it is called now.
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
                    content = serde_json::from_slice(&bytes)
                        .map_err(|error| failed(format!("{error}; remove it to begin anew: lines will be sent again")))?;
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

    /// Where a file is.
    pub fn place(&self, path: &Path) -> Option<Place> {
        self.content.places.get(&*path.to_string_lossy()).cloned()
    }

    /// Where the journal is.
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
            // On the disk before it takes the old one's place: half a state would be none.
            file.sync_all()?;
            fs::rename(&new, path)
        };
        write().map_err(|error| Failure::failed(format!("the state {}", path.display()), error))
    }
}
