//! The sending side, as Python has it.

use std::{
    collections::HashMap,
    fs::File,
    io::{ErrorKind, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, UNIX_EPOCH},
};

use bytes::Bytes;
use parking_lot::Mutex;
use pyo3::{exceptions::PyOSError, prelude::*};
use tampu_bulk::{
    Name, Sender, Target, asking,
    directory::{self, Following, Teller, TransferNote},
    file::{FileLabel, FileName},
    sender::{Flow, Started},
    state::Report,
};
use tampu_bus::{Participant, engine::Guard};

use crate::{
    buffer::HeldBytes,
    bulk::{
        control::BulkControl,
        failure::{closed, of_announcing, of_opening, of_sending, other},
        member::member,
        settings::SenderOptions,
    },
    event::client::seconds,
};

/// Bytes that are copied and sent at once. The program's signals are looked at between two pieces.
const PIECE: usize = 4 << 20;

/// Parts of a sender on the bus.
struct OnBus {
    participant: Participant,
    teller: Teller,
    following: Mutex<Option<Following>>,
    _serving: Guard,
}

/// The start of a transfer in progress.
struct Running {
    transfer: u64,
    parameter: String,
    began: Instant,
}

/// An open sender.
struct Opened {
    bus: Option<OnBus>,
    running: Mutex<HashMap<String, Running>>,
    sender: Arc<Sender>,
}

impl Opened {
    fn flow(&self, name: &str) -> PyResult<&Flow> {
        let found = Name::new(name).ok().and_then(|name| self.sender.flow(&name));
        found.ok_or_else(|| {
            let all: Vec<&str> = self.sender.flows().iter().map(|flow| flow.name().as_str()).collect();
            other(format_args!("the sender of '{}' has no flow '{name}'; it has {}", self.sender.stream(), all.join(", ")))
        })
    }

    fn tell(&self, flow: &Flow, transfer: u64, parameter: &str, report: Option<&Report>) {
        let Some(bus) = &self.bus else { return };
        let note = TransferNote { stream: flow.stream(), flow: flow.name(), transfer, parameter: parameter.to_owned(), report };
        // A missing account shows as a gap in the numbers; the transfer itself is not delayed for it.
        let _ = bus.teller.tell(&note);
    }

    fn start(&self, flow: &Flow, parameter: &[u8]) -> PyResult<Started> {
        let started = flow.start(parameter).map_err(|error| of_sending(&error, flow))?;
        let parameter = String::from_utf8_lossy(parameter).into_owned();
        self.tell(flow, started.transfer, &parameter, None);
        let running = Running { transfer: started.transfer, parameter, began: Instant::now() };
        self.running.lock().insert(flow.name().as_str().to_owned(), running);
        Ok(started)
    }

    fn stop(&self, flow: &Flow) -> PyResult<Report> {
        let report = flow.stop().map_err(|error| of_sending(&error, flow))?;
        if let Some(running) = self.running.lock().remove(flow.name().as_str()) {
            self.tell(flow, running.transfer, &running.parameter, Some(&report));
        }
        Ok(report)
    }

    /// Gives the transfer in progress up, and reports it.
    fn give_up(&self, flow: &Flow, why: &str) {
        let state = flow.state();
        flow.reset();
        if let Some(running) = self.running.lock().remove(flow.name().as_str()) {
            let report = Report::given_up(&state, running.began.elapsed().as_secs_f64(), why);
            self.tell(flow, running.transfer, &running.parameter, Some(&report));
        }
    }

    /// Sends bytes of Python, a piece at a time, so that any length needs the memory of a window only.
    fn send(&self, flow: &Flow, bytes: &HeldBytes, end_of_block: bool) -> PyResult<()> {
        let length = bytes.length();
        let mut sent = 0;
        loop {
            let piece = PIECE.min(length - sent);
            let mut block = flow.block(piece);
            bytes.copy_into(sent, &mut block);
            sent += piece;
            send_piece(flow, block.freeze(), end_of_block && sent == length)?;
            if sent == length {
                return Ok(());
            }
            Python::attach(|py| py.check_signals())?;
        }
    }

