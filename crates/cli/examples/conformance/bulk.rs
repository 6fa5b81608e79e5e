//! Bulk data of the driver: receivers that write each transfer to a file, and senders that send files in blocks.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use tampu_bulk::{
    Name, Receiver, Sender,
    directory::{self, Announced, Following},
    handler::{CallbackError, Data, End, Handler, Start},
    receiver::{FlowSettings, Identity, ReceiverSettings},
    sender::SendFlow,
};
use tampu_bus::Participant;
use tampu_event::join;

use crate::{Command, Outcome, say};

/// The longest wait for receivers, and for one that is stopped. The runner waits longer.
const WAIT: Duration = Duration::from_secs(50);

/// The receivers and the senders of the process, by their stream.
pub struct Bulk {
    participant: Participant,
    receivers: BTreeMap<String, (Announced, Arc<Receiver>)>,
    senders: BTreeMap<String, (Following, Arc<Sender>)>,
}

impl Bulk {
    pub fn new(source: &str) -> Outcome<Bulk> {
        Ok(Bulk { participant: join(source)?, receivers: BTreeMap::new(), senders: BTreeMap::new() })
    }

    /// Receives a stream into a directory.
    pub fn receive(&mut self, command: &Command) -> Outcome {
        let stream = command.name.clone();
        let into = Into { stream: stream.clone(), directory: command.directory.clone().into(), transfer: None };
        let flows: Vec<(_, Box<dyn Handler>)> = vec![(FlowSettings::new(Name::new("data")?), Box::new(into))];
        let identity = Identity::of(&self.participant);
        let receiver = Arc::new(Receiver::open(identity, Name::new(&stream)?, ReceiverSettings::default(), flows)?);
        say(&json!({"line": "receiver", "name": stream, "target": receiver.target().to_string()}));
        self.receivers.insert(stream, (directory::announce(&self.participant, &receiver)?, receiver));
        Ok(())
    }

    /// Opens a sender that follows the receivers of its stream.
    pub fn open(&mut self, command: &Command) -> Outcome {
        let rate: f64 = command.rate.parse()?;
        let settings = SendFlow {
            receivers: command.receivers.parse()?,
            connect_wait: WAIT,
            wait: WAIT,
            ack_wait: WAIT,
            resume: Duration::from_secs(10),
            throttle: (rate > 0.0).then_some(rate),
            ..SendFlow::new(Name::new("data")?)
        };
        let sender = Arc::new(Sender::open(Identity::of(&self.participant), Name::new(&command.name)?, vec![settings])?);
        let following = directory::follow(&self.participant, &sender)?;
        self.senders.insert(command.name.clone(), (following, sender));
        Ok(())
    }

    /// Sends a file in blocks of these lengths.
    pub fn transfer(&self, command: &Command) -> Outcome {
        let (_, sender) = self.senders.get(&command.name).ok_or("no sender is open")?;
        let flow = sender.flow(&Name::new("data")?).ok_or("it was opened")?;
        let content = fs::read(&command.file)?;
        let mut rest = content.as_slice();
        flow.start(command.parameter.as_bytes())?;
        for length in &command.blocks {
            let (block, behind) = rest.split_at(length.parse()?);
            flow.send_copy(block)?;
            rest = behind;
        }
        let report = flow.stop()?;
        let lacking: Vec<_> = report.deliveries.iter().filter(|one| !one.complete).collect();
        let complete = (report.deliveries.len() - lacking.len()).to_string();
        let why: Vec<_> = lacking.iter().map(|one| format!("{}: {}", one.receiver, one.why)).collect();
        say(&json!({"line": "sent", "name": command.name, "parameter": command.parameter, "bytes": report.bytes.to_string(),
            "receivers": report.deliveries.len().to_string(), "complete": complete, "why": why.join("; ")}));
        Ok(())
    }

    /// Closes the receiver or the sender of a stream.
    pub fn close(&mut self, command: &Command) {
        self.receivers.remove(&command.name);
        self.senders.remove(&command.name);
    }
}

/// A handler that writes each transfer to the file that its parameter names.
struct Into {
    stream: String,
    directory: PathBuf,
    transfer: Option<Transfer>,
}

struct Transfer {
    parameter: String,
    file: File,
    block: u64,
}

fn failed(error: &impl std::fmt::Display) -> CallbackError {
    CallbackError::failed(error.to_string())
}

impl Into {
    fn transfer(&mut self) -> Result<&mut Transfer, CallbackError> {
        self.transfer.as_mut().ok_or_else(|| CallbackError::failed("no transfer is open"))
    }
}

impl Handler for Into {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        let parameter = String::from_utf8_lossy(start.parameter).into_owned();
        let file = File::create(Path::new(&self.directory).join(&parameter)).map_err(|error| failed(&error))?;
        self.transfer = Some(Transfer { parameter, file, block: 0 });
        Ok(0)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let stream = self.stream.clone();
        let transfer = self.transfer()?;
        transfer.file.write_all(data.bytes).map_err(|error| failed(&error))?;
        if data.end_of_block {
            let end = data.offset + data.bytes.len() as u64;
            say(&json!({"line": "block", "name": stream, "parameter": transfer.parameter, "offset": transfer.block.to_string(),
                "length": (end - transfer.block).to_string()}));
            transfer.block = end;
        }
        Ok(())
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        let stream = self.stream.clone();
        let parameter = self.transfer()?.parameter.clone();
        self.transfer = None;
        say(&json!({"line": "end", "name": stream, "parameter": parameter, "bytes": end.bytes.to_string(),
            "complete": end.complete.to_string(), "stopped": end.stopped.to_string()}));
        Ok(())
    }
}
