//! Exports a store to ELOG: a folder on which elogd can be started.
//!
//! ```text
//! elogd.cfg
//! passwd                                          users, as elogd's `Password file`, for its owner only
//! logbooks/<book>/<YYYY>/<YYMMDD>a.log            entries by date, as elogd writes them
//! logbooks/<book>/<YYYY>/<YYMMDD_HHMMSS>_<name>   attachments
//! ```
//! An entry that came from ELOG is exported byte by byte if elogd had written it in UTF-8. An entry in another
//! character set is exported with the same characters, in UTF-8. ELOG's files cannot hold history, links and the
//! meaning of Markdown. Text that ELOG would misread is changed, and the change is reported. Such text is the mark of
//! an entry, the line that ends a head, and a line end in the configuration.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;
use tampu_logbook::{
    attachment::{
        Attachment,
        stored_name::{another, stamp, stored_name},
    },
    book::{AttributeKind, Book, elog_options, same_name},
    entry::Entry,
    people::{
        password_files::{PasswordFiles, password_file},
        user::User,
    },
    search::{Page, Search, Start, Stop},
    store::{BookInfo, Logbook, StoreError},
};

use crate::{
    file_text::{MARKDOWN, file_text},
    site_files,
    site_record::SiteRecord,
};

mod users;

/// The reason for the end of an export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file or folder of the target failed.
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The target exists already.
    #[error("{}: is not empty; an export begins with an empty folder", .0.display())]
    NotEmpty(PathBuf),
    /// A page of entries took too long.
    #[error("the export is not complete: reading entries exceeded the logbook's time limit for a search")]
    Stopped,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The result of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// The number of books written.
    pub books: u64,
    /// The number of entries written.
    pub entries: u64,
    /// The number of attachments written.
    pub attachments: u64,
    /// The content that ELOG's files cannot hold, one line each.
    pub notes: Vec<String>,
    /// True if the export was interrupted before its end.
    pub interrupted: bool,
}

