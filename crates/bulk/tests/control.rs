//! Commands of other programs to senders and receivers.

mod support;

/// The transport of the data.
pub const WAY: tampu_bulk::message::Transport = tampu_bulk::message::Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

use std::sync::Arc;

use support::{Log, Told, WAIT, bytes_of, eventually, pattern};
use tampu_bulk::{
    Name, Receiver, Sender,
    control::{
        ControlCommand, ControlError, ControlState, ControlledReceiver, ControlledSender, OpenCommand, StartCommand, command,
        list, offer_receiver, offer_sender,
    },
    directory,
    handler::Handler,
    receiver::{FlowSettings, Identity, ReceiverSettings},
    sender::{SendError, SendFlow},
    sending::Phase,
};
use tampu_bus::{Participant, connect::Settings, service::CallError};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A bus with a program that is controlled, and one that controls.
struct Site {
    _dir: tempfile::TempDir,
    correlator: Participant,
    operator: Participant,
}

impl Site {
    fn new() -> Site {
        let dir = tempfile::tempdir().unwrap();
        let config = Settings::isolated(dir.path());
        let join = |name: &str| Participant::open(config.clone(), name.parse().unwrap()).unwrap();
        Site { correlator: join("CORR"), operator: join("operator"), _dir: dir }
    }

    /// Waits until the programs have found each other and so many offers are seen.
    fn await_offers(&self, count: usize) {
        eventually(|| list(&self.operator, WAIT).unwrap().len() == count);
    }

    fn ask(&self, offer: &str, asked: ControlCommand) -> Result<ControlState, ControlError> {
        command(&self.operator, &name(offer), asked, WAIT)
    }

    #[track_caller]
    fn refused(&self, offer: &str, asked: ControlCommand) -> String {
        match self.ask(offer, asked) {
            Err(ControlError::Call(CallError::Refused { why, .. })) => why,
            other => panic!("{other:?}"),
        }
    }

    /// A sender with these flows, and a receiver for them.
    fn sender(&self, flows: &[&str]) -> (Arc<Sender>, Receiver, Vec<Log>) {
        let logs: Vec<Log> = flows.iter().map(|_| Log::default()).collect();
        let taken = flows.iter().zip(&logs).map(|(flow, log)| {
            let handler: Box<dyn Handler> = Box::new(log.clone());
            (FlowSettings::new(name(flow)), handler)
        });
        let identity = Identity::of(&self.operator);
        let receiver = Receiver::open(identity, name("correlator"), ReceiverSettings::default(), taken.collect()).unwrap();
        let flow = |flow: &&str| SendFlow { ack_wait: WAIT, wait: WAIT, connect_wait: WAIT, ..SendFlow::new(name(flow)) };
        let sender = Sender::open(Identity::of(&self.correlator), name("correlator"), flows.iter().map(flow).collect());
        let sender = Arc::new(sender.unwrap());
        sender.connect(&receiver.target()).unwrap();
        (sender, receiver, logs)
    }
}

const STOP: ControlCommand = ControlCommand::Stop { flow: None };
const PAUSE: ControlCommand = ControlCommand::Pause { flow: None };
const RESUME: ControlCommand = ControlCommand::Resume { flow: None };

fn pace(bytes_per_s: f64) -> ControlCommand {
    ControlCommand::Pace { flow: None, bytes_per_s }
}

fn start(parameter: &str) -> ControlCommand {
    ControlCommand::Start(StartCommand { parameter: parameter.to_owned(), ..StartCommand::default() })
}

#[test]
fn a_stop_while_a_short_block_is_paced_is_not_lost_and_the_end_of_an_offer_resumes() {
    let site = Site::new();
    let (sender, _receiver, _logs) = site.sender(&["spectra"]);
    let flow = sender.flows()[0].clone();
    let controlled = ControlledSender::new(sender.clone());
    let offer = offer_sender(&site.correlator, name("corr"), &controlled).unwrap();
    site.await_offers(1);
    site.ask("corr", pace(1000.0)).unwrap();
    flow.start(b"short").unwrap();
    std::thread::scope(|scope| {
        // One frame, after which the call sleeps for minutes.
        let sending = scope.spawn(|| flow.send(pattern(1, 200_000)));
        eventually(|| flow.state().bytes == 200_000);
        site.ask("corr", STOP).unwrap();
        let sent = sending.join().unwrap();
        assert!(matches!(sent, Err(SendError::Cancelled { .. })), "{sent:?}");
    });
    flow.stop().unwrap();
    flow.start(b"paused").unwrap();
    site.ask("corr", pace(0.0)).unwrap();
    site.ask("corr", PAUSE).unwrap();
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| flow.send(pattern(2, 1000)));
        drop(offer);
        controlled.end();
        sending.join().unwrap().unwrap();
    });
    flow.stop().unwrap();
}

