//! The files that a configuration names: images of values, pages, texts of menus, styles and languages.
//!
//! An import reads them beside `elogd.cfg` and stores each as a record, so that every hub of a site has them. Only files
//! that an option names are read, and only of the kinds of [`Kind`]. They lie below the directory of `elogd.cfg`, its
//! `Resource dir` or the folder of the logbooks; links that lead out of these are not followed.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tampu_logbook::{
    book::elog_options::{key, list},
    store::{Records, StoreError},
};

use crate::{
    config::{ConfigStatement, ElogConfig},
    decode,
};

/// The kind of the records.
const KIND: &str = "elog-file";
/// Maximum size of a file.
const MAX_FILE: u64 = 1 << 20;
/// Maximum number of files of a site.
const MAX_FILES: usize = 500;
/// Maximum size of all files of a site.
const MAX_ALL: u64 = 32 << 20;

/// Options whose value is the name of a page.
const PAGES: [&str; 8] = [
    "welcome page",
    "submit page",
    "selection page",
    "guest selection page",
    "menu text",
    "list menu text",
    "find menu text",
    "filter menu text",
];
/// Options whose value is a text or the name of a page.
const TEXTS: [&str; 3] = ["top text", "bottom text", "bottom text login"];
/// Options whose value has addresses of images.
const WITH_IMAGES: [&str; 5] = ["title image", "welcome title", "top text", "bottom text", "bottom text login"];

/// The kind of a file, which decides about the names that it can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Page,
    Image,
    Style,
    Language,
}

/// A file that an option names.
struct NamedFile {
    kind: Kind,
    /// The name under which pages look it up.
    name: String,
    /// The line of the option.
    line: usize,
    /// True if the option has no other meaning than this file.
    needed: bool,
}

/// Returns true if a name is that of an image in one directory.
pub fn is_image(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    is_plain(name) && matches!(ending.as_str(), "png" | "gif" | "jpg" | "jpeg" | "webp" | "ico")
}

/// Returns true if a name can be that of a page.
pub fn is_page(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    name.len() <= 250 && !name.contains(['<', '\0']) && matches!(ending.as_str(), "html" | "htm" | "txt")
}

fn is_plain(name: &str) -> bool {
    !name.starts_with('.')
        && name.len() <= 100
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Returns the name of a language's file.
pub fn language_file(language: &str) -> String {
    format!("eloglang.{}", language.trim().to_lowercase())
}

/// Returns the names of images in the sources of HTML.
fn images(html: &str) -> Vec<String> {
    let lower = html.to_ascii_lowercase();
    let mut found = Vec::new();
    for (at, _) in lower.match_indices("src") {
        let rest = html[at + 3..].trim_start();
        let Some(rest) = rest.strip_prefix('=') else { continue };
        let rest = rest.trim_start();
        let value = match rest.chars().next() {
            Some(mark @ ('"' | '\'')) => rest[1..].split(mark).next(),
            _ => rest.split([' ', '>', '\t', '\n']).next(),
        };
        found.extend(value.map(|value| value.rsplit('/').next().unwrap_or_default().to_owned()).filter(|name| is_image(name)));
    }
    found
}

/// Returns the first file that these options of a logbook name, if any.
pub fn first_named(options: &[(String, String)]) -> Option<String> {
    let statement = |(name, value): &(String, String)| ConfigStatement {
        name: name.clone(),
        value: value.clone(),
        ..ConfigStatement::default()
    };
    let config = ElogConfig { statements: options.iter().map(statement).collect(), ..ElogConfig::default() };
    named(&config).into_iter().find(|file| file.needed).map(|file| file.name)
}

/// Returns the files that the options of a configuration name.
fn named(config: &ElogConfig) -> Vec<NamedFile> {
    let mut files = Vec::new();
    for statement in config.statements.iter().filter(|statement| !statement.again) {
        let bare = statement.name.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(_, bare)| bare);
        let option = key(bare.unwrap_or(&statement.name));
        let value = statement.value.as_str();
        let mut add = |kind, name: &str, needed| {
            files.push(NamedFile { kind, name: name.to_owned(), line: statement.line, needed });
        };
        if value.is_empty() {
            continue;
        }
        if PAGES.contains(&option.as_str()) {
            add(Kind::Page, value, true);
        } else if TEXTS.contains(&option.as_str()) && is_page(value) {
            add(Kind::Page, value, false);
        } else if option == "css" {
            styles(value).iter().for_each(|name| add(Kind::Style, name, false));
        } else if option == "theme" {
            add(Kind::Style, &format!("theme-{value}.css"), false);
        } else if option == "language" && !value.eq_ignore_ascii_case("english") {
            add(Kind::Language, &language_file(value), true);
        } else if option.starts_with("ioptions ") {
            list(value).iter().for_each(|name| add(Kind::Image, name.split('{').next().unwrap_or_default().trim(), true));
        } else if option.starts_with("icon ") && !option.starts_with("icon comment ") {
            add(Kind::Image, value, true);
        }
        if option == "title image" && is_image(value) {
            add(Kind::Image, value, false);
        } else if WITH_IMAGES.contains(&option.as_str()) {
            images(value).iter().for_each(|name| add(Kind::Image, name, false));
        }
    }
    files
}

