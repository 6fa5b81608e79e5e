//! Where lines go: a descriptor that was there before us, or a file of ours.
//!
//! Whoever moves the file away need not tell the program: whether its name still leads to it is looked up once a second. What
//! was written in between is in the moved one. There is no rotation of our own: `logrotate` and its kind do it better.

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

use crate::logger::local::Output;

/// How often the file is looked for, and how soon one that cannot be opened is tried again.
const LOOK: Duration = Duration::from_secs(1);
/// How long a terminal or pipe that takes nothing just now is waited for.
const PATIENCE: Duration = Duration::from_millis(100);

/// Takes lines.
pub struct Sink {
    output: Output,
    file: Option<File>,
    /// When the file's name was looked at last, or its opening tried.
    pub(super) looked: Option<Instant>,
    /// Whether the last write ended in the middle of a line.
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

    /// Whether the last write succeeded.
    pub fn is_well(&self) -> bool {
        self.failed.is_none()
    }

    /// Writes whole lines.
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
        // Past the buffers of the standard library, which other threads may hold: whole lines are written at once all the same.
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let to = if self.output == Output::Stdout { stdout.as_fd() } else { stderr.as_fd() };
        put(to, text, &mut self.torn, until)
    }
}

/// Whether a name leads to this file.
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

/// Writes as far as it goes, and says how far.
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
