//! The zenoh engine on real sockets and real processes: what the contract of an engine asks of it, and what it does when
//! nodes and processes come and go. Child processes are this test program again, in the role `TAMPU_TEST_ROLE` names.

use std::{
    collections::BTreeSet,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

#[path = "support/engine.rs"]
mod peers;
#[path = "support/scale.rs"]
mod scale;

use bytes::Bytes;
use peers::{PATIENCE, Process, Seen, ask, domain, gone, here, part, receive, repeat_until, send_until_received, text, watch};
use scale::{Part, measure, take_part};
use tampu_bus::{
    clock::Gate,
    connect::{Encryption, Endpoint, Key, Lan, Node, NodeError, NodeSettings, Settings},
    engine::{Answer, Class, Connected, Presence, Tick},
};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};

/// Starts of the keys that child processes announce. The engine reports the first; a node passes on the second.
const PLACES: [&str; 2] = ["here", "tampu/local/p"];

/// Not a test: what the child processes do. Ends with its input.
#[test]
fn child_process() {
    let Ok(role) = std::env::var("TAMPU_TEST_ROLE") else { return };
    let config = Settings::from_env().unwrap();
    let say = |line: &str| println!(">{line}");
    let mut commands = std::io::stdin().lines().map_while(Result::ok);
    if role == "node" {
        let _node = Node::start(NodeSettings::new(config)).unwrap();
        say("ready");
        commands.by_ref().for_each(drop);
        return;
    }
    let engine = config.open().unwrap();
    let _here: Vec<_> = PLACES.iter().map(|place| engine.announce(&format!("{place}/{role}")).unwrap()).collect();
    let (seen, _guard) = receive(&engine, &format!("to/{role}"));
    let me = role.clone();
    let _service = engine.answer("who", Arc::new(move |question| question.reply(Bytes::from(me.clone())).unwrap())).unwrap();
    say("ready");
    for command in commands {
        match command.split_once(' ') {
            Some(("send", to)) => {
                let outlet = engine.outlet(&format!("to/{to}"), Class::Data).unwrap();
                outlet.send(Bytes::from(role.clone())).unwrap();
                say("sent");
            }
            Some(("wait", from)) => {
                seen.wait(&format!("a message from {from}"), |items| items.iter().any(|item| item == from));
                say("received");
            }
            _ if command == "leave" => return,
            _ => say(&format!("connected {:?}", engine.connected())),
        }
    }
}

/// The threads of this process whose name is wanted, and if each blocks SIGPIPE.
fn blocking_threads(wanted: impl Fn(&str) -> bool) -> Vec<(String, bool)> {
    let read = |task: std::io::Result<std::fs::DirEntry>| {
        let path = task.ok()?.path();
        // A thread may end meanwhile.
        let name = std::fs::read_to_string(path.join("comm")).ok()?.trim().to_owned();
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?.trim();
        let mask = u64::from_str_radix(mask, 16).ok()?;
        wanted(&name).then_some((name, mask & 1 << 12 != 0))
    };
    std::fs::read_dir("/proc/self/task").unwrap().filter_map(read).collect()
}

#[test]
fn threads_of_the_engine_do_not_end_a_program_that_has_lost_a_connection() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let (writer, reader) = (node.client_settings().open().unwrap(), node.client_settings().open().unwrap());
    let (seen, _guard) = receive(&reader, "d/**");
    send_until_received(&writer, "d/log/info/.", "for everybody", &seen);
    let of_engine = |name: &str| ["app-", "net-", "tx-", "rx-", "acc-"].iter().any(|kind| name.starts_with(kind));
    let threads = blocking_threads(of_engine);
    assert!(threads.len() >= 4 && threads.iter().all(|(_, blocks)| *blocks), "{threads:?}");
}

