//! `tampu bulk recv`.

use std::{
    io::Write,
    path::PathBuf,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver as Heard, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use clap::Args;
use indicatif::{DecimalBytes, ProgressBar};
use parking_lot::Mutex;
use serde_json::json;
use tampu_bulk::{
    Name, Receiver,
    control::{self, ControlledReceiver, OpenCommand},
    handler::Handler,
    receiver::{FlowSettings, Identity, ReceiverSettings},
    settings::Direction,
    store::{Allowed, Store},
};
use tampu_types::units::parse_duration;

use super::{
    configured::{self, CarryingArgs, FromFile, TakingArgs},
    report::{event, rate},
    taking::{Ended, News, Running, Table, Taking},
};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    output::table::printable,
    plural::counted,
    progress,
};

/// Bound of the queue from handlers to the screen; beyond it the transfers wait.
const NEWS: usize = 256;
/// Time for senders to receive their last acknowledgement and to disconnect.
const PARTING: Duration = Duration::from_secs(2);
/// Time between two checks of interrupts and limits.
const TURN: Duration = Duration::from_millis(100);

/// Receive files and data of a stream into a directory
///
/// Files keep the names their senders give them, below DIR and nowhere else; they have temporary names (.NAME.....part) until they are
/// complete. What has no name is called after its parameter. Runs until Ctrl-C, or as long as --limit and --for say.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu bulk recv --stream correlator --flow spectra --output /data\n  \
    tampu bulk recv --stream files --output . --limit 1 --listen 0.0.0.0:0")]
pub struct Recv {
    /// The directory of received files
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The stream [default: the only one in the configuration]
    #[arg(long, value_name = "NAME")]
    stream: Option<Name>,
    /// The flows, separated by commas or repeated [default: those of the stream in the configuration, else data]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    flow: Vec<Name>,
    /// End after N transfers
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    length: Option<Duration>,
    #[command(flatten)]
    taking: TakingArgs,
    #[command(flatten)]
    carrying: CarryingArgs,
    /// Time that a transfer stays open while its sender is disconnected
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    resume: Duration,
    /// Sync each file to disk before its sender gets the acknowledgement
    #[arg(long)]
    sync: bool,
    /// Replace files that have the names of received ones; without it such files are refused
    #[arg(long)]
    replace: bool,
    /// Take files whose names begin with a dot
    #[arg(long)]
    dotfiles: bool,
    /// Let others close and open the receiver under this name: tampu bulk control
    #[arg(long, value_name = "NAME")]
    control: Option<Name>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
    /// Time between two progress reports
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
    /// The name of this process on the bus
    #[arg(short, long, default_value = "tampu-bulk-recv", value_name = "NAME")]
    process: String,
    #[command(flatten)]
    file: FromFile,
}

/// Everything that opens the receiver, once or several times.
struct Opening {
    own: Vec<FlowSettings>,
    settings: ReceiverSettings,
    identity: Identity,
    stream: Name,
    store: Arc<Store>,
    running: Table,
    news: SyncSender<News>,
}

impl Opening {
    fn open(&self, command: &OpenCommand) -> Result<Receiver, String> {
        let names: Vec<Name> = self.own.iter().map(|flow| flow.name.clone()).collect();
        let chosen = command.choose(&names)?;
        let handlers = self.own.iter().filter(|flow| chosen.contains(&&flow.name)).map(|flow| {
            let taking = Taking {
                store: self.store.clone(),
                stream: self.stream.clone(),
                flow: flow.name.clone(),
                running: self.running.clone(),
                news: self.news.clone(),
                current: None,
            };
            Ok((command.narrow(flow.clone())?, Box::new(taking) as Box<dyn Handler>))
        });
        let handlers = handlers.collect::<Result<_, String>>()?;
        Receiver::open(self.identity.clone(), self.stream.clone(), self.settings.clone(), handlers).map_err(|why| why.to_string())
    }
}

/// Totals of the received data.
#[derive(Debug, Default)]
struct Totals {
    transfers: u64,
    complete: u64,
    bytes: u64,
    lost_bytes: u64,
}

