//! One file, or standard input, as one transfer.

use std::{
    cell::Cell,
    fs::{File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    time::{Duration, Instant, UNIX_EPOCH},
};

use indicatif::ProgressBar;
use tampu_bulk::{
    directory::{Teller, TransferNote},
    file::FileLabel,
    sender::{Flow, SendError, Started},
    state::{Delivery, Report},
};

use super::{
    input::{self, Input},
    offer::{self, Offer},
    watch::{Now, Watch},
};
use crate::interrupt::Interrupt;

/// Time after the end of a pipe in which the interrupt that ended it may still arrive.
const AFTERMATH: Duration = Duration::from_millis(50);
/// Time between two checks for an end while a pipe has no data.
const TURN: Duration = Duration::from_millis(100);

/// The reason of a transfer that a command has ended.
pub const STOPPED: &str = "stopped by a command";

/// Destination of transfers and their observer.
pub struct Way<'a> {
    pub flow: &'a Flow,
    pub teller: &'a Teller,
    pub watch: &'a Watch,
    pub bar: &'a ProgressBar,
    pub interrupt: &'a Interrupt,
    /// Bytes sent in one call.
    pub block: usize,
    /// The text that receivers get before the data.
    pub parameter: &'a str,
    /// True if data that receivers already have is skipped.
    pub go_on: bool,
    /// True after a command has stopped a transfer: nothing more is sent.
    pub stopped: Cell<bool>,
}

/// A transfer that took place.
pub struct Sent {
    pub report: Report,
    /// Bytes that receivers had before.
    pub from: u64,
    /// Reason of an incomplete transfer.
    pub why: Option<String>,
    /// Remarks of receivers that have all data, such as a distributor's about a receiver behind it.
    pub remarks: Vec<String>,
}

/// An error that prevented a transfer or its end.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// The configuration file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Error of the flow.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// An open source of data and its name.
struct Source {
    input: Box<dyn Read>,
    file: Option<File>,
    size: Option<u64>,
    label: Vec<u8>,
}