/// Exports books into an empty folder; an empty list means all books. `progress` receives the numbers of exported
/// entries and of all entries, and returns false to interrupt.
pub fn export_elog(
    store: &dyn Logbook,
    books: &[String],
    to: &Path,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<ExportReport, ExportError> {
    export_site(store, books, &[], to, progress)
}

/// Exports books with the users of the site. Without users, the report says that elogd would make its first visitor the
/// administrator.
pub fn export_site(
    store: &dyn Logbook,
    books: &[String],
    users: &[User],
    to: &Path,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<ExportReport, ExportError> {
    let io = |error| ExportError::Io { path: to.to_owned(), error };
    fs::create_dir_all(to).map_err(io)?;
    if fs::read_dir(to).map_err(io)?.next().is_some() {
        return Err(ExportError::NotEmpty(to.to_owned()));
    }
    let mut infos = store.books()?;
    // Every book has the options of `[global]`, which have the order of groups.
    let sections: Vec<String> = infos.iter().map(|info| info.book.name.clone()).collect();
    let site = SiteRecord::of_options(infos.first().map(|info| info.book.elog.clone()).unwrap_or_default(), &sections);
    site.sort(&mut infos);
    for name in books {
        store.book(name)?;
    }
    let files = PasswordFiles::of(infos.iter().map(|info| &info.book));
    infos.retain(|info| books.is_empty() || books.iter().any(|name| same_name(name, &info.book.name)));
    let total = infos.iter().map(|info| info.entries).sum();
    let mut exported = ExportReport::default();
    let mut config = global(&infos, &mut exported.notes);
    let books: Vec<(String, &Book)> = names(&infos, &mut exported.notes);
    for (name, members) in &site.groups {
        let members: Vec<String> = members.iter().map(|member| item(member)).collect();
        option(&format!("Group {name}"), &members.join(", "), &mut config, &mut exported.notes);
    }
    groups(&books, &mut config, &mut exported.notes);
    let mut password_files = Vec::new();
    if !users.is_empty() {
        let (made, options) = users::files(infos.iter().map(|info| &info.book), users, &files, &mut exported.notes);
        config.push_str(&options);
        let named: Vec<&str> = books.iter().map(|(name, _)| name.as_str()).collect();
        for file in &made {
            users::write(&to.join(&file.name), &file.users, &named, &mut exported.notes).map_err(io)?;
        }
        password_files = made;
    }
    for (name, book) in &books {
        let own = password_file(book).map(|value| files.group(value));
        let file = password_files.iter().find(|file| own.as_ref().is_some_and(|own| file.groups.contains(own)));
        section(name, book, file.map(|file| file.name.as_str()), &mut config, &mut exported.notes);
        let folder = to.join("logbooks").join(name);
        let mut export = BookExport {
            store,
            folder,
            folders: HashSet::new(),
            names: HashSet::new(),
            markdown: 0,
            out: &mut exported,
            file: None,
        };
        export.book(&book.name, total, progress)?;
        exported.books += 1;
        if exported.interrupted {
            break;
        }
    }
    if password_files.is_empty()
        && let Some(file) = infos.iter().find_map(|info| elog_options::option(&info.book, "Password file"))
    {
        exported.notes.push(format!(
            "elogd.cfg names the password file '{file}', and this export has no users: elogd would make its first visitor the \
             administrator. Put the old file there, or a new one, before elogd starts"
        ));
    }
    if let Some(file) = infos.iter().find_map(|info| site_files::first_named(&info.book.elog)) {
        exported.notes.push(format!(
            "elogd.cfg names files such as '{file}', which are not exported: copy them from the old directory to the one of elogd.cfg"
        ));
    }
    let path = to.join("elogd.cfg");
    fs::write(&path, config).map_err(|error| ExportError::Io { path, error })?;
    Ok(exported)
}

/// Options that elogd reads in `[global]` alone. An import gives every book the options of `[global]`.
const SITE_OPTIONS: [&str; 13] = [
    "SMTP host",
    "SMTP port",
    "SMTP username",
    "SMTP password",
    "SSL",
    "SSL Passphrase",
    "Interface",
    "Usr",
    "Grp",
    "Resource dir",
    "Logfile",
    "Logging level",
    "Selection page",
];

/// Returns the beginning of `[global]`: the folders of this export, and the options of the site.
fn global(infos: &[BookInfo], notes: &mut Vec<String>) -> String {
    let of_site = |name: &str| infos.iter().find_map(|info| elog_options::option(&info.book, name));
    let mut config = String::from("[global]\n");
    option("port", of_site("port").unwrap_or("8080"), &mut config, notes);
    config.push_str("charset = UTF-8\nLogbook dir = logbooks\n");
    for name in SITE_OPTIONS {
        if let Some(value) = of_site(name) {
            option(name, value, &mut config, notes);
        }
    }
    config
}

/// Returns the books' names in the configuration, changed where a name cannot be that of a section.
fn names<'a>(infos: &'a [BookInfo], notes: &mut Vec<String>) -> Vec<(String, &'a Book)> {
    let mut books: Vec<(String, &Book)> = Vec::new();
    for BookInfo { book, .. } in infos {
        let mut name = book.name.replace(['[', ']'], "_");
        let lower = name.to_lowercase();
        if lower == "global" || lower.starts_with("global ") {
            name = format!("Logbook {name}");
        }
        let is_taken = |name: &str| books.iter().any(|(taken, _)| same_name(taken, name));
        while is_taken(&name) || name != book.name && infos.iter().any(|info| same_name(&info.book.name, &name)) {
            name.push('_');
        }
        if name != book.name {
            notes.push(format!("logbook {}: the name is invalid in ELOG's configuration; it is '{name}' there", book.name));
        }
        books.push((name, book));
    }
    books
}

fn groups(books: &[(String, &Book)], config: &mut String, notes: &mut Vec<String>) {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, book) in books {
        let Some(group) = &book.group else { continue };
        match groups.iter_mut().find(|(known, _)| known == group) {
            Some((_, members)) => members.push(name),
            None => groups.push((group, vec![name])),
        }
    }
    for (name, members) in groups {
        let members: Vec<String> = members.into_iter().map(item).collect();
        option(&format!("Top group {name}"), &members.join(", "), config, notes);
    }
}

