//! A logbook as a folder of HTML pages that a browser reads from a disk, without a server and without scripts.
//!
//! ```text
//! index.html                       the logbooks
//! style.css                        for the screen and for paper
//! <book>/index.html                months and threads of a logbook
//! <book>/months/2026-11.html       the entries of a month, by date
//! <book>/threads/0.html            the threads that begin with the entries 1 to 499
//! <book>/entries/12.html           an entry
//! <book>/files/12/plot.png         a file of an entry
//! ```
//! All links are relative. Each page is written while the entries are read, so memory holds a page of a search and a
//! few bytes for each thread with replies. Times are UTC.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

use super::{PageError, Pages};
use crate::{
    book::{Book, same_name},
    entry::{Entry, EntryRef},
    search::{Search, Sort, Stop},
    store::{BookInfo, Entries, Logbook, PagePart, StoreError},
};

pub mod links;
pub(crate) mod markup;

use links::{Files, encoded};
use markup::{begin, escaped, title};

/// Threads of one page begin with entries of so many numbers.
const BLOCK: u32 = 500;
/// Entries of a thread that are read at a time.
const THREAD_PART: usize = 500;

/// The reason for the end of an export into a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file or folder of the target failed.
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The target exists already.
    #[error("{}: is not empty; an export begins with an empty folder", .0.display())]
    NotEmpty(PathBuf),
    /// A page of entries was not read to its end.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// The number of books written.
    pub books: u64,
    /// The number of entries written.
    pub entries: u64,
    /// The number of files of entries written.
    pub attachments: u64,
    /// The content that could not be written, one line each.
    pub notes: Vec<String>,
    /// True if the export was interrupted before its end.
    pub interrupted: bool,
}

/// Exports books into an empty folder; an empty list means all books. `progress` receives the numbers of exported
/// entries and of all entries, and returns false to interrupt.
pub fn export_html(
    store: &Arc<dyn Logbook>,
    books: &[String],
    to: &Path,
    stop: &Stop,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Exported, FolderError> {
    let io = |error| FolderError::Io { path: to.to_owned(), error };
    fs::create_dir_all(to).map_err(io)?;
    if fs::read_dir(to).map_err(io)?.next().is_some() {
        return Err(FolderError::NotEmpty(to.to_owned()));
    }
    let mut infos = store.books()?;
    for name in books {
        store.book(name)?;
    }
    infos.retain(|info| books.is_empty() || books.iter().any(|name| same_name(name, &info.book.name)));
    let folders = folders(&infos);
    let total = infos.iter().map(|info| info.entries).sum();
    let mut out = Exported::default();
    write(&to.join("style.css"), include_bytes!("html/style.css"))?;
    let mut index = begin("Logbooks", 0, "");
    index.push_str("<h1>Logbooks</h1>\n<table>\n<tr><th>Logbook</th><th>Entries</th><th>Newest (UTC)</th><th></th></tr>\n");
    for (info, folder) in infos.iter().zip(&folders) {
        let before = out.entries;
        let mut export =
            BookExport { store, book: &info.book, folder: to.join(folder), folders: (&infos, &folders), out: &mut out };
        export.run(stop, &mut |done| progress(done, total))?;
        index.push_str(&format!(
            "<tr><td><a href=\"{}/index.html\">{}</a></td><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>\n",
            encoded(folder),
            escaped(&info.book.name),
            out.entries - before,
            info.newest.map(|newest| newest.to_acs()[..10].to_owned()).unwrap_or_default(),
            escaped(&info.book.comment)
        ));
        out.books += 1;
        if out.interrupted {
            break;
        }
    }
    index.push_str("</table>\n</body></html>\n");
    write(&to.join("index.html"), index.as_bytes())?;
    Ok(out)
}

/// Returns a folder's name for each book: safe on every file system, and unique without regard to case.
fn folders(infos: &[BookInfo]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    infos.iter().map(|info| links::free_name(&info.book.name, &mut taken)).collect()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    fs::write(path, bytes).map_err(|error| FolderError::Io { path: path.to_owned(), error })
}

/// The export of one book.
struct BookExport<'a> {
    store: &'a Arc<dyn Logbook>,
    book: &'a Book,
    folder: PathBuf,
    /// All books of the export, and their folders.
    folders: (&'a [BookInfo], &'a [String]),
    out: &'a mut Exported,
}

/// A page that is being written.
struct PageFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl PageFile {
    /// Opens a page; a new one gets its beginning.
    fn open(path: PathBuf, first: &str) -> Result<PageFile, FolderError> {
        let is_new = !path.exists();
        let opened = File::options().create(true).append(true).open(&path);
        let file = BufWriter::new(opened.map_err(|error| FolderError::Io { path: path.clone(), error })?);
        let mut page = PageFile { path, file };
        if is_new {
            page.add(first)?;
        }
        Ok(page)
    }

