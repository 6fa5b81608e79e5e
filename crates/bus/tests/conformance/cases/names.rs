//! Topics, partitions, domains, and the configuration that goes by topic.

use tampu_bus::QosPatch;

use crate::conformance::{
    arena::{Arena, DOMAIN, Peer, Scene},
    command::{Command, Reply, Wish},
};

pub fn topics_fall_under_patterns<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join_at("there", "other"));
    let cases = [
        ("**", vec!["Log/Error", "log/info", "event/lab 1/psu/voltage"]),
        ("log/*", vec!["Log/Error", "log/info"]),
        ("LOG/error", vec!["Log/Error"]),
        ("event/**", vec!["event/lab 1/psu/voltage"]),
        ("event/*/psu/*", vec!["event/lab 1/psu/voltage"]),
        ("*", vec![]),
    ];
    let logs: Vec<usize> = cases.iter().map(|(pattern, _)| other.reader(pattern)).collect();
    let topics = ["Log/Error", "log/info", "event/lab 1/psu/voltage"];
    let wanted_by = |topic: &str| cases.iter().filter(|(_, topics)| topics.contains(&topic)).count();
    for topic in topics {
        let writer = one.writer(topic);
        scene.matched(&mut one, writer, wanted_by(topic));
        one.write(writer, 20, 50);
        one.flush(writer, crate::conformance::arena::PATIENCE);
    }
    for ((pattern, wanted), log) in cases.iter().zip(logs) {
        let mut given: Vec<String> = other.log(log).accounts().into_keys().map(|stream| stream.topic).collect();
        let mut wanted: Vec<String> = wanted.iter().map(|&topic| topic.to_owned()).collect();
        given.sort();
        wanted.sort();
        assert_eq!(given, wanted, "{pattern}");
        assert!(other.log(log).accounts().values().all(|account| account.got == 20), "{pattern}");
    }
}

pub fn a_sample_for_several_audiences_reaches_each_reader_once<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut other) = (scene.join("one"), scene.join_at("there", "other"));
    let mut reader = |names: Option<&[&str]>| {
        let partitions = names.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        other.reader_with(Wish { partitions, ..Wish::of("log/*") })
    };
    let everything = reader(None);
    let both = reader(Some(&["Operator", "SciLog"]));
    let operators = reader(Some(&["operator"]));
    let strangers = reader(Some(&["Developer"]));
    let audiences: [(&str, &[&str], usize); 4] =
        [("log/a", &[], 4), ("log/b", &["Operator", "SciLog"], 3), ("log/c", &["SciLog"], 2), ("log/d", &["scilogx"], 1)];
    for (topic, partition, readers) in audiences {
        let writer = one.writer_with(topic, partition, QosPatch::default());
        scene.matched(&mut one, writer, readers);
        one.write(writer, 20, 50);
        assert_eq!(one.flush(writer, crate::conformance::arena::PATIENCE).delivered, [(0, 20)]);
    }
    for (log, wanted) in [
        (everything, vec!["log/a", "log/b", "log/c", "log/d"]),
        (both, vec!["log/a", "log/b", "log/c"]),
        (operators, vec!["log/a", "log/b"]),
        (strangers, vec!["log/a"]),
    ] {
        // The accounts themselves reject a sample that arrives twice.
        let accounts = other.log(log).accounts();
        let mut given: Vec<&str> = accounts.keys().map(|stream| stream.topic.as_str()).collect();
        given.sort_unstable();
        assert_eq!(given, wanted);
        assert!(accounts.values().all(|account| account.got == 20), "{accounts:?}");
    }
}

pub fn two_domains_never_mix<A: Arena>() {
    let scene = Scene::<A>::new();
    let join = |domain: &str, source: &str| Peer(scene.arena.start("here", domain, source, Vec::new()));
    let mut processes: Vec<_> = ["alma", "alma2"]
        .into_iter()
        .map(|domain| (join(domain, &format!("writer of {domain}")), join(domain, &format!("reader of {domain}")), domain))
        .collect();
    let mut opened = Vec::new();
    for (one, other, domain) in &mut processes {
        let log = other.reader("**");
        other.answer("who", &[domain]);
        opened.push((one.writer("t"), log));
    }
    for ((one, other, domain), &(writer, log)) in processes.iter_mut().zip(&opened) {
        scene.matched(one, writer, 1);
        one.write(writer, 50, 100);
        assert_eq!(scene.settled(other, log, "t", 50).got, 50);
        let mut answers = Vec::new();
        scene.until("the service is known", || {
            answers = one.ask("who", "", crate::conformance::arena::PATIENCE);
            answers.iter().all(Result::is_ok)
        });
        assert_eq!(answers, [Ok(domain.to_string())]);
    }
    for ((one, other, domain), &(writer, log)) in processes.iter_mut().zip(&opened) {
        assert_eq!(one.look(writer).readers.len(), 1);
        let accounts = other.log(log).accounts();
        assert_eq!(accounts.len(), 1, "{accounts:?}");
        let here = one.sources().here;
        assert_eq!(here.len(), 2, "{here:?}");
        assert!(here.iter().all(|(source, _)| source.ends_with(&format!(" of {domain}"))), "{here:?}");
    }
}

pub fn qos_comes_from_the_configuration_of_the_topic<A: Arena>() {
    let scene = Scene::<A>::new();
    let patch = |topics: &str, cache| QosPatch {
        topics: topics.to_owned(),
        cache: Some(cache),
        keep: Some(cache),
        ..QosPatch::default()
    };
    let patches = vec![patch("log/*", 100_000), patch("log/error", 1_000_000)];
    let mut one = Peer(scene.arena.start("here", DOMAIN, "one", patches));
    for (topic, expected) in [("log/info", 100_000), ("log/Error", 1_000_000)] {
        match one.call(Command::Configured { topic: topic.to_owned() }) {
            Reply::Configured { cache, .. } => assert_eq!(cache, expected, "{topic}"),
            other => panic!("{other:?}"),
        }
        let writer = one.writer(topic);
        one.write(writer, 2000, 1000);
        let kept = one.look(writer).cache;
        assert!(kept <= expected && kept > expected / 3, "{topic}: {kept} bytes are kept");
    }
}
