//! Opening the memory that a sender names as a descriptor of its process.
//!
//! A descriptor may be anything: a terminal, a pipe, a device. Opening one of those can wait or have effects, so the file is
//! looked at first, by a descriptor that only names it (`O_PATH`), and opened for use through that descriptor.

use std::{fs::File, io, os::fd::AsRawFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, open as open_file};

/// Opens anonymous memory by the path of a descriptor, as `/proc/17/fd/5`. Anything else is an error, and is not opened.
pub(super) fn open(path: &str) -> io::Result<File> {
    let named = open_file(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let own = format!("/proc/self/fd/{}", named.as_raw_fd());
    let is_memory = FileType::from_raw_mode(fstat(&named)?.st_mode) == FileType::RegularFile
        && std::fs::read_link(&own)?.to_string_lossy().starts_with("/memfd:");
    if !is_memory {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the descriptor is no shared memory"));
    }
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(open_file(&own, flags, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn path_of(file: impl AsFd) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd())
    }

    #[test]
    fn memory_is_opened_and_nothing_else() {
        let memory = tampu_shm::create_sealed("test", 4096).unwrap();
        assert_eq!(open(&path_of(&memory)).unwrap().metadata().unwrap().len(), 4096);
        // Opening the writing end of a pipe for reading and writing would keep its reader waiting for ever.
        let (reader, writer) = std::io::pipe().unwrap();
        let file = tempfile::tempfile().unwrap();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        for other in [path_of(&reader), path_of(&writer), path_of(&file), path_of(&null)] {
            assert!(open(&other).is_err(), "{other}");
        }
    }
}
