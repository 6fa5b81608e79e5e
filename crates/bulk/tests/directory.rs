//! Receivers and senders that find each other on the bus.

mod support;

/// The transport of the data.
pub const WAY: tampu_bulk::message::Transport = tampu_bulk::message::Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

use std::{sync::Arc, time::Duration};

use support::{Log, WAIT, bytes_of, eventually, pattern};
use tampu_bulk::{
    Receiver, Sender,
    directory::{self, Unmatched},
    handler::Handler,
    receiver::{FlowSettings, Identity, ReceiverSettings},
    sender::SendFlow,
};
use tampu_bus::{Participant, Subject, connect::Settings};
use tampu_types::{Partition, TopicName};

fn flows(names: &[&str]) -> Vec<SendFlow> {
    let flow = |name: &&str| SendFlow { ack_wait: WAIT, wait: WAIT, ..SendFlow::new(name.parse().unwrap()) };
    names.iter().map(flow).collect()
}

fn receiver(participant: &Participant, stream: &str, names: &[&str]) -> (Receiver, Vec<Log>) {
    let logs: Vec<Log> = names.iter().map(|_| Log::default()).collect();
    let flow = |(name, log): (&&str, &Log)| {
        let handler: Box<dyn Handler> = Box::new(log.clone());
        (FlowSettings::new(name.parse().unwrap()), handler)
    };
    let flows = names.iter().zip(&logs).map(flow).collect();
    let settings = ReceiverSettings::default();
    (Receiver::open(Identity::of(participant), stream.parse().unwrap(), settings, flows).unwrap(), logs)
}

#[test]
fn flows_of_one_name_connect_and_the_others_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let config = Settings::isolated(dir.path());
    let join = |name: &str| Participant::open(config.clone(), name.parse().unwrap()).unwrap();
    let (correlator, archive, quicklook) = (join("CORR"), join("archive"), join("quicklook"));

    let (one, logs) = receiver(&archive, "Correlator", &["spectra", "wvr"]);
    let announced = directory::announce(&archive, &one).unwrap();
    let sender = Sender::open(Identity::of(&correlator), "correlator".parse().unwrap(), flows(&["Spectra", "autos"])).unwrap();
    let sender = Arc::new(sender);
    let following = directory::follow(&correlator, &sender).unwrap();
    let spectra = sender.flow(&"spectra".parse().unwrap()).unwrap();
    assert!(spectra.wait_for(1, WAIT), "a receiver that was there before");
    let unmatched = |flow: &str, at_sender| Unmatched { receiver: "archive".to_owned(), flow: flow.parse().unwrap(), at_sender };
    eventually(|| following.unmatched() == [unmatched("autos", false), unmatched("wvr", true)]);

    // A receiver that comes later, and one of another stream.
    let (_other, _) = receiver(&quicklook, "weather", &["spectra"]);
    let _other_announced = directory::announce(&quicklook, &_other).unwrap();
    let (two, more) = receiver(&quicklook, "correlator", &["spectra", "autos"]);
    let _two_announced = directory::announce(&quicklook, &two).unwrap();
    assert!(spectra.wait_for(2, WAIT));
    assert!(sender.flow(&"autos".parse().unwrap()).unwrap().wait_for(1, WAIT));
    assert_eq!(spectra.connected(), 2);
    spectra.start(b"p").unwrap();
    spectra.send(pattern(1, 100_000)).unwrap();
    assert!(spectra.stop().unwrap().complete());
    for log in [&logs[0], &more[0]] {
        assert_eq!(bytes_of(&log.take_until_stop()), pattern(1, 100_000));
    }
    assert_eq!(logs[1].seen(), [], "nobody has said anything to a flow without a sender");

    // One receiver withdraws its declaration, and one dies without a word.
    drop(announced);
    drop(one);
    eventually(|| spectra.connected() == 1);
    assert_eq!(spectra.state().receivers.len(), 2, "who took part in the last transfer is in its account until the next");
    drop((two, quicklook));
    eventually(|| spectra.connected() == 0);
    assert!(!spectra.wait_for(1, Duration::from_millis(1)));
}

#[test]
fn a_receiver_that_is_announced_in_another_life_keeps_its_connection() {
    let dir = tempfile::tempdir().unwrap();
    let config = Settings::isolated(dir.path());
    let join = |name: &str| Participant::open(config.clone(), name.parse().unwrap()).unwrap();
    // A client's session with its gateway before and after the restart of the hub.
    let (correlator, before, after) = (join("CORR"), join("archive"), join("archive"));
    let (one, logs) = receiver(&before, "correlator", &["spectra", "wvr"]);
    let announced = directory::announce(&before, &one).unwrap();
    let sender = Sender::open(Identity::of(&correlator), "correlator".parse().unwrap(), flows(&["spectra"])).unwrap();
    let sender = Arc::new(sender);
    let following = directory::follow(&correlator, &sender).unwrap();
    let spectra = sender.flow(&"spectra".parse().unwrap()).unwrap();
    assert!(spectra.wait_for(1, WAIT));
    let transfer = |parameter: &[u8]| {
        spectra.start(parameter).unwrap();
        spectra.send(pattern(1, 100_000)).unwrap();
        let report = spectra.stop().unwrap();
        assert!(report.complete() && report.deliveries.len() == 1, "{report:?}");
        assert_eq!(bytes_of(&logs[0].take_until_stop()), pattern(1, 100_000));
    };
    transfer(b"before");
    let reconnects = || spectra.state().receivers.iter().map(|receiver| receiver.reconnects).collect::<Vec<_>>();
    assert_eq!(reconnects(), [0]);

    // The declaration of the next life has another second flow, which shows that it has arrived.
    let topic = TopicName::new(directory::RECEIVERS).unwrap();
    let partition = Partition::everybody();
    let subject = Subject::new(&topic, &partition);
    let writer = after.writer_for(&subject, directory::DECLARATION, directory::default_qos()).unwrap();
    let again = format!(
        r#"{{"receiver":7,"stream":"correlator","target":"{}","flows":[{{"name":"spectra","transports":["tcp"]}},{{"name":"autos","transports":["tcp"]}}]}}"#,
        one.target()
    );
    writer.write_urgent(again.as_bytes()).unwrap();
    eventually(|| following.unmatched().iter().any(|one| one.flow == "autos".parse().unwrap() && one.at_sender));
    transfer(b"both");
    drop(announced);
    eventually(|| following.unmatched().iter().all(|one| one.flow != "wvr".parse().unwrap()));
    transfer(b"after");
    assert_eq!(reconnects(), [0], "the connection is the first one");
}
