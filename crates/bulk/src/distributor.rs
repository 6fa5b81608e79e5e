//! Distributor: takes a stream from one sender and sends it to many receivers. The sender does not manage these
//! receivers.
//!
//! ```text
//! sender --stream--> receiver | distributor | sender --another stream--> receivers, or distributors again
//! ```
//! It combines a receiver and a sender of this crate. It sends received data at once, and keeps no more than its
//! window. A slow receiver behind it is disconnected or skipped, as its flow is configured. A late receiver begins with
//! the next start. The distributor reports upstream losses to its receivers, with the same ranges. If a transfer breaks
//! off before it, the transfer breaks off behind it too, after all received data.
//!
//! The outgoing stream has a name of its own. So a receiver chooses between the sender and the distributor, and
//! distributors can form a chain.

use std::{sync::Arc, time::Instant};

use serde::Serialize;

use crate::{
    handler::{CallbackError, Data, End, Handler, Start},
    message::FaultKind,
    name::Name,
    receiver::{FlowSettings, Identity, OpenError, Receiver, ReceiverSettings},
    receiving::LostRange,
    sender::{Flow, SendError, SendFlow, Sender},
    state::{Delivery, ReceiverReport, Report, SenderReport},
};

/// Distributor of a stream. Dropping it ends the running transfers on both sides.
pub struct Distributor {
    // The receiver is dropped before the sender: input ends before output.
    receiver: Receiver,
    sender: Arc<Sender>,
}

/// The state of a distributor.
#[derive(Debug, Clone, Serialize)]
pub struct DistributorReport {
    /// The state of its receiver.
    pub input: ReceiverReport,
    /// The state of its sender.
    pub output: SenderReport,
}

/// Settings of a distributor's flow on both sides. [`through`] makes one.
pub type Through = (FlowSettings, SendFlow);

/// Makes the settings of a flow that is forwarded under its own name. It requires no receiver. Receivers may take their
/// declared time, but the sender must not cut the distributor because of them ([`crate::message::Patience::behind`]).
pub fn through(name: Name) -> Through {
    let (mut taken, mut given) = (FlowSettings::new(name.clone()), SendFlow::new(name));
    given.receivers = 0;
    // The callback is meant to wait for receivers within their limits.
    taken.callback_limit = given.wait + given.ack_wait;
    taken.callback_average_limit = given.wait;
    (taken, given)
}

/// Start or end of a transfer at a distributor's output.
#[derive(Clone, Copy)]
pub struct Passed<'a> {
    /// Output flow of the transfer.
    pub flow: &'a Flow,
    /// Number of the transfer in the output flow.
    pub transfer: u64,
    /// Parameter of its sender.
    pub parameter: &'a [u8],
    /// Report of the end; `None` at the start.
    pub report: Option<&'a Report>,
}