/// Returns the files of styles that a value of `CSS` names: `default.css&screen, print.css&print`.
pub fn styles(value: &str) -> Vec<String> {
    let style = |item: &String| item.split('&').map(str::trim).find(|part| part.ends_with(".css")).map(str::to_owned);
    list(value).iter().filter_map(style).filter(|name| is_plain(name)).collect()
}

/// Returns the real path of a file that exists below one of these directories, after all links.
pub fn inside(roots: &[&Path], path: &Path) -> Option<PathBuf> {
    let found = path.canonicalize().ok()?;
    roots.iter().any(|root| root.canonicalize().is_ok_and(|root| found.starts_with(root))).then_some(found)
}

/// The directories in which files of a configuration lie.
struct Places {
    roots: Vec<PathBuf>,
    themes: Vec<String>,
}

impl Places {
    fn of(config: &ElogConfig, path: &Path, logbooks: &Path) -> Places {
        let own = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let resources = config.section("global").and_then(|global| global.get("Resource dir")).map(|dir| own.join(dir));
        let roots = [Some(own.to_owned()), resources, Some(logbooks.to_owned())];
        let mut themes: Vec<String> = Vec::new();
        for statement in config.statements.iter().filter(|statement| key(&statement.name) == "theme") {
            if is_plain(&statement.value) && !themes.contains(&statement.value) {
                themes.push(statement.value.clone());
            }
        }
        themes.push("default".to_owned());
        Places { roots: roots.into_iter().flatten().filter_map(|root| root.canonicalize().ok()).collect(), themes }
    }

    /// Returns the path of a file; an error has the reason why there is none.
    fn find(&self, file: &NamedFile) -> Result<PathBuf, &'static str> {
        let fits = match file.kind {
            Kind::Page => is_page(&file.name),
            Kind::Image => is_image(&file.name),
            Kind::Style | Kind::Language => is_plain(&file.name),
        };
        if !fits {
            return Err(match file.kind {
                Kind::Page => "no name of a page; its name ends in .html, .htm or .txt",
                Kind::Image => "no name of an image; its name is plain and ends in .png, .gif, .jpg, .webp or .ico",
                Kind::Style | Kind::Language => "no plain name",
            });
        }
        let mut outside = false;
        for root in &self.roots {
            for path in self.paths(file) {
                let Ok(found) = root.join(path).canonicalize() else { continue };
                if self.roots.iter().any(|root| found.starts_with(root)) {
                    return Ok(found);
                }
                outside = true;
            }
        }
        Err(match outside {
            true => "outside of the directories of elogd.cfg, its resources and its logbooks",
            false => "missing in the directory of elogd.cfg and its resources",
        })
    }

    /// Returns the possible paths of a file below a root.
    fn paths(&self, file: &NamedFile) -> Vec<PathBuf> {
        let name = Path::new(&file.name);
        if let Some(theme) = file.name.strip_prefix("theme-").and_then(|name| name.strip_suffix(".css")) {
            let theme = Path::new("themes").join(theme);
            return vec![theme.join("elog.css"), theme.join("default.css")];
        }
        let mut paths = vec![name.to_owned()];
        if matches!(file.kind, Kind::Image | Kind::Style) {
            for theme in &self.themes {
                let theme = Path::new("themes").join(theme);
                paths.extend([theme.join("icons").join(name), theme.join(name)]);
            }
            paths.push(Path::new("icons").join(name));
        }
        paths.push(Path::new("resources").join(name));
        paths
    }
}

