//! `tampu bulk relay`.

use std::{io::Write, sync::Arc, time::Duration};

use clap::Args;
use serde_json::json;
use tampu_bulk::{
    Distributor, Name, asking,
    directory::{self, Teller, TransferNote},
    distributor::{self, Passed, Through},
    receiver::{FlowSettings, Identity},
    sender::SendFlow,
    settings::{Bulk, Direction, default_flow},
};
use tampu_types::units::{parse_duration, parse_size};

use super::{
    configured::{CarryingArgs, FromFile, GivingArgs, TakingArgs},
    report::event,
};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
};

/// Distribute a stream: take it from its sender once and give it to many receivers
///
/// Receivers of the second stream are served here and cost the sender nothing; one that is too slow is cut, or skipped, without touching
/// the others. The second stream may be distributed again. Runs until Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tampu bulk relay --from correlator --to correlator-far --flow spectra --listen 0.0.0.0:0")]
pub struct Relay {
    /// The stream to receive
    #[arg(long, value_name = "STREAM")]
    from: Name,
    /// The stream to send
    #[arg(long, value_name = "STREAM")]
    to: Name,
    /// The flows, separated by commas or repeated [default: those of the stream in the configuration, else data]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    flow: Vec<Name>,
    /// Memory for the data of receivers that are behind
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = parse_size)]
    buffer: u64,
    /// Longest time that a receiver may take no data or hold up the others
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    patience: Duration,
    #[command(flatten)]
    taking: TakingArgs,
    #[command(flatten)]
    carrying: CarryingArgs,
    #[command(flatten)]
    giving: GivingArgs,
    #[command(flatten)]
    file: FromFile,
    /// The name of this process on the bus
    #[arg(short, long, default_value = "tampu-bulk-relay", value_name = "NAME")]
    process: String,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Relay {
    fn flows(&self, file: &Bulk) -> Vec<Name> {
        if !self.flow.is_empty() {
            return self.flow.clone();
        }
        let mut found = file.flows(&self.from, Direction::Recv);
        found.extend(file.flows(&self.to, Direction::Send).into_iter().filter(|flow| !found.contains(flow)).collect::<Vec<_>>());
        if found.is_empty() { vec![default_flow()] } else { found }
    }

    fn through(&self, file: &Bulk, flow: &Name) -> Result<Through, Failure> {
        let (taken, given) = distributor::through(flow.clone());
        let (from, to) = (file.of(&self.from, flow, Direction::Recv), file.of(&self.to, flow, Direction::Send));
        let given = SendFlow { window: self.buffer as usize, wait: self.patience, ..given };
        let given = self.giving.apply(&self.carrying, to, given)?;
        // The flags apply to the outgoing side; the sender or the file decides about the incoming side.
        let asked = CarryingArgs::default();
        let mut taken = asked.apply_to_taken(from, FlowSettings { checked: given.checked, ..taken })?;
        taken.callback_limit = given.wait + given.ack_wait + given.connect_wait;
        Ok((taken, given))
    }

    pub fn run(self, context: &Context) -> Outcome {
        if self.from == self.to {
            return Err(Failure::Usage("--from and --to: a stream cannot be given on under its own name".to_owned()));
        }
        let file = self.file.load()?;
        let flows = self.flows(&file);
        let participant = context.common.connect.join_hub(&self.process)?;
        let failed = |error: &dyn std::error::Error| Failure::Failed(error.to_string());
        let settings = self.taking.place(&file, &self.from, &flows)?;
        let flows = flows.iter().map(|flow| self.through(&file, flow)).collect::<Result<_, _>>()?;
        let teller = Teller::open(&participant).map_err(|error| failed(&error))?;
        let told = Arc::new(move |passed: &Passed<'_>| tell(&teller, passed));
        let identity = Identity::of(&participant);
        let distributor = Distributor::open_telling(identity, self.from.clone(), self.to.clone(), settings, flows, told);
        let distributor = Arc::new(distributor.map_err(|error| failed(&error))?);
        let _following = directory::follow(&participant, distributor.sender()).map_err(|error| failed(&error))?;
        let _announced = directory::announce(&participant, distributor.receiver()).map_err(|error| failed(&error))?;
        let _serving = asking::serve_distributor(&participant, &distributor).map_err(|error| failed(&error))?;
        let address = distributor.receiver().address();
        eprintln!("tampu: stream '{}' is distributed as '{}', received at {address}", self.from, self.to);
        if self.json {
            let line = event("listening", json!({"from": self.from, "to": self.to, "address": address}));
            let mut out = std::io::stdout().lock();
            written(writeln!(out, "{line}").and_then(|()| out.flush()))?;
        }
        while !context.interrupt.wait(Duration::from_secs(3600)) {}
        Ok(())
    }
}

/// Reports a relayed transfer to the hub, like any transfer.
fn tell(teller: &Teller, passed: &Passed<'_>) {
    let (stream, flow) = (passed.flow.stream(), passed.flow.name());
    let parameter = String::from_utf8_lossy(passed.parameter).into_owned();
    // A missing account shows as a gap in the numbers; the transfer itself is not delayed for it.
    let _ = teller.tell(&TransferNote { stream, flow, transfer: passed.transfer, parameter, report: passed.report });
}
