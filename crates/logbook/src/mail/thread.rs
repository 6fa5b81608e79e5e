//! Message-IDs of mails about entries, so that a reply stands below its entry in programs for mail.
//!
//! ```text
//! <entry.12.Shift=20log@example.org>       entry 12 of the logbook "Shift log"
//! <entry.12.Shift=20log.3@example.org>     its third change
//! ```

use crate::entry::EntryRef;

/// The beginning of every such Message-ID.
const BEGIN: &str = "entry.";

/// Returns the Message-ID of the mail about an entry, or about its change number `revision` if that is above 0.
pub fn message_id(at: &EntryRef, revision: u32, domain: &str) -> String {
    let mut id = format!("{BEGIN}{}.", at.id);
    for byte in at.book.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() => id.push(char::from(byte)),
            byte => id.push_str(&format!("={byte:02X}")),
        }
    }
    if revision > 0 {
        id.push_str(&format!(".{revision}"));
    }
    format!("{id}@{domain}")
}

/// Returns the entry that a Message-ID of this domain is about.
pub fn entry_of(id: &str, domain: &str) -> Option<EntryRef> {
    let (local, of) = id.trim().trim_start_matches('<').trim_end_matches('>').rsplit_once('@')?;
    if !of.eq_ignore_ascii_case(domain) {
        return None;
    }
    let mut parts = local.strip_prefix(BEGIN)?.split('.');
    let number = parts.next()?.parse().ok()?;
    let mut bytes = Vec::new();
    let mut rest = parts.next()?.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'=' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    Some(EntryRef::new(&String::from_utf8(bytes).ok()?, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_id_names_its_entry() {
        for (book, revision) in [("Shift", 0), ("Shift log, Nord.Süd", 0), ("a@b=", 3)] {
            let at = EntryRef::new(book, 12);
            let id = message_id(&at, revision, "example.org");
            assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"=.@".contains(&byte)), "{id}");
            assert_eq!(entry_of(&format!("<{id}>"), "EXAMPLE.org"), Some(at));
            assert_eq!(entry_of(&id, "example.com"), None);
        }
        for other in ["", "entry.@example.org", "entry.x.a@example.org", "entry.1.=G0@example.org", "entry.1.=@example.org"] {
            assert_eq!(entry_of(other, "example.org"), None, "{other}");
        }
    }
}
