//! Control of senders by other programs, and commands to them.
//!
//! A start is an item that the program fetches, as it fetches the items of a receiver: its work runs on a thread of Python.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver as Heard, RecvTimeoutError, Sender as Tell, channel, sync_channel},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use pyo3::{prelude::*, types::PyTuple};
use tampu_bulk::{
    Name, Sender,
    control::{ControlError, ControlledSender, OwnWork, StartOrder, command_json, offer_sender},
};
use tampu_bus::{Participant, engine::Guard};

use crate::{
    bulk::failure::{Kind, other, raise},
    event::{client::seconds, join},
};

/// Time between two looks at the program's signals.
const SIGNALS: Duration = Duration::from_millis(100);
/// Reason of a start that nobody carries out.
const ENDING: &str = "the program is ending";

/// A start, and the place of its result.
struct Order {
    flow: String,
    parameter: String,
    file: Option<String>,
    ended: Tell<Result<(), String>>,
}

/// Parts of an open offer. They are dropped in this order: no command comes while the work of one ends.
struct OpenOffer {
    _offer: Guard,
    controlled: Arc<ControlledSender>,
    sender: Arc<Sender>,
}

/// Work that the program does on a flow by itself, until it is ended.
#[pyclass(frozen, module = "tampu._native")]
pub struct BulkWork {
    work: Mutex<Option<OwnWork>>,
}

#[pymethods]
impl BulkWork {
    /// Ends the work; further transfers may begin.
    fn end(&self) {
        drop(self.work.lock().take());
    }
}

/// Control of a sender that is offered to others.
#[pyclass(frozen, module = "tampu._native")]
pub struct BulkControl {
    // Dropped in this order: the end of the offer waits for the result of a start.
    current: Mutex<Option<Tell<Result<(), String>>>>,
    orders: Mutex<Option<Heard<Order>>>,
    opened: Mutex<Option<OpenOffer>>,
}

impl BulkControl {
    /// Offers a sender.
    pub fn offer(bus: &Participant, sender: &Arc<Sender>, name: &str, starts: bool) -> PyResult<BulkControl> {
        let name = Name::new(name).map_err(other)?;
        let (tell, heard) = sync_channel::<Order>(1);
        let controlled = if starts {
            ControlledSender::starting(sender.clone(), move |order: &StartOrder<'_>| {
                let (ended, result) = channel();
                let flow = order.flow.name().as_str().to_owned();
                let order = Order { flow, parameter: order.parameter.to_owned(), file: order.file.map(str::to_owned), ended };
                tell.send(order).map_err(|_| ENDING.to_owned())?;
                result.recv().map_err(|_| ENDING.to_owned())?
            })
        } else {
            ControlledSender::new(sender.clone())
        };
        let offer = offer_sender(bus, name, &controlled).map_err(other)?;
        let orders = Mutex::new(starts.then_some(heard));
        let opened = OpenOffer { _offer: offer, controlled, sender: sender.clone() };
        Ok(BulkControl { opened: Mutex::new(Some(opened)), orders, current: Mutex::default() })
    }

    /// Takes the next start within a short time; an error at the end.
    fn take(&self, most: Duration) -> Result<Option<Order>, ()> {
        match self.orders.lock().as_ref().map(|orders| orders.recv_timeout(most)) {
            Some(Ok(order)) => Ok(Some(order)),
            Some(Err(RecvTimeoutError::Timeout)) => Ok(None),
            Some(Err(RecvTimeoutError::Disconnected)) | None => Err(()),
        }
    }
}

#[pymethods]
impl BulkControl {
    /// Waits for the next start: flow, parameter, file. None after the end or the timeout.
    #[pyo3(signature = (timeout = None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let until = timeout.map(|timeout| Instant::now() + seconds(timeout).min(Duration::from_secs(86_400)));
        loop {
            let left = until.map_or(SIGNALS, |until| until.saturating_duration_since(Instant::now()));
            match py.detach(|| self.take(left.min(SIGNALS))) {
                Err(()) => return Ok(None),
                Ok(Some(Order { flow, parameter, file, ended })) => {
                    *self.current.lock() = Some(ended);
                    return (flow, parameter, file).into_pyobject(py).map(Some);
                }
                Ok(None) if left.is_zero() => return Ok(None),
                Ok(None) => py.check_signals()?,
            }
        }
    }

    /// Reports the end of the work that the last start began, with the reason of a failure.
    fn ended(&self, why: Option<String>) {
        if let Some(ended) = self.current.lock().take() {
            // Without a reader, the offer has ended.
            let _ = ended.send(why.map_or(Ok(()), Err));
        }
    }

    /// Notes work of the program on a flow.
    fn begin_work(&self, flow: &str) -> PyResult<BulkWork> {
        let name = Name::new(flow).map_err(other)?;
        let opened = self.opened.lock();
        let OpenOffer { controlled, sender, .. } = opened.as_ref().ok_or_else(|| other("the offer has ended"))?;
        let flow = sender.flow(&name).ok_or_else(|| other(format!("the sender has no flow '{name}'")))?;
        Ok(BulkWork { work: Mutex::new(Some(controlled.begin_work(flow))) })
    }

    /// Ends the offer.
    fn close(&self, py: Python<'_>) {
        let opened = self.opened.lock().take();
        drop(self.current.lock().take());
        py.detach(move || {
            let Some(opened) = opened else { return };
            // Starts that nobody has taken end here.
            drop(self.orders.lock().take());
            opened.controlled.end();
        });
    }
}

/// Asks the offers of bulk data. Returns JSON.
#[pyclass(frozen, module = "tampu._native")]
pub struct BulkCommander {
    bus: Participant,
}

#[pymethods]
impl BulkCommander {
    #[new]
    #[pyo3(signature = (domain = None))]
    fn open(py: Python<'_>, domain: Option<&str>) -> PyResult<BulkCommander> {
        Ok(BulkCommander { bus: join(py, "python-bulk-control", domain)? })
    }

    /// Sends a command as JSON; returns the state, or without a name the list of offers.
    fn ask(&self, py: Python<'_>, name: Option<&str>, command: Option<&str>, timeout: f64) -> PyResult<String> {
        let name = name.map(Name::new).transpose().map_err(other)?;
        let answer = py.detach(|| command_json(&self.bus, name.as_ref(), command, seconds(timeout)));
        answer.map_err(|error| match &error {
            ControlError::Call(tampu_bus::service::CallError::Denied(_)) => {
                raise(Kind::Denied, error.to_string(), None, Vec::new())
            }
            error if error.is_unreachable() => raise(Kind::NotOffered, error.to_string(), None, Vec::new()),
            error => other(error),
        })
    }
}
