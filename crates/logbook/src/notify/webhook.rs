//! Webhooks: which addresses a rule may name, and what they get.
//!
//! ```text
//! POST <address>                          https only; redirections are not followed
//! Content-Type: application/json
//! Tampu-Delivery: <rule>.<id of the entry>.<logbook>    the same for each attempt
//! Tampu-Signature: sha256=<hex>           HMAC-SHA256 of the body with the secret of the rule
//! ```

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::rule::{NotifyError, NotifyRule};
use crate::{attachment::hex, entry::Entry};

/// Bytes of a text that is sent whole.
const TEXT: usize = 64 << 10;

/// Checks that an address is one of the hosts that the site allows, as `hooks.example.org` or `hooks.example.org:8443`.
pub fn check(url: &str, hosts: &[String]) -> Result<(), NotifyError> {
    let shown = url.escape_debug();
    let invalid = |why: &str| Err(NotifyError::Invalid(format!("invalid address of a webhook '{shown}': {why}")));
    let Some(rest) = url.strip_prefix("https://") else { return invalid("it has to begin with https://") };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = &rest[..end];
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if host.is_empty() || !host.chars().all(plain) || url.len() > 1000 || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return invalid("write https://HOST/PATH, without a user or a password");
    }
    let host = host.strip_suffix(":443").unwrap_or(host);
    if hosts.iter().any(|allowed| allowed.trim_end_matches(":443").eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    invalid("its host is not among [book] webhook_hosts of the hub's configuration")
}

/// Returns headers and body of the message about an entry.
pub fn message(rule: &NotifyRule, login: &str, entry: &Entry, url: &str) -> Vec<u8> {
    let mut entry = entry.clone();
    let is_long = entry.content.text.len() > TEXT;
    if is_long {
        let end = (0..=TEXT).rev().find(|end| entry.content.text.is_char_boundary(*end)).unwrap_or(0);
        entry.content.text.truncate(end);
    }
    let delivery = format!("{}.{}.{}", rule.id, entry.at.id, hex(entry.at.book.as_bytes()));
    let body = json!({
        "event": "entry.posted",
        "rule": rule.id,
        "about": rule.about.name(),
        "login": login,
        "url": url,
        "text_is_cut": is_long,
        "entry": entry,
    });
    written(rule, &delivery, &body)
}

/// Returns headers and body of a message for a test.
pub fn test_message(rule: &NotifyRule, login: &str) -> Vec<u8> {
    written(rule, &format!("{}.test", rule.id), &json!({ "event": "test", "rule": rule.id, "login": login }))
}

fn written(rule: &NotifyRule, delivery: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let signature = sign(rule.secret.as_deref().unwrap_or_default(), body.as_bytes());
    format!("Content-Type: application/json\r\nTampu-Delivery: {delivery}\r\nTampu-Signature: sha256={signature}\r\n\r\n{body}")
        .into_bytes()
}

/// Returns the signature of a body.
pub fn sign(secret: &str, body: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(body);
    hex(&mac.finalize().into_bytes())
}

/// A header: its name and its value.
type Header<'a> = (&'a str, &'a str);

/// Splits a message into its headers and its body.
pub fn parts(message: &[u8]) -> Option<(Vec<Header<'_>>, &[u8])> {
    let at = message.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&message[..at]).ok()?;
    let headers = head.split("\r\n").map(|line| line.split_once(": ")).collect::<Option<Vec<_>>>()?;
    Some((headers, &message[at + 4..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_hosts_are_addresses() {
        let hosts = ["hooks.example.org".to_owned(), "chat.example.org:8443".to_owned()];
        for good in ["https://hooks.example.org", "https://HOOKS.example.org:443/a?b=c", "https://chat.example.org:8443/x"] {
            assert!(check(good, &hosts).is_ok(), "{good}");
        }
        for bad in [
            "http://hooks.example.org/",
            "https://",
            "https://other.example.org/",
            "https://hooks.example.org:8443/",
            "https://chat.example.org/",
            "https://hooks.example.org@127.0.0.1/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://hooks.example.org.evil.example/",
            "https://hooks.example.org\\@evil.example/",
            "https://hooks.example.org/\r\nHost: x",
            "file:///etc/passwd",
        ] {
            assert!(check(bad, &hosts).is_err(), "{bad}");
        }
        assert!(check("https://hooks.example.org", &[]).is_err());
    }

    #[test]
    fn a_message_is_signed() {
        let rule = NotifyRule { id: "r1".to_owned(), secret: Some("key".to_owned()), ..NotifyRule::default() };
        let message = test_message(&rule, "zoe");
        let (headers, body) = parts(&message).unwrap();
        assert_eq!(headers[2], ("Tampu-Signature", format!("sha256={}", sign("key", body)).as_str()));
        // A known value of HMAC-SHA256.
        let known = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
        assert_eq!(sign("key", b"The quick brown fox jumps over the lazy dog"), known);
    }
}
