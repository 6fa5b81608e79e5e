//! Services: questions and answers.

use std::time::Duration;

use crate::conformance::arena::{Arena, PATIENCE, Scene};

pub fn everybody_who_answers_is_heard<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut two, mut three) = (scene.join("one"), scene.join("two"), scene.join_at("there", "three"));
    two.answer("log/query", &["two: ", "again: "]);
    three.answer("Log/Query", &["three: "]);
    one.answer("other", &["not asked"]);
    scene.until("both are heard", || {
        let mut answers = one.ask("log/query", "what", PATIENCE);
        answers.sort();
        answers == ["again: what", "three: what", "two: what"].map(|text| Ok(text.to_owned()))
    });
}

pub fn nobody_answering_is_told_in_time<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut two) = (scene.join("one"), scene.join("two"));
    let answers = one.ask("log/query", "what", Duration::from_millis(500));
    let [Err(why)] = &answers[..] else { panic!("{answers:?}") };
    assert!(why.contains("log/query"), "{why}");
    two.answer("log/query", &["two"]);
    scene.until("it is heard", || one.ask("log/query", "", PATIENCE) == [Ok("two".to_owned())]);
    two.kill();
    let asked_at = scene.arena.utc();
    let answers = one.ask("log/query", "what", Duration::from_millis(500));
    assert!(matches!(answers[..], [Err(_)]), "{answers:?}");
    let took = Duration::from_nanos((scene.arena.utc() - asked_at) as u64);
    assert!(took <= scene.arena.allowed(Duration::from_millis(500)), "it took {took:?}");
}

pub fn a_long_answer_arrives_whole<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut two) = (scene.join("one"), scene.join_at("there", "two"));
    let parts: Vec<String> = (0..200).map(|number| format!("{number:04}{}", "x".repeat(5000))).collect();
    two.answer("long", &parts.iter().map(String::as_str).collect::<Vec<_>>());
    let expected: Vec<_> = parts.into_iter().map(Ok).collect();
    scene.until("it is heard", || one.ask("long", "", PATIENCE) == expected);
}
