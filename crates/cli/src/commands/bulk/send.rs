//! `tampu bulk send`.

use std::{
    cell::Cell,
    io::Write,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use indicatif::DecimalBytes;
use serde_json::json;
use tampu_bulk::{
    Name, Sender, asking, control,
    directory::{self, Following, Teller},
    receiver::Identity,
    sender::{Flow, SendFlow},
    settings::{Direction, FlowPatch},
};
use tampu_types::units::{parse_duration, parse_size};

use super::{
    configured::{self, CarryingArgs, FromFile, GivingArgs},
    obeying::{self, ObeyingArgs, Orders},
    offer::{Offer, Offers},
    report::{event, rate},
    sending::{STOPPED, Sent, Way},
    waiting,
    watch::Watch,
};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    output::table::printable,
    progress,
};

/// Send files, directories or standard input to all receivers of a flow
///
/// Each file is a transfer of its own; its name travels in the parameter. A file that cannot be sent does not keep the others back. Ends
/// with 0 when every receiver that took part has all of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu bulk send dump.bin --stream correlator --flow spectra --param uid://A002/X1\n  \
    tampu bulk send run7/ --stream files --continue --throttle 50MB\n  acquire | tampu bulk send - --stream files --param live\n  \
    tampu bulk send run7/ --stream files --control correlator --on-start\n  \
    tampu bulk send dump.bin --stream correlator --multicast 239.255.7.1:4711 --interface 10.0.0.5")]
pub struct Send {
    /// Files and directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The stream [default: the only one in the configuration]
    #[arg(long, value_name = "NAME")]
    stream: Option<Name>,
    /// The flow [default: the only one of the stream in the configuration, else data]
    #[arg(long, value_name = "NAME")]
    flow: Option<Name>,
    /// A text that receivers get before the data
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    parameter: String,
    /// Longest time to wait for receivers
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    wait: Duration,
    /// Longest time that a receiver may take no data or hold up the others
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    patience: Duration,
    #[command(flatten)]
    giving: GivingArgs,
    #[command(flatten)]
    carrying: CarryingArgs,
    /// Skip the data that receivers have from an earlier attempt at the same file
    #[arg(long = "continue")]
    go_on: bool,
    /// Follow symbolic links in directories
    #[arg(long)]
    follow_links: bool,
    /// Send everything N times
    #[arg(long, value_name = "N", default_value_t = 1)]
    loops: u64,
    /// Size of a block
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_size)]
    block: u64,
    #[command(flatten)]
    obeying: ObeyingArgs,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
    /// Time between two progress reports
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
    /// The name of this process on the bus
    #[arg(short, long, default_value = "tampu-bulk-send", value_name = "NAME")]
    process: String,
    #[command(flatten)]
    file: FromFile,
}

/// The largest block, bytes.
const BLOCK_LIMIT: u64 = 1 << 30;
/// Failed files that an error names.
const LISTED: usize = 5;

/// Totals of the sent data.
#[derive(Debug, Default)]
struct Totals {
    files: u64,
    failed: u64,
    bytes: u64,
    had: u64,
    /// The first of the failed ones, with the reason.
    failures: Vec<String>,
}

impl Totals {
    /// Counts one that was not sent, or not to all.
    fn fail(&mut self, what: String) {
        self.failed += 1;
        if self.failures.len() < LISTED {
            self.failures.push(what);
        }
    }

    /// Names the failed ones.
    fn failure(&self) -> String {
        let more = self.failed - self.failures.len() as u64;
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!(
            "{} of {} were not sent, or not to all: {}{more}",
            self.failed,
            self.files + self.failed,
            self.failures.join("; ")
        )
    }

    fn add(&mut self, other: &Totals) {
        self.files += other.files;
        self.failed += other.failed;
        self.bytes += other.bytes;
        self.had += other.had;
    }
}