#[test]
fn messages_reach_whoever_subscribed_and_the_sender_itself() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let writer = node.client_settings().open().unwrap();
    let reader = node.client_settings().open().unwrap();
    assert_eq!((writer.connected(), reader.connected()), (Connected::Node, Connected::Node));

    let (far, _far) = receive(&reader, "d/log/*/$*.operator.$*");
    let (near, _near) = receive(&writer, "d/**");
    let (other, _other) = receive(&reader, "d/log/*/.");
    let (hub, _hub) = {
        let engine = node.engine().unwrap();
        let (seen, guard) = receive(&engine, "d/log/info/**");
        (seen, (engine, guard))
    };
    send_until_received(&writer, "d/log/info/.developer.operator.scilog.", "for operators", &far);
    send_until_received(&writer, "d/log/info/.", "for everybody", &other);
    assert!(near.all().contains(&"for operators".to_owned()) && near.all().contains(&"for everybody".to_owned()));
    assert!(!far.all().contains(&"for everybody".to_owned()) && !other.all().contains(&"for operators".to_owned()));
    hub.wait("the hub's own engine hearing it", |items| items.iter().any(|item| item == "for everybody"));

    // In order, and of every length: shorter and longer than a frame, and than the copy limit.
    let lengths = Seen::new();
    let into = lengths.clone();
    let _sizes =
        reader.subscribe("size", Arc::new(move |bytes: Bytes, _: &str| into.push((bytes.len(), bytes.iter().all(|&b| b == 5)))));
    let outlet = writer.outlet("size", Class::Data).unwrap();
    for length in [1, 100, 20_000, 61_440, 1_000_000] {
        repeat_until("a message of any length arriving", || {
            outlet.send(Bytes::from(vec![5; length])).unwrap();
            lengths.all().last() == Some(&(length, true))
        });
    }
    let limit = writer.limits().message;
    assert!(outlet.send(Bytes::from(vec![0; limit + 1])).unwrap_err().to_string().contains(&limit.to_string()));
}

#[test]
fn what_is_dropped_is_taken_back() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let one = node.client_settings().open().unwrap();
    let two = node.client_settings().open().unwrap();
    let (dropped, guard) = receive(&two, "k");
    let (kept, _kept) = receive(&two, "k");
    send_until_received(&one, "k", "first", &dropped);
    drop(guard);
    let before = dropped.all().len();
    send_until_received(&one, "k", "second", &kept);
    assert_eq!(dropped.all().len(), before);
}

#[test]
fn questions_are_answered_by_all_and_the_end_is_told() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let (one, two, asker) =
        (node.client_settings().open().unwrap(), node.client_settings().open().unwrap(), node.client_settings().open().unwrap());
    assert_eq!(ask(&asker, "s/log/query", "anybody?", PATIENCE), [Answer::Unanswered]);

    let answering = |name: &'static str| -> tampu_bus::engine::Answerer {
        Arc::new(move |question| {
            // Answered later, by another worker and in two parts.
            std::thread::spawn(move || {
                let asked = text(question.payload());
                question.reply(Bytes::from(format!("{name} heard {asked} at {}", question.key()))).unwrap();
                question.reply(Bytes::from(vec![b'x'; 100_000])).unwrap();
            });
        })
    };
    let _one = one.answer("s/log/**", answering("one")).unwrap();
    let _two = two.answer("s/*/query", answering("two")).unwrap();
    let mut answers = Vec::new();
    repeat_until("both answering", || {
        answers = ask(&asker, "s/log/query", "what", PATIENCE);
        answers.len() == 5
    });
    assert_eq!(answers.last(), Some(&Answer::End));
    for name in ["one", "two"] {
        assert!(answers.contains(&part(&format!("{name} heard what at s/log/query"))), "{answers:?}");
    }

    // If the answerer keeps the question without an answer, the wait ends at the requested timeout.
    let kept = Seen::<()>::new();
    let questions = Mutex::new(Vec::new());
    let into = kept.clone();
    let _silent = two
        .answer(
            "silent",
            Arc::new(move |question| {
                questions.lock().unwrap().push(question);
                into.push(());
            }),
        )
        .unwrap();
    repeat_until("the silent one being asked", || {
        let answers = ask(&asker, "silent", "?", Duration::from_millis(50));
        assert_eq!(answers, [Answer::Unanswered]);
        !kept.all().is_empty()
    });

    // An empty answer is an answer.
    let _empty = one.answer("empty", Arc::new(drop)).unwrap();
    repeat_until("an empty answer", || ask(&asker, "empty", "?", PATIENCE) == [Answer::End]);
}

