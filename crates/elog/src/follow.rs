//! Follows a running ELOG: an entry that elogd writes is in the store within a second, and Tampu's searches find it.
//!
//! The follower begins with an import. When a folder changes, it reads the changed files once they have stayed
//! unchanged for a moment, and imports their new and changed entries. An entry that is removed from all files is
//! deleted here by a tombstone, unless it was changed here. If ELOG reuses its number, the entry is restored. The
//! source is only read, by any number of followers, and elogd knows nothing of it.
//!
//! Rejected: queries to elogd itself, because its responses are slow; and reading its files at each search.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use tampu_logbook::store::{Store, StoreError, naming::current_name};

use crate::{
    config,
    follow::{
        book::FollowedBook,
        watch::{Changes, FileStamp, FolderWatch},
    },
    import::{self, BookReport, ImportError, ImportReport, ImportSource, Progress, import_elog},
};

mod book;
mod watch;

/// The pause between two checks for changes.
const TICK: Duration = Duration::from_millis(100);
/// The time without changes after which a configuration is read.
const SETTLES: Duration = Duration::from_millis(200);
/// The number that identifies the configuration's folder.
const CONFIG: usize = usize::MAX;

/// Follows ELOG's logbooks.
pub struct Follower<'a> {
    store: &'a dyn Store,
    source: ImportSource,
    books: Vec<FollowedBook>,
    watch: FolderWatch,
    /// The watched folders, with the numbers of their books.
    folders: Vec<(usize, PathBuf)>,
    /// True if every book has to be read: a file may have changed before its folder was watched.
    all: bool,
    config: Option<FileStamp>,
    /// The changed configuration file, and the time of the change. `None` if the file is the one that was read.
    config_changed: Option<(Option<FileStamp>, Instant)>,
    /// The books' folders, without a configuration.
    listed: Vec<PathBuf>,
    /// The store's last error, so that each error is reported once.
    trouble: Option<String>,
}

/// An event to report to the operator.
#[derive(Debug)]
pub enum FollowEvent {
    /// Changes of one book were imported.
    Book(Box<BookReport>),
    /// The configuration, or the set of logbooks, has changed: everything was imported again.
    Reimported(ImportReport),
    /// A change could not be imported; the import is retried.
    Failed(String),
}

impl<'a> Follower<'a> {
    /// Imports everything, and begins to follow.
    pub fn begin(
        store: &'a dyn Store,
        source: ImportSource,
        progress: Progress<'_>,
    ) -> Result<(Follower<'a>, ImportReport), ImportError> {
        let watch = FolderWatch::over(&[], source.poll);
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
        let report = follower.import_all(progress)?;
        Ok((follower, report))
    }

    /// Returns the reason for polling, if the kernel does not report changes. A change then arrives half a second
    /// later, and on a network file system after its cache has expired.
    pub fn polls(&self) -> Option<&str> {
        self.watch.polls()
    }

