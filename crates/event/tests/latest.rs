//! Subscribers that want only the newest value, of a server that waits for nobody and uses its memory again.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tampu_bus::{
    Participant, QosTable,
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
};
use tampu_event::{
    client::{Client, ClientSettings},
    server::{Server, ServerSettings},
};
use tampu_types::{
    Domain, SourceName,
    event::{AttributeConfig, DataType, Format, Kinds, Quality, Reason, Shape, ValueView},
};

mod support;
use support::wish;

/// Length of a value. Four fill the memory that a server lends to several readers at first.
const LENGTH: usize = 1 << 20;
const CLIENTS: usize = 5;
const ROUNDS: u64 = 3000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Values that one subscriber was given.
#[derive(Debug, Default)]
struct Given {
    is_bound: bool,
    whole: u64,
    torn: Vec<(Reason, u64)>,
    /// Number of the last event of which it knows.
    last: u64,
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let (begun, pause) = (Instant::now(), Gate::default());
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        pause.wait_host(0, Duration::from_millis(1));
    }
}

#[test]
fn who_wants_the_newest_value_gets_it_whole() {
    let directory = tempfile::tempdir().unwrap();
    let domain = Domain::new("test").unwrap();
    let config = Settings::isolated(directory.path().join("run")).in_domain(domain.clone());
    let _node = Node::start(NodeSettings::new(config.clone())).unwrap();
    let join = |name: &str| {
        Participant::on(config.open().unwrap(), domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
    };
    let server = Server::start(join("camera"), ServerSettings::default()).unwrap();
    let mut attribute = AttributeConfig::new("lab/camera/1/image".parse().unwrap(), DataType::UChar, Format::Spectrum);
    attribute.max_x = LENGTH as u32;
    let image = server.declare(attribute).unwrap();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = Client::start(join(&format!("panel {number}")), ClientSettings::default()).unwrap();
            let given: Arc<Mutex<Given>> = Arc::default();
            let into = given.clone();
            let mut wish = wish(&["lab/camera/1/image"]).kinds(Kinds::USER);
            wish.reliable = false;
            let subscription = client.subscribe(wish, move |event| {
                let mut given = into.lock().unwrap();
                given.is_bound = true;
                given.last = given.last.max(event.number);
                let Some(ValueView::UChar(bytes)) = event.reading.and_then(|reading| reading.value) else { return };
                if bytes == vec![event.number as u8; LENGTH] {
                    given.whole += 1;
                } else {
                    given.torn.push((event.reason, event.number));
                }
            });
            (client, given, subscription)
        })
        .collect();
    let all = |is_so: fn(&Given) -> bool| clients.iter().all(|(_, given, _)| is_so(&given.lock().unwrap()));
    until("all are bound", || all(|given| given.is_bound) && image.readers() == CLIENTS);
    for number in 1..=ROUNDS {
        let mut lent = image.lend::<u8>(Shape::spectrum(LENGTH as u32)).unwrap();
        lent.fill(number as u8);
        assert_eq!(lent.publish(Kinds::USER, Quality::Valid).unwrap().number, number);
    }
    until("all know of the last event", || all(|given| given.last == ROUNDS));
    for (_, given, _) in &clients {
        let given = given.lock().unwrap();
        println!("whole {}", given.whole);
        assert!(given.torn.is_empty() && given.whole > 0, "{given:?}");
    }
}