#[test]
fn whoever_is_announced_is_seen_now_and_later() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let one = node.client_settings().open().unwrap();
    let two = node.client_settings().open().unwrap();
    let before = one.announce("p/before").unwrap();
    let (seen, _guard) = watch(&two, "p/*");
    let _after = one.announce("p/after").unwrap();
    let _own = two.announce("p/own").unwrap();
    let all: BTreeSet<String> = ["p/before", "p/after", "p/own"].map(str::to_owned).into();
    let keys = |seen: &[Presence]| seen.iter().map(|presence| presence.key.clone()).collect::<BTreeSet<_>>();
    let first = seen.wait("all three being seen", |seen| keys(seen) == all);
    assert!(first.iter().all(|presence| presence.here) && first.len() == 3, "{first:?}");
    drop(before);
    let then = seen.wait("one leaving", |seen| seen.len() > 3);
    assert_eq!(then[3..], [gone("p/before")]);
}

#[test]
fn a_killed_process_is_told_while_the_others_stay() {
    PLACES.into_iter().for_each(killed_process);
}

fn killed_process(place: &str) {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let engine = node.client_settings().open().unwrap();
    let (seen, _guard) = watch(&engine, &format!("{place}/*"));
    let mut victim = Process::start("victim", run.path(), "local");
    let mut witness = Process::start("witness", run.path(), "local");
    seen.wait("both being seen", |seen| seen.len() == 2);
    victim.kill();
    let told = seen.wait("the death being told", |seen| seen.len() > 2);
    assert_eq!(told[2..], [gone(&format!("{place}/victim"))]);
    witness.tell("send nobody");
    witness.line("sent");
    witness.tell("leave");
    let told = seen.wait("the leaving being told", |seen| seen.len() > 3);
    assert_eq!(told[3..], [gone(&format!("{place}/witness"))]);
}

#[test]
fn a_killed_node_comes_back_and_nobody_was_ever_gone() {
    PLACES.into_iter().for_each(killed_node);
}

fn killed_node(place: &str) {
    let run = tempfile::tempdir().unwrap();
    let mut node = Process::start("node", run.path(), "local");
    let engine = Settings::isolated(run.path()).open().unwrap();
    let mut far = Process::start("far", run.path(), "local");
    let (seen, _guard) = watch(&engine, &format!("{place}/*"));
    let (heard, _heard) = receive(&engine, "to/near");
    let outlet = engine.outlet("to/far", Class::Data).unwrap();
    seen.wait("the other process being seen", |seen| seen == [here(&format!("{place}/far"))]);
    for round in 0..2 {
        node.kill();
        node = Process::start("node", run.path(), "local");
        // The outlet, the subscription and the service declared before work again, at both ends.
        far.tell("wait near");
        let until = Seen::<()>::new();
        let done = until.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                repeat_until("the process hearing us", || {
                    outlet.send(Bytes::from_static(b"near")).unwrap();
                    !until.all().is_empty()
                });
            });
            far.line("received");
            done.push(());
        });
        repeat_until("hearing the process", || {
            far.tell("send near");
            far.line("sent");
            heard.all().len() > round
        });
        let before = heard.all().len();
        repeat_until("hearing the process again", || {
            far.tell("send near");
            far.line("sent");
            heard.all().len() > before
        });
        repeat_until("the service answering again", || ask(&engine, "who", "", PATIENCE) == [part("far"), Answer::End]);
        assert_eq!(seen.all(), [here(&format!("{place}/far"))], "round {round}");
    }
    assert_eq!(engine.connected(), Connected::Node);
    far.kill();
    seen.wait("the death being told by the new node", |seen| seen.last() == Some(&gone(&format!("{place}/far"))));
}