#[test]
fn a_sender_is_started_paced_paused_and_stopped_from_another_program() {
    let site = Site::new();
    let (sender, _receiver, logs) = site.sender(&["spectra"]);
    let controlled = ControlledSender::starting(sender.clone(), |order| {
        order.flow.start(order.parameter.as_bytes()).map_err(|why| why.to_string())?;
        // Blocks until it is stopped. At the lowest rate one frame takes minutes.
        let block = pattern(1, 300_000);
        let why = loop {
            if let Err(why) = order.flow.send(block.clone()) {
                break why;
            }
        };
        assert!(matches!(why, SendError::Cancelled { .. }), "{why}");
        order.flow.stop().map(drop).map_err(|why| why.to_string())
    });
    let _offer = offer_sender(&site.correlator, name("corr"), &controlled).unwrap();
    site.await_offers(1);
    let found = list(&site.operator, WAIT).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_str(), found[0].source.as_str(), found[0].active), ("corr", "CORR", false));
    assert!(site.refused("corr", STOP).contains("no flow is sending; start it first"));

    // A pause before the start holds the data, not the parameter.
    site.ask("corr", PAUSE).unwrap();
    let state = site.ask("corr", start("uid://A002/X1")).unwrap();
    assert!(state.active && state.starts == 1, "{state:?}");
    let flow = &sender.flows()[0];
    eventually(|| logs[0].seen().contains(&Told::Start(b"uid://A002/X1".to_vec())));
    let state = site.ask("corr", ControlCommand::State).unwrap();
    let reported = &state.report["sender"]["flows"][0];
    assert_eq!((&reported["paused"], &reported["bytes"], &reported["phase"]), (&true.into(), &0.into(), &"data".into()));
    assert!(site.refused("corr", start("")).contains("flow 'spectra' is sending what an earlier start began; stop it first"));

    // Another rate holds for the running transfer, and a call that sleeps for the former one goes on.
    site.ask("corr", pace(1e3)).unwrap();
    site.ask("corr", RESUME).unwrap();
    eventually(|| flow.state().bytes >= 1000);
    let state = site.ask("corr", pace(0.0)).unwrap();
    assert_eq!(state.report["sender"]["flows"][0]["throttle"], serde_json::Value::Null);
    eventually(|| flow.state().bytes >= 1_000_000);

    let state = site.ask("corr", STOP).unwrap();
    assert!(!state.active && state.failure.is_none(), "{state:?}");
    let told = logs[0].take_until_stop();
    let Some(Told::Stop { complete: true, stopped: true, bytes, .. }) = told.last() else { panic!("{:?}", told.last()) };
    assert_eq!(bytes_of(&told).len() as u64, *bytes);
    // The next start is not affected by the stop.
    site.ask("corr", start("uid://A002/X2")).unwrap();
    eventually(|| flow.state().bytes >= 1_000_000);
    drop((_offer, controlled));
    assert_ne!(flow.state().phase, Phase::Data, "the end of the control ends what it began");
    assert!(matches!(site.ask("corr", STOP), Err(ControlError::Missing { .. })));
}

#[test]
fn what_a_started_callback_leaves_open_is_given_up_and_its_error_is_reported() {
    let site = Site::new();
    let (sender, _receiver, logs) = site.sender(&["spectra"]);
    let controlled = ControlledSender::starting(sender, |order| {
        order.flow.start(b"").map_err(|why| why.to_string())?;
        if order.parameter == "panic" {
            panic!("as the test wants");
        }
        order.flow.send(pattern(1, 10)).map_err(|why| why.to_string())?;
        Err(format!("no file '{}' is offered", order.file.unwrap_or_default()))
    });
    let _offer = offer_sender(&site.correlator, name("corr"), &controlled).unwrap();
    site.await_offers(1);
    let file = StartCommand { file: Some("x.bin".to_owned()), ..StartCommand::default() };
    site.ask("corr", ControlCommand::Start(file)).unwrap();
    let failure = || site.ask("corr", ControlCommand::State).unwrap().failure;
    eventually(|| failure().as_deref() == Some("no file 'x.bin' is offered"));
    assert_eq!(logs[0].take_until_stop().last(), Some(&Told::Reset));
    site.ask("corr", start("panic")).unwrap();
    eventually(|| failure().as_deref() == Some("the program's callback panicked"));
    assert_eq!(logs[0].take_until_stop().last(), Some(&Told::Reset));
    assert!(!site.ask("corr", ControlCommand::State).unwrap().active);
}

