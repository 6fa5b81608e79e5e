//! The receiving side, as Python has it.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyOSError,
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};
use tampu_bulk::{
    Name, Receiver, asking,
    control::{ControlledReceiver, OpenCommand, offer_receiver},
    directory::{self, Announced},
    handler::Connection,
    store::{Allowed, Store},
};
use tampu_bus::{Participant, engine::Guard};

use crate::{
    bulk::{
        failure::{closed, of_announcing, other},
        item::{Content, Item},
        member::member,
        opening::Opening,
        queue::ItemQueue,
        settings::ReceiverOptions,
    },
    event::client::seconds,
};

/// Pause between two checks whether senders have their last acknowledgement.
const TURN: Duration = Duration::from_millis(5);

/// Receiver that is open, with its place on the bus, or one that others open and close.
enum Opened {
    Own { announced: Option<(Announced, Guard)>, receiver: Arc<Receiver> },
    Controlled { offer: Guard, controlled: Arc<ControlledReceiver> },
}

impl Opened {
    /// Opens the receiver, and announces it on the bus.
    fn own(mut opening: Opening, bus: Option<&Participant>) -> PyResult<Opened> {
        let receiver = Arc::new(opening.open(&OpenCommand::default())?);
        let announced = match bus {
            Some(bus) => {
                let serving = asking::serve_receiver(bus, &receiver).map_err(other)?;
                Some((directory::announce(bus, &receiver).map_err(|error| of_announcing(&error))?, serving))
            }
            None => None,
        };
        Ok(Opened::Own { announced, receiver })
    }

    /// Offers the receiver to others, and opens it if it is open at first.
    fn controlled(mut opening: Opening, bus: &Participant, name: Name, open: bool) -> PyResult<Opened> {
        let stream = opening.stream.clone();
        let opens = move |asked: &OpenCommand| opening.open(asked).map_err(|why| why.text());
        let controlled = ControlledReceiver::new(bus, stream, opens);
        if open {
            controlled.open(&OpenCommand::default()).map_err(other)?;
        }
        let offer = offer_receiver(bus, name, &controlled).map_err(other)?;
        Ok(Opened::Controlled { offer, controlled })
    }

    fn receiver(&self) -> Option<Arc<Receiver>> {
        match self {
            Opened::Own { receiver, .. } => Some(receiver.clone()),
            Opened::Controlled { controlled, .. } => controlled.receiver(),
        }
    }

    /// Withdraws it from the bus, and returns the receiver if it is open.
    fn withdraw(self) -> Option<Arc<Receiver>> {
        match self {
            Opened::Own { announced, receiver } => {
                drop(announced);
                Some(receiver)
            }
            Opened::Controlled { offer, controlled } => {
                drop(offer);
                controlled.retire()
            }
        }
    }
}

/// Receiver of a stream.
#[pyclass(frozen, module = "tampu._native")]
pub struct BulkReceiver {
    opened: Mutex<Option<Opened>>,
    queue: Arc<ItemQueue>,
    /// The address at first; empty while it was closed.
    target: String,
}

#[pymethods]
impl BulkReceiver {
    #[new]
    #[pyo3(signature = (source, stream, flows, settings, bound, *, directory = None, allowed = (false, false, false), domain = None, bus = true, control = None, opened = true))]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        source: &str,
        stream: &str,
        flows: Vec<String>,
        settings: &str,
        bound: usize,
        directory: Option<PathBuf>,
        allowed: (bool, bool, bool),
        domain: Option<&str>,
        bus: bool,
        control: Option<&str>,
        opened: bool,
    ) -> PyResult<BulkReceiver> {
        let control = control.map(Name::new).transpose().map_err(other)?;
        if !opened && control.is_none() {
            return Err(other("a receiver that is closed at first needs the name of a `control`: nobody could open it"));
        }
        let options = ReceiverOptions::parse(settings)?;
        let stream = Name::new(stream).map_err(other)?;
        let values = flows.into_iter().map(|name| {
            let name = Name::new(name).map_err(other)?;
            let values = options.values(&stream, &name)?;
            Ok((name, values))
        });
        let flows = values.collect::<PyResult<Vec<_>>>()?;
        let place = options.receiver(&flows.iter().map(|(_, values)| values.clone()).collect::<Vec<_>>())?;
        let queue = Arc::new(ItemQueue::bounded(bound).map_err(other)?);
        let (replace, dotfiles, sync) = allowed;
        let store = directory.map(|path| {
            let store = Store::open(&path, Allowed { replace, dotfiles, sync });
            store.map(Arc::new).map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
        });
        let flows = flows.into_iter().map(|(name, values)| options.flow(name, &values)).collect();
        let member = member(py, source, domain, bus)?;
        let (identity, queue_of, store) = (member.identity, queue.clone(), store.transpose()?);
        let opening = Opening { identity, stream, place, flows, queue: queue_of, store, last: Weak::new() };
        let opened = py.detach(move || match (control, &member.bus) {
            (None, bus) => Opened::own(opening, bus.as_ref()),
            (Some(name), Some(bus)) => Opened::controlled(opening, bus, name, opened),
            (Some(_), None) => Err(other("a receiver without the bus cannot be controlled by others")),
        })?;
        let target = opened.receiver().map(|receiver| receiver.target().to_string()).unwrap_or_default();
        Ok(BulkReceiver { opened: Mutex::new(Some(opened)), queue, target })
    }

    /// Takes the next item: a tuple, an empty one if there is none, None at the end. If there is none, `fileno` becomes
    /// readable with the next one.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        given(py, self.queue.take_or_arm())
    }

    /// Waits for the next item, at most `timeout` seconds.
    #[pyo3(signature = (timeout = None))]
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyAny>>> {
        given(py, self.queue.wait(py, timeout.map(seconds))?)
    }

    /// Says that the program has so many bytes of the transfer already.
    fn have(&self, bytes: u64) {
        self.queue.have(bytes);
    }

    /// Refuses the transfer of the last item.
    fn refuse(&self, why: &str) {
        self.queue.refuse(why);
    }

    /// Address for senders, with the token that admits them. Another opening has another one.
    #[getter]
    fn target(&self) -> PyResult<String> {
        match &*self.opened.lock() {
            Some(opened @ Opened::Controlled { .. }) => {
                let receiver = opened.receiver().ok_or_else(|| closed("receiver"))?;
                Ok(receiver.target().to_string())
            }
            _ => Ok(self.target.clone()),
        }
    }

    /// The state of all flows as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        let receiver = self.opened.lock().as_ref().and_then(Opened::receiver);
        let receiver = receiver.ok_or_else(|| closed("receiver"))?;
        py.detach(move || serde_json::to_string(&receiver.state())).map_err(other)
    }

    /// The descriptor that becomes readable with the next item.
    fn fileno(&self) -> i32 {
        self.queue.descriptor()
    }

    /// Withdraws the receiver, waits at most so long until senders have the last acknowledgement, and closes.
    fn close(&self, py: Python<'_>, timeout: f64) {
        let opened = self.opened.lock().take();
        let queue = &self.queue;
        py.detach(move || {
            let Some(opened) = opened else { return };
            queue.close();
            let Some(receiver) = opened.withdraw() else { return };
            let until = Instant::now() + seconds(timeout).min(Duration::from_secs(3600));
            while receiver.state().flows.iter().any(|flow| flow.connected) && Instant::now() < until {
                std::thread::sleep(TURN);
            }
        });
    }
}

