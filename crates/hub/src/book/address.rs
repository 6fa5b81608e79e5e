//! Addresses: what stands between slashes and behind the question mark, without its `%41`.

/// What `%41` and the like stand for; none if it is not UTF-8, or not well formed.
pub fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        out.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(out).ok()
}

/// A text as a part of a path.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The parameters behind the question mark, in their order. A plus is a blank, as forms write it.
pub fn parameters(query: &str) -> Option<Vec<(String, String)>> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Some((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["Shift", "LHCb shift log", "a/b?c&d=e", "Zoë+%"] {
            assert_eq!(decoded(&encoded(text)).as_deref(), Some(text));
        }
        assert_eq!(
            parameters("q=a+b&&book=Zo%C3%AB&x"),
            Some(vec![("q".into(), "a b".into()), ("book".into(), "Zoë".into()), ("x".into(), "".into())])
        );
        for bad in ["%", "%4", "%zz", "%ff", "%-1"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
