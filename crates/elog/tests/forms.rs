//! The bodies of forms: as browsers, the `elog` command and py_elog write them, and malformed.

use std::io::{self, Read};

use proptest::prelude::*;
use tampu_elog::pages::multipart::{BadBody, FormLimits, Multipart, boundary, pairs};

const B: &str = "---------------------------5E8A1B2C3D4E";

/// Gives its bytes so many at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.len().min(self.1).min(to.len());
        to[..bytes].copy_from_slice(&self.0[..bytes]);
        self.0 = &self.0[bytes..];
        Ok(bytes)
    }
}

type Parts = Vec<(String, Option<String>, Vec<u8>)>;

fn all(body: &[u8], at_once: usize, limits: &FormLimits) -> Result<Parts, BadBody> {
    let mut parts = Multipart::new(Slow(body, at_once), B.as_bytes(), limits.clone());
    let (mut found, text) = (Vec::new(), |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned());
    while let Some(head) = parts.next_part()? {
        let bytes = parts.field(limits.field)?;
        found.push((text(&head.name), head.filename.as_deref().map(text), bytes));
    }
    Ok(found)
}

fn read(body: &str) -> Parts {
    let whole = all(body.as_bytes(), usize::MAX, &FormLimits::default()).unwrap();
    for at_once in [1, 7, 60] {
        assert_eq!(all(body.as_bytes(), at_once, &FormLimits::default()).unwrap(), whole);
    }
    whole
}

fn field(name: &str, value: &str) -> (String, Option<String>, Vec<u8>) {
    (name.to_owned(), None, value.as_bytes().to_vec())
}

fn file(name: &str, filename: &str, value: &str) -> (String, Option<String>, Vec<u8>) {
    (name.to_owned(), Some(filename.to_owned()), value.as_bytes().to_vec())
}

#[test]
fn as_browsers_write_it() {
    let body = format!(
        "--{B}\r\nContent-Disposition: form-data; name=\"cmd\"\r\n\r\nSubmit\r\n--{B}\r\nContent-Disposition: form-data; \
         name=\"Text\"\r\n\r\n\r\n--{B}\r\ncontent-disposition:form-data;name=attfile1;filename=\"C:\\a \\\"b\\\".png\"\r\n\
         Content-Type: image/png\r\n\r\nx\r\n--{B}x\r\n\n--{B}--\r\nafter"
    );
    let png = file("attfile1", "C:\\a \"b\".png", &format!("x\r\n--{B}x\r\n"));
    assert_eq!(read(&body), [field("cmd", "Submit"), field("Text", ""), png]);
    let star = format!(
        "--{B}\r\nContent-Disposition: form-data; name=\"attfile1\"; filename=\"x\"; filename*=UTF-8\'\'%C3%A4+b\r\n\r\n1\r\n--{B}--"
    );
    assert_eq!(read(&star), [file("attfile1", "ä+b", "1")]);
    assert_eq!(read(&format!("\r\n--{B}--\r\n")), []);
    // Line ends of Unix, as scripts write them.
    let unix = format!("--{B}\nContent-Disposition: form-data; name=\"a\"\n\n1\n2\n--{B}--\n");
    assert_eq!(read(&unix), [field("a", "1\n2")]);
}

