//! The invariant of the bus under random misfortune: what a reader was given and what it was told lost is exactly what was
//! written, in order, once. Every seed is a scene of its own; a failure names it, and `TAMPU_SEED=n` plays it alone.

mod conformance;

use std::time::Duration;

use conformance::{
    arena::{Arena, DOMAIN, Peer},
    command::{How, Pace, Wish},
    simulated::{MemoryArena, MemoryProcess},
};
use tampu_bus::{
    History, QosPatch,
    engine::memory::{Faults, MemoryNet},
};

/// How many scenes each test plays.
const SEEDS: u64 = 25;

/// The same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

struct Writing {
    peer: Peer<MemoryProcess>,
    writer: usize,
    written: u64,
}

struct Reading {
    peer: Peer<MemoryProcess>,
    host: &'static str,
    log: usize,
    reliable: bool,
    stopped: bool,
}

const HOSTS: [&str; 3] = ["a", "b", "c"];

#[test]
fn what_was_given_and_what_was_told_lost_is_what_was_written() {
    play(0);
}

#[test]
fn and_so_it_is_in_as_many_other_scenes() {
    play(SEEDS);
}

fn play(first: u64) {
    let seeds = match std::env::var("TAMPU_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (first..first + SEEDS).collect(),
    };
    for seed in seeds {
        let played = std::panic::catch_unwind(|| scene(seed));
        assert!(played.is_ok(), "the scene of TAMPU_SEED={seed} broke the promise (see above)");
    }
}

fn scene(seed: u64) {
    let mut dice = Dice(seed);
    let arena = MemoryArena::seeded(seed);
    let net = &arena.net;
    net.set_lease(Duration::from_secs(dice.of(&[3, 10, 20])));
    let ms = Duration::from_millis;
    let chance = |dice: &mut Dice| dice.below(8) as f64 / 100.0;
    let faults = Faults {
        loss: chance(&mut dice),
        duplicate: chance(&mut dice),
        reorder: chance(&mut dice),
        delay: (Duration::from_micros(50), ms(1 + dice.below(5))),
        capacity: dice.of(&[usize::MAX, 200_000, 20_000]),
        ..Faults::default()
    };
    // Everybody is matched before the trouble begins, so that everybody has a right to everything.
    let mut writings: Vec<Writing> = (0..1 + dice.below(2)).map(|number| writing(&arena, &mut dice, number)).collect();
    let mut readings: Vec<Reading> = (0..1 + dice.below(3)).map(|number| reading(&arena, &mut dice, number)).collect();
    for writing in &mut writings {
        let all = readings.len();
        assert!(net.until(|| writing.peer.look(writing.writer).readers.len() == all, ms(1000)));
    }
    net.advance(ms(300));
    net.set_faults(faults);
    for _ in 0..60 {
        act(net, &mut dice, &mut writings, &mut readings);
        net.advance(Duration::from_micros(100 + dice.below(dice.0 % 7 + 1) * 20_000));
    }
    calm(net, &mut readings);
    for writing in &mut writings {
        // A last word, so that readers that do not heal learn of everything before it.
        writing.peer.write_how(writing.writer, 1, 20, How::Urgent);
        writing.written += 1;
    }
    for reading in &mut readings {
        for (number, writing) in writings.iter().enumerate() {
            judge(&arena, reading, &format!("t/{number}"), writing.written);
        }
    }
}

fn writing(arena: &MemoryArena, dice: &mut Dice, number: u64) -> Writing {
    let host = dice.of(&HOSTS);
    let mut peer = Peer(process(arena, host, &format!("writer{number}")));
    let patch = QosPatch {
        credit: Some(dice.of(&[4_000, 64_000, 1 << 20])),
        max_wait_ms: Some(dice.of(&[0, 5, 100])),
        cache: Some(dice.of(&[0, 20_000, 300_000, 64 << 20])),
        linger_us: Some(dice.of(&[0, 200, 20_000])),
        batch: Some(dice.of(&[500, 5_000, 56 << 10])),
        ..QosPatch::default()
    };
    let writer = peer.writer_with(&format!("t/{number}"), &[], patch);
    Writing { peer, writer, written: 0 }
}

fn reading(arena: &MemoryArena, dice: &mut Dice, number: u64) -> Reading {
    let host = dice.of(&HOSTS);
    let mut peer = Peer(process(arena, host, &format!("reader{number}")));
    let reliable = !dice.one_in(4);
    let wish = Wish {
        reliable,
        full: dice.one_in(4),
        history: dice.of(&[History::None, History::All]),
        queue: dice.of(&[None, Some(10_000), Some(100_000)]),
        pace: dice.of(&[Pace::Keen, Pace::Keen, Pace::Slow(20, 5)]),
        ..Wish::of("t/*")
    };
    let log = peer.reader_with(wish);
    Reading { peer, host, log, reliable, stopped: false }
}

fn process(arena: &MemoryArena, host: &str, source: &str) -> MemoryProcess {
    arena.start(host, DOMAIN, source, Vec::new())
}

/// One random thing happens.
fn act(net: &MemoryNet, dice: &mut Dice, writings: &mut [Writing], readings: &mut [Reading]) {
    match dice.below(12) {
        0 => {
            let reading = &mut readings[dice.0 as usize % readings.len()];
            reading.stopped = !reading.stopped;
            if reading.stopped { reading.peer.stop() } else { reading.peer.resume() }
        }
        1 => {
            let pace = dice.of(&[Pace::Keen, Pace::Idle, Pace::Slow(5, 10)]);
            let reading = &mut readings[dice.0 as usize % readings.len()];
            reading.peer.pace(reading.log, pace);
        }
        2 => net.cut(dice.of(&HOSTS), dice.of(&HOSTS)),
        3 | 4 => HOSTS.iter().for_each(|one| HOSTS.iter().for_each(|other| net.heal(one, other))),
        5 => net.advance(Duration::from_secs(dice.below(6))),
        _ => {
            let count = dice.of(&[1, 3, 50, 300]);
            let size = dice.of(&[8, 100, 2_000]) as usize;
            let how = dice.of(&[How::Plain, How::Plain, How::Urgent, How::Loan]);
            let writing = &mut writings[dice.0 as usize % writings.len()];
            writing.peer.write_how(writing.writer, count, size, how);
            writing.written += count;
        }
    }
}

/// The trouble ends.
fn calm(net: &MemoryNet, readings: &mut [Reading]) {
    net.set_faults(Faults::default());
    HOSTS.iter().for_each(|one| HOSTS.iter().for_each(|other| net.heal(one, other)));
    for reading in readings {
        if std::mem::take(&mut reading.stopped) {
            reading.peer.resume();
        }
        reading.peer.pace(reading.log, Pace::Keen);
    }
}

/// A minute later everything is settled.
fn judge(arena: &MemoryArena, reading: &mut Reading, topic: &str, written: u64) {
    let limit = Duration::from_secs(60);
    let settled = arena.until(|| reading.peer.log(reading.log).topic(topic).is_settled(written), limit);
    let log = reading.peer.log(reading.log);
    let account = log.topic(topic);
    let who = format!("{topic} of {written} samples at {} (reliable: {})", reading.host, reading.reliable);
    assert!(settled, "{who}: {account:?} {:?}", log.0);
    assert_eq!((account.from, account.to), (0, written), "{who}: {account:?}");
    assert_eq!(account.got + account.lost_total(), written, "{who}: {account:?}");
    assert!(!account.open_end, "{who}: nobody died");
}
