//! The names under which ELOG stores attachments, which are their addresses in a book: `080910_002050_a_plot.png`.

use tampu_types::Time;

use super::Attachment;

/// Returns the name of an attachment in ELOG's files. It is the name that ELOG gave it, or the one that ELOG would give
/// it for the time it was added.
pub fn stored_name(attachment: &Attachment) -> String {
    attachment.elog.clone().filter(|name| is_stamped(name)).unwrap_or_else(|| {
        let added = if attachment.added.0 > 0 { attachment.added } else { Time(0) };
        stamped(&attachment.name, added, 0)
    })
}

/// Returns all names under which attachments of one entry are looked for, each once.
pub fn names(attachments: &[Attachment]) -> Vec<String> {
    let both = |attachment: &Attachment| [Some(stored_name(attachment)), attachment.elog.clone()];
    // PostgreSQL has no text with a NUL, and no address has one.
    let mut names: Vec<String> = attachments.iter().flat_map(both).flatten().filter(|name| !name.contains('\0')).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns true if an attachment is looked for under a name.
pub fn is_named(attachment: &Attachment, name: &str) -> bool {
    stored_name(attachment) == name || attachment.elog.as_deref() == Some(name)
}

/// Returns the name that ELOG gives to a file added at a time; `zone` is in minutes east of UTC.
pub fn stamped(name: &str, added: Time, zone: i16) -> String {
    let plain: String = name.chars().map(|c| if matches!(c, ' ' | ',' | ';' | '+' | '=' | ':') { '_' } else { c }).collect();
    format!("{}_{plain}", stamp(added, zone).1)
}

/// Returns the name of a second file of one name: `_1` is inserted before the first point.
pub fn another(name: &str) -> String {
    let (stem, rest) = name.split_at(name.find('.').unwrap_or(name.len()));
    format!("{stem}_1{rest}")
}

/// Returns true if ELOG's time stands before a name.
pub fn is_stamped(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() > 14
        && bytes[..14].iter().enumerate().all(|(at, byte)| if at % 7 == 6 { *byte == b'_' } else { byte.is_ascii_digit() })
        && !name.contains(['/', '\\', ',', ':'])
        && !name.chars().any(char::is_control)
}

/// Returns the year of a time in its zone, and its digits before an attachment's name: `2008` and `080910_002050`.
pub fn stamp(time: Time, zone: i16) -> (String, String) {
    let text = Time(time.0.saturating_add(i64::from(zone) * 60_000_000_000)).to_ns_text();
    let digits: String = text[2..19].chars().filter(char::is_ascii_digit).collect();
    (text[..4].to_owned(), format!("{}_{}", &digits[..6], &digits[6..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_called_as_elog_would() {
        let of = |name: &str, elog: Option<&str>| Attachment {
            name: name.to_owned(),
            sha: None,
            size: 0,
            added: Time(1_221_000_000_000_000_000),
            elog: elog.map(str::to_owned),
        };
        assert_eq!(stored_name(&of("a plot;1.png", None)), "080909_224000_a_plot_1.png");
        assert_eq!(stored_name(&of("x", Some("080910_002050_a.png"))), "080910_002050_a.png");
        assert_eq!(stored_name(&of("x", Some("../../080910"))), "080909_224000_x");
        assert_eq!((another("a.tar.gz"), another("a")), ("a_1.tar.gz".to_owned(), "a_1".to_owned()));
        assert!(!is_stamped("080910_002050x.png") && !is_stamped("080910_002050_"));
    }

    #[test]
    fn a_stamp_has_the_digits_of_its_zone() {
        assert_eq!(stamp(Time(1_220_998_850_000_000_000), 120), ("2008".to_owned(), "080910_002050".to_owned()));
    }
}