#[test]
fn processes_meet_without_a_node_and_move_to_it_when_there_is_one() {
    PLACES.into_iter().for_each(moving_processes);
}

fn moving_processes(place: &str) {
    let run = tempfile::tempdir().unwrap();
    let engine = Settings::isolated(run.path()).open().unwrap();
    assert_eq!(engine.connected(), Connected::Peers);
    let (seen, _seen) = watch(&engine, &format!("{place}/*"));
    let (heard, _heard) = receive(&engine, "to/near");
    let mut one = Process::start("one", run.path(), "local");
    let mut two = Process::start("two", run.path(), "local");
    let both: BTreeSet<String> = ["one", "two"].map(|role| format!("{place}/{role}")).into();
    let keys = |seen: &[Presence]| seen.iter().map(|presence| presence.key.clone()).collect::<BTreeSet<_>>();
    seen.wait("both being seen", |seen| keys(seen) == both);
    repeat_until("hearing a peer", || {
        one.tell("send near");
        one.line("sent");
        heard.all().contains(&"one".to_owned())
    });
    repeat_until("peers hearing each other", || {
        one.tell("send two");
        one.line("sent");
        two.tell("");
        two.line("connected") == "Peers" && ask(&engine, "who", "", PATIENCE).len() == 3
    });

    let config = NodeSettings::new(Settings { node_grace: Duration::from_millis(300), ..Settings::isolated(run.path()) });
    let node = Node::start(config).unwrap();
    repeat_until("everybody moving to the node", || {
        two.tell("");
        one.tell("");
        one.line("connected") == "Node" && two.line("connected") == "Node" && engine.connected() == Connected::Node
    });
    let before = heard.all().iter().filter(|from| *from == "two").count();
    repeat_until("hearing a process through the node", || {
        two.tell("send near");
        two.line("sent");
        heard.all().iter().filter(|from| *from == "two").count() > before
    });
    // No process was gone while all of them moved.
    assert!(seen.all().iter().all(|presence| presence.here), "{:?}", seen.all());
    one.kill();
    seen.wait("a death being told through the node", |seen| seen.last() == Some(&gone(&format!("{place}/one"))));

    // The node is gone for good: the remaining processes connect without it.
    drop(node);
    repeat_until("meeting without the node", || {
        two.tell("");
        two.line("connected") == "Peers" && engine.connected() == Connected::Peers
    });
    let before = heard.all().len();
    repeat_until("hearing the peer again", || {
        two.tell("send near");
        two.line("sent");
        heard.all().len() > before
    });
    two.kill();
    seen.wait("a peer's death being told", |seen| seen.last() == Some(&gone(&format!("{place}/two"))));
}

