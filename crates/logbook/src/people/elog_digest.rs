//! The passwords of ELOG's users: SHA-crypt with SHA-256, 5000 rounds and an empty salt, of which ELOG keeps the 43
//! characters after `$5$$`.
//!
//! ELOG's programs send these characters in place of the password, and elogd compares them as text. So a person with
//! the file can log in as any user. Here they only verify a password at its first use, and a better hash replaces them.
//! The site's settings say whether they are accepted in place of a password. The algorithm is U. Drepper's "Unix crypt
//! using SHA-256 and SHA-512" in full, so its test vectors apply.

use sha2::{Digest, Sha256};

/// Maximum length of a password in bytes; the work grows with it.
pub const MAX_PASSWORD: usize = 1024;
/// Characters of a stored hash.
pub const HASH: usize = 43;

const ROUNDS: usize = 5000;
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns ELOG's hash of a password; `None` for more than [`MAX_PASSWORD`] bytes.
pub fn hash(password: &[u8]) -> Option<String> {
    (password.len() <= MAX_PASSWORD).then(|| text(&crypt(password, b"", ROUNDS)))
}

/// Returns whether a text has the form of such a hash.
pub fn is_hash(text: &str) -> bool {
    text.len() == HASH && text.bytes().all(|byte| DIGITS.contains(&byte))
}

/// Compares two hashes in a time that does not depend on their contents.
pub fn same(kept: &str, given: &str) -> bool {
    let differ = |(a, b): (u8, u8)| a ^ b;
    kept.len() == given.len() && kept.bytes().zip(given.bytes()).map(differ).fold(0, |all, one| all | one) == 0
}

/// Computes SHA-crypt. The names of the steps are the standard's.
fn crypt(password: &[u8], salt: &[u8], rounds: usize) -> [u8; 32] {
    let b = digest(&[password, salt, password]);
    let mut a = Sha256::new();
    a.update(password);
    a.update(salt);
    a.update(stretched(&b, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        if bits & 1 == 1 {
            a.update(b)
        } else {
            a.update(password)
        }
        bits >>= 1;
    }
    let mut a: [u8; 32] = a.finalize().into();
    let mut dp = Sha256::new();
    password.iter().for_each(|_| dp.update(password));
    let p = stretched(&dp.finalize().into(), password.len());
    let mut ds = Sha256::new();
    (0..16 + usize::from(a[0])).for_each(|_| ds.update(salt));
    let s = stretched(&ds.finalize().into(), salt.len());
    for round in 0..rounds {
        let (first, last): (&[u8], &[u8]) = if round % 2 == 1 { (&p, &a) } else { (&a, &p) };
        let salt: &[u8] = if round % 3 == 0 { &[] } else { &s };
        let again: &[u8] = if round % 7 == 0 { &[] } else { &p };
        a = digest(&[first, salt, again, last]);
    }
    a
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// Repeats a digest up to this length.
fn stretched(digest: &[u8; 32], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

/// Encodes a digest: three bytes become four characters, in the standard's order of bytes.
fn text(digest: &[u8; 32]) -> String {
    let mut out = String::with_capacity(HASH);
    let mut push = |value: u32, characters: u32| {
        (0..characters).for_each(|at| out.push(char::from(DIGITS[(value >> (6 * at) & 63) as usize])));
    };
    let byte = |at: usize| u32::from(digest[at]);
    let (mut x, mut y, mut z) = (0, 10, 20);
    for _ in 0..10 {
        push(byte(x) << 16 | byte(y) << 8 | byte(z), 4);
        (x, y, z) = (z + 1, x + 1, y + 1);
    }
    push(byte(31) << 8 | byte(30), 3);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_vectors_as_glibc_makes_them() {
        for (password, salt, rounds, expected) in [
            ("Hello world!", "saltstring", 5000, "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
            ("Hello world!", "saltstringsaltst", 10_000, "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"),
            ("This is just a test", "toolongsaltstrin", 5000, "Un/5jzAHMgOGZ5.mWJpuVolil07guHPvOW8mGRcvxa5"),
            (
                "a very much longer text to encrypt.  This one even stretches over morethan one line.",
                "anotherlongsalts",
                1400,
                "Rx.j8H.h8HjEDGomFU8bDkXm3XIUnzyxf12oP84Bnq1",
            ),
            ("the minimum number is still observed", "roundstoolow", 1000, "yfvwcWrQ8l/K0DAWyuPMDNHpIVlTQebY9l/gL972bIC"),
        ] {
            assert_eq!(text(&crypt(password.as_bytes(), salt.as_bytes(), rounds)), expected, "{password}");
        }
    }

    #[test]
    fn elogs_own() {
        let kept = hash(b"secret").unwrap();
        assert_eq!(kept, "o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5");
        assert!(is_hash(&kept) && !is_hash("secret") && same(&kept, &kept) && !same(&kept, &kept[1..]));
        assert!(!same(&kept, &kept.replace('o', "p")));
        assert_eq!(hash(&[b'x'; MAX_PASSWORD + 1]), None);
        assert_eq!(hash(b"").unwrap().len(), HASH);
    }
}
