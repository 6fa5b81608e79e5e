//! Seeded mutations of a fuzz target's seeds, for tests on the stable toolchain.

use std::path::Path;

/// Mutations of each seed file.
const ROUNDS: u64 = 3000;

/// Changes, takes out, repeats and joins pieces of the inputs. The same seed gives the same bytes.
fn mutated(inputs: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % end.max(1)
    };
    let mut bytes = inputs[below(inputs.len())].clone();
    for _ in 0..1 + below(6) {
        let at = below(bytes.len() + 1);
        match below(5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] = below(256) as u8,
            2 => {
                let end = (at + below(20)).min(bytes.len());
                bytes.drain(at..end);
            }
            3 => {
                let other = &inputs[below(inputs.len())];
                let from = below(other.len());
                let piece = other[from..(from + below(40)).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let piece = [&b"\n"[..], b"(", b"\"", b"/", b"[", b"=", b"$@MID@$: 1\n", b"\xff", b"*", b"~", b":"][below(11)];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

/// Holds a demand against the seeds of a fuzz target and against mutations of them.
pub fn hold(name: &str, demand: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    let inputs: Vec<Vec<u8>> =
        std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(!inputs.is_empty());
    inputs.iter().for_each(|input| demand(input));
    for seed in 0..ROUNDS {
        let input = mutated(&inputs, seed);
        if std::panic::catch_unwind(|| demand(&input)).is_err() {
            panic!("{name}, seed {seed}: {}", String::from_utf8_lossy(&input));
        }
    }
}