#[test]
fn two_domains_in_one_directory_never_mix() {
    let run = tempfile::tempdir().unwrap();
    let config = |name: &str| Settings::isolated(run.path()).in_domain(domain(name));
    let node = Node::start(NodeSettings::new(config("alma"))).unwrap();
    let _other_node = Node::start(NodeSettings::new(config("ALMA test"))).unwrap();
    let alma = config("alma").open().unwrap();
    let test = config("ALMA test").open().unwrap();
    let (lonely, lonelier) = (config("a").open().unwrap(), config("b").open().unwrap());
    let mut everything = Vec::new();
    for engine in [&alma, &test, &lonely, &lonelier] {
        everything.push((receive(engine, "**"), watch(engine, "**"), engine.announce("p").unwrap()));
    }
    for (number, engine) in [&alma, &test, &lonely, &lonelier].into_iter().enumerate() {
        send_until_received(engine, "k", &format!("from {number}"), &everything[number].0.0);
    }
    // The second engine of the domain hears only the first one's messages. That leaves time for a mistake to show.
    let second = node.client_settings().open().unwrap();
    let (heard, _heard) = receive(&second, "**");
    send_until_received(&alma, "k", "once more", &heard);
    for (number, ((heard, _), (seen, _), _)) in everything.iter().enumerate() {
        let own = [format!("from {number}"), "once more".to_owned()];
        assert!(heard.all().iter().all(|item| own.contains(item)), "{number} heard {:?}", heard.all());
        let seen = seen.wait("everybody seeing itself", |seen| seen.contains(&here("p")));
        // Beside itself each process sees at most its own node.
        let node = ["tampu/alma/n/", "tampu/alma_20test/n/"].get(number);
        let is_own = |key: &str| key == "p" || node.is_some_and(|node| key.starts_with(node));
        assert!(seen.iter().all(|presence| is_own(&presence.key)) && seen.len() <= 2, "{number} saw {seen:?}");
    }
    let error = Node::start(NodeSettings::new(config("alma"))).err().unwrap();
    assert!(matches!(&error, NodeError::AlreadyRuns { pid, .. } if *pid == std::process::id().to_string()), "{error}");
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn the_network_is_open_only_to_the_same_domain_with_the_same_key() {
    let key = |text: &str| Key::new(text).unwrap();
    let lan = |text: &str| Some(Lan { key: key(text), direct: None, encryption: Encryption::default() });
    let first = tempfile::tempdir().unwrap();
    let address: Endpoint = format!("127.0.0.1:{}", free_port()).parse().unwrap();
    let config = Settings::isolated(first.path()).in_domain(domain("alma"));
    let open = NodeSettings { listen: vec![address.clone()], ..NodeSettings::new(config.clone()) };

    let error = Node::start(open.clone()).err().unwrap().to_string();
    assert!(error.contains("key"), "{error}");
    let nameless = NodeSettings { process: Settings::isolated(first.path()), key: Some(key("the secret")), ..open.clone() };
    let error = Node::start(nameless).err().unwrap().to_string();
    assert!(error.contains("'local'"), "{error}");

    let node = Node::start(NodeSettings { key: Some(key("the secret")), ..open }).unwrap();
    let engine = config.open().unwrap();
    assert_eq!(engine.connected(), Connected::Node, "the host's own processes need not be told the key");
    let (heard, _heard) = receive(&engine, "k");

    // A process elsewhere, with the hub's address.
    let second = tempfile::tempdir().unwrap();
    let elsewhere = Settings { hub: Some(address.clone()), ..Settings::isolated(second.path()).in_domain(domain("alma")) };
    let refused = |config: Settings| config.open().err().unwrap().to_string();
    let error = refused(elsewhere.clone());
    assert!(error.contains("TAMPU_KEY"), "{error}");
    let error = refused(Settings { lan: lan("another secret"), ..elsewhere.clone() });
    assert!(error.contains("it refuses; domain 'alma'"), "{error}");
    let error = refused(Settings { lan: lan("the secret"), ..elsewhere.clone() }.in_domain(domain("alma2")));
    assert!(error.contains("it refuses; domain 'alma2'"), "{error}");
    let member = Settings { lan: lan("the secret"), ..elsewhere.clone() }.open().unwrap();
    assert_eq!(member.connected(), Connected::Hub);
    send_until_received(&member, "k", "from elsewhere", &heard);

    // Nodes: one with the right key, one with a wrong one.
    let node_elsewhere = |directory: &Path, secret: &str| {
        let process = Settings::isolated(directory).in_domain(domain("alma"));
        Node::start(NodeSettings { connect: vec![address.clone()], key: Some(key(secret)), ..NodeSettings::new(process) })
            .unwrap()
    };
    let third = tempfile::tempdir().unwrap();
    let stranger = node_elsewhere(third.path(), "another secret");
    let strange = stranger.client_settings().open().unwrap();
    let (strange_heard, _strange) = receive(&strange, "k");
    let colleague = node_elsewhere(second.path(), "the secret");
    let far = Settings { hub: None, lan: None, ..elsewhere }.open().unwrap();
    assert_eq!(far.connected(), Connected::Node);
    let (far_heard, _far) = receive(&far, "k");
    send_until_received(&engine, "k", "to all nodes", &far_heard);
    send_until_received(&strange, "k", "among strangers", &strange_heard);
    assert!(!strange_heard.all().contains(&"to all nodes".to_owned()));
    assert!(!heard.all().contains(&"among strangers".to_owned()));
    assert_eq!((colleague.connections().1, stranger.connections().1), (1, 0));
    assert_eq!(node.connections().1, 1);
}

#[test]
fn a_node_that_comes_back_open_to_the_network_takes_its_processes_in_again() {
    let run = tempfile::tempdir().unwrap();
    let config = Settings { node_grace: Duration::from_millis(200), ..Settings::isolated(run.path()) };
    let config = config.in_domain(domain("alma"));
    let node = Node::start(NodeSettings::new(config.clone())).unwrap();
    let socket = node.dir().node_socket().unwrap();
    let one = config.open().unwrap();
    let two = Settings { hub: Some(Endpoint::Unix(socket)), ..config.clone() }.open().unwrap();
    assert_eq!((one.connected(), two.connected()), (Connected::Node, Connected::Hub));
    let (heard, _heard) = receive(&one, "k");
    send_until_received(&two, "k", "before", &heard);
    drop(node);
    let listen = vec![format!("127.0.0.1:{}", free_port()).parse().unwrap()];
    let key = Some(Key::new("chosen meanwhile").unwrap());
    let _node = Node::start(NodeSettings { listen, key, ..NodeSettings::new(config) }).unwrap();
    send_until_received(&two, "k", "after", &heard);
}

#[test]
fn direct_links_do_not_need_the_node() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let writer = node.client_settings().open().unwrap();
    let reader = node.client_settings().open().unwrap();
    let (endpoint, sending) = writer.listen_direct().unwrap();
    let (again, same) = writer.listen_direct().unwrap();
    assert!(endpoint == again && Arc::ptr_eq(&sending, &same));
    let receiving = reader.connect_direct(&endpoint, None).unwrap();
    assert!(Arc::ptr_eq(&receiving, &reader.connect_direct(&endpoint, None).unwrap()));
    let (heard, _heard) = receive(&receiving, "k");
    let (unheard, _unheard) = receive(&reader, "k");
    drop(node);
    send_until_received(&sending, "k", "directly", &heard);
    assert_eq!(unheard.all(), Vec::<String>::new());
    assert!(reader.connect_direct("00000000;open;unixsock-stream//nowhere", None).is_err());
    assert!(reader.connect_direct("nonsense", None).is_err());
}