    /// Sends a file, and gives the transfer up if it cannot be read.
    fn send_file(&self, flow: &Flow, path: &Path, name: &str, parameter: &str, go_on: bool) -> PyResult<Report> {
        let failed = |error: std::io::Error| PyOSError::new_err(format!("{}: {error}", path.display()));
        let mut file = File::open(path).map_err(failed)?;
        let data = file.metadata().map_err(failed)?;
        if !data.is_file() {
            return Err(PyOSError::new_err(format!("{}: only a regular file can be sent", path.display())));
        }
        let modified = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let label = FileLabel {
            file: FileName::new(name).map_err(other)?,
            size: Some(data.len()),
            modified: modified.and_then(|since| i64::try_from(since.as_nanos()).ok()),
            go_on,
            parameter: parameter.to_owned(),
        };
        let started = self.start(flow, &label.encode())?;
        let sent = self.send_content(flow, path, &mut file, data.len(), started.from);
        if let Err(error) = sent {
            self.give_up(flow, &error.to_string());
            return Err(error);
        }
        self.stop(flow)
    }

    fn send_content(&self, flow: &Flow, path: &Path, file: &mut File, size: u64, from: u64) -> PyResult<()> {
        let failed = |error: std::io::Error| PyOSError::new_err(format!("{}: {error}", path.display()));
        // A receiver that reports more bytes than the file has holds another file.
        let mut done = from.min(size);
        if done > 0 {
            file.seek(SeekFrom::Start(done)).map_err(failed)?;
            flow.begin_at(done).map_err(|error| of_sending(&error, flow))?;
        }
        while done < size {
            let mut block = flow.block(PIECE.min(usize::try_from(size - done).unwrap_or(PIECE)));
            file.read_exact(&mut block).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => {
                    PyOSError::new_err(format!("{}: it had {size} bytes and became shorter", path.display()))
                }
                _ => failed(error),
            })?;
            done += block.len() as u64;
            send_piece(flow, block.freeze(), true)?;
            Python::attach(|py| py.check_signals())?;
        }
        Ok(())
    }

    fn follow(&self) -> PyResult<()> {
        let Some(bus) = &self.bus else {
            return Err(other("a sender without the bus cannot follow it; connect it to the target of a receiver"));
        };
        let mut following = bus.following.lock();
        if following.is_none() {
            *following = Some(directory::follow(&bus.participant, &self.sender).map_err(|error| of_announcing(&error))?);
        }
        Ok(())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let left: Vec<String> = self.running.lock().keys().cloned().collect();
        for name in left {
            let Ok(flow) = self.flow(&name) else { continue };
            let Some(running) = self.running.lock().remove(&name) else { continue };
            // Dropping the sender delivers as much as possible, and gives up the rest.
            let report = Report::given_up(&flow.state(), running.began.elapsed().as_secs_f64(), "it was closed");
            self.tell(flow, running.transfer, &running.parameter, Some(&report));
        }
    }
}

/// Sends a piece. A signal of the program ends its wait for a pause or for the limit of the rate.
fn send_piece(flow: &Flow, bytes: Bytes, end_of_block: bool) -> PyResult<()> {
    let mut raised = None;
    let sent = flow.send_piece_while(bytes, end_of_block, &mut || {
        raised = Python::attach(|py| py.check_signals()).err();
        raised.is_none()
    });
    match raised {
        Some(raised) => Err(raised),
        None => sent.map_err(|error| of_sending(&error, flow)),
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(other)
}

/// Sender of a stream.
#[pyclass(frozen, module = "tampu._native")]
pub struct BulkSender {
    opened: Mutex<Option<Arc<Opened>>>,
}

impl BulkSender {
    /// Runs a call without the interpreter's lock. The last user of a closed sender ends it there, too.
    fn with<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&Opened) -> PyResult<T> + Send) -> PyResult<T> {
        let opened = self.opened.lock().clone().ok_or_else(|| closed("sender"))?;
        py.detach(move || call(&opened))
    }
}

