//! The two ends of a service on real sockets: a question at once after its beginning, and an answer at its end.

use std::{
    path::Path,
    sync::{Mutex, mpsc::channel},
    time::Duration,
};

use tampu_bus::{
    Participant, QosTable,
    connect::{Node, NodeSettings, Settings},
    service::{Limits, Permission, Request, call, serve},
};
use tampu_types::{SourceName, TopicName};

/// Longest wait of the test; far longer than it takes, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);
const ROUNDS: usize = 100;

fn join(directory: &Path, name: &str) -> Participant {
    let settings = Settings::isolated(directory);
    let domain = settings.domain.clone();
    Participant::on(settings.open().unwrap(), domain, SourceName::new(name).unwrap(), QosTable::default()).unwrap()
}

fn ask(asker: &Participant, service: &TopicName) -> Result<String, String> {
    call(asker, service.as_str(), "", PATIENCE).unwrap().first().json().map_err(|why| why.to_string())
}

#[test]
fn a_service_that_was_awaited_gets_the_questions_that_are_asked_then() {
    let run = tempfile::tempdir().unwrap();
    let _node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let (server, asker) = (join(run.path(), "server"), join(run.path(), "asker"));
    for round in 0..ROUNDS {
        let name = TopicName::new(format!("test/{round}")).unwrap();
        let answer = |request: Request| _ = request.answer(&"here");
        let _serving = serve(&server, &name, Permission::Everybody, &Limits::inline(), answer).unwrap();
        server.await_declared(PATIENCE);
        assert_eq!(ask(&asker, &name), Ok("here".to_owned()), "round {round}");
    }
}

#[test]
fn an_answer_under_way_arrives_though_its_process_leaves() {
    let run = tempfile::tempdir().unwrap();
    let _node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let asker = join(run.path(), "asker");
    let name = TopicName::new("test/stop").unwrap();
    for round in 0..ROUNDS {
        let server = join(run.path(), "server");
        let (stop, stopped) = channel();
        let stop = Mutex::new(stop);
        let limits = Limits { ending: PATIENCE, ..Limits::on_threads("test answer", 4) };
        let obey = move |request: Request| {
            stop.lock().unwrap().send(()).unwrap();
            // The other thread leaves meanwhile.
            std::thread::yield_now();
            request.answer(&"done");
        };
        let serving = serve(&server, &name, Permission::Everybody, &limits, obey).unwrap();
        server.await_declared(PATIENCE);
        let leaver = std::thread::spawn(move || {
            stopped.recv().unwrap();
            drop(serving);
            drop(server);
        });
        assert_eq!(ask(&asker, &name), Ok("done".to_owned()), "round {round}");
        leaver.join().unwrap();
    }
}