#[test]
fn a_direct_link_leads_to_no_place_that_somebody_makes_up() {
    let run = tempfile::tempdir().unwrap();
    let key = || Key::new("the secret").unwrap();
    let lan = |encryption| Some(Lan { key: key(), direct: Some("127.0.0.1".to_owned()), encryption });
    let plain = Settings { lan: lan(Encryption::None), ..Settings::isolated(run.path()) };
    let reader = plain.open().unwrap();
    let victim = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = run.path().join("victim.sock");
    let at_socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    victim.set_nonblocking(true).unwrap();
    at_socket.set_nonblocking(true).unwrap();
    let (port, boot) = (victim.local_addr().unwrap().port(), tampu_bus::host::boot());
    for place in
        [format!("tcp/127.0.0.1:{port}"), format!("tls/127.0.0.1:{port}"), format!("unixsock-stream/{}", socket.display())]
    {
        for endpoint in [format!("{boot:08x};key;{place}"), format!("00000000;key;{place}"), format!("{boot:08x};open;{place}")] {
            let refused = reader.connect_direct(&endpoint, None).err().unwrap().to_string();
            assert!(refused.contains("a direct link leads to"), "{endpoint}: {refused}");
        }
    }
    assert!(victim.accept().is_err() && at_socket.accept().is_err(), "nobody was connected to");

    // Between hosts a certificate names the address.
    let directory = CertificateDir::new(run.path().join("cert"));
    let authority = Authority::create(&directory, "lab", SystemTime::now()).unwrap();
    let names = HostNames::new("archive", &[]).unwrap();
    authority.issue(&directory, &names, KeyPairChoice::New, SystemTime::now()).unwrap();
    let encrypted = Settings { lan: lan(Encryption::Tls(directory)), ..plain.clone() };
    let (writer, far) = (encrypted.open().unwrap(), encrypted.open().unwrap());
    let (endpoint, sending) = writer.listen_direct().unwrap();
    let from_elsewhere = format!("00000000{}", &endpoint[8..]);
    assert!(from_elsewhere.contains("tls/127.0.0.1:"), "{from_elsewhere}");
    assert!(reader.connect_direct(&from_elsewhere, None).is_err(), "without certificates");
    let receiving = far.connect_direct(&from_elsewhere, None).unwrap();
    let (heard, _heard) = receive(&receiving, "k");
    send_until_received(&sending, "k", "directly", &heard);
}

