//! Presence of processes on the bus.

use crate::conformance::{
    arena::{Arena, Scene},
    command::Command,
};

pub fn who_is_here_is_known_to_everybody<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut two, mut three) = (scene.join("One"), scene.join("two/with path"), scene.join_at("there", "three"));
    for peer in [&mut one, &mut two, &mut three] {
        scene.until("everybody is here", || peer.sources().here.len() == 3);
        let mut names: Vec<String> = peer.sources().here.into_iter().map(|(source, _)| source).collect();
        names.sort();
        assert_eq!(names, ["One", "three", "two/with path"], "as they were written");
    }
    two.kill();
    three.done(Command::Leave);
    scene.until("two have gone", || one.sources().here.len() == 1);
    let news = one.sources().news;
    for name in ["two/with path", "three"] {
        let told: Vec<bool> = news.iter().filter(|(_, source, _)| source == name).map(|(_, _, here)| *here).collect();
        assert_eq!(told, [true, false], "{name}");
    }
    let _again = scene.join("two/with path");
    scene.until("it is back", || one.sources().here.len() == 2);
}