#[test]
fn as_the_elog_command_writes_it() {
    let part = |name: &str, value: &str| format!("{B}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let attached =
        |value: &str| format!("Content-Disposition: form-data; name=\"attfile1\"; filename=\"a.png\"\r\n\r\n{value}{B}\r\n");
    let begin = part("cmd", "Submit") + &part("Subject", "--");
    let expected = [field("cmd", "Submit"), field("Subject", "--"), field("Text", "two\r\nlines")];
    let text = begin.clone() + &part("Text", "two\r\nlines") + &format!("{B}\r\n");
    assert_eq!(read(&text), expected);
    let with_file = read(&(text + &attached("bytes\r\n")));
    assert_eq!((&with_file[..3], &with_file[3]), (&expected[..], &file("attfile1", "a.png", "bytes\r\n")));
    // Without a text, no boundary ends the last attribute; a file may follow in the middle of it.
    assert_eq!(read(&begin), expected[..2]);
    let orphan = read(&(begin.clone() + &attached("bytes")));
    assert_eq!((&orphan[..2], &orphan[2]), (&expected[..2], &file("attfile1", "a.png", "bytes")));
    // Inside a text, the same bytes are text.
    let quoted = part("Text", &attached("")[..60]) + &format!("{B}\r\n");
    assert_eq!(read(&quoted), [field("Text", &attached("")[..60])]);
    assert!(matches!(all((begin + &attached("cut")[..80]).as_bytes(), 9, &FormLimits::default()), Err(BadBody::CutOff(3))));
}

#[test]
fn what_is_malformed_is_told() {
    let good = format!("--{B}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--{B}--");
    for (body, expected) in [
        (String::new(), "does not begin"),
        ("cmd=Submit".to_owned(), "does not begin"),
        (good.replace("name", "nome"), "part 1 of the form has no head"),
        (good.replace("Disposition", "Type"), "part 1 of the form has no head"),
        (format!("--{B}\r\n\r\n1\r\n--{B}--"), "part 1 of the form has no head"),
        (good[..good.len() - 4].to_owned(), "ends in the middle of part 1"),
        (format!("--{B}\r\nContent-Disposition: form"), "ends in the middle of part 1"),
        (format!("--{B}\r\n"), "ends in the middle of part 0"),
    ] {
        for at_once in [1, 1000] {
            let told = all(body.as_bytes(), at_once, &FormLimits::default()).unwrap_err().to_string();
            assert!(told.contains(expected), "{body:?}: {told}");
        }
    }
    let small = FormLimits { parts: 1, head: 70, field: 5, fields: 5, file: 5, total: 400 };
    for (body, expected) in [
        (good.replace("\r\n1\r\n", "\r\n123456\r\n"), "more than 5 bytes in a field"),
        (good.replace("form-data", &"x".repeat(100)), "more than 70 bytes in a part's head"),
        (good[..good.len() - 2].to_owned() + &good[B.len() + 2..], "more than 1 parts"),
        ("\r\n".repeat(300) + &good, "more than 400 bytes"),
    ] {
        let told = all(body.as_bytes(), 100, &small).unwrap_err();
        assert!(told.is_too_much() && told.to_string().contains(expected), "{told}");
    }
    assert_eq!(boundary("multipart/form-data; charset=x; boundary=\"a b\""), Some(b"a b".to_vec()));
    for kind in ["", "multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=a", "text/plain"] {
        assert_eq!(boundary(kind), None, "{kind}");
    }
}

#[test]
fn addresses_are_read() {
    let read: Vec<_> = pairs(b"Run+number=1%2B2&&a&b=%zz%4&c=d=e").collect();
    let text: Vec<_> =
        read.iter().map(|(name, value)| (std::str::from_utf8(name).unwrap(), std::str::from_utf8(value).unwrap())).collect();
    assert_eq!(text, [("Run number", "1+2"), ("a", ""), ("b", "%zz%4"), ("c", "d=e")]);
}

proptest! {
    #[test]
    fn parts_are_read_as_they_were_written(
        parts in proptest::collection::vec(("[a-zA-Z_]{1,20}", proptest::option::of("[a-z.]{1,9}"), proptest::collection::vec(any::<u8>(), 0..300)), 0..6),
        at_once in 1..400usize,
    ) {
        let mut body = Vec::new();
        for (name, filename, bytes) in &parts {
            let filename = filename.as_ref().map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
            body.extend_from_slice(format!("--{B}\r\nContent-Disposition: form-data; name=\"{name}\"{filename}\r\n\r\n").as_bytes());
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{B}--\r\n").as_bytes());
        prop_assert_eq!(all(&body, at_once, &FormLimits::default()).unwrap(), parts);
    }

    #[test]
    fn any_bytes_are_read(text in "(-{1,3}|\r|\n|a|\"|; |Content-Disposition: form-data; name=\"(attfile1|Text)\"|filename=\"x\"|\r\n\r\n|---------------------------5E8A1B2C3D4E){0,30}", at_once in 1..40usize, standard in any::<bool>()) {
        let body = if standard { format!("--{B}\r\n{text}") } else { format!("{B}\r\n{text}") };
        let bytes = |read: Result<Parts, BadBody>| read.map(|parts| parts.iter().map(|part| part.2.len()).sum::<usize>());
        let whole = bytes(all(body.as_bytes(), usize::MAX, &FormLimits::default())).ok();
        prop_assert!(whole.is_none_or(|whole| whole <= body.len()));
        // The size of the pieces does not change the result.
        prop_assert_eq!(bytes(all(body.as_bytes(), at_once, &FormLimits::default())).ok(), whole);
    }
}