/// Callback for forwarded transfers. It is called between frames, so it has to return soon.
pub type Told = Arc<dyn Fn(&Passed<'_>) + Send + Sync>;

impl Distributor {
    /// Opens a distributor from the stream `input` to the stream `output`. Receivers are added as to any [`Sender`], by
    /// hand or from the bus.
    pub fn open(
        identity: Identity,
        input: Name,
        output: Name,
        settings: ReceiverSettings,
        flows: Vec<Through>,
    ) -> Result<Distributor, OpenError> {
        Distributor::open_telling(identity, input, output, settings, flows, Arc::new(|_| ()))
    }

    /// Opens a distributor and reports each forwarded transfer to a callback.
    pub fn open_telling(
        identity: Identity,
        input: Name,
        output: Name,
        settings: ReceiverSettings,
        flows: Vec<Through>,
        told: Told,
    ) -> Result<Distributor, OpenError> {
        let (taken, given): (Vec<FlowSettings>, Vec<SendFlow>) = flows.into_iter().unzip();
        let sender = Arc::new(Sender::open(identity.clone(), output, given)?);
        let forward = |(settings, flow): (FlowSettings, &Flow)| {
            let handler: Box<dyn Handler> =
                Box::new(Forward { flow: flow.clone(), begun: false, next: 0, told: told.clone(), passing: None });
            (settings, handler)
        };
        let flows = taken.into_iter().zip(sender.flows()).map(forward).collect();
        let receiver = Receiver::open(identity, input, settings, flows)?;
        Ok(Distributor { receiver, sender })
    }

    /// Returns the receiving side, to announce it or for its address.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Returns the sending side, to add receivers.
    pub fn sender(&self) -> &Arc<Sender> {
        &self.sender
    }

    /// Returns its state.
    pub fn state(&self) -> DistributorReport {
        DistributorReport { input: self.receiver.state(), output: self.sender.state() }
    }
}

/// Handler that forwards a flow's input.
struct Forward {
    flow: Flow,
    /// True once the first piece of data has given the start of the data.
    begun: bool,
    /// The offset of the next data, in bytes.
    next: u64,
    told: Told,
    passing: Option<Passing>,
}

/// Transfer that is running.
struct Passing {
    transfer: u64,
    parameter: Vec<u8>,
    began: Instant,
}

impl Forward {
    fn tell(&self, passing: &Passing, report: Option<&Report>) {
        (self.told)(&Passed { flow: &self.flow, transfer: passing.transfer, parameter: &passing.parameter, report });
    }

    /// Ends the running transfer at the output as given up.
    fn give_up(&mut self, why: &str) {
        let state = self.flow.state();
        self.flow.give_up();
        if let Some(passing) = self.passing.take() {
            self.tell(&passing, Some(&Report::given_up(&state, passing.began.elapsed().as_secs_f64(), why)));
        }
    }
}

fn failed(error: SendError) -> CallbackError {
    CallbackError::failed(format!("the distributor: {error}"))
}

/// Reports data that cannot be forwarded as a failure, so that its sender knows that it did not arrive.
fn given_up(error: SendError) -> CallbackError {
    CallbackError::give_up(format!("the distributor: {error}"))
}

/// Describes an incomplete delivery: the receiver, or a receiver behind it, lacks data.
fn complaint(delivery: &Delivery) -> Option<String> {
    let failed = delivery.faults.iter().find(|fault| fault.kind == FaultKind::CallbackFailed);
    let why = match failed {
        _ if !delivery.complete => &delivery.why,
        Some(fault) => &fault.text,
        None => return None,
    };
    Some(format!("{} ({why})", delivery.receiver))
}

impl Handler for Forward {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        self.begun = false;
        self.next = 0;
        if let Some(patience) = start.patience {
            self.flow.hurry(patience.behind());
        }
        let started = self.flow.start(start.parameter).map_err(given_up)?;
        let passing = Passing { transfer: started.transfer, parameter: start.parameter.to_vec(), began: Instant::now() };
        self.tell(&passing, None);
        self.passing = Some(passing);
        Ok(started.from)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        if !self.begun {
            if data.offset > 0 {
                self.flow.begin_at(data.offset).map_err(given_up)?;
            }
            self.next = data.offset;
        }
        self.begun = true;
        if data.offset != self.next {
            let (at, next) = (data.offset, self.next);
            return Err(CallbackError::give_up(format!("the distributor: data at {at} instead of {next}")));
        }
        self.next += data.bytes.len() as u64;
        let mut block = self.flow.block(data.bytes.len());
        block.copy_from_slice(data.bytes);
        self.flow.pass_on(block.freeze(), data.end_of_block, data.more).map_err(given_up)
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        if !end.stopped {
            self.give_up("it broke off before the distributor");
            return Ok(());
        }
        let report = match self.flow.stop() {
            Ok(report) => report,
            Err(error) => {
                self.give_up(&error.to_string());
                return Err(failed(error));
            }
        };
        if let Some(passing) = self.passing.take() {
            self.tell(&passing, Some(&report));
        }
        let short: Vec<String> = report.deliveries.iter().filter_map(complaint).collect();
        // The sender already knows the ranges that it lost itself.
        if short.is_empty() || !end.complete {
            return Ok(());
        }
        let (few, all) = (short.len(), report.deliveries.len());
        Err(CallbackError::failed(format!(
            "behind the distributor {few} of {all} receivers have not got all, or could not take it: {}",
            short.join("; ")
        )))
    }

    fn reset(&mut self, _: &End) -> Result<(), CallbackError> {
        self.give_up("its own sender aborted it");
        Ok(())
    }

    fn lost(&mut self, lost: &LostRange) {
        self.begun = true;
        if let Some(to) = lost.to {
            self.next = self.next.max(to);
            // Without a transfer there is no receiver to notify.
            let _ = self.flow.lose(to, lost.cause);
        }
    }
}