/// An item of a list.
fn item(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Writes an option as one line, for every name and value.
fn option(name: &str, value: &str, config: &mut String, notes: &mut Vec<String>) {
    let line = |text: &str| text.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect::<String>();
    let (safe_name, safe_value) = (line(name).replace('=', "-"), line(value));
    let safe_name = safe_name.trim().trim_start_matches(['[', '#', ';']);
    if safe_name != name.trim() || safe_value != value {
        notes.push(format!("option {name:?}: characters that its line cannot hold are left out"));
    }
    if !safe_name.is_empty() {
        config.push_str(&format!("{safe_name} = {}\n", safe_value.trim()));
    }
}

/// Appends a book's section of `elogd.cfg`, under this name. The exported password file takes the place of the book's.
pub(super) fn section(name: &str, book: &Book, password_file: Option<&str>, config: &mut String, notes: &mut Vec<String>) {
    config.push_str(&format!("\n[{name}]\n"));
    // The options of the book come first, but the folders are those of this export.
    let elsewhere = ["subdir", "data dir", "logbook dir", "port", "charset", "attributes", "comment"];
    let own: Vec<(String, String)> = defined(book);
    let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    own.iter().for_each(|(name, value)| option(name, value, config, notes));
    for attribute in &book.attributes {
        if !attribute.computed.is_empty() {
            notes.push(format!("'{}' is computed, which ELOG cannot: entries keep their values", attribute.name));
        }
        if attribute.takes_lines() {
            notes.push(format!("'{}' can have several lines, and ELOG's attributes have one", attribute.name));
        }
    }
    for (name, value) in &book.elog {
        let lower = name.to_lowercase();
        if !elsewhere.contains(&lower.as_str())
            && !SITE_OPTIONS.iter().any(|site| site.eq_ignore_ascii_case(name))
            && !lower.starts_with("top group ")
            && !lower.starts_with("group ")
            && !is_own(name)
        {
            let value = password_file.filter(|_| lower == "password file").unwrap_or(value);
            option(name, value, config, notes);
        }
    }
}

/// Returns the options that define a book's attributes.
pub(crate) fn defined(book: &Book) -> Vec<(String, String)> {
    let names = |of: &dyn Fn(&tampu_logbook::book::AttributeDef) -> bool| {
        let names: Vec<String> = book.attributes.iter().filter(|attribute| of(attribute)).map(|a| item(&a.name)).collect();
        names.join(", ")
    };
    let mut options = vec![("Attributes".to_owned(), names(&|_| true))];
    if !book.comment.is_empty() {
        options.push(("Comment".to_owned(), book.comment.clone()));
    }
    for attribute in &book.attributes {
        let name = &attribute.name;
        let list = || attribute.options.iter().map(|option| item(option)).collect::<Vec<_>>().join(", ");
        let option = match attribute.kind {
            AttributeKind::Text => None,
            AttributeKind::Options => Some((format!("Options {name}"), list())),
            AttributeKind::Multiple | AttributeKind::Tags => Some((format!("MOptions {name}"), list())),
            AttributeKind::Radio if elog_options::option(book, &format!("IOptions {name}")).is_some() => {
                Some((format!("IOptions {name}"), list()))
            }
            AttributeKind::Radio => Some((format!("ROptions {name}"), list())),
            AttributeKind::Boolean => Some((format!("Options {name}"), "boolean".to_owned())),
            AttributeKind::Numeric => Some((format!("Type {name}"), "numeric".to_owned())),
            AttributeKind::Date => Some((format!("Type {name}"), "date".to_owned())),
            AttributeKind::DateTime => Some((format!("Type {name}"), "datetime".to_owned())),
            AttributeKind::UserList => Some((format!("Type {name}"), "userlist".to_owned())),
            AttributeKind::UserLists => Some((format!("Type {name}"), "muserlist".to_owned())),
        };
        // Options that set conditions, or hold under one, stand in the configuration that the book came from.
        let kept = |known: &(String, String)| {
            let under = |(name, _): &(String, String)| {
                name.split_once('}').is_some_and(|(_, name)| name.trim().eq_ignore_ascii_case(&known.0))
            };
            option.as_ref().is_some_and(|(name, _)| known.0.eq_ignore_ascii_case(name))
                && (known.1.contains('{') || book.elog.iter().any(under))
        };
        options.extend(book.elog.iter().find(|known| kept(known)).cloned().or(option));
        if !attribute.comment.is_empty() {
            options.push((format!("Comment {name}"), attribute.comment.clone()));
        }
    }
    for (option, names) in [
        ("Required Attributes", names(&|attribute| attribute.required)),
        ("Locked Attributes", names(&|attribute| attribute.locked)),
        ("Extendable Options", names(&|attribute| attribute.extendable || attribute.kind == AttributeKind::Tags)),
    ] {
        if !names.is_empty() {
            options.push((option.to_owned(), names));
        }
    }
    options
}

struct BookExport<'a> {
    store: &'a dyn Logbook,
    folder: PathBuf,
    folders: HashSet<PathBuf>,
    /// Stored names of attachments.
    names: HashSet<String>,
    /// The number of entries in Markdown.
    markdown: u64,
    out: &'a mut ExportReport,
    file: Option<(PathBuf, io::BufWriter<File>)>,
}

