//! Several sources of one attribute: refused, told, or declared redundant; never silent.

use tampu_event::server::{AttributeOptions, DeclareError, PushError};
use tampu_types::event::{Missed, Reason, Value};

mod support;
use support::*;

#[test]
fn two_sources_of_one_name_are_refused_or_redundant() {
    let scene = Scene::new();
    let (one, two) = (scene.publisher("a", "one"), scene.publisher("a", "two"));
    let client = scene.subscriber("a", "panel");
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["*"]), log.call());
    let first = one.server.declare(scalar("a/b/c/d")).unwrap();
    // At the same moment, so that neither server knows of the other.
    let second = two.server.declare(scalar("A/B/C/D")).unwrap();
    scene.pass(100 * MS, &[&one, &two], &[&client]);
    assert_eq!(two.server.conflicts(), [(second.name().clone(), "one".to_owned())]);
    assert_eq!(one.server.conflicts(), []);
    assert!(matches!(second.push(Value::scalar(&2.0)), Err(PushError::Taken { .. })));
    first.push(Value::scalar(&1.0)).unwrap();
    assert!(matches!(two.server.declare(scalar("a/b/c/d")), Err(DeclareError::Taken { .. } | DeclareError::Twice(_))));
    scene.pass(100 * MS, &[&one, &two], &[&client]);
    let reasons = log.reasons();
    assert!(reasons.contains(&Reason::Conflict), "{reasons:?}");
    // After the first is withdrawn, the second owns the name.
    drop(first);
    scene.pass(100 * MS, &[&one, &two], &[&client]);
    second.push(Value::scalar(&2.0)).unwrap();
    scene.pass(100 * MS, &[&one, &two], &[&client]);
    let values: Vec<_> = log.told().iter().filter_map(|told| told.2).collect();
    assert_eq!(values, [2.0]);

    let redundant = AttributeOptions { redundant: true, ..AttributeOptions::default() };
    let main = one.server.declare_with(scalar("a/b/c/e"), redundant).unwrap();
    let spare = two.server.declare_with(scalar("a/b/c/e"), redundant).unwrap();
    scene.pass(100 * MS, &[&one, &two], &[&client]);
    log.take();
    main.push(Value::scalar(&3.0)).unwrap();
    spare.push(Value::scalar(&3.0)).unwrap();
    scene.pass(100 * MS, &[&one, &two], &[&client]);
    assert_eq!(log.told(), [(Reason::Update, 1, Some(3.0), Missed::Nothing)], "from one of them");
    scene.net.kill(&one.engine);
    scene.pass(200 * MS, &[&two], &[&client]);
    let updates = log.take();
    let of_e: Vec<_> = updates.iter().filter(|update| update.attribute.config.name == *spare.name()).collect();
    assert_eq!(
        of_e.iter().map(|update| update.reason).collect::<Vec<_>>(),
        [Reason::SourceDied, Reason::SourceReturned, Reason::Resumed]
    );
    assert_eq!(of_e[2].source.source.as_str(), "two");
    drop(main);
}

#[test]
fn when_one_of_three_is_gone_the_second_has_the_name_and_the_third_stays_silent() {
    let scene = Scene::new();
    // The result does not depend on the order in which the third learns of the others.
    for names in [["one", "two", "three"], ["un", "deux", "trois"]] {
        let all = names.map(|name| scene.publisher("a", name));
        let order = if names[0] == "one" { [0, 1, 2] } else { [2, 1, 0] };
        let name = format!("a/b/c/{}", names[0]);
        let mut attributes = [None, None, None];
        for at in order {
            attributes[at] = Some(all[at].server.declare(scalar(&name)).unwrap());
        }
        let [first, second, third] = attributes.map(Option::unwrap);
        let turned: Vec<_> = all.iter().collect();
        scene.pass(100 * MS, &turned, &[]);
        let taken_by = |at: usize| all[at].server.conflicts().into_iter().map(|(_, by)| by).collect::<Vec<_>>();
        assert_eq!([taken_by(0), taken_by(1), taken_by(2)], [vec![], vec![names[0].to_owned()], vec![names[0].to_owned()]]);
        drop(first);
        scene.pass(100 * MS, &turned, &[]);
        assert_eq!([taken_by(1), taken_by(2)], [vec![], vec![names[1].to_owned()]]);
        second.push(Value::scalar(&1.0)).unwrap();
        assert!(matches!(third.push(Value::scalar(&2.0)), Err(PushError::Taken { .. })));
        scene.net.kill(&all[1].engine);
        scene.pass(200 * MS, &[&all[2]], &[]);
        assert_eq!(taken_by(2), [""; 0]);
        third.push(Value::scalar(&2.0)).unwrap();
    }
}

