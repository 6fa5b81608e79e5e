//! Texts of a file as answers have them.

use super::record::data_json;
use crate::parquet::{BadTable, Corrupt, lists, unhex};

/// Appends a number in decimal digits.
pub(super) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Difference between a text of a file and that of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// An empty text is a value.
    KeepEmpty,
    /// An object of named values becomes a list.
    Data,
    /// The subject of a parameter, whose members have their order.
    Archive,
    /// Digits of an id.
    TraceId,
    SpanId,
}

impl Change {
    /// Appends the text of an answer.
    pub(super) fn put(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), BadTable> {
        match self {
            _ if text.is_empty() => {}
            Change::None | Change::KeepEmpty => out.extend_from_slice(text),
            Change::Data => {
                let before = out.len();
                if put_list(text, out).is_none() {
                    out.truncate(before);
                    let data = std::str::from_utf8(text).ok().and_then(|text| lists::data(text).ok());
                    let data = data.ok_or(Corrupt("named values that cannot be read"))?;
                    out.extend_from_slice(data_json(&data).as_bytes());
                }
            }
            Change::TraceId => put_hex::<16>(text, out)?,
            Change::SpanId => put_hex::<8>(text, out)?,
            Change::Archive => {
                let archive = std::str::from_utf8(text).ok().and_then(|text| lists::archive(text).ok()).flatten();
                let archive = archive.ok_or(Corrupt("named values that cannot be read"))?;
                out.extend_from_slice(&serde_json::to_vec(&archive).unwrap_or_default());
            }
        }
        Ok(())
    }
}

/// Appends the hexadecimal digits of `N` bytes, in lower case.
fn put_hex<const N: usize>(text: &[u8], out: &mut Vec<u8>) -> Result<(), Corrupt> {
    let is_plain = text.len() == 2 * N && text.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if is_plain {
        out.extend_from_slice(text);
        return Ok(());
    }
    for byte in unhex::<N>(text)?.into_iter().flatten() {
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    Ok(())
}

/// Appends `{"scan":"12"}` as `[{"name":"scan","value":"12"}]`. Both have texts of the same form, so nothing is decoded. Returns
/// `None` for an object that is written in another way, such as with spaces.
fn put_list(object: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = object.strip_prefix(b"{")?;
    let mut open: &[u8] = b"[{\"name\":";
    loop {
        let (name, behind) = text_at(rest)?;
        let (value, behind) = text_at(behind.strip_prefix(b":")?)?;
        out.extend_from_slice(open);
        out.extend_from_slice(name);
        out.extend_from_slice(b",\"value\":");
        out.extend_from_slice(value);
        out.push(b'}');
        match behind {
            b"}" => break,
            _ => rest = behind.strip_prefix(b",")?,
        }
        open = b",{\"name\":";
    }
    out.push(b']');
    Some(())
}

/// Splits a text without escapes, with its quotes, from what follows.
fn text_at(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = json.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', inner)?;
    if inner[end] == b'\\' || inner[..end].iter().any(|byte| *byte < 0x20) {
        return None;
    }
    Some(json.split_at(end + 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tampu_types::Datum;

    use super::*;

    proptest! {
        #[test]
        fn an_object_becomes_the_list_of_its_values(all in proptest::collection::vec((".{0,6}", ".{0,6}"), 1..4)) {
            let mut object = Vec::new();
            lists::put_data(all.iter().map(|(name, value)| (name.as_str(), value.as_str())), &mut object);
            let data: Vec<Datum> = all.iter().map(|(name, value)| Datum::new(name, value)).collect();
            let mut list = Vec::new();
            Change::Data.put(&object, &mut list).unwrap();
            prop_assert_eq!(String::from_utf8(list).unwrap(), data_json(&data));
        }

        #[test]
        fn numbers_are_their_digits(number: u64) {
            let mut out = Vec::new();
            put_number(number, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    #[test]
    fn an_object_of_another_form_is_decoded() {
        let mut list = Vec::new();
        Change::Data.put(br#"{ "a\u0062": "1" }"#, &mut list).unwrap();
        assert_eq!(list, br#"[{"name":"ab","value":"1"}]"#);
        assert!(Change::Data.put(br#"{"a":1}"#, &mut list).is_err());
    }
}