impl Way<'_> {
    /// Sends one item.
    pub fn send(&self, offer: &Offer) -> Result<Sent, NotSent> {
        let mut source = self.open(offer)?;
        let started = self.flow.start(&source.label).map_err(|error| self.not_begun(error))?;
        let began = Instant::now();
        self.tell(started.transfer, &source.label, None);
        self.watch.on(Now { name: offer.shown(), total: source.size, runs: true });
        let went = self.stream(&mut source, &started);
        self.watch.on(Now::default());
        // A transfer without all of its announced data does not end in order.
        if let Err(NotSent::Io(error)) = went {
            self.give_up(began, &source.label, &error.to_string());
            return Err(error.into());
        }
        if let Err(NotSent::Send(error @ SendError::Cancelled { .. })) = &went {
            self.note_stop(error);
            // A pipe has no announced length: its data ends here, in order.
            if source.size.is_some() {
                self.give_up(began, &source.label, STOPPED);
                return Err(io::Error::other(STOPPED).into());
            }
        }
        let report = self.flow.stop().inspect_err(|error| self.give_up(began, &source.label, &error.to_string()))?;
        self.tell(started.transfer, &source.label, Some(&report));
        let why = match went {
            Ok(()) if report.complete() => None,
            Ok(()) => Some(reasons(&report)),
            Err(NotSent::Send(SendError::Cancelled { .. })) => Some(STOPPED.to_owned()),
            Err(error) => Some(error.to_string()),
        };
        let remarks = remarks(&report);
        Ok(Sent { report, from: started.from, why, remarks })
    }

    fn open(&self, offer: &Offer) -> io::Result<Source> {
        let (path, name, root) = match offer {
            Offer::Stdin => {
                let label = self.parameter.as_bytes().to_vec();
                return Ok(Source { input: Box::new(Input::new()), file: None, size: None, label });
            }
            Offer::File { path, name, root, .. } => (path, name, root),
        };
        let file = offer::open(path, root.as_deref())?;
        let data = file.metadata()?;
        let label = FileLabel {
            file: name.clone(),
            size: Some(data.len()),
            modified: modified(&data),
            go_on: self.go_on,
            parameter: self.parameter.to_owned(),
        };
        let input = Box::new(file.try_clone()?.take(data.len()));
        Ok(Source { input, file: Some(file), size: Some(data.len()), label: label.encode() })
    }

    fn stream(&self, source: &mut Source, started: &Started) -> Result<(), NotSent> {
        let mut done = 0;
        if let (Some(file), Some(size)) = (&mut source.file, source.size)
            && started.from > 0
        {
            // A receiver that reports more bytes than the file has holds another file.
            done = started.from.min(size);
            file.seek(SeekFrom::Start(done))?;
            source.input = Box::new(file.try_clone()?.take(size - done));
            self.flow.begin_at(done)?;
            self.bar.inc(done);
            self.bar.reset_eta();
        }
        loop {
            if self.interrupt.asked() {
                return Err(interrupted());
            }
            if self.watch.nobody_wants_it() {
                return Ok(());
            }
            let mut block = self.flow.block(self.block);
            let filled = self.fill(source, &mut block)?;
            if filled == 0 {
                // Ctrl-C also interrupts the writer of a pipe, and its end is then not the end of the data.
                if source.size.is_none() {
                    std::thread::sleep(AFTERMATH);
                }
                if self.interrupt.asked() {
                    return Err(interrupted());
                }
                break;
            }
            block.truncate(filled);
            self.flow.send_piece_while(block.freeze(), true, &mut || !self.interrupt.asked()).map_err(|error| {
                let cancelled = matches!(error, SendError::Cancelled { .. });
                // A command may have come first.
                if cancelled && !self.flow.is_cancelled() { interrupted() } else { error.into() }
            })?;
            done += filled as u64;
            self.bar.inc(filled as u64);
        }
        match source.size {
            Some(size) if done < size => Err(io::Error::other(format!("it had {size} bytes and has only {done} now")).into()),
            _ => Ok(()),
        }
    }

    /// Reads until the block is full or there is no more.
    fn fill(&self, source: &mut Source, block: &mut [u8]) -> Result<usize, NotSent> {
        let mut filled = 0;
        while filled < block.len() {
            if source.file.is_none() && !self.await_input()? {
                break;
            }
            match source.input.read(&mut block[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(filled)
    }

    /// Waits until standard input has data or ends. Returns false if nobody wants it.
    fn await_input(&self) -> Result<bool, NotSent> {
        loop {
            if input::readable(TURN) {
                return Ok(true);
            }
            if self.interrupt.asked() {
                return Err(interrupted());
            }
            if self.flow.is_cancelled() {
                return Err(SendError::Cancelled { flow: self.flow.name().clone() }.into());
            }
            if self.watch.nobody_wants_it() {
                return Ok(false);
            }
        }
    }

    fn not_begun(&self, error: SendError) -> NotSent {
        self.note_stop(&error);
        if self.stopped.get() { io::Error::other(STOPPED).into() } else { error.into() }
    }

    fn note_stop(&self, error: &SendError) {
        if matches!(error, SendError::Cancelled { .. }) {
            self.stopped.set(true);
        }
    }

    /// Aborts the transfer under way, and reports it.
    fn give_up(&self, began: Instant, label: &[u8], why: &str) {
        let report = Report::given_up(&self.flow.state(), began.elapsed().as_secs_f64(), why);
        self.flow.reset();
        self.tell(report.transfer, label, Some(&report));
    }

    /// Reports a transfer to the hub. The label has the name and the size of a file.
    fn tell(&self, transfer: u64, label: &[u8], report: Option<&Report>) {
        let (stream, flow) = (self.flow.stream(), self.flow.name());
        let parameter = String::from_utf8_lossy(label).into_owned();
        let note = TransferNote { stream, flow, transfer, parameter, report };
        // A missing account shows as a gap in the numbers; the transfer itself is not delayed for it.
        let _ = self.teller.tell(&note);
    }
}

fn interrupted() -> NotSent {
    io::Error::new(io::ErrorKind::Interrupted, "interrupted").into()
}

fn modified(data: &Metadata) -> Option<i64> {
    let time = data.modified().ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

fn remarks(report: &Report) -> Vec<String> {
    let complete = report.deliveries.iter().filter(|delivery| delivery.complete);
    complete.flat_map(|delivery| delivery.faults.iter().map(|fault| format!("{}: {}", delivery.receiver, fault.text))).collect()
}

/// Lists the reasons of an incomplete report by receiver.
fn reasons(report: &Report) -> String {
    let why = |delivery: &Delivery| {
        let mut parts: Vec<String> = delivery.faults.iter().map(|fault| fault.text.clone()).collect();
        parts.dedup();
        let lost: u64 = delivery.lost.iter().filter_map(|range| Some(range.to? - range.from)).sum();
        if lost > 0 {
            parts.push(format!("{lost} bytes were lost, the first at {}", delivery.lost[0].from));
        }
        if !delivery.why.is_empty() {
            parts.push(delivery.why.clone());
        }
        if parts.is_empty() {
            parts.push(format!("{} bytes acknowledged", delivery.acknowledged));
        }
        format!("{}: {}", delivery.receiver, parts.join(", "))
    };
    let all: Vec<String> = report.deliveries.iter().filter(|delivery| !delivery.complete).map(why).collect();
    if all.is_empty() { "no receiver took part".to_owned() } else { all.join("; ") }
}
