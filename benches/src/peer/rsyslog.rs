//! `rsyslogd` as a collector: RFC 5424 messages over loopback TCP with octet counting, each written as a line of a
//! file. Its configuration, its working directory and its file belong to the cell. As by default, nothing is
//! synchronised with the disk.
//!
//! ```text
//! writer: <length> <134>1 - host bench - - - 00000000000000000042 words..   RFC 6587, octet counting
//! file:   00000000000000000042 words..\n
//! ```
//! The writer waits until its last line is in the file, and then reads the whole file. Every line must be there once,
//! in order, and right in every byte.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::{
    payload::Message,
    process::{Audit, RoleMessage, say},
    role::{self, Outgoing, Speed},
};

/// Number of bytes that the writer joins before it writes.
const COALESCE: usize = 64 * 1024;
/// Number of digits of a number.
const DIGITS: usize = 20;
/// The header of every message, because the measurement ignores the sender.
const HEADER: &[u8] = b"<134>1 - host bench - - - ";
/// Time without growth of the file after which the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two checks of the file's length.
const LOOK: Duration = Duration::from_millis(2);
/// Maximum length of a message; rsyslog's default is 8 KB.
const LONGEST: &str = "64k";
/// Path of Debian's program; a user's search path may lack this directory.
const PROGRAM: &str = "/usr/sbin/rsyslogd";
/// Text from which the text of a number is cut, from a different position for each number.
const WORDS: &[u8] = b"antenna correlator lock phase cryostat az el 0x7f3a scan timeout retry ok subreflector ";

fn file(dir: &Path) -> PathBuf {
    dir.join("kept.log")
}

fn configuration(dir: &Path, port: u16) -> String {
    format!(
        "global(workDirectory=\"{dir}\" maxMessageSize=\"{LONGEST}\")\n\
         module(load=\"imtcp\")\n\
         template(name=\"line\" type=\"string\" string=\"%msg%\\n\")\n\
         ruleset(name=\"keep\") {{ action(type=\"omfile\" file=\"{file}\" template=\"line\") }}\n\
         input(type=\"imtcp\" address=\"127.0.0.1\" port=\"{port}\" ruleset=\"keep\")\n",
        dir = dir.display(),
        file = file(dir).display(),
    )
}

/// Replaces this process by the collector.
pub fn server(dir: &Path) -> Result<(), String> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let at = free.map_err(|e| format!("a free port: {e}"))?;
    let settings = dir.join("rsyslog.conf");
    fs::write(&settings, configuration(dir, at.port())).map_err(|e| format!("{}: {e}", settings.display()))?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| format!("death signal: {e}"))?;
    say(&RoleMessage::At(at.to_string()));
    let program = if Path::new(PROGRAM).exists() { PROGRAM } else { "rsyslogd" };
    let mut command = Command::new(program);
    command.arg("-n").arg("-f").arg(settings).arg("-i").arg(dir.join("rsyslog.pid"));
    Err(format!("rsyslogd (Debian: rsyslog): {}", command.exec()))
}

