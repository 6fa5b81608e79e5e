//! Following a living ELOG: what elogd writes is here within a second, so that Tampu answers its searches.
//!
//! It begins with an import. Then, whenever a folder stirs, the files in it that are others than those read last are read once they have been left
//! alone for a moment, and what is new or changed in them is taken as an import takes it. An entry that is in no file any longer is deleted here, by
//! a tombstone, unless it was changed here; should ELOG give its number again, it comes back. The source is only ever read, by any number of
//! followers, and elogd knows nothing of it.
//!
//! Asking elogd itself was rejected: its answers are what is slow. So was reading its files at each search.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    config,
    import::{self, BookReport, Doing, ImportError, Report, Source, import_elog},
};
use crate::store::{Store, StoreError};

mod book;
mod watch;

use book::Followed;
use watch::{Stamp, Stirred, Watch};

/// How long it sleeps between two looks at whether something has stirred.
const TICK: Duration = Duration::from_millis(100);
/// How long a configuration has to have been left alone before it is read.
const SETTLES: Duration = Duration::from_millis(200);
/// The number by which the configuration's folder is known.
const CONFIG: usize = usize::MAX;

/// Follows ELOG's logbooks.
pub struct Follower<'a> {
    store: &'a dyn Store,
    source: Source,
    books: Vec<Followed>,
    watch: Watch,
    /// The folders that are watched, with the numbers of their books.
    folders: Vec<(usize, PathBuf)>,
    /// Whether everything is to be looked at: something may have happened before its folder was watched.
    all: bool,
    config: Option<Stamp>,
    /// The configuration as it is, and since when, where that is not what was read.
    config_changed: Option<(Option<Stamp>, Instant)>,
    /// The books' folders, where there is no configuration.
    listed: Vec<PathBuf>,
    /// Errors of the store that were told, so that each is told once.
    trouble: Option<String>,
}

/// What has happened.
#[derive(Debug)]
pub enum Told {
    /// What was taken of one book.
    Book(Box<BookReport>),
    /// The configuration, or which logbooks there are, has changed: all of it was taken once more.
    Again(Report),
    /// It could not be taken; it is tried again.
    Trouble(String),
}

impl<'a> Follower<'a> {
    /// Imports, and begins to follow.
    pub fn begin(store: &'a dyn Store, source: Source, doing: Doing<'_>) -> Result<(Follower<'a>, Report), ImportError> {
        let watch = Watch::over(&[], source.poll);
        let mut follower = Follower {
            store,
            source,
            books: Vec::new(),
            watch,
            folders: Vec::new(),
            all: false,
            config: None,
            config_changed: None,
            listed: Vec::new(),
            trouble: None,
        };
        let report = follower.again(doing)?;
        Ok((follower, report))
    }

    /// Why it looks again and again and is not told of changes, if so: changes then take half a second longer, and where a network's files are
    /// cached as long as they are.
    pub fn polls(&self) -> Option<&str> {
        self.watch.polls()
    }