/// Stores the files that a configuration at a path names. Returns the lines of options whose files are not stored, with
/// the reasons.
pub fn import(
    store: &(impl Records + ?Sized),
    config: &ElogConfig,
    path: &Path,
    logbooks: &Path,
) -> Result<Vec<(usize, String)>, StoreError> {
    let places = Places::of(config, path, logbooks);
    let (mut faults, mut seen, mut all) = (Vec::new(), HashSet::new(), 0);
    let mut open = named(config);
    open.reverse();
    while let Some(file) = open.pop() {
        if !seen.insert((file.kind, file.name.clone())) {
            continue;
        }
        let mut fault = |why: &str| {
            if file.needed {
                faults.push((file.line, format!("the file '{}' is not taken: {why}", file.name)));
            }
        };
        let found = match places.find(&file) {
            Ok(found) => found,
            Err(why) => {
                fault(why);
                continue;
            }
        };
        let Ok(size) = fs::metadata(&found).map(|found| if found.is_file() { found.len() } else { u64::MAX }) else {
            fault("it cannot be read");
            continue;
        };
        if size > MAX_FILE || all + size > MAX_ALL || seen.len() > MAX_FILES {
            fault("it is no file of at most 1 MiB, or there are more than 500 files or 32 MiB");
            continue;
        }
        let Ok(bytes) = fs::read(&found) else {
            fault("it cannot be read");
            continue;
        };
        all += size;
        if file.kind == Kind::Page {
            // The images of a page come with it.
            let image = |name| NamedFile { kind: Kind::Image, name, line: file.line, needed: false };
            open.extend(images(&decode(&bytes)).into_iter().map(image));
        }
        put(store, &file.name, &bytes)?;
    }
    Ok(faults)
}

fn put(store: &(impl Records + ?Sized), name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let value: Value = json!({ "base64": STANDARD.encode(bytes) });
    let there = store.record(KIND, name)?;
    if there.as_ref().is_some_and(|there| there.value == value) {
        return Ok(());
    }
    match store.put_record(KIND, name, &value, Some(there.map_or(0, |there| there.version))) {
        // Another import stored the file at this moment.
        Ok(_) | Err(StoreError::RecordChanged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns a stored file.
pub fn stored(store: &(impl Records + ?Sized), name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let record = store.record(KIND, name)?;
    Ok(record.and_then(|record| STANDARD.decode(record.value["base64"].as_str()?).ok()))
}

/// Returns true if an import has stored a file.
pub fn is_stored(store: &(impl Records + ?Sized), name: &str) -> Result<bool, StoreError> {
    Ok(store.record(KIND, name)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_found_in_sources() {
        let html = "<img src=\"a.png\"><IMG SRC = 'icons/b.gif'><img src=c.jpg><img src=\"https://x/d.svg\"><img src=";
        assert_eq!(images(html), ["a.png", "b.gif", "c.jpg"]);
    }

    #[test]
    fn names_stay_in_their_directories() {
        assert!(
            is_image("icon_1.gif") && !is_image("../x.gif") && !is_image(".x.gif") && !is_image("a/b.png") && !is_image("x.key")
        );
        assert!(is_page("/usr/local/elog/welcome.html") && !is_page("domain.key") && !is_page("<b>x.html"));
        assert_eq!(styles("default.css&screen, print.css&print, all&own.css, ../x.css"), ["default.css", "print.css", "own.css"]);
    }
}
