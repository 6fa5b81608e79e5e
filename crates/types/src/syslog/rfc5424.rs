//! The header of RFC 5424, and its structured data.

use crate::Time;
use crate::record::{Datum, LogRecord};

/// Returns true if a message has, after its priority, the start of RFC 5424: a version, and a time or `-`.
pub(super) fn is_meant(rest: &str) -> bool {
    let Some((version, rest)) = rest.split_once(' ') else { return false };
    version == "1" && (rest.starts_with("- ") || rest.get(..5).is_some_and(|year| year.ends_with('-') && year.starts_with(digit)))
}

fn digit(character: char) -> bool {
    character.is_ascii_digit()
}

/// Sets the fields that a message has after its priority.
pub(super) fn read(rest: &str, record: &mut LogRecord) -> Result<(), String> {
    let mut rest = rest;
    let mut next = |what: &str| {
        let (word, after) = rest.split_once(' ').ok_or_else(|| format!("the header ends before its {what}"))?;
        rest = after;
        if word.is_empty() { Err(format!("its {what} is empty")) } else { Ok(word) }
    };
    next("version")?;
    let time = next("time")?;
    let [host, process, procid, msgid] = [next("host")?, next("app-name")?, next("procid")?, next("msgid")?];
    let known = |word: &str| if word == "-" { String::new() } else { word.to_owned() };
    if time != "-" {
        record.time = Time::from_rfc3339(time).map_err(|why| why.to_string())?;
    }
    record.host = known(host);
    record.process = known(process);
    record.logger.clone_from(&record.process);
    for (name, word) in [("procid", procid), ("msgid", msgid)] {
        if word != "-" {
            record.data.push(Datum::new(name, word));
        }
    }
    let message = structured_data(rest, &mut record.data)?;
    // A byte order mark says that the text is UTF-8, which it is here anyway.
    record.message = message.strip_prefix('\u{feff}').unwrap_or(message).to_owned();
    Ok(())
}

/// `-`, or elements `[id name="value" ...]`; returns the text after them.
fn structured_data<'a>(text: &'a str, data: &mut Vec<Datum>) -> Result<&'a str, String> {
    let mut rest = match text.strip_prefix('-') {
        Some(rest) => rest,
        None if text.starts_with('[') => text,
        None => return Err("there is no structured data".to_owned()),
    };
    while let Some(element) = rest.strip_prefix('[') {
        rest = element_of(element, data)?;
    }
    match rest.strip_prefix(' ') {
        Some(message) => Ok(message),
        None if rest.is_empty() => Ok(rest),
        None => Err("no blank follows the structured data".to_owned()),
    }
}

/// The rest of an element after its `[`.
fn element_of<'a>(element: &'a str, data: &mut Vec<Datum>) -> Result<&'a str, String> {
    let end = element.find([' ', ']']).ok_or("an element of the structured data does not end")?;
    let (id, mut rest) = element.split_at(end);
    if rest.starts_with(']') {
        data.push(Datum::new(id, ""));
    }
    loop {
        if let Some(rest) = rest.strip_prefix(']') {
            return Ok(rest);
        }
        let (name, quoted) =
            rest.strip_prefix(' ').and_then(|rest| rest.split_once("=\"")).ok_or("a parameter is not name=\"value\"")?;
        if name.contains([' ', ']', '"']) {
            return Err("a parameter is not name=\"value\"".to_owned());
        }
        let (value, after) = value_of(quoted).ok_or("a parameter's value does not end")?;
        data.push(Datum::new(format!("{id}.{name}"), value));
        rest = after;
    }
}

/// Reads a value after its opening quotation mark, and unescapes `\"`, `\\` and `\]`. Returns it with the text after
/// the closing mark.
fn value_of(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = quoted;
    loop {
        let at = rest.find(['"', '\\'])?;
        value.push_str(&rest[..at]);
        let special = &rest[at..];
        if let Some(after) = special.strip_prefix('"') {
            return Some((value, after));
        }
        // A backslash before anything else stands for itself.
        match special[1..].chars().next()? {
            escaped @ ('"' | '\\' | ']') => {
                value.push(escaped);
                rest = &special[2..];
            }
            _ => {
                value.push('\\');
                rest = &special[1..];
            }
        }
    }
}