    /// Imports everything, and begins anew.
    fn again(&mut self, doing: Doing<'_>) -> Result<Report, ImportError> {
        self.config = match &self.source.config {
            Some(path) => Stamp::of(path).map_err(|error| ImportError::Io { path: path.clone(), error })?,
            None => None,
        };
        let mut books = match &self.source.config {
            Some(path) => import::configured(&config::parse(&import::read(path)?), &self.source.logbooks),
            None => import::folders(&self.source.logbooks)?,
        };
        self.listed = books.iter().map(|(_, folder)| folder.clone()).collect();
        let only = &self.source.only;
        books.retain(|(book, _)| only.is_empty() || only.iter().any(|name| crate::book::same_name(name, &book.name)));
        // What is written while it is imported is seen as changed after that.
        let before: Vec<_> = books.into_iter().map(|(book, folder)| (book, book::stamps(&folder), folder)).collect();
        let report = import_elog(self.store, &self.source, doing)?;
        let mut followed = Vec::new();
        if !report.interrupted {
            for (book, stamps, folder) in before {
                match self.store.book(&book.name) {
                    Ok(book) => followed.push(Followed::begin(self.store, book, folder, self.source.zone, stamps)?),
                    // Its name is none, as the report says.
                    Err(StoreError::NoBook(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.books = followed;
        self.config_changed = None;
        self.watch_all();
        Ok(report)
    }

    /// Watches the folders there are, if they are others than before.
    fn watch_all(&mut self) {
        let mut folders: Vec<(usize, PathBuf)> = Vec::new();
        for (nth, book) in self.books.iter().enumerate() {
            folders.extend(book.folders().into_iter().map(|folder| (nth, folder)));
        }
        let config = self.source.config.as_ref().and_then(|path| path.parent());
        let config = config.map(|folder| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() });
        folders.push((CONFIG, config.unwrap_or_else(|| self.source.logbooks.clone())));
        if folders != self.folders {
            self.watch = Watch::over(&folders, self.source.poll);
            (self.folders, self.all) = (folders, true);
        }
    }

    /// Looks at what has stirred, takes what has been left alone since, and does not wait. To be called some times a second.
    pub fn look(&mut self, tell: &mut dyn FnMut(Told)) {
        let begun = Instant::now();
        let mut stirred = self.watch.stirred();
        if std::mem::take(&mut self.all) {
            stirred = Stirred::All;
        }
        let all = stirred == Stirred::All;
        if all || stirred == Stirred::Books(vec![]) || matches!(&stirred, Stirred::Books(books) if books.contains(&CONFIG)) {
            self.look_at_config(all, tell);
        }
        for nth in 0..self.books.len() {
            let stirs = match &stirred {
                Stirred::All => true,
                Stirred::Books(books) => books.contains(&nth) || self.books[nth].is_waiting(),
            };
            if !stirs {
                continue;
            }
            match self.books[nth].look(self.store) {
                Ok(report) => {
                    self.trouble = None;
                    report.into_iter().for_each(|report| tell(Told::Book(Box::new(report))));
                }
                Err(error) => self.trouble(error.to_string(), tell),
            }
        }
        if stirred != Stirred::Books(vec![]) {
            // Folders come and go.
            self.watch_all();
        }
        if all {
            self.watch.looked(begun.elapsed());
        }
    }

    fn trouble(&mut self, what: String, tell: &mut dyn FnMut(Told)) {
        if self.trouble.as_ref() != Some(&what) {
            self.trouble = Some(what.clone());
            tell(Told::Trouble(what));
        }
    }

    /// Takes everything once more if the configuration, or which folders there are, has changed and was left alone since.
    fn look_at_config(&mut self, all: bool, tell: &mut dyn FnMut(Told)) {
        let changed = match &self.source.config {
            Some(path) => match Stamp::of(path) {
                Ok(Some(stamp)) if Some(stamp) == self.config => None,
                // While it is not there, what was read holds.
                Ok(None) => None,
                Ok(stamp) => Some(stamp),
                Err(error) => return self.trouble(format!("{}: {error}", path.display()), tell),
            },
            None if !all => return,
            None => match import::folders(&self.source.logbooks) {
                Ok(now) if now.iter().map(|(_, folder)| folder).ne(&self.listed) => Some(None),
                Ok(_) => None,
                Err(error) => return self.trouble(error.to_string(), tell),
            },
        };
        let Some(stamp) = changed else {
            self.config_changed = None;
            return;
        };
        match &self.config_changed {
            Some((before, since)) if *before == stamp => {
                if since.elapsed() < SETTLES {
                    return;
                }
            }
            _ => {
                self.config_changed = Some((stamp, Instant::now()));
                if self.source.config.is_some() {
                    return;
                }
            }
        }
        match self.again(&mut |_, _| true) {
            Ok(report) => tell(Told::Again(report)),
            Err(error) => {
                // What was read holds until it can be read again.
                self.config = stamp.or(self.config);
                self.trouble(error.to_string(), tell);
            }
        }
    }

    /// Goes on until `go_on` says no; it is asked ten times a second.
    pub fn run(&mut self, go_on: &mut dyn FnMut() -> bool, tell: &mut dyn FnMut(Told)) {
        while go_on() {
            self.look(tell);
            std::thread::sleep(TICK);
        }
    }
}