impl Recv {
    pub fn run(self, context: &Context) -> Outcome {
        let file = self.file.load()?;
        let stream = configured::stream(self.stream.as_ref(), &file, Direction::Recv)?;
        let flows = configured::flows(&self.flow, &file, &stream, Direction::Recv);
        let allowed = Allowed { replace: self.replace, dotfiles: self.dotfiles, sync: self.sync };
        let store = Store::open(&self.output, allowed).map_err(|error| Failure::failed(self.output.display(), error))?;
        let participant = context.common.connect.join_hub(&self.process)?;
        let failed = |error: &dyn std::error::Error| Failure::Failed(error.to_string());
        let (tell, heard) = sync_channel(NEWS);
        let running = Table::new(Mutex::default());
        let store = Arc::new(store);
        let settings_of = |flow: &Name| {
            let default = FlowSettings {
                checked: true,
                // A disk that writes back may block a call for long; the transfer is not at fault.
                callback_limit: Duration::from_secs(10),
                callback_average_limit: Duration::from_secs(1),
                ..FlowSettings::new(flow.clone())
            };
            self.carrying.apply_to_taken(file.of(&stream, flow, Direction::Recv), default)
        };
        let own: Vec<FlowSettings> = flows.iter().map(settings_of).collect::<Result<_, _>>()?;
        let place = self.taking.place(&file, &stream, &flows)?;
        let settings = ReceiverSettings { resume: self.resume, ..place };
        let opening = Opening { own, settings, identity: Identity::of(&participant), stream, store, running, news: tell };
        let (stream, running) = (opening.stream.clone(), opening.running.clone());
        let controlled = ControlledReceiver::new(&participant, stream, move |command| opening.open(command));
        controlled.open(&OpenCommand::default()).map_err(Failure::Failed)?;
        let offer = self.control.clone().map(|name| control::offer_receiver(&participant, name, &controlled)).transpose();
        let offer = offer.map_err(|error| failed(&error))?;
        if let Some(receiver) = controlled.receiver() {
            self.greet(&receiver, &flows)?;
        }
        let mut showing =
            Showing { asked: &self, running, bar: progress::hidden(), totals: Totals::default(), began: Instant::now() };
        showing.follow(&heard, context)?;
        // No new sender is accepted; transfers under way end and are reported.
        drop(offer);
        let receiver = controlled.retire();
        if let Some(receiver) = &receiver {
            showing.part(receiver, &heard, context)?;
        }
        // It holds an end of the queue of news.
        drop(controlled);
        let closing = std::thread::spawn(move || drop(receiver));
        showing.rest(&heard)?;
        // The receiver has reported everything; only its threads remain.
        let _ = closing.join();
        showing.end()
    }

    fn greet(&self, receiver: &Receiver, flows: &[Name]) -> Outcome {
        let names: Vec<&str> = flows.iter().map(Name::as_str).collect();
        let stream = receiver.stream();
        let address = receiver.state().address;
        eprintln!(
            "tampu: receiving stream '{}', flows {}, at {address} into {}",
            stream,
            names.join(", "),
            self.output.display()
        );
        if !self.json {
            return Ok(());
        }
        say(&event("listening", json!({"stream": stream, "flows": flows, "address": address, "output": self.output})))
    }
}

fn say(object: &serde_json::Value) -> Outcome {
    let mut out = std::io::stdout().lock();
    written(writeln!(out, "{object}").and_then(|()| out.flush()))
}

struct Showing<'a> {
    asked: &'a Recv,
    running: Table,
    bar: ProgressBar,
    totals: Totals,
    began: Instant,
}