/// Counts its calls and names the next time.
struct Counting {
    calls: Arc<Seen<u64>>,
    every: u64,
}

impl Tick for Counting {
    fn tick(&self, now: u64) -> u64 {
        self.calls.push(now);
        now + self.every
    }
}

#[test]
fn work_is_driven_by_time_and_by_its_gate_until_dropped() {
    let run = tempfile::tempdir().unwrap();
    let engine = Settings::isolated(run.path()).open().unwrap();
    let (often, rarely, gate) = (Seen::new(), Seen::new(), Arc::new(Gate::default()));
    let by_time = engine.drive(Arc::new(Counting { calls: often.clone(), every: 1_000_000 }), Arc::default()).unwrap();
    let _by_gate = engine.drive(Arc::new(Counting { calls: rarely.clone(), every: u64::MAX / 2 }), gate.clone()).unwrap();
    let times = often.wait("being called by time", |calls| calls.len() >= 5);
    assert!(times.windows(2).all(|pair| pair[0] + 1_000_000 <= pair[1]), "{times:?}");
    rarely.wait("being called first", |calls| calls.len() == 1);
    gate.open();
    rarely.wait("being called by the gate", |calls| calls.len() == 2);
    drop(by_time);
    let weak = Arc::downgrade(&often);
    drop(often);
    repeat_until("letting go of the work", || weak.strong_count() == 0);
}

#[test]
fn no_signal_handler_is_installed() {
    let caught = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        status.lines().find(|line| line.starts_with("SigCgt")).unwrap().to_owned()
    };
    let before = caught();
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let engine = node.client_settings().open().unwrap();
    let (heard, _heard) = receive(&engine, "k");
    send_until_received(&engine, "k", "hello", &heard);
    assert_eq!(caught(), before);
}

/// Not a test: a process of the scale test below.
#[test]
fn scale_process() {
    let Ok(part) = std::env::var("TAMPU_TEST_CROWD") else { return };
    let directory = std::env::var("TAMPU_RUN_DIR").unwrap();
    let part = match part.split_once('/') {
        Some((number, of)) => Part::Member { number: number.parse().unwrap(), of: of.parse().unwrap() },
        None => Part::Node,
    };
    take_part(part, Path::new(&directory)).unwrap();
}

#[test]
fn many_processes_see_each_other_with_one_connection_each() {
    let run = tempfile::tempdir().unwrap();
    let measured = measure(run.path(), 12, Duration::from_millis(100), |part| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "scale_process", "--nocapture", "--test-threads=1"]).env("TAMPU_RUN_DIR", run.path());
        match part {
            Part::Node => command.env("TAMPU_TEST_CROWD", "node"),
            Part::Member { number, of } => command.env("TAMPU_TEST_CROWD", format!("{number}/{of}")),
        };
        command
    })
    .unwrap();
    // The counts do not depend on the load of the machine: the node listens, and every member has one connection. (The asynchronous
    // runtimes below keep sockets of their own, the same number in every process.)
    let own = measured.node_sockets - 1 - 12;
    assert_eq!(measured.sockets, 12 * (1 + own), "{measured:?}");
    assert!(measured.processes == 12 && measured.pss > 0 && measured.threads > 1, "{measured:?}");
}
