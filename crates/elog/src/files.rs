//! The files of a logbook: days of entries, and attachments beside them.
//!
//! ELOG searches the logbook's folder and, below it, folders whose names have two or four characters. Sites have moved
//! years to other disks, so links are followed. Each folder is read once, however many links lead to it.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use tampu_types::Time;

/// Unreadable folders and files, with the reasons.
pub type Unreadable = Vec<(PathBuf, String)>;

/// Returns every `YYMMDDa.log` in a folder and the folders below it, with its bytes, in order. Unreadable files are
/// left out and reported.
pub fn days(folder: &Path, unreadable: &mut Unreadable) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    look(folder, &mut HashSet::new(), &mut found, unreadable);
    found.sort();
    found
}

/// Returns the folders that [`days`] reads, including the given one.
pub fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    look(folder, &mut seen, &mut Vec::new(), &mut Vec::new());
    let mut folders: Vec<PathBuf> = seen.into_iter().map(|(_, _, path)| path).collect();
    folders.sort();
    folders
}

fn look(folder: &Path, seen: &mut HashSet<(u64, u64, PathBuf)>, found: &mut Vec<(PathBuf, u64)>, unreadable: &mut Unreadable) {
    let listed = fs::metadata(folder).and_then(|is| Ok((is.dev(), is.ino(), fs::read_dir(folder)?)));
    let (device, number, items) = match listed {
        Ok(listed) => listed,
        Err(error) => return unreadable.push((folder.to_owned(), format!("{error}: the folder is left out"))),
    };
    if seen.iter().any(|(seen_device, seen_number, _)| (*seen_device, *seen_number) == (device, number)) {
        return unreadable.push((folder.to_owned(), "the folder was already read by another path: left out".to_owned()));
    }
    seen.insert((device, number, folder.to_owned()));
    let mut items: Vec<(PathBuf, String)> = items
        .filter_map(|item| match item {
            Ok(item) => Some((item.path(), item.file_name().to_string_lossy().into_owned())),
            Err(error) => {
                unreadable.push((folder.to_owned(), format!("{error}: not all of the folder is read")));
                None
            }
        })
        .collect();
    items.sort();
    for (path, name) in items {
        let (may_be_folder, may_be_day) = (matches!(name.len(), 2 | 4), day(&name).is_some());
        if !may_be_folder && !may_be_day {
            continue;
        }
        // The target of a link decides.
        match fs::metadata(&path) {
            Ok(is) if is.is_dir() && may_be_folder => look(&path, seen, found, unreadable),
            Ok(is) if is.is_file() && may_be_day => found.push((path, is.len())),
            Ok(_) => {}
            Err(error) => unreadable.push((path, format!("{error}: left out"))),
        }
    }
}

/// The day of a file's name.
pub fn day(name: &str) -> Option<Time> {
    let digits = name.strip_suffix("a.log").filter(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_digit()))?;
    let century = if digits < "80" { 20 } else { 19 };
    format!("{century}{}-{}-{}", &digits[..2], &digits[2..4], &digits[4..]).parse().ok()
}

/// Returns the path of an attachment: in the folder of its year, or in the book's own.
pub fn attachment(book: &Path, name: &str) -> Option<PathBuf> {
    let name = Path::new(name).file_name().filter(|plain| *plain == name)?.to_str()?;
    let year = name.get(..2).and_then(|year| year.parse::<u32>().ok()).map(|year| if year < 80 { 2000 } else { 1900 } + year);
    let folders = [year.map(|year| book.join(year.to_string())), Some(book.to_owned())];
    folders.into_iter().flatten().map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Parses `080910_002050_plot.png` into the time at which it was added (as if the server's clock were UTC), and its
/// name.
pub fn stamped(stored: &str) -> Option<(Time, &str)> {
    let (stamp, name) = (stored.get(..13)?, stored.get(14..)?);
    let (date, clock) = stamp.split_once('_')?;
    let at = day(&format!("{date}a.log"))?;
    let clock: Time = format!("1970-01-01T{}:{}:{}", clock.get(..2)?, clock.get(2..4)?, clock.get(4..6)?).parse().ok()?;
    (stored.as_bytes()[13] == b'_' && !name.is_empty()).then_some((Time(at.0 + clock.0), name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_once_and_what_cannot_be_read_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (book, other) = (dir.path().join("book"), dir.path().join("other disk"));
        for folder in [book.join("2001"), other.join("sub"), book.join("notes")] {
            fs::create_dir_all(folder).unwrap();
        }
        for file in [book.join("2001/011108a.log"), other.join("080910a.log"), book.join("notes/010101a.log"), book.join("x.log")]
        {
            fs::write(file, "x").unwrap();
        }
        symlink(&other, book.join("2008")).unwrap();
        symlink("../book", book.join("2009")).unwrap();
        symlink("nowhere", book.join("2010")).unwrap();
        symlink(other.join("080910a.log"), book.join("070910a.log")).unwrap();
        let mut unreadable = Vec::new();
        let names = |found: Vec<(PathBuf, u64)>| {
            let name = |(path, _): (PathBuf, u64)| path.strip_prefix(&book).unwrap().to_string_lossy().into_owned();
            found.into_iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names(days(&book, &mut unreadable)), ["070910a.log", "2001/011108a.log", "2008/080910a.log"]);
        let named: Vec<String> =
            unreadable.iter().map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(named, ["2009", "2010"], "{unreadable:?}");
        assert_eq!(folders(&book), [book.clone(), book.join("2001"), book.join("2008")]);
        days(&dir.path().join("gone"), &mut unreadable);
        assert_eq!(unreadable.len(), 3);
    }
}