impl Showing<'_> {
    /// Shows news until a limit is reached.
    fn follow(&mut self, heard: &Heard<News>, context: &Context) -> Outcome {
        let mut told = Instant::now();
        loop {
            match heard.recv_timeout(TURN) {
                Ok(news) => self.news(news)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let enough = self.asked.limit.is_some_and(|transfers| self.totals.transfers >= transfers);
            let over = self.asked.length.is_some_and(|length| self.began.elapsed() >= length);
            if enough || over || context.interrupt.asked() {
                return Ok(());
            }
            let period = told.elapsed();
            self.draw();
            if period >= self.asked.interval {
                told = Instant::now();
                self.progress()?;
            }
        }
    }

    /// Waits until the senders of complete transfers have received their acknowledgement.
    fn part(&mut self, receiver: &Receiver, heard: &Heard<News>, context: &Context) -> Outcome {
        let until = Instant::now() + PARTING;
        let somebody = || receiver.state().flows.iter().any(|flow| flow.connected);
        while somebody() && self.transfers().is_empty() && Instant::now() < until && !context.interrupt.asked() {
            if let Ok(news) = heard.recv_timeout(Duration::from_millis(10)) {
                self.news(news)?;
            }
        }
        Ok(())
    }

    /// Prints the reports that arrive while the receiver closes.
    fn rest(&mut self, heard: &Heard<News>) -> Outcome {
        while let Ok(news) = heard.recv() {
            self.news(news)?;
        }
        Ok(())
    }

    fn transfers(&self) -> Vec<Arc<Running>> {
        self.running.lock().clone()
    }

    fn draw(&mut self) {
        let running = self.transfers();
        let Some(first) = running.first() else { return };
        let done: u64 = running.iter().map(|one| one.had + one.bytes.load(Ordering::Relaxed)).sum();
        if self.bar.is_hidden() && self.bar.length().is_none() {
            self.bar = match running.iter().map(|one| one.total).sum::<Option<u64>>() {
                Some(total) => progress::bytes(total, &printable(&first.name)),
                None => progress::bytes_without_end(&printable(&first.name)),
            };
            // The bytes from an earlier attempt have no rate.
            self.bar.set_position(running.iter().map(|one| one.had).sum());
            self.bar.reset_eta();
        }
        self.bar.set_position(done);
    }

    fn progress(&self) -> Outcome {
        if !self.asked.json {
            return Ok(());
        }
        self.transfers().iter().try_for_each(|one| {
            let (bytes, seconds) = (one.bytes.load(Ordering::Relaxed), one.began.elapsed().as_secs_f64());
            say(&event(
                "progress",
                json!({"flow": one.flow, "transfer": one.transfer, "name": one.name, "bytes": one.had + bytes, "total": one.total,
                    "seconds": seconds, "bytes_per_s": rate(bytes, seconds)}),
            ))
        })
    }

    fn news(&mut self, news: News) -> Outcome {
        match news {
            News::Said(text) => self.bar.suspend(|| eprintln!("tampu: {}", printable(&text))),
            News::Began(running) => {
                if self.asked.json {
                    let one = &running;
                    return say(&event(
                        "began",
                        json!({"flow": one.flow, "transfer": one.transfer, "name": one.name, "total": one.total, "had": one.had,
                            "sender": one.sender}),
                    ));
                }
            }
            News::Ended(ended) => {
                self.bar.finish_and_clear();
                self.bar = progress::hidden();
                return self.ended(&ended);
            }
        }
        Ok(())
    }

    fn ended(&mut self, ended: &Ended) -> Outcome {
        if self.asked.limit.is_some_and(|wanted| self.totals.transfers >= wanted) {
            // The sender continued while this end was closing: the transfer exceeds the requested number.
            return Ok(());
        }
        self.totals.transfers += 1;
        self.totals.complete += u64::from(ended.complete);
        self.totals.bytes += ended.bytes;
        self.totals.lost_bytes += ended.lost_bytes;
        if let Some(why) = &ended.why {
            eprintln!("tampu: {} is not complete: {}", printable(&ended.name), printable(why));
            match (&ended.path, ended.lost.first()) {
                (_, Some(lost)) => eprintln!("tampu: the first bytes that are missing begin at {}", lost.from),
                (Some(path), None) => {
                    let advice = if ended.can_continue { "; send it with --continue" } else { "" };
                    eprintln!("tampu: the received part is kept in {}{advice}", printable(&path.to_string_lossy()));
                }
                (None, None) => {}
            }
        }
        if self.asked.json {
            let object = serde_json::to_value(ended).map_err(|error| Failure::failed("a transfer as JSON", error))?;
            return say(&event("ended", object));
        }
        if !ended.complete {
            return Ok(());
        }
        let path = ended.path.as_deref().map_or_else(|| ended.name.clone(), |path| path.display().to_string());
        let had = if ended.had > 0 { format!(", {} were here", DecimalBytes(ended.had)) } else { String::new() };
        let speed = DecimalBytes(ended.bytes_per_s as u64);
        let path = printable(&path);
        let line = format!("{path}  {}{had}  {:.2} s  {speed}/s", DecimalBytes(ended.bytes), ended.seconds);
        written(writeln!(std::io::stdout().lock(), "{line}"))
    }

    fn end(&self) -> Outcome {
        let Totals { transfers, complete, bytes, lost_bytes } = self.totals;
        if self.asked.json {
            let seconds = self.began.elapsed().as_secs_f64();
            say(&event(
                "summary",
                json!({"transfers": transfers, "complete": complete, "bytes": bytes, "lost_bytes": lost_bytes, "seconds": seconds}),
            ))?;
        }
        let wanted = self.asked.limit.unwrap_or(transfers);
        if complete < transfers {
            return Err(Failure::Failed(format!("{} of {} not complete", transfers - complete, counted(transfers, "transfer"))));
        }
        if transfers < wanted {
            return Err(Failure::Failed(format!("{transfers} of {} came", counted(wanted, "transfer"))));
        }
        Ok(())
    }
}
