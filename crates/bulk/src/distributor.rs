//! A distributor: takes a stream from one sender and gives it to many receivers, who are its affair and not the sender's.
//!
//! ```text
//! sender --stream--> receiver | distributor | sender --another stream--> receivers, or distributors again
//! ```
//! It is a receiver and a sender of this crate, put together: what it takes it sends at once, without keeping more than its window. A
//! receiver behind it that is too slow is cut or skipped as its flow is set; one that comes late begins with the next start. What was
//! lost before it is told behind it, with the same ranges; a transfer that breaks off before it breaks off behind it, after all data that
//! came.
//!
//! The stream behind has a name of its own, so that a receiver says whether it wants to be served by the sender or by the distributor, and
//! distributors can stand in a row.

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

/// A distributor. Dropping it ends what is under way, on both sides.
pub struct Distributor {
    // Dropped first: what comes ends before its way out does.
    receiver: Receiver,
    sender: Arc<Sender>,
}

/// How it stands.
#[derive(Debug, Clone, Serialize)]
pub struct DistributorReport {
    /// Where it takes from.
    pub input: ReceiverReport,
    /// Whom it gives to.
    pub output: SenderReport,
}

/// The flows of a distributor: as one is taken, and as it is given on. [`through`] makes one.
pub type Through = (FlowSettings, SendFlow);

/// A flow that goes through under its own name: no receiver is required behind, and those there may take their declared time, but not
/// so long that the sender would cut the distributor for it ([`crate::message::Patience::behind`]).
pub fn through(name: Name) -> Through {
    let (mut taken, mut given) = (FlowSettings::new(name.clone()), SendFlow::new(name));
    given.receivers = 0;
    // Waiting for receivers within their bounds is what the callback is for.
    taken.callback_limit = given.wait + given.ack_wait;
    taken.callback_average_limit = given.wait;
    (taken, given)
}

/// A transfer that begins behind a distributor, or has ended there.
#[derive(Clone, Copy)]
pub struct Passed<'a> {
    /// On which flow it is given on.
    pub flow: &'a Flow,
    /// Its number there.
    pub transfer: u64,
    /// What its sender says about it.
    pub parameter: &'a [u8],
    /// `None`: it begins.
    pub report: Option<&'a Report>,
}

/// Who hears of them. Called between frames: it has to return soon.
pub type Told = Arc<dyn Fn(&Passed<'_>) + Send + Sync>;

impl Distributor {
    /// Takes the stream `input` and gives it on as `output`. Receivers are added as to any [`Sender`], by hand or from the bus.
    pub fn open(
        identity: Identity,
        input: Name,
        output: Name,
        settings: ReceiverSettings,
        flows: Vec<Through>,
    ) -> Result<Distributor, OpenError> {
        Distributor::open_telling(identity, input, output, settings, flows, Arc::new(|_| ()))
    }

    /// The same, and tells of each transfer that goes through.
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

    /// Its taking side: to announce it, or for its address.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Its giving side: to add receivers.
    pub fn sender(&self) -> &Arc<Sender> {
        &self.sender
    }

    /// How it stands.
    pub fn state(&self) -> DistributorReport {
        DistributorReport { input: self.receiver.state(), output: self.sender.state() }
    }
}

/// Gives on what a flow brings.
struct Forward {
    flow: Flow,
    /// The first piece of data has told where the data begins.
    begun: bool,
    /// Where the next piece of data begins.
    next: u64,
    told: Told,
    passing: Option<Passing>,
}

/// The transfer under way.
struct Passing {
    transfer: u64,
    parameter: Vec<u8>,
    began: Instant,
}

impl Forward {
    fn tell(&self, passing: &Passing, report: Option<&Report>) {
        (self.told)(&Passed { flow: &self.flow, transfer: passing.transfer, parameter: &passing.parameter, report });
    }

    /// Ends what is under way behind, without its end.
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

/// What cannot be given on is not there for anybody: its sender is to know that it did not arrive.
fn given_up(error: SendError) -> CallbackError {
    CallbackError::give_up(format!("the distributor: {error}"))
}

/// What is to be told of a receiver: it has not got all, or somebody behind it has not.
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
            return Err(CallbackError::give_up(format!("the distributor: data at {at} where {next} was to come")));
        }
        self.next += data.bytes.len() as u64;
        let mut block = self.flow.block(data.bytes.len());
        block.copy_from_slice(data.bytes);
        self.flow.send_piece(block.freeze(), data.end_of_block).map_err(given_up)
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
        // What the sender lost itself it knows already.
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
        self.give_up("its own sender gave it up");
        Ok(())
    }

    fn lost(&mut self, lost: &LostRange) {
        self.begun = true;
        if let Some(to) = lost.to {
            self.next = self.next.max(to);
            // A flow without a transfer has nobody to tell.
            let _ = self.flow.lose(to, lost.cause);
        }
    }
}