#[test]
fn the_last_word_of_a_source_comes_before_the_first_of_the_one_that_takes_over() {
    for hangs in [false, true] {
        let scene = Scene::new();
        let (one, two) = (scene.publisher("a", "one"), scene.publisher("a", "two"));
        let client = scene.subscriber("a", "panel");
        let redundant = AttributeOptions { redundant: true, ..AttributeOptions::default() };
        let other = two.server.declare(scalar("a/b/c/other")).unwrap();
        let _main = one.server.declare_with(scalar("a/b/c/e"), redundant).unwrap();
        let spare = two.server.declare_with(scalar("a/b/c/e"), redundant).unwrap();
        spare.push(Value::scalar(&1.0)).unwrap();
        // A worker that runs before that of the first reads the streams of the second.
        let _other = client.client.subscribe(wish(&["a/b/c/other"]), |_| {});
        scene.pass(100 * MS, &[&one, &two], &[&client]);
        let (log, latest) = (Log::default(), client.client.latest(wish(&["a/b/c/e"])));
        let _subscription = client.client.subscribe(wish(&["a/b/c/e"]), log.call());
        scene.pass(500 * MS, &[&one, &two], &[&client]);
        assert_eq!(log.reasons(), [Reason::First]);
        if hangs {
            scene.net.stop(&one.engine);
            scene.pass(2000 * MS, &[&two], &[&client]);
        } else {
            scene.net.kill(&one.engine);
            scene.pass(200 * MS, &[&two], &[&client]);
        }
        let word = if hangs { Reason::SourceHung } else { Reason::SourceDied };
        assert_eq!(log.reasons(), [word, Reason::SourceReturned, Reason::Resumed]);
        let now = latest.get(spare.name()).unwrap();
        assert_eq!((now.reason, now.source.source.as_str()), (Reason::Resumed, "two"));
        // A change during the takeover is not missed either.
        spare.reconfigure(|config| config.unit = "mbar".into());
        scene.pass(50 * MS, &[&two], &[&client]);
        assert_eq!(log.reasons(), [Reason::ConfigChanged], "once");
        drop(other);
    }
}

#[test]
fn a_redundant_source_takes_over_from_one_that_hangs() {
    let scene = Scene::new();
    let (one, two) = (scene.publisher("a", "one"), scene.publisher("a", "two"));
    let client = scene.subscriber("a", "panel");
    let redundant = AttributeOptions { redundant: true, ..AttributeOptions::default() };
    let main = one.server.declare_with(scalar("a/b/c/e"), redundant).unwrap();
    let spare = two.server.declare_with(scalar("a/b/c/e"), redundant).unwrap();
    main.push(Value::scalar(&1.0)).unwrap();
    spare.push(Value::scalar(&1.0)).unwrap();
    let log = Log::default();
    let _subscription = client.client.subscribe(wish(&["a/b/c/e"]), log.call());
    scene.pass(100 * MS, &[&one, &two], &[&client]);
    let first = log.take();
    assert_eq!((first.len(), first[0].reason, first[0].source.source.as_str()), (1, Reason::First, "one"));
    scene.net.stop(&one.engine);
    scene.pass(2000 * MS, &[&two], &[&client]);
    let updates = log.take();
    let told: Vec<_> = updates.iter().map(|update| (update.reason, update.source.source.to_string())).collect();
    let from = |reason, source: &str| (reason, source.to_owned());
    let taken_over = [from(Reason::SourceReturned, "two"), from(Reason::Resumed, "two")];
    assert!(told[0] == from(Reason::SourceHung, "one") && told.ends_with(&taken_over), "{told:?}");
    assert!(told[..told.len() - 2].iter().all(|told| told.0 == Reason::SourceHung), "{told:?}");
    spare.push(Value::scalar(&2.0)).unwrap();
    scene.pass(100 * MS, &[&two], &[&client]);
    assert_eq!(log.take().iter().map(|update| update.reason).collect::<Vec<_>>(), [Reason::Update]);
    // The first is back, and all agree again on its precedence.
    scene.net.resume(&one.engine);
    scene.pass(1000 * MS, &[&one, &two], &[&client]);
    main.push(Value::scalar(&3.0)).unwrap();
    scene.pass(100 * MS, &[&one, &two], &[&client]);
    let last = log.take().pop().unwrap();
    assert_eq!((last.reason, last.source.source.as_str()), (Reason::Update, "one"));
}
