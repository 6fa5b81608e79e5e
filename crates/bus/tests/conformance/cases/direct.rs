//! Links between two processes without the node.

use std::time::Duration;

use tampu_bus::QosPatch;

use crate::conformance::{
    arena::{Arena, Scene},
    command::Wish,
};

pub fn direct_links_carry_each_sample_once<A: Arena>() {
    let scene = Scene::<A>::new();
    let (mut one, mut linked, mut other) = (scene.join("one"), scene.join("linked"), scene.join("other"));
    let linked_log = linked.reader_with(Wish { direct: true, ..Wish::of("t") });
    let other_log = other.reader("t");
    let writer = one.writer_with("t", &[], QosPatch { direct: Some(true), ..QosPatch::default() });
    scene.matched(&mut one, writer, 2);
    // The link is made while samples flow, and their order is kept.
    for _ in 0..50 {
        one.write(writer, 10, 100);
        scene.pass(Duration::from_millis(10));
    }
    for (reader, log) in [(&mut linked, linked_log), (&mut other, other_log)] {
        let account = scene.settled(reader, log, "t", 500);
        assert_eq!((account.from, account.got), (0, 500));
    }
}
