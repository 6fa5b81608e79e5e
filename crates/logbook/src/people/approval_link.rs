//! Tokens of the links by which administrators approve or refuse a registration from their mail, without a login.
//!
//! A link is as good as the rights of the administrator who got it, for one registration and until it is decided.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::attachment::hex;

/// The first part of the signed text, so that no other signature of the site is a token.
const PURPOSE: &str = "registration";

/// Returns the token of a registration.
pub fn token(secret: &[u8; 32], id: &str) -> String {
    // A key of any length is a key.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
    mac.update(format!("{PURPOSE}\n{id}").as_bytes());
    format!("{id}.{}", hex(&mac.finalize().into_bytes()[..16]))
}

/// Returns the id of the registration of a token; `None` if this site did not make the token.
pub fn read(secret: &[u8; 32], given: &str) -> Option<String> {
    let (id, _) = given.trim().split_once('.')?;
    let expected = token(secret, id);
    // The comparison takes the same time for every wrong value of the right length.
    let differs = given.trim().bytes().zip(expected.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    (given.trim().len() == expected.len() && differs == 0 && !expected.is_empty()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_site_makes_tokens() {
        let (secret, other) = ([1; 32], [2; 32]);
        let made = token(&secret, "a1b2c3");
        assert_eq!(read(&secret, &made).as_deref(), Some("a1b2c3"));
        assert_eq!(read(&other, &made), None);
        for wrong in ["", ".", "a1b2c3", "a1b2c3.", &made.replace("a1", "a2"), &made[..made.len() - 1], &format!("{made}0")] {
            assert_eq!(read(&secret, wrong), None, "{wrong}");
        }
    }
}