    /// Imports everything, and begins again.
    fn import_all(&mut self, progress: Progress<'_>) -> Result<ImportReport, ImportError> {
        self.config = match &self.source.config {
            Some(path) => FileStamp::of(path).map_err(|error| ImportError::Io { path: path.clone(), error })?,
            None => None,
        };
        let mut books = match &self.source.config {
            Some(path) => import::configured(&config::parse(&import::read(path)?), &self.source.logbooks),
            None => import::folders(&self.source.logbooks)?,
        };
        self.listed = books.iter().map(|(_, folder)| folder.clone()).collect();
        let only = &self.source.only;
        books.retain(|(book, _)| only.is_empty() || only.iter().any(|name| tampu_logbook::book::same_name(name, &book.name)));
        import::follow_names(self.store, &mut books)?;
        // A change during the import counts as a change after it.
        let before: Vec<_> = books.into_iter().map(|(book, folder)| (book, book::stamps(&folder), folder)).collect();
        let report = import_elog(self.store, &self.source, progress)?;
        let mut followed = Vec::new();
        if !report.interrupted {
            for (book, stamps, folder) in before {
                match self.store.book(&book.name) {
                    Ok(book) => {
                        let of_book = report.books.iter().find(|of| of.book == book.name);
                        let renumbered = of_book.map_or(&[][..], |report| &report.renumbered);
                        let zone = self.source.zone.zone().clone();
                        followed.push(FollowedBook::begin(self.store, book, folder, zone, stamps, renumbered)?)
                    }
                    // The name is invalid, as the report says.
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

    /// Watches the present folders, if they differ from the watched ones.
    fn watch_all(&mut self) {
        let mut folders: Vec<(usize, PathBuf)> = Vec::new();
        for (nth, book) in self.books.iter().enumerate() {
            folders.extend(book.folders().into_iter().map(|folder| (nth, folder)));
        }
        let config = self.source.config.as_ref().and_then(|path| path.parent());
        let config = config.map(|folder| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() });
        folders.push((CONFIG, config.unwrap_or_else(|| self.source.logbooks.clone())));
        if folders != self.folders {
            self.watch = FolderWatch::over(&folders, self.source.poll);
            (self.folders, self.all) = (folders, true);
        }
    }

    /// Imports the changes that have settled, and never waits. Call it several times a second.
    pub fn look(&mut self, on_event: &mut dyn FnMut(FollowEvent)) {
        let begun = Instant::now();
        let mut changes = self.watch.changes();
        if std::mem::take(&mut self.all) {
            changes = Changes::All;
        }
        let all = changes == Changes::All;
        if all || changes == Changes::Books(vec![]) || matches!(&changes, Changes::Books(books) if books.contains(&CONFIG)) {
            self.look_at_config(all, on_event);
        }
        for nth in 0..self.books.len() {
            let changed = match &changes {
                Changes::All => true,
                Changes::Books(books) => books.contains(&nth) || self.books[nth].is_waiting(),
            };
            if !changed {
                continue;
            }
            match self.books[nth].look(self.store) {
                Ok(report) => {
                    self.trouble = None;
                    report.into_iter().for_each(|report| on_event(FollowEvent::Book(Box::new(report))));
                }
                Err(error) => match self.renamed(nth, &error) {
                    // The next look imports the change.
                    Some(name) => self.books[nth].book.name = name,
                    None => self.trouble(error.to_string(), on_event),
                },
            }
        }
        if changes != Changes::Books(vec![]) {
            // Folders may have been created or removed.
            self.watch_all();
        }
        if all {
            self.watch.looked(begun.elapsed());
        }
    }

    /// Returns the name that a followed book has, if it was renamed here.
    fn renamed(&self, nth: usize, error: &StoreError) -> Option<String> {
        let StoreError::NoBook(_) = error else { return None };
        current_name(self.store, &self.books[nth].book.name).ok().flatten()
    }

    fn trouble(&mut self, what: String, on_event: &mut dyn FnMut(FollowEvent)) {
        if self.trouble.as_ref() != Some(&what) {
            self.trouble = Some(what.clone());
            on_event(FollowEvent::Failed(what));
        }
    }

    /// Imports everything again if the configuration, or the set of folders, has changed and settled.
    fn look_at_config(&mut self, all: bool, on_event: &mut dyn FnMut(FollowEvent)) {
        let changed = match &self.source.config {
            Some(path) => match FileStamp::of(path) {
                Ok(Some(stamp)) if Some(stamp) == self.config => None,
                // While the file is missing, the configuration that was read stays valid.
                Ok(None) => None,
                Ok(stamp) => Some(stamp),
                Err(error) => return self.trouble(format!("{}: {error}", path.display()), on_event),
            },
            None if !all => return,
            None => match import::folders(&self.source.logbooks) {
                Ok(now) if now.iter().map(|(_, folder)| folder).ne(&self.listed) => Some(None),
                Ok(_) => None,
                Err(error) => return self.trouble(error.to_string(), on_event),
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
        match self.import_all(&mut |_, _| true) {
            Ok(report) => on_event(FollowEvent::Reimported(report)),
            Err(error) => {
                // The old configuration stays valid until the new one can be read.
                self.config = stamp.or(self.config);
                self.trouble(error.to_string(), on_event);
            }
        }
    }

    /// Follows until `go_on` returns false; it is called ten times a second.
    pub fn run(&mut self, go_on: &mut dyn FnMut() -> bool, on_event: &mut dyn FnMut(FollowEvent)) {
        while go_on() {
            self.look(on_event);
            std::thread::sleep(TICK);
        }
    }
}
