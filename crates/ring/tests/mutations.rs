//! Thousands of seeded mutations of a dead process's files through their readers, on the stable toolchain. The fuzz
//! target in `fuzz/` looks further; both hold the readers to the same demands. `TAMPU_SEED=n` repeats a run.

#[path = "../../../fuzz/src/ring.rs"]
mod demands;
#[path = "../../types/tests/support/page.rs"]
mod page;

use std::{hash::BuildHasher, panic};

use page::hex_dump;

const ROUNDS: u64 = 20_000;

/// A small generator whose whole state is a seed (Steele's SplitMix64).
struct Chance(u64);

impl Chance {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.number() % end.max(1) as u64) as usize
    }
}

/// Changes a few places: bytes, words that may be positions or lengths, cuts, repetitions.
fn mutate(chance: &mut Chance, bytes: &mut Vec<u8>) {
    for _ in 0..1 + chance.below(4) {
        // Half of the changes hit the header and the data.
        let end = if chance.below(2) == 0 { bytes.len() } else { bytes.len().min(1400) };
        let at = chance.below(end);
        match chance.below(6) {
            0 if at < bytes.len() => bytes[at] = chance.number() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 | 3 if at + 16 <= bytes.len() => {
                let word = [0, 8, 24, 4096, 4104, u64::MAX, u64::MAX - 7, 1 << 32, chance.number()][chance.below(9)];
                bytes[at & !7..][..8].copy_from_slice(&word.to_ne_bytes());
            }
            4 if chance.below(8) == 0 => bytes.truncate(at),
            _ if at + 32 <= bytes.len() => {
                let to = chance.below(bytes.len() - 24) & !7;
                bytes.copy_within(at..at + 24, to);
            }
            _ => {}
        }
    }
}

/// A ring, a dictionary, a clock page and a source as the page of the specification has them.
fn inputs() -> Vec<Vec<u8>> {
    let [fixed, cursor, data, dictionary, mut clock] = std::array::from_fn(|which| hex_dump("log-ring.md", which));
    let mut ring = vec![0; 1024 + 4096];
    ring[..fixed.len()].copy_from_slice(&fixed);
    ring[128..136].copy_from_slice(&(data.len() as u64).to_ne_bytes());
    ring[768..768 + cursor.len()].copy_from_slice(&cursor);
    ring[1024..1024 + data.len()].copy_from_slice(&data);
    // The same records once more around the end of the data.
    let mut round = ring.clone();
    let begin = 4096 - 40;
    for (index, byte) in data.iter().enumerate() {
        round[1024 + (begin + index) % 4096] = *byte;
    }
    for (place, stamp) in [(0, 0), (40, 5), (80, 10)] {
        let at = 1024 + (begin + place + 20) % 4096;
        round[at..at + 4].copy_from_slice(&(begin as u32 / 8 + stamp).to_ne_bytes());
    }
    round[128..136].copy_from_slice(&((begin + data.len()) as u64).to_ne_bytes());
    round[512..520].copy_from_slice(&(begin as u64).to_ne_bytes());
    clock.resize(4096, 0);
    let text = "tampu-rings 1\ndomain a\nsource b\nprocess c\nhost d\nincarnation 1a2b3c4d-00001267-18ea008b6316cd15\nend\n";
    vec![ring, round, dictionary, clock, text.as_bytes().to_vec()]
}

#[test]
fn readers_survive_any_damage() {
    let given = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::hash::RandomState::new().hash_one(0));
    let inputs = inputs();
    inputs.iter().for_each(|input| demands::files(input));
    for round in 0..ROUNDS {
        let mut chance = Chance(seed.wrapping_add(round));
        let mut bytes = inputs[chance.below(inputs.len())].clone();
        mutate(&mut chance, &mut bytes);
        let failed = panic::catch_unwind(|| demands::files(&bytes)).is_err();
        assert!(!failed, "TAMPU_SEED={}", seed.wrapping_add(round));
    }
}