impl Drop for BulkReceiver {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Frame of data.
#[pyclass(frozen, module = "tampu._native")]
pub struct BulkData {
    bytes: Bytes,
    offset: u64,
    end_of_block: bool,
}

#[pymethods]
impl BulkData {
    /// The bytes, copied.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.bytes.len(), |into| {
            py.detach(|| into.copy_from_slice(&self.bytes));
            Ok(())
        })
    }

    /// Position in the data of the transfer.
    #[getter]
    fn offset(&self) -> u64 {
        self.offset
    }

    /// True if a block of the sender ends here.
    #[getter]
    fn end_of_block(&self) -> bool {
        self.end_of_block
    }

    /// The bytes where they are, for numpy.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let description = PyDict::new(py);
        description.set_item("version", 3)?;
        description.set_item("typestr", "|u1")?;
        description.set_item("shape", PyTuple::new(py, [self.bytes.len()])?)?;
        description.set_item("data", (self.bytes.as_ptr().addr(), true))?;
        Ok(description)
    }

    fn __len__(&self) -> usize {
        self.bytes.len()
    }
}

/// Returns an item as Python gets it.
fn given(py: Python<'_>, taken: Result<Option<Item>, ()>) -> PyResult<Option<Bound<'_, PyAny>>> {
    match taken {
        Err(()) => Ok(None),
        Ok(None) => Ok(Some(PyTuple::empty(py).into_any())),
        Ok(Some(item)) => tuple(py, item).map(Some),
    }
}

fn tuple(py: Python<'_>, Item { flow, content, .. }: Item) -> PyResult<Bound<'_, PyAny>> {
    let flow = &*flow;
    match content {
        Content::Start { transfer, sender, parameter } => {
            ("start", flow, transfer, sender.source, sender.address, PyBytes::new(py, &parameter)).into_bound_py_any(py)
        }
        Content::Data { bytes, offset, end_of_block } => {
            ("data", flow, BulkData { bytes, offset, end_of_block }).into_bound_py_any(py)
        }
        Content::Lost(lost) => ("lost", flow, lost.from, lost.to, lost.cause.to_string()).into_bound_py_any(py),
        Content::End { end, reset } => {
            ("end", flow, serde_json::to_string(&end).map_err(other)?, reset, end.took.as_secs_f64()).into_bound_py_any(py)
        }
        Content::Fault(fault) => ("fault", flow, fault.kind.to_string(), fault.count, fault.text).into_bound_py_any(py),
        Content::File(file) => ("file", flow, serde_json::to_string(&file).map_err(other)?).into_bound_py_any(py),
        Content::Connection(change) => {
            let (change, sender, why) = match change {
                Connection::Connected { sender, transport, resumed } => {
                    (if resumed { "resumed" } else { "connected" }, sender, transport.to_string())
                }
                Connection::Refused { sender, text, .. } => ("refused", sender, text),
                Connection::Disconnected { sender, why } => ("disconnected", sender, why),
            };
            ("connection", flow, change, sender.source, sender.address, why).into_bound_py_any(py)
        }
    }
}