#[test]
fn transfers_that_the_program_begins_itself_are_paced_and_stopped_but_not_started() {
    let site = Site::new();
    let (sender, _receiver, logs) = site.sender(&["spectra", "wvr"]);
    let controlled = ControlledSender::new(sender.clone());
    let _offer = offer_sender(&site.correlator, name("corr"), &controlled).unwrap();
    site.await_offers(1);
    assert!(site.refused("corr", start("")).contains("its program begins transfers itself"));
    let other = ControlCommand::Stop { flow: Some(name("autos")) };
    assert_eq!(site.refused("corr", other), "'corr': there is no flow 'autos'; name one of 'spectra', 'wvr'");
    assert!(site.refused("corr", pace(5.0)).contains("invalid rate of 5 bytes/s"));
    assert!(site.refused("corr", ControlCommand::Close).contains("it is a sender"));
    let flow = sender.flow(&name("wvr")).unwrap().clone();
    flow.start(b"").unwrap();
    let sending = std::thread::spawn({
        let flow = flow.clone();
        move || loop {
            if let Err(why) = flow.send(pattern(1, 1000)) {
                return why;
            }
        }
    });
    eventually(|| flow.state().bytes > 10_000);
    let wvr = Some(name("wvr"));
    assert!(site.refused("corr", ControlCommand::Stop { flow: Some(name("spectra")) }).contains("'spectra' is not sending"));
    site.ask("corr", ControlCommand::Pause { flow: wvr.clone() }).unwrap();
    // The block that was under way may go; afterwards nothing moves, however many questions are answered meanwhile.
    let before = flow.state().bytes;
    for _ in 0..50 {
        site.ask("corr", ControlCommand::State).unwrap();
    }
    assert!(flow.state().bytes <= before + 1000, "{before}, then {}", flow.state().bytes);
    assert!(!sender.flow(&name("spectra")).unwrap().state().paused);
    // A stop reaches a paused call.
    site.ask("corr", ControlCommand::Stop { flow: wvr }).unwrap();
    assert!(matches!(sending.join().unwrap(), SendError::Cancelled { .. }));
    assert!(matches!(flow.send(pattern(1, 1)), Err(SendError::Cancelled { .. })), "until its owner ends the transfer");
    assert!(flow.stop().unwrap().complete());
    assert!(matches!(logs[1].take_until_stop().last(), Some(Told::Stop { complete: true, .. })));
    flow.start(b"").unwrap();
    flow.send(pattern(1, 1)).unwrap();
    assert!(flow.stop().unwrap().complete());
}

#[test]
fn a_stop_ends_the_work_of_a_program_between_two_transfers() {
    let site = Site::new();
    let (sender, _receiver, _logs) = site.sender(&["spectra", "wvr"]);
    let controlled = ControlledSender::new(sender.clone());
    let _offer = offer_sender(&site.correlator, name("corr"), &controlled).unwrap();
    site.await_offers(1);
    let flow = &sender.flows()[0];
    let work = controlled.begin_work(flow);
    assert!(list(&site.operator, WAIT).unwrap()[0].active, "it may be stopped");
    flow.start(b"").unwrap();
    flow.send(pattern(1, 10)).unwrap();
    // After the last piece: the end of this transfer does not undo the stop.
    site.ask("corr", STOP).unwrap();
    assert!(flow.stop().unwrap().complete() && flow.is_cancelled());
    assert!(matches!(flow.start(b""), Err(SendError::Cancelled { .. })));
    // Between two transfers.
    site.ask("corr", STOP).unwrap();
    assert!(site.refused("corr", ControlCommand::Stop { flow: Some(name("wvr")) }).contains("'wvr' is not sending"));
    drop(work);
    assert!(site.refused("corr", STOP).contains("no flow is sending"), "the work has ended");
    flow.start(b"").unwrap();
    assert!(flow.stop().unwrap().complete());
}

