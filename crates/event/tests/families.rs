//! Declarations travel by domain and family: who wants one family does not hear of the others, and misses nothing when more is
//! wanted.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tampu_event::{
    client::Client,
    server::{AttributeOptions, PushError},
};
use tampu_types::event::{AttributePattern, Reason, Value};

mod support;
use support::*;

fn known(client: &Client) -> BTreeSet<String> {
    client.attributes().iter().map(|attribute| attribute.config.name.folded().to_owned()).collect()
}

fn pattern(text: &str) -> AttributePattern {
    AttributePattern::new(text).unwrap()
}

#[test]
fn a_client_hears_of_the_families_that_it_wants() {
    let scene = Scene::new();
    let one = scene.publisher("a", "one");
    let client = scene.subscriber("b", "panel");
    let name = |family: usize, member: usize| format!("lab/f{family}/{member}/x");
    let every = |families: &[usize]| {
        families.iter().flat_map(|family| (0..3).map(|member| name(*family, member))).collect::<BTreeSet<_>>()
    };
    let _attributes: Vec<_> = (0..20)
        .flat_map(|family| (0..3).map(move |member| (family, member)))
        .map(|(family, member)| one.server.declare(scalar(&name(family, member))).unwrap())
        .collect();
    scene.pass(100 * MS, &[&one], &[&client]);
    // The first 16 families have streams of their own.
    assert_eq!(known(&client.client), every(&[16, 17, 18, 19]));
    let log = Log::default();
    let _three = client.client.subscribe(wish(&["lab/f3/*"]), log.call());
    scene.pass(100 * MS, &[&one], &[&client]);
    assert_eq!((known(&client.client), log.reasons()), (every(&[3, 16, 17, 18, 19]), vec![Reason::First; 3]));
    let _five = client.client.subscribe(wish(&["*/f5/1/x"]), log.call());
    scene.pass(100 * MS, &[&one], &[&client]);
    assert_eq!((known(&client.client), log.reasons()), (every(&[3, 5, 16, 17, 18, 19]), vec![Reason::First]));
    client.client.know_all();
    scene.pass(100 * MS, &[&one], &[&client]);
    assert_eq!((known(&client.client).len(), log.reasons()), (60, vec![]));
}

#[test]
fn the_end_of_a_server_is_told_while_a_wider_reader_takes_over() {
    for pause in [0, 1, 2, 5, 20] {
        let scene = Scene::new();
        let (one, two) = (scene.publisher("a", "one"), scene.publisher("a", "two"));
        let client = scene.subscriber("a", "panel");
        let _first = one.server.declare(scalar("lab/a/1/x")).unwrap();
        let _second = two.server.declare(scalar("lab/b/1/x")).unwrap();
        let log = Log::default();
        let _a = client.client.subscribe(wish(&["lab/a/1/x"]), log.call());
        scene.pass(100 * MS, &[&one, &two], &[&client]);
        assert_eq!(log.reasons(), [Reason::First]);
        let _b = client.client.subscribe(wish(&["lab/b/1/x"]), log.call());
        client.client.know([&pattern("lab/c/*")]);
        scene.pass(pause * MS, &[&one, &two], &[&client]);
        scene.net.kill(&one.engine);
        scene.pass(500 * MS, &[&two], &[&client]);
        let mut reasons = log.reasons();
        reasons.sort_by_key(|reason| reason.name());
        assert_eq!(reasons, [Reason::First, Reason::SourceDied], "killed after {pause} ms");
        assert_eq!(known(&client.client), BTreeSet::from(["lab/b/1/x".to_owned()]), "killed after {pause} ms");
    }
}

/// A server that hangs while a wider reader takes over: its return or its end is told by no reader that began before.
#[test]
fn a_server_that_hangs_meanwhile_returns_or_dies() {
    for dies in [false, true] {
        let scene = Scene::new();
        let (one, two) = (scene.publisher("a", "one"), scene.publisher("b", "two"));
        let client = scene.subscriber("c", "panel");
        let redundant = || AttributeOptions { redundant: true, ..AttributeOptions::default() };
        let _first = one.server.declare_with(scalar("lab/a/1/x"), redundant()).unwrap();
        let _second = two.server.declare(scalar("lab/b/1/x")).unwrap();
        let log = Log::default();
        let _a = client.client.subscribe(wish(&["lab/a/1/x"]), log.call());
        scene.pass(100 * MS, &[&one, &two], &[&client]);
        scene.net.stop(&one.engine);
        scene.pass(2000 * MS, &[&two], &[&client]);
        for family in ["b", "c", "d", "e", "f", "g"] {
            client.client.know([&pattern(&format!("lab/{family}/*"))]);
            scene.pass(50 * MS, &[&two], &[&client]);
        }
        scene.pass(4000 * MS, &[&two], &[&client]);
        assert_eq!(known(&client.client).len(), 2, "the wider reader has the other family");
        log.take();
        if dies {
            scene.net.kill(&one.engine);
            scene.pass(1000 * MS, &[&two], &[&client]);
            assert_eq!(known(&client.client), BTreeSet::from(["lab/b/1/x".to_owned()]));
        } else {
            scene.net.resume(&one.engine);
            scene.pass(1000 * MS, &[&one, &two], &[&client]);
            assert_eq!((known(&client.client).len(), log.reasons()), (2, vec![Reason::SourceReturned, Reason::Resumed]));
        }
    }
}