impl Send {
    pub fn run(self, context: &Context) -> Outcome {
        if self.block > BLOCK_LIMIT {
            return Err(Failure::Usage(format!("--block: at most {BLOCK_LIMIT} bytes")));
        }
        let offers = Offers::of(&self.files, self.follow_links);
        if offers.found.iter().filter(|offer| **offer == Offer::Stdin).count() > 1 || (self.loops > 1 && offers.total().is_none())
        {
            return Err(Failure::Usage("standard input can be sent once".to_owned()));
        }
        obeying::check(&offers, self.obeying.on_start).map_err(|why| Failure::Usage(why.to_owned()))?;
        let file = self.file.load()?;
        let stream = configured::stream(self.stream.as_ref(), &file, Direction::Send)?;
        let name = configured::flow(self.flow.as_ref(), &file, &stream, Direction::Send)?;
        let patch = file.of(&stream, &name, Direction::Send);
        let settings = self.settings(name.clone(), patch)?;
        let participant = context.common.connect.join_hub(&self.process)?;
        let failed = |error: &dyn std::error::Error| Failure::Failed(error.to_string());
        let sender = Sender::open(Identity::of(&participant), stream, vec![settings]);
        let sender = Arc::new(sender.map_err(|error| failed(&error))?);
        let Some(flow) = sender.flow(&name) else { return Err(Failure::Failed("the flow was not opened".to_owned())) };
        let following = directory::follow(&participant, &sender).map_err(|error| failed(&error))?;
        let teller = Teller::open(&participant).map_err(|error| failed(&error))?;
        let _serving = asking::serve_sender(&participant, &sender).map_err(|error| failed(&error))?;
        let mut totals = Totals::default();
        note_bad(&offers, &mut totals);
        if self.obeying.on_start {
            // Each start searches, and counts, again.
            totals = Totals::default();
        }
        let (controlled, orders) = obeying::controlled(&sender, self.obeying.on_start);
        // Before others see the offer: a stop also ends the wait for receivers, and what is between two files.
        let _work = orders.is_none().then(|| controlled.begin_work(flow));
        let offer = self.obeying.control.clone().map(|name| control::offer_sender(&participant, name, &controlled)).transpose();
        let _offer = offer.map_err(|error| failed(&error))?;
        if orders.is_none() {
            waiting::wait(flow, &following, flow.settings().receivers, self.wait, context)?;
        }
        let begun = Instant::now();
        let bar = match offers.total() {
            // Nobody knows how much the starts will send.
            _ if orders.is_some() => progress::hidden(),
            Some(total) => progress::bytes(total.saturating_mul(self.loops), "sending"),
            None => progress::bytes_without_end("sending"),
        };
        let watch = Watch::begin(flow.clone(), bar.clone(), self.json.then_some(self.interval))?;
        let way = Way {
            flow,
            teller: &teller,
            watch: &watch,
            bar: &bar,
            interrupt: &context.interrupt,
            block: self.block as usize,
            parameter: &self.parameter,
            go_on: self.go_on,
            stopped: Cell::new(false),
        };
        match orders {
            Some(orders) => self.obey(&way, &orders, &following, &mut totals, context)?,
            None => self.send_all(&way, &offers.found, &following, &mut totals, context)?,
        }
        let stopped = way.stopped.get();
        drop(watch);
        bar.finish_and_clear();
        self.end(&totals, flow, begun.elapsed().as_secs_f64())?;
        match (totals.failed, context.interrupt.asked()) {
            // Starts report their failures to those who asked for them.
            _ if self.obeying.on_start => Ok(()),
            (_, false) if stopped => Err(Failure::Failed(STOPPED.to_owned())),
            (0, false) => Ok(()),
            (_, true) => Err(Failure::Failed("interrupted".to_owned())),
            (failed, _) => Err(Failure::Failed(format!("{failed} of {} were not sent, or not to all", totals.files + failed))),
        }
    }

    /// Sends at each start that others ask for.
    fn obey(&self, way: &Way<'_>, orders: &Orders, following: &Following, totals: &mut Totals, context: &Context) -> Outcome {
        eprintln!("tampu: waiting for starts of '{}'", self.obeying.control.as_ref().map_or("", Name::as_str));
        if self.json {
            say(&event(
                "offered",
                json!({"control": self.obeying.control, "stream": way.flow.stream(), "flow": way.flow.name()}),
            ))?;
        }
        while let Some(order) = orders.next(&context.interrupt) {
            // Files may have come since the last start.
            let chosen = order.choose(Offers::of(&self.files, self.follow_links));
            let parameter = if order.parameter.is_empty() { self.parameter.clone() } else { order.parameter.clone() };
            let way = Way { parameter: &parameter, stopped: Cell::new(false), ..*way };
            let mut own = Totals::default();
            let result = match chosen {
                Ok(offers) => {
                    note_bad(&offers, &mut own);
                    self.send_all(&way, &offers.found, following, &mut own, context).map(|()| None)?
                }
                Err(why) => Some(why),
            };
            let interrupted = context.interrupt.asked();
            order.ended(match result {
                Some(why) => Err(why),
                None if way.stopped.get() => Err(STOPPED.to_owned()),
                None if own.failed > 0 && interrupted => Err("its program was interrupted".to_owned()),
                None if own.failed > 0 => Err(own.failure()),
                None => Ok(()),
            });
            totals.add(&own);
        }
        Ok(())
    }

