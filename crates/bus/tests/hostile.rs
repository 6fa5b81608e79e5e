//! Messages that nobody of ours sent: real ones with bytes changed, cut, repeated and sent to the wrong place. They may be
//! taken for what they say, as whoever is in the domain is trusted; they must not break anybody.

mod conformance;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use conformance::{
    arena::{Arena, DOMAIN, Peer, Scene},
    command::Wish,
    simulated::MemoryArena,
};
use tampu_bus::{
    History,
    engine::{Class, Engine},
};

/// A message seen on its way.
type Message = (String, Vec<u8>);

fn below(dice: &mut u64, end: usize) -> usize {
    *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*dice >> 33) as usize % end.max(1)
}

/// Some of a real message's bytes are others, some are missing, some are too many.
fn spoiled(dice: &mut u64, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=below(dice, 4) {
        let at = below(dice, bytes.len());
        match below(dice, 5) {
            0 => bytes.truncate(at),
            1 => bytes.extend_from_slice(&[0xff; 9]),
            // Lengths and counts of the largest value.
            2 => bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0xff),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = below(dice, 256) as u8),
        }
    }
    bytes
}

#[test]
fn spoiled_messages_break_nobody() {
    for seed in seeds() {
        let played = std::panic::catch_unwind(|| scene(seed));
        assert!(played.is_ok(), "seed {seed} broke somebody (see above)");
    }
}

fn scene(seed: u64) {
    let scene = Scene { arena: MemoryArena::seeded(seed) };
    let net = scene.arena.net.clone();
    let seen: Arc<Mutex<Vec<Message>>> = Arc::default();
    let watching = seen.clone();
    net.lose_if(Some(Arc::new(move |passing| {
        let mut seen = watching.lock().unwrap();
        if seen.len() < 2000 {
            seen.push((passing.key.to_owned(), passing.bytes.to_vec()));
        }
        false
    })));
    let mut one = scene.join("one");
    let mut others: Vec<_> = (0..2)
        .map(|number| {
            let mut other = scene.join_at("there", &format!("other{number}"));
            other.reader_with(Wish { history: History::All, ..Wish::of("**") });
            other
        })
        .collect();
    let writer = one.writer("t");
    scene.matched(&mut one, writer, 2);
    one.write(writer, 50, 100);
    scene.pass(Duration::from_millis(300));

    let stranger = net.engine("there");
    let mut dice = seed;
    for _ in 0..300 {
        let real = seen.lock().unwrap().clone();
        let (key, _) = &real[below(&mut dice, real.len())];
        let (_, bytes) = &real[below(&mut dice, real.len())];
        let message = Bytes::from(spoiled(&mut dice, bytes));
        if below(&mut dice, 4) == 0 {
            stranger.ask(key, message, Duration::from_millis(100), Box::new(|_| ())).unwrap();
        } else {
            stranger.outlet(key, Class::Data).unwrap().send(message).unwrap();
        }
        one.write(writer, 1, 100);
        net.advance(Duration::from_micros(300));
    }
    scene.pass(Duration::from_secs(5));

    // The same processes serve a new member.
    let fresh = others[0].reader_with(Wish::of("new"));
    let writer = one.writer("new");
    scene.matched(&mut one, writer, 3);
    one.write(writer, 50, 100);
    assert_eq!(scene.settled(&mut others[0], fresh, "new", 50).got, 50);
    let mut late = Peer(scene.arena.start("there", DOMAIN, "late", Vec::new()));
    let log = late.reader_with(Wish { history: History::All, ..Wish::of("new") });
    assert_eq!(scene.settled(&mut late, log, "new", 50).got, 50);
}

/// `TAMPU_SEED=7` plays one alone.
fn seeds() -> std::ops::Range<u64> {
    let seed = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok());
    seed.map_or(0..12, |seed: u64| seed..seed + 1)
}