#[test]
fn a_wider_reader_tells_nothing_again() {
    let scene = Scene::new();
    let one = scene.publisher("a", "one");
    let client = scene.subscriber("b", "panel");
    let kept = one.server.declare(scalar("lab/a/1/kept")).unwrap();
    let gone = one.server.declare(scalar("lab/a/1/gone")).unwrap();
    let log = Log::default();
    let _a = client.client.subscribe(wish(&["lab/a/*"]), log.call());
    scene.pass(100 * MS, &[&one], &[&client]);
    for unit in ["mbar", "Pa"] {
        kept.reconfigure(|config| config.unit = unit.into());
    }
    drop(gone);
    scene.pass(100 * MS, &[&one], &[&client]);
    log.take();
    client.client.know([&pattern("lab/b/*")]);
    scene.pass(100 * MS, &[&one], &[&client]);
    client.client.know_all();
    scene.pass(100 * MS, &[&one], &[&client]);
    assert_eq!(log.reasons(), []);
    assert_eq!(known(&client.client), BTreeSet::from(["lab/a/1/kept".to_owned()]));
}

#[test]
fn a_server_that_comes_later_finds_the_owner_of_a_name() {
    let scene = Scene::new();
    let one = scene.publisher("a", "one");
    let _first = one.server.declare(scalar("lab/a/1/x")).unwrap();
    scene.pass(100 * MS, &[&one], &[]);
    let two = scene.publisher("b", "two");
    scene.pass(100 * MS, &[&one, &two], &[]);
    let second = two.server.declare_with(scalar("lab/a/1/x"), AttributeOptions::default()).unwrap();
    scene.pass(100 * MS, &[&one, &two], &[]);
    assert_eq!(two.server.conflicts(), [(second.name().clone(), "one".to_owned())]);
    assert!(matches!(second.push(Value::scalar(&2.0)), Err(PushError::Taken { .. })));
    // The family is read from now on, so a further name is refused at once.
    let _third = one.server.declare(scalar("lab/a/1/y")).unwrap();
    scene.pass(100 * MS, &[&one, &two], &[]);
    assert!(two.server.declare(scalar("lab/a/1/y")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_is_wanted_is_known_in_the_end(
        steps in prop::collection::vec((0usize..4, 0usize..5, 0usize..3, 0u32..20), 1..25),
    ) {
        let scene = Scene::new();
        let servers = [scene.publisher("a", "one"), scene.publisher("b", "two")];
        let client = scene.subscriber("b", "panel");
        let turned: Vec<_> = servers.iter().collect();
        let (mut attributes, mut wanted) = (Vec::new(), Vec::new());
        for (step, (what, family, member, pause)) in steps.into_iter().enumerate() {
            match what {
                // A name of its own for each declaration.
                0 | 1 => {
                    let name = format!("d{member}/f{family}/{step}/x");
                    attributes.push((name.clone(), servers[what].server.declare(scalar(&name)).unwrap()));
                }
                2 if !attributes.is_empty() => drop(attributes.swap_remove(family % attributes.len())),
                _ => {
                    let patterns = [format!("d{member}/f{family}/*"), format!("*/f{family}/*"), format!("d{member}/*")];
                    let pattern = pattern(&patterns[step % 3]);
                    client.client.know([&pattern]);
                    wanted.push(pattern);
                }
            }
            scene.pass(pause * MS, &turned, &[&client]);
        }
        scene.pass(300 * MS, &turned, &[&client]);
        let expected: BTreeSet<String> = attributes
            .iter()
            .filter(|(_, attribute)| wanted.iter().any(|pattern| pattern.matches(attribute.name())))
            .map(|(name, _)| name.clone())
            .collect();
        let known: BTreeSet<String> = known(&client.client);
        prop_assert!(known.is_superset(&expected), "{expected:?} {known:?}");
        let all: BTreeSet<String> = attributes.iter().map(|(name, _)| name.clone()).collect();
        prop_assert!(known.is_subset(&all), "{all:?} {known:?}");
    }
}