    fn send_all(
        &self,
        way: &Way<'_>,
        offers: &[Offer],
        following: &Following,
        totals: &mut Totals,
        context: &Context,
    ) -> Outcome {
        let all = offers.len() as u64 * self.loops;
        for (count, offer) in (0..self.loops).flat_map(|_| offers).enumerate() {
            if way.flow.is_cancelled() {
                way.stopped.set(true);
                return Ok(());
            }
            // Receivers that were cut or died may come back, and get the next file.
            let wanted = way.flow.settings().receivers;
            let missing = way.flow.connected() < wanted;
            if missing && let Err(failure) = waiting::wait(way.flow, following, wanted, self.wait, context) {
                let why = failure.text().unwrap_or_default();
                eprintln!("tampu: {why}");
                totals.fail(why.to_owned());
                totals.failed += all - count as u64 - 1;
                way.stopped.set(way.flow.is_cancelled());
                return Ok(());
            }
            self.send(way, offer, totals)?;
            if context.interrupt.asked() || way.stopped.get() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn settings(&self, name: Name, patch: FlowPatch) -> Result<SendFlow, Failure> {
        let given = SendFlow {
            checked: true,
            wait: self.patience,
            // A receiver that syncs a large file to disk answers late.
            ack_wait: self.patience.max(Duration::from_secs(60)),
            connect_wait: Duration::from_secs(1),
            ..SendFlow::new(name)
        };
        self.giving.apply(&self.carrying, patch, given)
    }

    fn send(&self, way: &Way<'_>, offer: &Offer, totals: &mut Totals) -> Outcome {
        let name = offer.shown();
        match way.send(offer) {
            Ok(sent) => {
                let bytes = sent.report.bytes.saturating_sub(sent.from);
                totals.bytes += bytes;
                totals.had += sent.from;
                for remark in &sent.remarks {
                    way.bar.suspend(|| eprintln!("tampu: {}: {}", printable(&name), printable(remark)));
                }
                match &sent.why {
                    None => totals.files += 1,
                    Some(why) => {
                        totals.fail(format!("{name}: {why}"));
                        way.bar.suspend(|| eprintln!("tampu: {}: {}", printable(&name), printable(why)));
                    }
                }
                self.tell(&name, &sent, bytes, way)
            }
            Err(error) => {
                totals.fail(format!("{name}: {error}"));
                way.bar.suspend(|| eprintln!("tampu: {}: {}", printable(&name), printable(&error.to_string())));
                if self.json {
                    return say(&event("ended", json!({"name": name, "complete": false, "why": error.to_string()})));
                }
                Ok(())
            }
        }
    }

    fn tell(&self, name: &str, sent: &Sent, bytes: u64, way: &Way<'_>) -> Outcome {
        let report = &sent.report;
        let speed = rate(bytes, report.seconds);
        if self.json {
            let object = json!({"name": name, "stream": way.flow.stream(), "flow": way.flow.name(), "transfer": report.transfer,
                "complete": sent.why.is_none(), "why": sent.why, "bytes": bytes, "had": sent.from, "seconds": report.seconds,
                "bytes_per_s": speed, "deliveries": report.deliveries});
            return say(&event("ended", object));
        }
        if sent.why.is_some() {
            return Ok(());
        }
        let had = if sent.from > 0 { format!(", {} were there", DecimalBytes(sent.from)) } else { String::new() };
        let to = report.deliveries.len();
        let to = if to == 1 { String::new() } else { format!(" to {to} receivers") };
        let speed = DecimalBytes(speed as u64);
        let name = printable(name);
        let line = format!("{name}  {}{had}{to}  {:.2} s  {speed}/s", DecimalBytes(bytes), report.seconds);
        way.bar.suspend(|| written(writeln!(std::io::stdout().lock(), "{line}")))
    }

    fn end(&self, totals: &Totals, flow: &Flow, seconds: f64) -> Outcome {
        for link in flow.state().receivers {
            let asked = flow.settings().transport;
            if asked.is_some_and(|asked| asked != link.transport) {
                eprintln!("tampu: {} takes {} only", printable(&link.receiver.to_string()), link.transport);
            }
        }
        if !self.json {
            return Ok(());
        }
        say(&event(
            "summary",
            json!({"files": totals.files, "failed": totals.failed, "bytes": totals.bytes, "had": totals.had, "seconds": seconds,
                "bytes_per_s": rate(totals.bytes, seconds)}),
        ))
    }
}

/// Reports the files that cannot be sent.
fn note_bad(offers: &Offers, totals: &mut Totals) {
    for bad in &offers.bad {
        eprintln!("tampu: {}", printable(bad));
        totals.fail(bad.clone());
    }
}

fn say(object: &serde_json::Value) -> Outcome {
    let mut out = std::io::stdout().lock();
    written(writeln!(out, "{object}").and_then(|()| out.flush()))
}