#[test]
fn a_caller_ends_its_own_wait_for_a_pause_or_a_rate() {
    let site = Site::new();
    let (sender, _receiver, _logs) = site.sender(&["spectra"]);
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    flow.pause();
    let mut asked = 0;
    let sent = flow.send_piece_while(pattern(1, 10), true, &mut || {
        asked += 1;
        // It may use the flow meanwhile.
        asked < 3 && flow.state().paused
    });
    assert!(matches!(sent, Err(SendError::Cancelled { .. })) && asked == 3 && !flow.is_cancelled(), "{sent:?} {asked}");
    flow.resume();
    flow.set_throttle(Some(1000.0));
    let sent = flow.send_piece_while(pattern(2, 200_000), true, &mut || false);
    assert!(matches!(sent, Err(SendError::Cancelled { .. })), "one frame is followed by minutes: {sent:?}");
    flow.set_throttle(None);
    flow.send(pattern(3, 10)).unwrap();
    assert!(flow.stop().unwrap().complete());
}

#[test]
fn a_receiver_is_opened_with_settings_and_closed_from_another_program() {
    let site = Site::new();
    let log = Log::default();
    let (identity, told, own) = (Identity::of(&site.correlator), log.clone(), [name("spectra"), name("wvr")]);
    let controlled = ControlledReceiver::new(&site.correlator, name("correlator"), move |open| {
        let flow = |flow: &&Name| -> Result<(FlowSettings, Box<dyn Handler>), String> {
            Ok((open.narrow(FlowSettings::new((*flow).clone()))?, Box::new(told.clone())))
        };
        let flows = open.choose(&own)?.iter().map(flow).collect::<Result<_, _>>()?;
        Receiver::open(identity.clone(), name("correlator"), ReceiverSettings::default(), flows).map_err(|why| why.to_string())
    });
    let _offer = offer_receiver(&site.correlator, name("archive"), &controlled).unwrap();
    site.await_offers(1);
    assert!(!list(&site.operator, WAIT).unwrap()[0].active);
    assert_eq!(site.refused("archive", ControlCommand::Close), "'archive': it is closed already; open it first");
    let only = |flow: &str| ControlCommand::Open(OpenCommand { flows: vec![name(flow)], ..OpenCommand::default() });
    assert!(site.refused("archive", only("autos")).contains("no flow 'autos'; name one of 'spectra', 'wvr'"));
    assert!(site.ask("archive", ControlCommand::State).unwrap().failure.is_some());
    let state = site.ask("archive", only("wvr")).unwrap();
    assert!(state.active && state.failure.is_none(), "{state:?}");
    let flows = state.report["receiver"]["flows"].as_array().unwrap();
    assert!(flows.len() == 1 && flows[0]["flow"] == "wvr", "{flows:?}");
    assert!(site.refused("archive", only("wvr")).contains("it is open already; close it first"));
    assert!(site.refused("archive", STOP).contains("it is a receiver"));

    let flow = SendFlow { ack_wait: WAIT, connect_wait: WAIT, ..SendFlow::new(name("wvr")) };
    let sender = Sender::open(Identity::of(&site.operator), name("correlator"), vec![flow]).unwrap();
    let sender = Arc::new(sender);
    let _following = directory::follow(&site.operator, &sender).unwrap();
    let flow = &sender.flows()[0];
    for opened in [1, 2] {
        flow.start(b"").unwrap();
        flow.send(pattern(opened, 10_000)).unwrap();
        assert!(flow.stop().unwrap().complete());
        assert_eq!(bytes_of(&log.take_until_stop()), pattern(opened, 10_000));
        let state = site.ask("archive", ControlCommand::Close).unwrap();
        assert!(!state.active && state.starts == opened && state.report.is_null(), "{state:?}");
        eventually(|| flow.connected() == 0);
        site.ask("archive", ControlCommand::Open(OpenCommand::default())).unwrap();
    }
}

#[test]
fn a_name_that_nobody_or_more_than_one_program_offers_is_told_with_the_way_out() {
    let site = Site::new();
    let missing = site.ask("corr", STOP).unwrap_err();
    assert!(missing.is_unreachable() && missing.to_string().starts_with("no program offers the control 'corr'"), "{missing}");
    let (sender, _receiver, _) = site.sender(&["spectra"]);
    let controlled = ControlledSender::new(sender);
    let _one = offer_sender(&site.correlator, name("Corr"), &controlled).unwrap();
    site.await_offers(1);
    let missing = site.ask("corr", STOP).unwrap_err();
    assert!(missing.to_string().contains("; there are 'Corr'; a program"), "names have case: {missing}");
    let _two = offer_sender(&site.operator, name("Corr"), &controlled).unwrap();
    site.await_offers(2);
    let several = site.ask("Corr", STOP).unwrap_err();
    assert!(!several.is_unreachable() && several.to_string().contains("offer the control 'Corr'"), "{several}");
}
