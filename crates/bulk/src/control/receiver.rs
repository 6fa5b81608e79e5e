//! A receiver under control: it is opened and closed, and announced while it is open.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tampu_bus::{BusError, Participant, engine::Guard};

use super::{
    question::{ControlCommand, ControlKind, ControlState, OpenCommand},
    serve::{self, Controllable},
};
use crate::{
    Name, Receiver,
    asking::{self, fitted},
    directory::{self, Announced},
};

type OnOpen = Box<dyn FnMut(&OpenCommand) -> Result<Receiver, String> + Send>;

/// An open receiver on the bus. The fields are dropped in this order: no new sender finds it when it closes.
struct OpenReceiver {
    _announced: Announced,
    _serving: Guard,
    receiver: Arc<Receiver>,
}

#[derive(Default)]
struct Openings {
    open: Option<OpenReceiver>,
    starts: u64,
    failure: Option<String>,
    /// True if it is opened no more.
    ended: bool,
}

/// A receiver that opens and closes by command. It is closed at first.
pub struct ControlledReceiver {
    participant: Participant,
    stream: Name,
    on_open: Mutex<OnOpen>,
    openings: Mutex<Openings>,
}

/// Offers a receiver under a name until the guard is dropped.
pub fn offer_receiver(participant: &Participant, name: Name, receiver: &Arc<ControlledReceiver>) -> Result<Guard, BusError> {
    serve::offer(participant, name, receiver)
}

impl ControlledReceiver {
    /// Makes a receiver of this stream. `on_open` opens it with its handlers, each time; it applies the command's settings
    /// with [`OpenCommand::choose`] and [`OpenCommand::narrow`]. The receiver is announced while it is open.
    pub fn new(
        participant: &Participant,
        stream: Name,
        on_open: impl FnMut(&OpenCommand) -> Result<Receiver, String> + Send + 'static,
    ) -> Arc<ControlledReceiver> {
        let (on_open, openings) = (Mutex::new(Box::new(on_open) as OnOpen), Mutex::default());
        Arc::new(ControlledReceiver { participant: participant.clone(), stream, on_open, openings })
    }

    /// Opens it. Fails if it is open, or for the reason that its program gives.
    pub fn open(&self, command: &OpenCommand) -> Result<(), String> {
        // Two commands do not open it twice.
        let mut on_open = self.on_open.lock();
        let openings = self.openings.lock();
        if openings.ended {
            return Err("its program is ending".to_owned());
        }
        if openings.open.is_some() {
            return Err("it is open already; close it first".to_owned());
        }
        drop(openings);
        let opened = on_open(command).and_then(|receiver| self.on_the_bus(receiver));
        let mut openings = self.openings.lock();
        openings.failure = opened.as_ref().err().cloned();
        openings.open = Some(opened?);
        openings.starts += 1;
        Ok(())
    }

    fn on_the_bus(&self, receiver: Receiver) -> Result<OpenReceiver, String> {
        let receiver = Arc::new(receiver);
        let announced = directory::announce(&self.participant, &receiver).map_err(|why| why.to_string())?;
        let serving = asking::serve_receiver(&self.participant, &receiver).map_err(|why| why.to_string())?;
        Ok(OpenReceiver { _announced: announced, _serving: serving, receiver })
    }

    /// Closes it. Running transfers end incomplete. Returns false if it was closed.
    pub fn close(&self) -> bool {
        // Nobody opens it before it is closed. The state can be read meanwhile.
        let _on_open = self.on_open.lock();
        let open = self.openings.lock().open.take();
        open.is_some()
    }

    /// Returns the open receiver.
    pub fn receiver(&self) -> Option<Arc<Receiver>> {
        self.openings.lock().open.as_ref().map(|open| open.receiver.clone())
    }

    /// Closes it, and refuses to open it again. Commands that are being carried out may still hold it.
    pub fn end(&self) {
        // After an opening that is under way.
        let on_open = self.on_open.lock();
        self.openings.lock().ended = true;
        drop(on_open);
        self.close();
    }

    /// Withdraws its announcement, so that no new sender comes, and returns the receiver, which closes when it is dropped. It
    /// is not opened again.
    pub fn retire(&self) -> Option<Arc<Receiver>> {
        let mut openings = self.openings.lock();
        openings.ended = true;
        let open = openings.open.take();
        drop(openings);
        open.map(|open| open.receiver)
    }
}

impl Controllable for ControlledReceiver {
    fn state(&self, name: &Name, with_report: bool) -> ControlState {
        let receiver = self.receiver().filter(|_| with_report);
        let openings = self.openings.lock();
        ControlState {
            name: name.clone(),
            kind: ControlKind::Receiver,
            process: String::new(),
            source: String::new(),
            stream: self.stream.clone(),
            active: openings.open.is_some(),
            starts: openings.starts,
            failure: openings.failure.clone(),
            report: receiver.map_or(serde_json::Value::Null, |receiver| fitted(json!({"receiver": receiver.state()}))),
        }
    }

    fn obey(&self, command: &ControlCommand) -> Result<(), String> {
        match command {
            ControlCommand::State => Ok(()),
            ControlCommand::Open(open) => self.open(open),
            ControlCommand::Close if self.close() => Ok(()),
            ControlCommand::Close => Err("it is closed already; open it first".to_owned()),
            _ => Err("it is a receiver, which obeys open and close".to_owned()),
        }
    }
}
