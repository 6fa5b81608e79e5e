//! Thousands of seeded mutations of valid calls through the decoders, on the stable toolchain. The fuzz target `call`
//! looks further; both hold the decoders to the same demands. `TAMPU_SEED=n` repeats a run.

use std::{hash::BuildHasher, panic};

use tampu_text::{Payload, Site, memory::Memory, statement};

#[path = "../../../fuzz/src/call.rs"]
mod demand;

const ROUNDS: u64 = 3000;

/// A small generator whose whole state is a seed (Steele's SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed % end.max(1) as u64) as usize
    }
}

fn mutate(chance: &mut Chance, bytes: &mut Vec<u8>) {
    for _ in 0..1 + chance.below(4) {
        let at = chance.below(bytes.len());
        let end = (at + chance.below(32)).min(bytes.len());
        match chance.below(6) {
            0 if at < bytes.len() => bytes[at] = chance.below(256) as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 if at + 4 <= bytes.len() => bytes[at..at + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..end)),
            _ => {
                let piece = bytes[at..end].to_vec();
                let to = chance.below(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
}

/// A call as the demand takes it.
fn input(site: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = (site.len() as u16).to_le_bytes().to_vec();
    bytes.extend(site);
    bytes.extend(payload);
    bytes
}

fn inputs() -> Vec<Vec<u8>> {
    let memory = Memory::default();
    statement!(4, memory, "az {:08.3} of {name:?} {:#x?}", -7.5f64, Some(7u32), name = "DV01"; scan = 7u8, note = String::from("é"));
    statement!(4, memory, "{0} {1} {0:e} {2:>10} {3:?}", i128::MIN, 'x', true, [1]; last = f32::NAN);
    let described = |site: &Site| {
        let mut bytes = Vec::new();
        site.encode(&mut bytes);
        bytes
    };
    let mut inputs: Vec<_> = memory.calls().iter().map(|call| input(&described(&call.site), &call.payload)).collect();
    let text = "a {{ {:*^+#012.3g} b {:>8.2s} }} {:#X}";
    assert_eq!(Site::parse(text).map(|site| site.arguments), Ok(3));
    let mut payload = Vec::new();
    Payload::new((1e-300, ("text", (-42, ())))).append_to(&mut payload);
    inputs.push(input(text.as_bytes(), &payload));
    inputs
}

#[test]
fn calls() {
    let given = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok());
    let first: u64 = given.unwrap_or_else(|| std::hash::RandomState::new().hash_one(0));
    let inputs = inputs();
    for seed in first..first.saturating_add(if given.is_some() { 1 } else { ROUNDS }) {
        let mut chance = Chance(seed);
        let mut bytes = inputs[chance.below(inputs.len())].clone();
        mutate(&mut chance, &mut bytes);
        if panic::catch_unwind(|| demand::call(&bytes)).is_err() {
            panic!("TAMPU_SEED={seed} does it again: {bytes:?}");
        }
    }
}

/// `TAMPU_WRITE_SEEDS=1` writes the inputs to `fuzz/seeds/call`, for the fuzz target to begin with.
#[test]
fn the_fuzz_targets_seeds_are_calls() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/call");
    for (index, input) in inputs().iter().enumerate() {
        let file = format!("{folder}/{}", ["rust", "options", "fmt"][index]);
        if std::env::var_os("TAMPU_WRITE_SEEDS").is_some() {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(&file, input).unwrap();
        }
        assert!(std::fs::read(&file).is_ok_and(|seed| !seed.is_empty()), "{file}");
    }
}
