//! Lists in one text: audiences separated by commas, named values as a JSON object.
//!
//! Fewer tools can read a nested Parquet column, and it would cost every reader repetition levels. The JSON object
//! keeps the order of its names. A name that occurs twice stands twice in it; programs that need both values read the
//! column as text.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{MapAccess, Visitor},
};
use tampu_types::{Datum, record::ArchiveParameter};

/// Appends audiences: `Operator,SciLog`, with a backslash before a comma or a backslash in a name. An empty list is the
/// empty text; a single empty audience is a backslash.
pub(crate) fn put_audiences<'a>(audiences: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
    let start = out.len();
    let mut count = 0;
    for audience in audiences {
        if count > 0 {
            out.push(b',');
        }
        count += 1;
        for &byte in audience.as_bytes() {
            if byte == b',' || byte == b'\\' {
                out.push(b'\\');
            }
            out.push(byte);
        }
    }
    if count == 1 && out.len() == start {
        out.push(b'\\');
    }
}

/// Returns whether a single audience of this name is stored without escapes.
pub(crate) fn is_plain(audience: &str) -> bool {
    !audience.is_empty() && !audience.contains([',', '\\'])
}

/// Decodes a cell of audiences.
pub(crate) fn audiences(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    if text == "\\" {
        return vec![String::new()];
    }
    let (mut all, mut audience) = (Vec::new(), String::new());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ',' => all.push(std::mem::take(&mut audience)),
            '\\' => audience.extend(characters.next()),
            other => audience.push(other),
        }
    }
    all.push(audience);
    all
}

/// Appends named values: `{"scan":"12"}`, or nothing if there are no values.
pub(crate) fn put_data<'a>(data: impl Iterator<Item = (&'a str, &'a str)>, out: &mut Vec<u8>) {
    let mut any = false;
    for (name, value) in data {
        out.push(if any { b',' } else { b'{' });
        any = true;
        put_string(name, out);
        out.push(b':');
        put_string(value, out);
    }
    if any {
        out.push(b'}');
    }
}

fn put_string(text: &str, out: &mut Vec<u8>) {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else if serde_json::to_writer(&mut *out, text).is_err() {
        // A text is always JSON, and a vector always takes it.
        out.extend_from_slice(b"\"\"");
    }
}

/// Calls `each` with the names and values of a text made by [`put_data`].
pub(crate) fn each_datum(text: &str, mut each: impl FnMut(&str, &str)) -> Result<(), serde_json::Error> {
    struct Pairs<F>(F);
    impl<'de, F: FnMut(&str, &str)> Visitor<'de> for Pairs<F> {
        type Value = ();

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object of texts")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, value)) = map.next_entry::<std::borrow::Cow<'de, str>, std::borrow::Cow<'de, str>>()? {
                (self.0)(&name, &value);
            }
            Ok(())
        }
    }
    if text.is_empty() {
        return Ok(());
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_map(Pairs(&mut each))?;
    reader.end()
}

/// Decodes named values.
pub(crate) fn data(text: &str) -> Result<Vec<Datum>, serde_json::Error> {
    let mut all = Vec::new();
    each_datum(text, |name, value| all.push(Datum::new(name, value)))?;
    Ok(all)
}

/// Appends the subject of an `Archive` record, or nothing.
pub(crate) fn put_archive(object: &str, parameter: &str, kind: &str, out: &mut Vec<u8>) {
    put_data([("object", object), ("parameter", parameter), ("type", kind)].into_iter(), out);
}

/// Decodes the subject of an `Archive` record.
pub(crate) fn archive(text: &str) -> Result<Option<ArchiveParameter>, serde_json::Error> {
    if text.is_empty() { Ok(None) } else { serde_json::from_str(text).map(Some) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn audiences_lead_back(all in proptest::collection::vec("[a,\\\\ä]{0,4}", 0..4)) {
            let mut text = Vec::new();
            put_audiences(all.iter().map(String::as_str), &mut text);
            prop_assert_eq!(audiences(std::str::from_utf8(&text).unwrap()), all);
        }

        #[test]
        fn data_lead_back(all in proptest::collection::vec((".{0,6}", ".{0,6}"), 0..4)) {
            let mut text = Vec::new();
            put_data(all.iter().map(|(name, value)| (name.as_str(), value.as_str())), &mut text);
            let text = String::from_utf8(text).unwrap();
            let back: Vec<_> = data(&text).unwrap().into_iter().map(|datum| (datum.name, datum.value)).collect();
            prop_assert_eq!(&back, &all);
            let names: std::collections::HashSet<_> = all.iter().map(|(name, _)| name).collect();
            if !all.is_empty() && names.len() == all.len() {
                let plain: std::collections::BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(plain, all.into_iter().collect());
            }
        }
    }

    #[test]
    fn an_archive_parameter_of_nothing_is_still_one() {
        let mut text = Vec::new();
        put_archive("", "", "", &mut text);
        assert_eq!(archive(std::str::from_utf8(&text).unwrap()).unwrap(), Some(ArchiveParameter::default()));
        assert_eq!(archive("").unwrap(), None);
    }
}
