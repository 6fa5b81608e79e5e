//! A sender under control: its flows, and the work that a start begins.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use serde_json::json;
use tampu_bus::{BusError, Participant, engine::Guard};

use super::{
    question::{ControlCommand, ControlKind, ControlState, StartCommand, checked_rate, no_flow},
    serve::{self, Controllable},
};
use crate::{Name, Sender, asking::fitted, open::spawn, sender::Flow, sending::Phase};

/// The longest wait of a stop until the started work has ended.
const STOP_WAIT: Duration = Duration::from_secs(3);

/// A start that the program is to carry out.
pub struct StartOrder<'a> {
    /// The flow to send on.
    pub flow: &'a Flow,
    /// Text for the receivers.
    pub parameter: &'a str,
    /// Name of a file that the program offers; `None` leaves the choice to the program.
    pub file: Option<&'a str>,
}

type OnStart = Box<dyn FnMut(&StartOrder<'_>) -> Result<(), String> + Send>;

/// The work that a start begins, and its account.
struct Starter {
    on_start: Option<Mutex<OnStart>>,
    runs: Mutex<Runs>,
    ended: Condvar,
}

#[derive(Default)]
struct Runs {
    /// The flow of the work that is under way.
    flow: Option<Flow>,
    /// Flows on which the program works by itself, one entry for each work.
    own: Vec<Name>,
    worker: Option<JoinHandle<()>>,
    starts: u64,
    failure: Option<String>,
    /// True if no further start is carried out.
    ended: bool,
}

/// Work that a program does on a flow by itself, until dropped ([`ControlledSender::begin_work`]).
pub struct OwnWork {
    starter: Arc<Starter>,
    flow: Flow,
}

impl Drop for OwnWork {
    fn drop(&mut self) {
        let mut runs = self.starter.runs.lock();
        if let Some(at) = runs.own.iter().position(|name| name == self.flow.name()) {
            runs.own.swap_remove(at);
        }
        if !runs.works_on(&self.flow) {
            self.flow.set_halted(false);
        }
    }
}

/// A sender that obeys commands from outside. When it is dropped, it ends as by [`ControlledSender::end`].
pub struct ControlledSender {
    sender: Arc<Sender>,
    starter: Arc<Starter>,
}

/// Offers a sender under a name until the guard is dropped.
pub fn offer_sender(participant: &Participant, name: Name, sender: &Arc<ControlledSender>) -> Result<Guard, BusError> {
    serve::offer(participant, name, sender)
}

impl ControlledSender {
    /// Puts a sender under control whose program begins its transfers itself: others may pace, pause and stop them.
    pub fn new(sender: Arc<Sender>) -> Arc<ControlledSender> {
        ControlledSender::make(sender, None)
    }

    /// Puts a sender under control that others may also start.
    ///
    /// `on_start` runs on a thread of its own, one at a time. It begins and ends transfers on the flow of the order. After
    /// a stop its calls return [`SendError::Cancelled`](crate::sender::SendError::Cancelled); it may then end the
    /// transfer in order, and begins no other one. A transfer that is open when it returns is given up. Its error stands in the state.
    pub fn starting(
        sender: Arc<Sender>,
        on_start: impl FnMut(&StartOrder<'_>) -> Result<(), String> + Send + 'static,
    ) -> Arc<ControlledSender> {
        ControlledSender::make(sender, Some(Mutex::new(Box::new(on_start))))
    }

    fn make(sender: Arc<Sender>, on_start: Option<Mutex<OnStart>>) -> Arc<ControlledSender> {
        let starter = Arc::new(Starter { on_start, runs: Mutex::default(), ended: Condvar::new() });
        Arc::new(ControlledSender { sender, starter })
    }

    /// Notes that the program works on a flow by itself until the value is dropped. A stop then also ends what is between two
    /// transfers, or before the first one: further starts return [`SendError::Cancelled`](crate::sender::SendError::Cancelled).
    /// Without it a stop ends a running transfer only.
    pub fn begin_work(&self, flow: &Flow) -> OwnWork {
        self.starter.runs.lock().own.push(flow.name().clone());
        OwnWork { starter: self.starter.clone(), flow: flow.clone() }
    }

    /// Returns the number of starts by command so far, and true if the work of one is under way.
    pub fn starts(&self) -> (u64, bool) {
        let runs = self.starter.runs.lock();
        (runs.starts, runs.flow.is_some())
    }

    /// Cancels the work that a start began, waits for its end, resumes all flows, and refuses further starts. Commands that are being carried
    /// out may still hold the sender.
    pub fn end(&self) {
        let mut runs = self.starter.runs.lock();
        runs.ended = true;
        if let Some(flow) = &runs.flow {
            flow.set_halted(true);
        }
        let worker = runs.worker.take();
        drop(runs);
        // Nobody could resume them afterwards.
        self.sender.flows().iter().for_each(Flow::resume);
        // The callback itself may hold the last reference.
        if let Some(worker) = worker.filter(|worker| worker.thread().id() != std::thread::current().id()) {
            let _ = worker.join();
        }
    }

    fn names(&self) -> Vec<Name> {
        self.sender.flows().iter().map(|flow| flow.name().clone()).collect()
    }

    /// Returns the named flow, or all flows.
    fn flows(&self, named: Option<&Name>) -> Result<Vec<&Flow>, String> {
        match named {
            None => Ok(self.sender.flows().iter().collect()),
            Some(name) => self.sender.flow(name).map(|flow| vec![flow]).ok_or_else(|| no_flow(name, &self.names())),
        }
    }

    fn start(&self, command: &StartCommand) -> Result<(), String> {
        if self.starter.on_start.is_none() {
            return Err("its program begins transfers itself; pace, pause, resume and stop are possible".to_owned());
        }
        let flow = match self.flows(command.flow.as_ref())?.as_slice() {
            [one] => (*one).clone(),
            _ => return Err(format!("it has several flows; name one of {}", quoted(&self.names()))),
        };
        let mut runs = self.starter.runs.lock();
        if runs.ended {
            return Err("its program is ending".to_owned());
        }
        if let Some(busy) = &runs.flow {
            return Err(format!(
                "flow '{}' is sending what an earlier start began; stop it first, or wait for its end",
                busy.name()
            ));
        }
        if let Some(former) = runs.worker.take() {
            // It has ended; only its thread remains.
            let _ = former.join();
        }
        if !runs.works_on(&flow) {
            flow.set_halted(false);
        }
        let (starter, own, command) = (self.starter.clone(), flow.clone(), command.clone());
        runs.worker = Some(spawn("bulk-control-start", move || starter.run(&own, &command)).map_err(|why| why.to_string())?);
        runs.flow = Some(flow);
        runs.starts += 1;
        runs.failure = None;
        Ok(())
    }

    fn stop(&self, named: Option<&Name>) -> Result<(), String> {
        let flows = self.flows(named)?;
        let mut runs = self.starter.runs.lock();
        let mut any = false;
        for flow in flows {
            let works = runs.works_on(flow);
            if works {
                flow.set_halted(true);
            }
            if flow.cancel() || works {
                any = true;
                flow.resume();
            }
        }
        if !any {
            let what = named.map_or("no flow is sending".to_owned(), |name| format!("flow '{name}' is not sending"));
            return Err(format!("{what}; start it first"));
        }
        let waits_for = |runs: &Runs| runs.flow.as_ref().is_some_and(|own| named.is_none_or(|name| name == own.name()));
        self.starter.ended.wait_while_for(&mut runs, |runs| waits_for(runs), STOP_WAIT);
        Ok(())
    }
}

fn quoted(names: &[Name]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

impl Runs {
    /// Returns true if a start or the program itself works on the flow.
    fn works_on(&self, flow: &Flow) -> bool {
        self.flow.as_ref().is_some_and(|own| own.name() == flow.name()) || self.own.contains(flow.name())
    }
}

impl Starter {
    fn run(&self, flow: &Flow, command: &StartCommand) {
        let order = StartOrder { flow, parameter: &command.parameter, file: command.file.as_deref() };
        let ended = match &self.on_start {
            Some(on_start) => catch_unwind(AssertUnwindSafe(|| on_start.lock()(&order))),
            None => Ok(Ok(())),
        };
        if flow.state().phase == Phase::Data {
            flow.reset();
        }
        let mut runs = self.runs.lock();
        // Under the lock: a stop that comes now finds no work, and cancels nothing of the program's own.
        runs.flow = None;
        if !runs.works_on(flow) {
            flow.set_halted(false);
        }
        runs.failure = match &ended {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why.clone()),
            Err(_) => Some("the program's callback panicked".to_owned()),
        };
        self.ended.notify_all();
        drop(runs);
        if let Err(panic) = ended {
            // The worker reports it.
            std::panic::resume_unwind(panic);
        }
    }
}

impl Controllable for ControlledSender {
    fn state(&self, name: &Name, with_report: bool) -> ControlState {
        let report = self.sender.state();
        let runs = self.starter.runs.lock();
        ControlState {
            name: name.clone(),
            kind: ControlKind::Sender,
            process: String::new(),
            source: String::new(),
            stream: report.stream.clone(),
            active: runs.flow.is_some() || !runs.own.is_empty() || report.flows.iter().any(|flow| flow.phase == Phase::Data),
            starts: runs.starts,
            failure: runs.failure.clone(),
            report: if with_report { fitted(json!({"sender": report})) } else { serde_json::Value::Null },
        }
    }

    fn obey(&self, command: &ControlCommand) -> Result<(), String> {
        match command {
            ControlCommand::State => {}
            ControlCommand::Start(start) => self.start(start)?,
            ControlCommand::Pace { flow, bytes_per_s } => {
                let rate = checked_rate(*bytes_per_s)?;
                self.flows(flow.as_ref())?.into_iter().for_each(|flow| flow.set_throttle(rate));
            }
            ControlCommand::Pause { flow } => self.flows(flow.as_ref())?.into_iter().for_each(Flow::pause),
            ControlCommand::Resume { flow } => self.flows(flow.as_ref())?.into_iter().for_each(Flow::resume),
            ControlCommand::Stop { flow } => self.stop(flow.as_ref())?,
            ControlCommand::Open(_) | ControlCommand::Close => {
                return Err("it is a sender, which obeys start, pace, pause, resume and stop".to_owned());
            }
        }
        Ok(())
    }
}

impl Drop for ControlledSender {
    fn drop(&mut self) {
        self.end();
    }
}