    fn add(&mut self, text: &str) -> Result<(), FolderError> {
        self.file.write_all(text.as_bytes()).map_err(|error| FolderError::Io { path: self.path.clone(), error })
    }

    fn end(mut self) -> Result<(), FolderError> {
        self.add("</body></html>\n")?;
        self.close()
    }

    fn close(mut self) -> Result<(), FolderError> {
        self.file.flush().map_err(|error| FolderError::Io { path: self.path, error })
    }
}

impl BookExport<'_> {
    fn run(&mut self, stop: &Stop, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), FolderError> {
        for part in ["months", "threads", "entries", "files"] {
            let path = self.folder.join(part);
            fs::create_dir_all(&path).map_err(|error| FolderError::Io { path, error })?;
        }
        let mut replied: HashSet<u32> = HashSet::new();
        let months = self.months(stop, &mut replied, progress)?;
        let threads = if self.out.interrupted { BTreeMap::new() } else { self.threads(stop, &replied)? };
        self.index(&months, &threads)
    }

    /// All entries of the book in an order.
    fn pages(&self, sort: Sort, stop: &Stop) -> Result<Pages, FolderError> {
        let store: Arc<dyn Entries> = self.store.clone();
        let search = Search { books: vec![self.book.name.clone()], sort, descending: false, ..Search::default() };
        Ok(Pages::begin(store, search, stop.clone())?)
    }

    /// Writes the pages of all entries and of the months. Returns the number of entries of each month, and in
    /// `replied` the threads with replies.
    fn months(
        &mut self,
        stop: &Stop,
        replied: &mut HashSet<u32>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<BTreeMap<String, u64>, FolderError> {
        let mut months: BTreeMap<String, u64> = BTreeMap::new();
        let mut open: Option<(String, PageFile)> = None;
        let mut before: Option<u32> = None;
        let mut waiting: Option<Entry> = None;
        for page in self.pages(Sort::Date, stop)? {
            for entry in page? {
                if entry.thread != entry.at.id {
                    replied.insert(entry.thread);
                }
                let month = entry.date.to_acs()[..7].to_owned();
                if open.as_ref().is_none_or(|(of, _)| *of != month) {
                    if let Some((_, page)) = open.take() {
                        page.end()?;
                    }
                    let head = format!("{}, {month}", self.book.name);
                    let first = begin(&head, 2, &self.up()) + &format!("<h1>{}</h1>\n", escaped(&head)) + markup::LIST;
                    open = Some((month.clone(), PageFile::open(self.folder.join(format!("months/{month}.html")), &first)?));
                }
                if let Some((_, page)) = &mut open {
                    page.add(&markup::row(&entry))?;
                }
                *months.entry(month).or_default() += 1;
                if let Some(last) = waiting.replace(entry) {
                    self.entry(&last, before, waiting.as_ref().map(|next| next.at.id))?;
                    before = Some(last.at.id);
                }
            }
            if !progress(self.out.entries) {
                self.out.interrupted = true;
                break;
            }
        }
        if let Some((_, page)) = open {
            page.end()?;
        }
        if let Some(last) = waiting {
            self.entry(&last, before, None)?;
            progress(self.out.entries);
        }
        Ok(months)
    }

    /// Writes the pages of threads. Returns the number of threads on each page.
    fn threads(&mut self, stop: &Stop, replied: &HashSet<u32>) -> Result<BTreeMap<u32, u64>, FolderError> {
        let mut pages: BTreeMap<u32, u64> = BTreeMap::new();
        let mut done: HashSet<u32> = HashSet::new();
        let mut open: Option<(u32, PageFile)> = None;
        for found in self.pages(Sort::Id, stop)? {
            for entry in found? {
                let has_replies = replied.contains(&entry.thread);
                if has_replies && !done.insert(entry.thread) {
                    continue;
                }
                let block = entry.thread / BLOCK;
                if open.as_ref().is_none_or(|(of, _)| *of != block) {
                    if let Some((_, page)) = open.take() {
                        page.close()?;
                    }
                    let head = format!("{}, threads from {} on", self.book.name, (block * BLOCK).max(1));
                    let first = begin(&head, 2, &self.up()) + &format!("<h1>{}</h1>\n", escaped(&head));
                    open = Some((block, PageFile::open(self.folder.join(format!("threads/{block}.html")), &first)?));
                }
                *pages.entry(block).or_default() += 1;
                let Some((_, page)) = &mut open else { continue };
                page.add(&format!("<h2 id=\"t{0}\">{0}: {1}</h2>\n{2}", entry.thread, escaped(&title(&entry)), markup::LIST))?;
                if has_replies {
                    self.thread(&entry.at, page)?;
                } else {
                    page.add(&markup::row(&entry))?;
                }
                page.add("</table>\n")?;
            }
        }
        open.map_or(Ok(()), |(_, page)| page.close())?;
        for block in pages.keys() {
            PageFile::open(self.folder.join(format!("threads/{block}.html")), "")?.end()?;
        }
        Ok(pages)
    }

    fn thread(&self, at: &EntryRef, page: &mut PageFile) -> Result<(), FolderError> {
        let mut part = PagePart { after: None, limit: THREAD_PART };
        loop {
            let found = self.store.thread_page(at, part, true)?;
            for entry in &found.entries {
                page.add(&markup::row(entry))?;
            }
            match found.next {
                Some(next) => part.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn up(&self) -> String {
        format!("<a href=\"../index.html\">{}</a>", escaped(&self.book.name))
    }

    fn index(&self, months: &BTreeMap<String, u64>, threads: &BTreeMap<u32, u64>) -> Result<(), FolderError> {
        let name = escaped(&self.book.name);
        let mut out = begin(&self.book.name, 1, "<a href=\"../index.html\">Logbooks</a>");
        out.push_str(&format!(
            "<h1>{name}</h1>\n<p>{}</p>\n<h2>By month</h2>\n<ul class=\"months\">\n",
            escaped(&self.book.comment)
        ));
        for (month, count) in months.iter().rev() {
            out.push_str(&format!("<li><a href=\"months/{month}.html\">{month}</a> ({count})</li>\n"));
        }
        out.push_str("</ul>\n<h2>By thread</h2>\n<ul class=\"months\">\n");
        for (block, count) in threads.iter().rev() {
            let (first, last) = ((block * BLOCK).max(1), block * BLOCK + (BLOCK - 1));
            out.push_str(&format!("<li><a href=\"threads/{block}.html\">entries {first} to {last}</a> ({count})</li>\n"));
        }
        out.push_str("</ul>\n</body></html>\n");
        write(&self.folder.join("index.html"), out.as_bytes())
    }

    /// Writes the page of an entry and its files.
    fn entry(&mut self, entry: &Entry, before: Option<u32>, after: Option<u32>) -> Result<(), FolderError> {
        let files = self.files(entry)?;
        let thread = format!("../threads/{}.html#t{}", entry.thread / BLOCK, entry.thread);
        let page = markup::entry(entry, &files, &thread, (before, after), &self.up(), &|target| self.address(target));
        write(&self.folder.join(format!("entries/{}.html", entry.at.id)), page.as_bytes())?;
        self.out.entries += 1;
        Ok(())
    }

    /// Writes the files of an entry. Returns their names in the folder.
    fn files(&mut self, entry: &Entry) -> Result<Files, FolderError> {
        let mut files = Files::new(entry);
        if files.is_empty() {
            return Ok(files);
        }
        let folder = self.folder.join(format!("files/{}", entry.at.id));
        fs::create_dir_all(&folder).map_err(|error| FolderError::Io { path: folder.clone(), error })?;
        for (place, attachment) in entry.content.attachments.iter().enumerate() {
            let read = attachment.sha.as_ref().map(|sha| self.store.attachment(sha));
            let mut bytes = match read {
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) if !matches!(error, StoreError::Io { .. } | StoreError::NoBlob(_)) => return Err(error.into()),
                read => {
                    let why =
                        read.and_then(Result::err).map_or("its bytes were never here".to_owned(), |error| error.to_string());
                    self.out.notes.push(format!("entry {}: the file '{}' is missing: {why}", entry.at, attachment.name));
                    files.lose(place);
                    continue;
                }
            };
            let path = folder.join(files.name(place));
            let io = |error| FolderError::Io { path: path.clone(), error };
            io::copy(&mut bytes, &mut File::create_new(&path).map_err(io)?).map_err(io)?;
            self.out.attachments += 1;
        }
        Ok(files)
    }

    /// Returns the address of the entry that `elog:12` or `elog:Shift/12` names, from an entry's page.
    fn address(&self, target: &str) -> String {
        let (book, id) = target.rsplit_once('/').unwrap_or(("", target));
        let id: Result<u32, _> = id.parse();
        let (infos, folders) = self.folders;
        let found = infos.iter().position(|info| same_name(&info.book.name, book));
        match (id, book, found) {
            (Ok(id), "", _) => format!("{id}.html"),
            (Ok(id), _, Some(found)) => format!("../../{}/entries/{id}.html", encoded(&folders[found])),
            _ => "#".to_owned(),
        }
    }
}
