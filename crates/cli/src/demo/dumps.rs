//! The correlator's dumps, as bulk data: for each scan a transfer, with a dump of a megabyte every 0.96 s. An archive
//! receives and checks them. Other receivers are possible: `tampu bulk recv --stream correlator --flow spectra --out
//! DIR`.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tampu_bulk::{
    Name, Receiver, Sender, asking,
    directory::{self, Announced, Following, Teller, TransferNote},
    handler::{CallbackError, Data, End, Handler, Start},
    receiver::{FlowSettings, Identity, ReceiverSettings},
    sender::{Flow, Go, Periodic, SendError, SendFlow},
    sending::Phase,
    state::Report,
};
use tampu_bus::{
    Participant, QosTable,
    engine::{Engine, Guard},
};
use tampu_types::{Domain, SourceName};

use crate::{demo::chance::Chance, failure::Failure};

const DUMP: Duration = Duration::from_millis(960);
/// Bytes of a dump.
const BYTES: usize = 1 << 20;
/// Dumps of a scan.
const SCAN: u64 = 16;

/// The dumps and their archive, until dropped.
pub struct Dumps {
    // The order of the fields is the order of ends: sending, following, then both ends of the flow.
    sending: Option<Periodic>,
    scans: Arc<Mutex<Scans>>,
    flow: Name,
    _following: Following,
    _announced: Announced,
    _serving: Vec<Guard>,
    sender: Arc<Sender>,
    _receiver: Arc<Receiver>,
    // The last field: a process without a participant has left the bus.
    _participants: [Participant; 2],
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed("the demo's correlator dumps", error)
}

impl Dumps {
    /// Joins the bus and begins; a rate other than 1 makes dumps faster or slower.
    pub fn start(engine: &Arc<dyn Engine>, domain: &Domain, seed: u64, rate: f64) -> Result<Dumps, Failure> {
        let join = |name: &str| -> Result<Participant, Failure> {
            let source = SourceName::new(name).map_err(failed)?;
            Participant::on(engine.clone(), domain.clone(), source, QosTable::default()).map_err(failed)
        };
        let (correlator, archive) = (join("CORR/dumps")?, join("ARCHIVE/dumps")?);
        let (stream, flow) = (Name::new("correlator").map_err(failed)?, Name::new("spectra").map_err(failed)?);

        let handler: Box<dyn Handler> = Box::new(Checking);
        let flows = vec![(FlowSettings::new(flow.clone()), handler)];
        let receiver = Receiver::open(Identity::of(&archive), stream.clone(), ReceiverSettings::default(), flows);
        let receiver = Arc::new(receiver.map_err(failed)?);
        let announced = directory::announce(&archive, &receiver).map_err(failed)?;

        let settings = SendFlow { checked: true, connect_wait: Duration::from_secs(1), ..SendFlow::new(flow.clone()) };
        let sender = Arc::new(Sender::open(Identity::of(&correlator), stream, vec![settings]).map_err(failed)?);
        let following = directory::follow(&correlator, &sender).map_err(failed)?;
        let teller = Teller::open(&correlator).map_err(failed)?;
        let scans = Scans { teller, chance: Chance::new(seed), number: 0, dumps: 0, parameter: String::new() };
        let scans = Arc::new(Mutex::new(scans));
        let (name, every) = (flow, scans.clone());
        let flow = sender.flow(&name).ok_or_else(|| failed("the flow was not opened"))?;
        let sending = flow
            .every(DUMP.div_f64(rate), move |flow| {
                let mut scans = every.lock();
                // Without a receiver, dumps are dropped, and the next scan begins anew.
                if let Err(error) = scans.dump(flow) {
                    scans.give_up(flow, &error.to_string());
                }
                Go::On
            })
            .map_err(failed)?;
        let serving = vec![
            asking::serve_sender(&correlator, &sender).map_err(failed)?,
            asking::serve_receiver(&archive, &receiver).map_err(failed)?,
        ];
        Ok(Dumps {
            sending: Some(sending),
            scans,
            flow: name,
            _following: following,
            _announced: announced,
            _serving: serving,
            sender,
            _receiver: receiver,
            _participants: [correlator, archive],
        })
    }
}

impl Drop for Dumps {
    /// Ends the scan under way as a short one, so that no transfer stays incomplete.
    fn drop(&mut self) {
        self.sending = None;
        if let Some(flow) = self.sender.flow(&self.flow) {
            self.scans.lock().finish(flow);
        }
    }
}

/// Next scans of the correlator.
struct Scans {
    teller: Teller,
    chance: Chance,
    /// Scans so far.
    number: u64,
    /// Dumps of the scan under way.
    dumps: u64,
    parameter: String,
}

impl Scans {
    fn dump(&mut self, flow: &Flow) -> Result<(), SendError> {
        if self.dumps == 0 {
            self.number += 1;
            self.parameter = format!("uid://A002/Xd{:04x}/X{}", self.chance.below(0x1_0000), self.number);
            flow.start(self.parameter.as_bytes())?;
            self.tell(flow, None);
        }
        let mut block = flow.block(BYTES);
        fill(&mut block, self.dumps * BYTES as u64);
        flow.send(block.freeze())?;
        self.dumps += 1;
        if self.dumps == SCAN { self.end(flow) } else { Ok(()) }
    }

    fn end(&mut self, flow: &Flow) -> Result<(), SendError> {
        self.dumps = 0;
        let report = flow.stop()?;
        self.tell(flow, Some(&report));
        Ok(())
    }

    fn finish(&mut self, flow: &Flow) {
        if self.dumps > 0
            && let Err(error) = self.end(flow)
        {
            self.give_up(flow, &error.to_string());
        }
    }

    fn give_up(&mut self, flow: &Flow, why: &str) {
        let state = flow.state();
        flow.reset();
        // Without a start there is nothing to give up.
        if state.phase == Phase::Data {
            let seconds = DUMP.as_secs_f64() * self.dumps as f64;
            self.tell(flow, Some(&Report::given_up(&state, seconds, why)));
        }
        self.dumps = 0;
    }

    fn tell(&self, flow: &Flow, report: Option<&Report>) {
        let (stream, transfer) = (flow.stream(), report.map_or_else(|| flow.state().transfer, |report| report.transfer));
        let note = TransferNote { stream, flow: flow.name(), transfer, parameter: self.parameter.clone(), report };
        // If this is lost, the hub shows one transfer less.
        let _ = self.teller.tell(&note);
    }
}

/// Channels that follow from where they lie in the scan.
fn fill(block: &mut [u8], offset: u64) {
    for (place, word) in block.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(offset + 8 * place as u64).to_le_bytes());
    }
}

/// The archive: checks every channel, and keeps none.
struct Checking;

impl Handler for Checking {
    fn start(&mut self, _start: &Start<'_>) -> Result<u64, CallbackError> {
        Ok(0)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let right = |(place, word): (usize, &[u8])| word == (data.offset + 8 * place as u64).to_le_bytes();
        match data.bytes.chunks_exact(8).enumerate().all(right) {
            true => Ok(()),
            false => Err(CallbackError::failed("a dump with a wrong channel")),
        }
    }

    fn stop(&mut self, _end: &End) -> Result<(), CallbackError> {
        Ok(())
    }
}
