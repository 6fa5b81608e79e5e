//! The destination of lines: a descriptor that existed before, or a file that the logger opens.
//!
//! A tool that moves the file away need not notify the program. Once a second the logger checks whether the name still
//! leads to its file. Lines written in between are in the moved file. The logger does not rotate files: `logrotate` and
//! similar tools do it better.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::MetadataExt,
    },
    path::Path,
    time::{Duration, Instant},
};

use crate::logger::local::output::Output;

/// Interval at which the file's name is checked, and at which one that cannot be opened is retried.
const LOOK: Duration = Duration::from_secs(1);
/// Longest wait for a terminal or pipe that accepts nothing at present.
const PATIENCE: Duration = Duration::from_millis(100);

/// Writer of lines to an [`Output`].
pub struct Sink {
    output: Output,
    file: Option<File>,
    /// Time of the last check of the file's name, or of the last attempt to open it.
    pub(super) looked: Option<Instant>,
    /// True if the last write ended in the middle of a line.
    pub(super) torn: bool,
    failed: Option<String>,
}

impl Sink {
    pub fn new(output: Output) -> Sink {
        Sink { output, file: None, looked: None, torn: false, failed: None }
    }

    pub fn to(&self) -> &Output {
        &self.output
    }

    /// Returns whether the last write succeeded.
    pub fn is_well(&self) -> bool {
        self.failed.is_none()
    }

    /// Writes complete lines.
    pub fn write(&mut self, text: &[u8], now: Instant) -> io::Result<()> {
        let written = self.try_write(text, now);
        self.failed = written.as_ref().err().map(ToString::to_string);
        written
    }

    fn try_write(&mut self, text: &[u8], now: Instant) -> io::Result<()> {
        let until = now + PATIENCE;
        if let Output::File(path) = &self.output {
            let due = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK);
            if due {
                self.looked = Some(now);
                if !self.file.as_ref().is_some_and(|file| is_still(file, path)) {
                    self.file = None;
                    self.file = Some(File::options().append(true).create(true).open(path)?);
                    self.torn = false;
                }
            }
            let Some(file) = &self.file else {
                return Err(io::Error::other(self.failed.clone().unwrap_or_else(|| "it is not open".to_owned())));
            };
            return put(file.as_fd(), text, &mut self.torn, until);
        }
        // Bypasses the buffers of the standard library, which other threads may hold. Whole lines are still written at once.
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let to = if self.output == Output::Stdout { stdout.as_fd() } else { stderr.as_fd() };
        put(to, text, &mut self.torn, until)
    }
}

/// Returns whether a name leads to this file.
fn is_still(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => identity(open) == identity(named),
        _ => false,
    }
}

/// Writes all of it. After a failure in the middle of a line the next write begins a new one.
pub(super) fn put(to: BorrowedFd<'_>, text: &[u8], torn: &mut bool, until: Instant) -> io::Result<()> {
    if *torn {
        put_all(to, b"\n", until)?;
        *torn = false;
    }
    let (written, done) = put_counted(to, text, until);
    *torn = done.is_err() && written > 0 && text[written - 1] != b'\n';
    done
}

fn put_all(to: BorrowedFd<'_>, text: &[u8], until: Instant) -> io::Result<()> {
    put_counted(to, text, until).1
}

/// Writes as many bytes as possible, and returns their number.
fn put_counted(to: BorrowedFd<'_>, text: &[u8], until: Instant) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < text.len() {
        match rustix::io::write(to, &text[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return (written, Err(error.into())),
        }
    }
    (written, Ok(()))
}
