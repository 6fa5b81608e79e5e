//! Percent-encoded paths and query strings.

use percent_encoding::percent_decode_str;

/// Decodes `%41` and the like. Returns `None` for a `%` without two digits after it, or if the result is not UTF-8.
pub fn decoded(text: &str) -> Option<String> {
    let is_sound = |part: &str| part.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    // The crate accepts a `%` without digits and leaves it unchanged.
    if !text.split('%').skip(1).all(is_sound) {
        return None;
    }
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

/// Reads the parameters of a query string, in their order. A plus is a blank, as forms write it.
pub fn parameters(query: &str) -> Option<Vec<(String, String)>> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Some((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use tampu_logbook::client::address::encoded;

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