fn connect(at: &str) -> Result<TcpStream, String> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match TcpStream::connect(at) {
            Ok(stream) => return Ok(stream),
            Err(e) if Instant::now() > until => return Err(format!("rsyslogd at {at}: {e}")),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Writes the line of a number, without its end: `size` bytes that follow from the number.
fn line(number: u64, size: usize, line: &mut Vec<u8>) {
    line.clear();
    // Writing to a vector does not fail.
    let _ = write!(line, "{number:0DIGITS$} ");
    let mut from = number as usize % WORDS.len();
    while line.len() < size {
        let piece = &WORDS[from..WORDS.len().min(from + size - line.len())];
        line.extend_from_slice(piece);
        from = 0;
    }
    // The line must not end in a blank, because a collector may cut that off.
    line.push(b'.');
}

struct Out {
    stream: TcpStream,
    dir: PathBuf,
    size: usize,
    /// The number of the next line; probes are counted too.
    next: u64,
    /// Number of lines before the run.
    probes: u64,
    scratch: Vec<u8>,
    buffer: Vec<u8>,
    wire: u64,
    /// Expected length of the file in bytes.
    expected: u64,
}

impl Outgoing for Out {
    #[inline]
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        self.probes += u64::from(message.is_probe());
        line(self.next, self.size, &mut self.scratch);
        self.next += 1;
        let _ = write!(self.buffer, "{} ", HEADER.len() + self.scratch.len());
        self.buffer.extend_from_slice(HEADER);
        self.buffer.extend_from_slice(&self.scratch);
        self.expected += self.scratch.len() as u64 + 1;
        if self.buffer.len() >= COALESCE { self.push() } else { Ok(()) }
    }

    fn push(&mut self) -> Result<(), String> {
        self.stream.write_all(&self.buffer).map_err(|e| format!("rsyslog write: {e}"))?;
        self.wire += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<String>, String> {
        self.push()?;
        let (mut length, mut grew) = (0, Instant::now());
        while length < self.expected && grew.elapsed() < PATIENCE {
            let now = fs::metadata(file(&self.dir)).map_or(0, |file| file.len());
            if now > length {
                (length, grew) = (now, Instant::now());
            } else {
                thread::sleep(LOOK);
            }
        }
        Ok(None)
    }

    fn audit(&mut self) -> Result<Audit, String> {
        let path = file(&self.dir);
        let kept = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        audit(BufReader::with_capacity(1 << 20, kept), self.size, self.probes).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn wire(&self) -> Option<u64> {
        Some(self.wire)
    }
}

/// Counts the lines from this number on, and the lines with other content.
fn audit(mut lines: impl BufRead, size: usize, probes: u64) -> std::io::Result<Audit> {
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    let (mut next, mut kept, mut wrong) = (0, 0, 0);
    while lines.read_until(b'\n', &mut found)? > 0 {
        let digits = found.get(..DIGITS).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| digits.parse::<u64>().ok());
        match number.filter(|number| *number >= next) {
            Some(number) => {
                line(number, size, &mut expected);
                expected.push(b'\n');
                if found == expected {
                    next = number + 1;
                    kept += u64::from(number >= probes);
                } else {
                    wrong += 1;
                }
            }
            None => wrong += 1,
        }
        found.clear();
    }
    Ok(Audit { kept: Some(kept), wrong })
}

pub fn writer(dir: &Path, at: &str, size: usize, speed: Speed) -> Result<(), String> {
    let stream = connect(at)?;
    say(&RoleMessage::At(at.to_owned()));
    // The line has a full stop at its end, and no line is shorter than its number.
    let text = size.saturating_sub(1).max(DIGITS + 1);
    let out = Out {
        stream,
        dir: dir.to_owned(),
        size: text,
        next: 0,
        probes: 0,
        scratch: Vec::with_capacity(size),
        buffer: Vec::with_capacity(2 * COALESCE),
        wire: 0,
        expected: 0,
    };
    role::write(out, size, speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_line_by_line() {
        let text = |numbers: &[u64]| {
            let (mut all, mut one) = (Vec::new(), Vec::new());
            for number in numbers {
                line(*number, 60, &mut one);
                assert_eq!(one.len(), 61);
                all.extend_from_slice(&one);
                all.push(b'\n');
            }
            all
        };
        let found = |bytes: &[u8]| audit(bytes, 60, 2).unwrap();
        assert_eq!(found(&text(&[0, 1, 2, 3, 4])), Audit { kept: Some(3), wrong: 0 });
        assert_eq!(found(&text(&[0, 1, 2, 4])), Audit { kept: Some(2), wrong: 0 }, "one is missing");
        assert_eq!(found(&text(&[2, 3, 3, 2])), Audit { kept: Some(2), wrong: 2 }, "two came twice");
        let mut bad = text(&[2, 3]);
        bad[40] ^= 1;
        assert_eq!(found(&bad), Audit { kept: Some(1), wrong: 1 });
        assert_eq!(found(b"rubbish\n"), Audit { kept: Some(0), wrong: 1 });
    }

    #[test]
    fn texts_differ_from_number_to_number() {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        line(7, 250, &mut one);
        line(8, 250, &mut two);
        assert_ne!(one[DIGITS..], two[DIGITS..]);
    }
}
