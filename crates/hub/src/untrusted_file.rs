//! Files in directories that another role may write: read without trust in their kind and length.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// A symbolic link in the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Followed,
    Refused,
}

/// Returns the text of a regular file; `None` for a missing or empty one. Refuses pipes and devices, which could block the
/// reader for ever, and files of more than this many bytes.
pub(crate) fn text(path: &Path, longest: u64, link: Link) -> io::Result<Option<String>> {
    let of_links = if link == Link::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = (OFlags::NONBLOCK | of_links).bits().cast_signed();
    let file = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) if why.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(io::Error::other("it is a symbolic link"));
        }
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Err(io::Error::other(format!("it is longer than {longest} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is no UTF-8"))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    #[test]
    fn only_regular_files_that_are_not_too_long_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("plain"), "four").unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::write(at("broken"), [0xff]).unwrap();
        symlink(at("plain"), at("link")).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        let read = |name: &str, longest, link| text(&at(name), longest, link).map_err(|why| why.to_string());
        assert_eq!(read("plain", 4, Link::Refused), Ok(Some("four".to_owned())));
        assert_eq!(read("plain", 3, Link::Refused), Err("it is longer than 3 bytes".to_owned()));
        assert_eq!(read("link", 4, Link::Followed), Ok(Some("four".to_owned())));
        assert_eq!(read("link", 4, Link::Refused), Err("it is a symbolic link".to_owned()));
        assert_eq!(read("pipe", 4, Link::Followed), Err("it is no regular file".to_owned()));
        assert_eq!(read("broken", 4, Link::Refused), Err("it is no UTF-8".to_owned()));
        assert!(read("socket", 4, Link::Refused).is_err() && text(Path::new("/dev/zero"), 4, Link::Refused).is_err());
        assert_eq!((read("empty", 4, Link::Refused), read("none", 4, Link::Refused)), (Ok(None), Ok(None)));
    }
}