impl BookExport<'_> {
    fn book(&mut self, name: &str, total: u64, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<(), ExportError> {
        let mut search = Search { books: vec![name.to_owned()], descending: false, limit: 500, count_to: 0, ..Search::default() };
        search.time = std::time::Duration::from_secs(3600);
        let children = self.children(&search)?;
        loop {
            let page = self.page(&search)?;
            for hit in page.hits {
                self.entry(&hit.entry, children.get(&hit.entry.at.id).map_or(&[][..], Vec::as_slice))?;
                self.out.entries += 1;
            }
            if !progress(self.out.entries, total) {
                self.out.interrupted = true;
            }
            match page.next.filter(|_| !self.out.interrupted) {
                Some(next) => search.start = Start::After(next),
                None => break,
            }
        }
        if self.markdown > 0 {
            self.out.notes.push(format!("logbook '{name}': {} entries: {MARKDOWN}", self.markdown));
        }
        match self.file.take() {
            Some((path, mut file)) => file.flush().map_err(|error| ExportError::Io { path, error }),
            None => Ok(()),
        }
    }

    /// Reads a complete page: a truncated one would leave entries out.
    fn page(&self, search: &Search) -> Result<Page, ExportError> {
        let page = self.store.search(search, &Stop::default())?;
        if page.stopped.is_some() { Err(ExportError::Stopped) } else { Ok(page) }
    }

    /// Returns the replies to each entry, by date.
    fn children(&self, search: &Search) -> Result<HashMap<u32, Vec<u32>>, ExportError> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut search = Search { query: "is:reply".to_owned(), ..search.clone() };
        loop {
            let page = self.page(&search)?;
            for entry in page.hits.into_iter().map(|hit| hit.entry) {
                children.entry(entry.parent.unwrap_or_default()).or_default().push(entry.at.id);
            }
            match page.next {
                Some(next) => search.start = Start::After(next),
                None => return Ok(children),
            }
        }
    }

    fn entry(&mut self, entry: &Entry, children: &[u32]) -> Result<(), ExportError> {
        let mut names = Vec::new();
        for attachment in &entry.content.attachments {
            names.push(self.attachment(entry, attachment)?);
        }
        let (out, lost) = file_text(entry, children, &names);
        for what in lost {
            match what.as_str() {
                MARKDOWN => self.markdown += 1,
                what => self.out.notes.push(format!("entry {}: {what}", entry.at)),
            }
        }
        let (year, stamp) = stamp(entry.date, entry.zone);
        let path = self.folder(&year)?.join(format!("{}a.log", &stamp[..6]));
        let io = |error| ExportError::Io { path: path.clone(), error };
        if self.file.as_ref().is_none_or(|(open, _)| *open != path) {
            if let Some((path, mut file)) = self.file.take() {
                file.flush().map_err(|error| ExportError::Io { path, error })?;
            }
            // A change of zones can lead back to an earlier day.
            let file = File::options().create(true).append(true).open(&path).map_err(io)?;
            self.file = Some((path.clone(), io::BufWriter::new(file)));
        }
        match &mut self.file {
            Some((_, file)) => file.write_all(out.as_bytes()).map_err(io),
            None => Ok(()),
        }
    }

    fn folder(&mut self, year: &str) -> Result<PathBuf, ExportError> {
        let folder = self.folder.join(year);
        if self.folders.insert(folder.clone()) {
            fs::create_dir_all(&folder).map_err(|error| ExportError::Io { path: folder.clone(), error })?;
        }
        Ok(folder)
    }

    /// Writes an attachment; its name in ELOG's files.
    fn attachment(&mut self, entry: &Entry, attachment: &Attachment) -> Result<String, ExportError> {
        let name = self.free_name(attachment);
        let Some(sha) = &attachment.sha else { return Ok(name) };
        let century = if &name[..2] < "80" { "20" } else { "19" };
        let path = self.folder(&format!("{century}{}", &name[..2]))?.join(&name);
        let copied = self.store.attachment(sha).map_err(ExportError::from).and_then(|mut from| {
            let mut to = File::create_new(&path).map_err(|error| ExportError::Io { path: path.clone(), error })?;
            io::copy(&mut from, &mut to).map_err(|error| ExportError::Io { path: path.clone(), error })
        });
        match copied {
            Ok(_) => self.out.attachments += 1,
            Err(error) => self.out.notes.push(format!("entry {}: attachment '{}': {error}", entry.at, attachment.name)),
        }
        Ok(name)
    }

    /// Returns a name that no other attachment has.
    fn free_name(&mut self, attachment: &Attachment) -> String {
        let mut name = stored_name(attachment);
        while !self.names.insert(name.clone()) {
            name = another(&name);
        }
        name
    }
}
