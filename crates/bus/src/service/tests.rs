use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tampu_types::{Domain, Incarnation, SourceName, TopicName};

use super::*;
use crate::{
    Participant, QosTable,
    access::{Access, Members, Principal, Verb},
    engine::{Guard, memory::MemoryNet},
};

const NAME: &str = "test/service";
const WAIT: Duration = Duration::from_secs(60);

fn join(net: &MemoryNet, name: &str) -> Participant {
    Participant::on(net.engine("host"), Domain::new("lab").unwrap(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
}

fn serving(
    net: &MemoryNet,
    by: &Participant,
    permission: Permission,
    limits: &Limits,
    handler: impl Fn(Request) + Send + Sync + 'static,
) -> Guard {
    let guard = serve(by, &TopicName::new(NAME).unwrap(), permission, limits, handler).unwrap();
    net.advance(Duration::from_millis(10));
    guard
}

#[test]
fn all_answers_are_read_with_who_gave_them_and_the_first_alone() {
    let net = MemoryNet::new(1);
    let (one, two, asker) = (join(&net, "one"), join(&net, "two"), join(&net, "asker"));
    let say = |text: &'static str| {
        move |request: Request| {
            request.part(text.as_bytes());
            request.part(request.question());
        }
    };
    let _one = serving(&net, &one, Permission::Everybody, &Limits::inline(), say("1"));
    let _two = serving(&net, &two, Permission::Everybody, &Limits::inline(), say("2"));
    let all: Vec<Part> = call(&asker, NAME, "q", WAIT).unwrap().map(Result::unwrap).collect();
    for (source, text) in [(&one, "1"), (&two, "2")] {
        let parts: Vec<_> =
            all.iter().filter(|part| part.from == source.incarnation()).map(|part| part.content.clone()).collect();
        assert_eq!(parts, [Ok(text.into()), Ok("q".into())]);
    }
    let first: Vec<_> = call(&asker, NAME, "q", WAIT).unwrap().first().map(Result::unwrap).collect();
    assert_eq!(first.len(), 2, "of one process");
}

#[test]
fn what_is_too_long_or_denied_is_refused_before_the_handler() {
    let net = MemoryNet::new(1);
    let (server, asker) = (join(&net, "server"), join(&net, "asker"));
    let ask = |question: &'static str| call(&asker, NAME, question, WAIT).unwrap().first().next().unwrap();
    let stranger = Principal::KeyHolder(Domain::new("elsewhere").unwrap());
    let closed = Access::new(Arc::new(Members::default()), move || stranger.clone());
    let denying = serving(&net, &server, Permission::Verb(closed, Verb::Query), &Limits::inline(), |_| unreachable!());
    assert!(matches!(ask(""), Err(CallError::Denied(denied)) if denied.verb == Verb::Query && denied.resource.name() == NAME));
    drop(denying);
    let limits = Limits { question: 3, answer: 5, ..Limits::inline() };
    let _serving = serving(&net, &server, Permission::Everybody, &limits, |request: Request| {
        assert!(request.part(b"12345") && !request.part(b"6") && !request.part(b""));
    });
    let refused = |why: &str| Err(CallError::Refused { service: NAME.to_owned(), why: why.to_owned() });
    assert_eq!(ask("long"), refused("the question has 4 bytes, the longest allowed is 3"));
    let parts: Vec<_> = call(&asker, NAME, "", WAIT).unwrap().first().collect();
    assert_eq!(parts, [Ok("12345".into()), refused("the answer has more than 5 bytes; ask for less")]);
}

#[test]
fn a_place_is_free_again_after_a_panic_and_a_full_service_says_so() {
    let net = MemoryNet::new(1);
    let (server, asker) = (join(&net, "server"), join(&net, "asker"));
    let held: Arc<Mutex<Vec<Request>>> = Arc::default();
    let limits = Limits::on_threads("test answer", 1);
    let keep = held.clone();
    let _serving =
        serving(&net, &server, Permission::Everybody, &limits, move |request: Request| match &request.question()[..] {
            b"panic" => panic!("as the test wants"),
            b"keep" => keep.lock().unwrap().push(request),
            _ => drop(request.answer(&"done")),
        });
    let until_free = || {
        while limits.running.count() > 0 {
            std::thread::yield_now()
        }
    };
    for _ in 0..3 {
        assert_eq!(call(&asker, NAME, "panic", WAIT).unwrap().next(), Some(Err(CallError::Unanswered(NAME.to_owned()))));
        until_free();
    }
    let waiting = call(&asker, NAME, "keep", WAIT).unwrap();
    while held.lock().unwrap().is_empty() {
        // The simulated network moves only when a caller lets time pass.
        net.advance(Duration::from_millis(10));
        std::thread::yield_now();
    }
    let full = call(&asker, NAME, "", WAIT).unwrap().first().json::<String>();
    let why = "1 questions are being answered already; try again".to_owned();
    assert_eq!(full, Err(CallError::Refused { service: NAME.to_owned(), why }));
    held.lock().unwrap().clear();
    assert_eq!(waiting.count(), 1, "that nobody answered");
    until_free();
    // The simulated timeout may end before a real thread has answered. Then the question is repeated.
    while call(&asker, NAME, "", WAIT).unwrap().first().json() != Ok("done".to_owned()) {
        until_free();
    }
}

#[test]
fn json_is_cut_into_parts_and_put_together_and_documents_are_told_apart() {
    let net = MemoryNet::new(1);
    let (server, asker) = (join(&net, "server"), join(&net, "asker"));
    let long = "{\"error\":".repeat(300_000);
    let sent = long.clone();
    let _serving = serving(&net, &server, Permission::Everybody, &Limits::inline(), move |request: Request| {
        request.answer(&1);
        request.answer(&vec![&sent]);
    });
    let mut answer = call(&asker, NAME, "", WAIT).unwrap().first();
    assert_eq!(answer.document(), Some(Ok(1)));
    assert_eq!(answer.document(), Some(Ok(vec![long])));
    assert_eq!(answer.document::<u8>(), None);
    assert!(matches!(call(&asker, NAME, "", WAIT).unwrap().first().json::<u8>(), Err(CallError::Unreadable { .. })));
}

#[test]
fn an_asker_that_leaves_is_noticed_while_its_question_is_answered() {
    let net = MemoryNet::new(1);
    let (server, asker) = (join(&net, "server"), join(&net, "asker"));
    type Watched = Arc<Mutex<Vec<(Request, Option<Guard>)>>>;
    let watched = Watched::default();
    let (sender, gone) = std::sync::mpsc::channel::<Incarnation>();
    let (keep, who, sender) = (watched.clone(), asker.incarnation(), Mutex::new(sender));
    let _serving = serving(&net, &server, Permission::Everybody, &Limits::inline(), move |request: Request| {
        let sender = sender.lock().unwrap().clone();
        let sender = Mutex::new(sender);
        let watch = request.watch_asker(Some(who), move || {
            let _ = sender.lock().unwrap().send(who);
        });
        assert!(watch.is_some() && request.watch_asker(None, || ()).is_none());
        keep.lock().unwrap().push((request, watch));
    });
    drop(call(&asker, NAME, "", WAIT).unwrap());
    net.advance(Duration::from_millis(10));
    assert!(!watched.lock().unwrap().is_empty() && gone.try_recv().is_err());
    drop(asker);
    net.advance(Duration::from_secs(1));
    assert_eq!(gone.recv_timeout(WAIT), Ok(who));
}

#[test]
fn an_answer_under_way_is_given_before_its_process_leaves() {
    let net = MemoryNet::new(1);
    let (server, asker) = (join(&net, "server"), join(&net, "asker"));
    let (left, leaving) = std::sync::mpsc::channel::<()>();
    let (began, begun) = std::sync::mpsc::channel();
    let (leaving, began) = (Mutex::new(leaving), Mutex::new(began));
    let limits = Limits { ending: WAIT, ..Limits::on_threads("test answer", 1) };
    let serving = serving(&net, &server, Permission::Everybody, &limits, move |request: Request| {
        began.lock().unwrap().send(()).unwrap();
        // A service that waits for this answer does not leave before, so this waits for the whole time.
        let _ = leaving.lock().unwrap().recv_timeout(Duration::from_millis(200));
        request.answer(&"done");
    });
    let answer = call(&asker, NAME, "", WAIT).unwrap();
    while begun.try_recv().is_err() {
        net.advance(Duration::from_millis(10));
        std::thread::yield_now();
    }
    drop(serving);
    drop(server);
    let _ = left.send(());
    assert_eq!(answer.first().json(), Ok("done".to_owned()));
}

#[test]
fn refusals_are_as_the_page_of_the_contract_shows_them() {
    let page = include_str!("../../../../spec/services.md");
    let vector = |name: &str| {
        let (_, after) = page.split_once(&format!("```json vector={name}\n")).expect("the page has the vector");
        after.split_once("\n```").expect("the vector ends").0
    };
    let parts: Arc<Mutex<Vec<bytes::Bytes>>> = Arc::default();
    let into = parts.clone();
    let request = Request::outside(bytes::Bytes::new(), move |part| into.lock().unwrap().push(part));
    request.refuse("8 questions are being answered already; try again");
    let denied = crate::access::Denied {
        principal: Principal::User(1000),
        verb: Verb::Query,
        resource: crate::access::Resource::Service("log/query".to_owned()),
        why: "on one host only the hub's own user may".to_owned(),
    };
    request.deny(denied);
    let sent: Vec<Vec<u8>> = parts.lock().unwrap().iter().map(|part| part[16..].to_vec()).collect();
    assert_eq!(sent, [vector("refusal").as_bytes(), vector("denied").as_bytes()]);
}
