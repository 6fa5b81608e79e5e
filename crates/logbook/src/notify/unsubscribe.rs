//! Tokens of links that end a rule without a login, as programs for mail use them (RFC 8058).

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::rule::{self, NotifyError, NotifyRule};
use crate::{attachment::hex, store::Records};

/// The first part of the signed text, so that no other signature of the site is a token.
const PURPOSE: &str = "unsubscribe";

/// Returns the token of a rule.
pub fn token(secret: &[u8; 32], login: &str, rule: &str) -> String {
    format!("{}.{rule}.{}", hex(login.as_bytes()), hex(&signature(secret, login, rule)))
}

fn signature(secret: &[u8; 32], login: &str, rule: &str) -> Vec<u8> {
    // A key of any length is a key.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return Vec::new() };
    mac.update(format!("{PURPOSE}\n{login}\n{rule}").as_bytes());
    mac.finalize().into_bytes()[..16].to_vec()
}

/// Returns the login and the rule of a token; `None` if this site did not make it.
pub fn read(secret: &[u8; 32], token: &str) -> Option<(String, String)> {
    let mut parts = token.trim().split('.');
    let (login, rule, given) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = |text: &str| -> Option<Vec<u8>> {
        let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok());
        pairs.collect()
    };
    let login = String::from_utf8(bytes(login)?).ok()?;
    let expected = hex(&signature(secret, &login, rule));
    // The comparison takes the same time for every wrong value of the right length.
    let is_right =
        given.len() == expected.len() && given.bytes().zip(expected.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0;
    (is_right && !expected.is_empty()).then(|| (login, rule.to_owned()))
}

/// Removes the rule of a token. Returns `None` if the token is not one, and no rule if it was removed before.
pub fn unsubscribe(store: &dyn Records, secret: &[u8; 32], token: &str) -> Result<Option<Option<NotifyRule>>, NotifyError> {
    let Some((login, id)) = read(secret, token) else { return Ok(None) };
    match rule::remove(store, &login, &id) {
        Ok(removed) => Ok(Some(Some(removed))),
        Err(NotifyError::NoRule { .. }) => Ok(Some(None)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_site_makes_tokens() {
        let (secret, other) = ([1; 32], [2; 32]);
        let made = token(&secret, "zoë@example.org", "r1");
        assert_eq!(read(&secret, &made), Some(("zoë@example.org".to_owned(), "r1".to_owned())));
        assert_eq!(read(&other, &made), None);
        for wrong in ["", ".", "..", "zz.r.00", &made.replace("r1", "r2"), &made[..made.len() - 1], &format!("{made}0")] {
            assert_eq!(read(&secret, wrong), None, "{wrong}");
        }
    }
}