#[pymethods]
impl BulkSender {
    #[new]
    #[pyo3(signature = (source, stream, flows, settings, *, domain = None, bus = true))]
    fn open(
        py: Python<'_>,
        source: &str,
        stream: &str,
        flows: Vec<String>,
        settings: &str,
        domain: Option<&str>,
        bus: bool,
    ) -> PyResult<BulkSender> {
        let options = SenderOptions::parse(settings)?;
        let stream = Name::new(stream).map_err(other)?;
        let flows = flows.into_iter().map(|name| options.flow(&stream, Name::new(name).map_err(other)?));
        let flows = flows.collect::<PyResult<Vec<_>>>()?;
        let member = member(py, source, domain, bus)?;
        let opened = py.detach(move || {
            let sender = Sender::open(member.identity, stream, flows).map_err(|error| of_opening(&error))?;
            let sender = Arc::new(sender);
            let bus = match member.bus {
                Some(bus) => {
                    let serving = asking::serve_sender(&bus, &sender).map_err(other)?;
                    let teller = Teller::open(&bus).map_err(other)?;
                    Some(OnBus { participant: bus, teller, following: Mutex::default(), _serving: serving })
                }
                None => None,
            };
            Ok::<_, PyErr>(Opened { bus, running: Mutex::default(), sender })
        })?;
        Ok(BulkSender { opened: Mutex::new(Some(Arc::new(opened))) })
    }

    /// Connects to a receiver whose target is known.
    fn connect(&self, py: Python<'_>, target: &str) -> PyResult<()> {
        let target: Target = target.parse().map_err(other)?;
        self.with(py, |opened| opened.sender.connect(&target).map_err(|error| of_opening(&error)))
    }

    /// Connects to all receivers that announce themselves on the bus.
    fn follow(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Opened::follow)
    }

    /// Waits for receivers of a flow; returns whether they are connected.
    fn wait_for(&self, py: Python<'_>, flow: &str, receivers: usize, timeout: f64) -> PyResult<bool> {
        self.with(py, |opened| Ok(opened.flow(flow)?.wait_for(receivers, seconds(timeout))))
    }

    /// Begins a transfer; returns its number, the number of receivers, and the first byte that all of them want.
    fn start(&self, py: Python<'_>, flow: &str, parameter: &Bound<'_, PyAny>) -> PyResult<(u64, usize, u64)> {
        let held = HeldBytes::of(parameter)?;
        let mut bytes = vec![0; held.length()];
        held.copy_into(0, &mut bytes);
        drop(held);
        self.with(py, |opened| {
            let started = opened.start(opened.flow(flow)?, &bytes)?;
            Ok((started.transfer, started.receivers, started.from))
        })
    }

    /// Sets the first byte of the data, which all receivers must have reached.
    fn begin_at(&self, py: Python<'_>, flow: &str, offset: u64) -> PyResult<()> {
        self.with(py, |opened| {
            let flow = opened.flow(flow)?;
            flow.begin_at(offset).map_err(|error| of_sending(&error, flow))
        })
    }

    /// Sends a block, or a part of one.
    fn send(&self, py: Python<'_>, flow: &str, data: &Bound<'_, PyAny>, end_of_block: bool) -> PyResult<()> {
        let held = HeldBytes::of(data)?;
        self.with(py, |opened| opened.send(opened.flow(flow)?, &held, end_of_block))
    }

    /// Ends the transfer; returns the report as JSON.
    fn stop(&self, py: Python<'_>, flow: &str) -> PyResult<String> {
        self.with(py, |opened| json(&opened.stop(opened.flow(flow)?)?))
    }

    /// Gives the transfer up.
    fn reset(&self, py: Python<'_>, flow: &str, why: &str) -> PyResult<()> {
        self.with(py, |opened| {
            opened.give_up(opened.flow(flow)?, why);
            Ok(())
        })
    }

    /// Sends a file as a transfer of its own; returns the report as JSON.
    fn send_file(&self, py: Python<'_>, flow: &str, path: PathBuf, name: &str, parameter: &str, go_on: bool) -> PyResult<String> {
        self.with(py, |opened| json(&opened.send_file(opened.flow(flow)?, &path, name, parameter, go_on)?))
    }

    /// Offers the control of the sender to other programs.
    fn offer(&self, py: Python<'_>, name: &str, starts: bool) -> PyResult<BulkControl> {
        self.with(py, |opened| {
            let bus = opened.bus.as_ref().ok_or_else(|| other("a sender without the bus cannot be controlled by others"))?;
            BulkControl::offer(&bus.participant, &opened.sender, name, starts)
        })
    }

    /// The state of all flows as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |opened| json(&opened.sender.state()))
    }

    /// Delivers what was sent, gives up running transfers, and closes the connections.
    fn close(&self, py: Python<'_>) {
        let opened = self.opened.lock().take();
        py.detach(|| drop(opened));
    }
}
